# A subscriber of logical replication follows loads exactly, and is sent only
# the rows that changed.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ILoadTest;
use Test::More;

my $publisher = new_node('publisher', init => { allows_streaming => 'logical' });
my $subscriber = new_node('subscriber', init => { allows_streaming => 'logical' });
my $day = '2026-08-02';
my %method_of = (part => 'diff', part_key => 'auto', plain => 'delete');
my @tables = sort keys %method_of;

# Rows of "part" and "plain" are found by all their columns, there are equal
# ones among them; "part_key" has a primary key.
make_rows_function($publisher);
make_rows_function($subscriber);
make_table($publisher, $_) foreach 'part', 'plain';
$publisher->safe_psql('postgres', <<SQL);
ALTER TABLE plain REPLICA IDENTITY FULL;
ALTER TABLE part REPLICA IDENTITY FULL;
ALTER TABLE part_20260801 REPLICA IDENTITY FULL;
ALTER TABLE part_20260802 REPLICA IDENTITY FULL;
ALTER TABLE part_20260803 REPLICA IDENTITY FULL;
CREATE TABLE part_key (day date, id int, amount numeric(12,2), note text, PRIMARY KEY (day, id))
	PARTITION BY RANGE (day);
CREATE TABLE part_key_20260802 PARTITION OF part_key FOR VALUES FROM ('2026-08-02') TO ('2026-08-03');
CREATE PUBLICATION loads FOR TABLE part, part_key, plain WITH (publish_via_partition_root);
SQL

# There the tables are not partitioned, and triggers note what arrives.
$subscriber->safe_psql('postgres', <<'SQL');
CREATE TABLE arrived (relation text, op text, id int);
CREATE FUNCTION note_arrival() RETURNS trigger LANGUAGE plpgsql AS
$$
BEGIN
	INSERT INTO public.arrived VALUES (TG_TABLE_NAME, TG_OP,
		CASE WHEN TG_OP = 'DELETE' THEN OLD.id ELSE NEW.id END);
	RETURN NULL;
END
$$;
SQL
foreach my $table (@tables)
{
	$subscriber->safe_psql('postgres', <<SQL);
CREATE TABLE $table (day date, id int, amount numeric(12,2), note text);
ALTER TABLE $table REPLICA IDENTITY FULL;
CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON $table
	FOR EACH ROW EXECUTE FUNCTION note_arrival();
ALTER TABLE $table ENABLE ALWAYS TRIGGER note;
SQL
}
$subscriber->safe_psql('postgres', 'ALTER TABLE part_key ADD PRIMARY KEY (day, id)');
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION loads CONNECTION '"
	  . $publisher->connstr . " dbname=postgres' PUBLICATION loads");
$subscriber->wait_for_subscription_sync($publisher, 'loads');

# A load; returns method, rows inserted and rows deleted.
sub load_text
{
	my ($table, $date, $version) = @_;
	my $distinct = $table eq 'part_key' ? 'DISTINCT' : '';

	return "SELECT r.method, r.inserted, r.deleted FROM replace_partition('$table', '$date',"
	  . " 'SELECT $distinct * FROM rows_of(\$1, $version)', method => '$method_of{$table}') r";
}

sub contents
{
	my ($node) = @_;

	return join "\n", map { $node->safe_psql('postgres',
			"SELECT '$_', day, count(*), sum(amount), fingerprint(t) FROM $_ t GROUP BY day ORDER BY day") } @tables;
}

# Load all tables; the subscriber gets what was written and no more.
sub load_and_compare
{
	my ($name, $date, $version) = @_;
	my %written;

	$subscriber->safe_psql('postgres', 'TRUNCATE arrived');
	foreach my $table (@tables)
	{
		my $result = $publisher->safe_psql('postgres', load_text($table, $date, $version));
		my ($method, $inserted, $deleted) = split /\|/, $result;

		$written{$table} = "$deleted|$inserted|0";
		note("$name: $table $result");
	}
	$publisher->wait_for_catchup('loads');
	is(contents($subscriber), contents($publisher), "$name: the subscriber has the same rows");
	foreach my $table (@tables)
	{
		is($subscriber->safe_psql('postgres', <<SQL), $written{$table},
SELECT count(*) FILTER (WHERE op = 'DELETE'), count(*) FILTER (WHERE op = 'INSERT'),
	count(*) FILTER (WHERE op = 'UPDATE')
FROM arrived WHERE relation = '$table'
SQL
			"$name: $table: it was sent what the load wrote");
	}
	return;
}

is(contents($subscriber), contents($publisher), 'tables are synchronized');
load_and_compare('first load', $day, 1);
load_and_compare('retry', $day, 1);
is($subscriber->safe_psql('postgres', 'SELECT count(*) FROM arrived'), 0, 'a retry sends nothing');
load_and_compare('new version', $day, 2);
is($subscriber->safe_psql('postgres', <<SQL), 't', 'part: only rows that differ were sent');
WITH old AS (SELECT * FROM rows_of('$day', 1)), new AS (SELECT * FROM rows_of('$day', 2))
SELECT (SELECT count(*) FROM arrived WHERE relation = 'part') =
	(SELECT count(*) FROM (TABLE old EXCEPT ALL TABLE new) a) +
	(SELECT count(*) FROM (TABLE new EXCEPT ALL TABLE old) b)
SQL
load_and_compare('new partition', '2026-09-01', 2);

# The new partition has the replica identity that its primary key gives it.
like($publisher->safe_psql('postgres', load_text('part_key', '2026-09-01', 3)), qr/^diff/,
	'new version of the new partition with a primary key');
$publisher->wait_for_catchup('loads');
is(contents($subscriber), contents($publisher), 'the subscriber has it');

# Without replica identity the server refuses to delete.
foreach my $case ([ 'plain', 'plain', 'plain' ], [ 'part', 'part', 'part_20260802' ])
{
	my ($name, $table, $relation) = @$case;

	$publisher->safe_psql('postgres', "ALTER TABLE $relation REPLICA IDENTITY DEFAULT");
	my $before = state_of($publisher, @tables);

	like(error_of($publisher, load_text($table, $day, 4)),
		qr/^55000: cannot delete from table "$relation" because it does not have a replica identity and publishes deletes/,
		"$name: no replica identity");
	is(state_of($publisher, @tables), $before, "$name: nothing has changed");
	like($publisher->safe_psql('postgres', load_text($table, $day, 2)), qr/^none/,
		"$name: a retry writes nothing, so it needs none");
	$publisher->safe_psql('postgres', "ALTER TABLE $relation REPLICA IDENTITY FULL");
}
load_and_compare('after that', $day, 4);

$subscriber->stop;
$publisher->stop;
done_testing();
