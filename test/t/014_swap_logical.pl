# Whoever decodes the WAL of a table sees its loads: where somebody may, auto does
# not swap, and swap is refused with the name of who would miss the rows.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ILoadTest;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;

# It is not for the size, or the number of changes, that a slice is not swapped.
my $conf = <<CONF;
idempotent_load.swap_min_size = 0
idempotent_load.swap_threshold = 0
idempotent_load.delete_threshold = 1
CONF
my $publisher = new_node('publisher', conf => $conf, init => { allows_streaming => 'logical' });
my $subscriber = new_node('subscriber', conf => $conf, init => { allows_streaming => 'logical' });
my $day = '2026-08-02';

make_rows_function($publisher);
make_rows_function($subscriber);
make_table($publisher, $_) foreach 'part', 'part_published', 'part_unlogged';
$publisher->safe_psql('postgres', <<SQL);
ALTER TABLE part_published REPLICA IDENTITY FULL;
ALTER TABLE part_published_20260802 REPLICA IDENTITY FULL;
ALTER TABLE part_20260802 REPLICA IDENTITY FULL;
ALTER TABLE part_unlogged_20260802 SET UNLOGGED;
SQL

sub load_text
{
	my ($table, $version, $method) = @_;

	return "SELECT r.method FROM replace_partition('$table', '$day',"
	  . " 'SELECT * FROM rows_of(\$1, $version)', method => '@{[ $method || 'auto' ]}') r";
}

sub refused
{
	my ($table, $reason, $name) = @_;
	my ($rc, $out, $err) = $publisher->psql('postgres', "\\set VERBOSITY verbose\n" . load_text($table, 9, 'swap'),
		on_error_stop => 1);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return like($err, qr/ERROR:  0A000: method "swap" cannot load slice .*\nDETAIL:  It would not mean the same as DELETE and INSERT: $reason\./, $name);
}

# Rows that a slot gave out since the last call: lines of deleted and of inserted
# rows, and of anything that is neither.
sub decoded
{
	my ($slot, $table) = @_;

	return $publisher->safe_psql('postgres', <<SQL);
SELECT count(*) FILTER (WHERE data LIKE '%: DELETE: %'), count(*) FILTER (WHERE data LIKE '%: INSERT: %'),
	count(*) FILTER (WHERE data !~ ': (DELETE|INSERT): ')
FROM pg_logical_slot_get_changes('$slot', NULL, NULL) WHERE data LIKE 'table public.$table%'
SQL
}

# Without a slot and a publication nobody decodes, though wal_level is logical.
is($publisher->safe_psql('postgres', load_text('part', 1)), 'swap', 'auto swaps where nobody decodes');
is($publisher->safe_psql('postgres', load_text('part', 2, 'swap')), 'swap', 'so does swap');

# A slot of another database, or a physical one, decodes nothing here.
$publisher->safe_psql('postgres', 'CREATE DATABASE other');
$publisher->safe_psql('other', "SELECT pg_create_logical_replication_slot('elsewhere', 'test_decoding')");
$publisher->safe_psql('postgres', "SELECT pg_create_physical_replication_slot('physical', true)");
is($publisher->safe_psql('postgres', load_text('part', 1)), 'swap', 'a slot of another database, and a physical one');

# A slot of this database.
$publisher->safe_psql('postgres', "SELECT pg_create_logical_replication_slot('follower', 'test_decoding')");
refused('part', 'logical replication slot "follower" may decode changes of "part_20260802"', 'swap is refused, naming the slot');
is($publisher->safe_psql('postgres', load_text('part', 3)), 'diff', 'auto takes diff');

# What differs, by SQL.
my $expected = $publisher->safe_psql('postgres', <<SQL);
WITH old AS (SELECT * FROM rows_of('$day', 1)), new AS (SELECT * FROM rows_of('$day', 3))
SELECT (SELECT count(*) FROM (TABLE old EXCEPT ALL TABLE new) a), (SELECT count(*) FROM (TABLE new EXCEPT ALL TABLE old) b), 0
SQL
is(decoded('follower', 'part_20260802'), $expected, 'the slot gives out just the rows that differ');
cmp_ok((split /\|/, $expected)[0], '>', 100, 'these are many');
expect_rows($publisher, "SELECT * FROM part WHERE day = '$day'", "SELECT * FROM rows_of('$day', 3)", 'rows of the day');

# What is not logged is not decoded.
is($publisher->safe_psql('postgres', load_text('part_unlogged', 1)), 'swap', 'an unlogged partition is swapped all the same');
is(decoded('follower', 'part_unlogged'), '0|0|0', 'the slot knows nothing of it');

# The slot is made while the load is under way: it is looked at again once the
# leaves are locked.
$publisher->safe_psql('postgres', "SELECT pg_drop_replication_slot('follower')");
foreach my $method ('auto', 'swap')
{
	my $gate = close_gate($publisher, 'filled');
	my $load = session($publisher);
	my $before = state_of($publisher, 'part');

	$load->must("SET idempotent_load.wait_point = 'filled'");
	$load->send(load_text('part', $method eq 'auto' ? 5 : 6, $method));
	wait_at_gate($publisher, 1);

	# making it waits for the load's transaction, so it goes on in the background;
	# by the replication protocol, which holds no snapshot that the load would wait for
	my ($out, $err) = ('', '');
	my $slot = IPC::Run::start(
		[ 'psql', '-Xq', '-d', $publisher->connstr('postgres') . ' replication=database',
			'-c', 'CREATE_REPLICATION_SLOT late LOGICAL test_decoding (SNAPSHOT nothing)' ],
		'<', \undef, '>', \$out, '2>', \$err);

	$publisher->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_replication_slots WHERE slot_name = 'late'")
	  or die 'no slot is made';
	$gate->finish;
	my $done = $load->wait;

	if ($method eq 'auto')
	{
		is($done, 'diff', 'a slot that was made meanwhile: auto takes diff');
	}
	else
	{
		like($load->error, qr/logical replication slot "late" may decode/, 'a slot that was made meanwhile: swap is refused');
		is(state_of($publisher, 'part'), $before, 'and nothing has changed');
	}
	$slot->finish;
	is($err, '', 'the slot is made once the load has ended');
	$load->finish;
	$publisher->safe_psql('postgres', "SELECT pg_drop_replication_slot('late')");
}
expect_rows($publisher, "SELECT * FROM part WHERE day = '$day'", "SELECT * FROM rows_of('$day', 5)", 'rows of the day');
is($publisher->safe_psql('postgres', load_text('part', 6)), 'swap', 'without the slot auto swaps again');

# A publication, even before anybody has subscribed, and a real subscriber.
$publisher->safe_psql('postgres', 'CREATE PUBLICATION loads FOR TABLE part_published WITH (publish_via_partition_root)');
refused('part_published', '"part_published_20260802" is published for logical replication', 'a publication of the root: swap is refused');
$subscriber->safe_psql('postgres', "CREATE TABLE part_published (day date, id int, amount numeric(12,2), note text);"
	  . 'ALTER TABLE part_published REPLICA IDENTITY FULL');
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION loads CONNECTION '"
	  . $publisher->connstr . " dbname=postgres' PUBLICATION loads");
$subscriber->wait_for_subscription_sync($publisher, 'loads');
foreach my $version (1, 2)
{
	is($publisher->safe_psql('postgres', load_text('part_published', $version)), 'diff', "version $version: auto takes diff");
	$publisher->wait_for_catchup('loads');
	expect_rows($subscriber, "SELECT * FROM part_published WHERE day = '$day'", "SELECT * FROM rows_of('$day', $version)",
		"version $version: the subscriber has the rows");
}

# At the subscriber the table is not published, and may be swapped when it is loaded there.
make_table($subscriber, 'part');
is($subscriber->safe_psql('postgres', load_text('part', 1)), 'swap', 'a table of the subscriber that is not published');

# The slot of the subscription decodes all tables, so that others are not swapped either.
refused('part', 'logical replication slot "loads" may decode changes of "part_20260802"', 'the slot of a subscription counts for all tables');
$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION loads');

# Publications of all kinds; those that publish neither inserts nor deletes are none.
$publisher->safe_psql('postgres', 'DROP PUBLICATION loads');
foreach my $case (
	[ 'FOR ALL TABLES', 1 ],
	[ 'FOR TABLES IN SCHEMA public', 1 ],
	[ 'FOR TABLE part_20260802', 1 ],
	[ 'FOR TABLE part_20260801', 0 ],
	[ "FOR ALL TABLES WITH (publish = 'insert')", 1 ],
	[ "FOR ALL TABLES WITH (publish = 'delete')", 1 ],
	[ "FOR ALL TABLES WITH (publish = 'update, truncate')", 0 ])
{
	my ($what, $published) = @$case;

	$publisher->safe_psql('postgres', "CREATE PUBLICATION p $what");
	if ($published)
	{
		refused('part', '"part_20260802" is published for logical replication', "$what: swap is refused");
	}
	else
	{
		my $version = $publisher->safe_psql('postgres', 'SELECT 20 + count(*) FROM load_history');

		is($publisher->safe_psql('postgres', load_text('part', $version, 'swap')), 'swap', "$what: swap");
	}
	$publisher->safe_psql('postgres', 'DROP PUBLICATION p');
}

$subscriber->stop;
$publisher->stop;
done_testing();
