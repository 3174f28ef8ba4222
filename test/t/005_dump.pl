# The history goes with a dump, and loads go on where they were after a restore.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ILoadTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('main');
my $dir = PostgreSQL::Test::Utils::tempdir;
my $day = '2026-08-02';

make_rows_function($node);
make_table($node, $_) foreach 'part', 'plain';

sub load_text
{
	my ($table, $version, $schema) = @_;

	return sprintf("SELECT r.method FROM %s.replace_partition('%s', '%s',"
		  . " 'SELECT * FROM rows_of(\$1, %d)') r", $schema || 'public', $table, $day, $version);
}

sub history_of
{
	my ($dbname, $schema) = @_;

	return $node->safe_psql($dbname, 'SELECT * FROM ' . ($schema || 'public') . '.load_history ORDER BY id');
}

# The history is that of the dump, a retry finds nothing to do, and the next
# load goes on with the next id.
sub check_restored
{
	my ($name, $dbname, $version, $history, $schema) = @_;
	my $h = ($schema || 'public') . '.load_history';
	my $last = () = $history =~ /^\d+\|/mg;

	is(history_of($dbname, $schema), $history, "$name: history is restored");
	is($node->safe_psql($dbname, "SELECT count(*) FROM $h WHERE target = 'part'::regclass"),
		$node->safe_psql('postgres', 'SELECT count(*) FROM '
			  . ($schema ? "$schema." : '') . "load_history WHERE target = 'part'::regclass"),
		"$name: history refers to the table as restored") unless $schema;
	is($node->safe_psql($dbname, load_text('part', $version, $schema)), 'none', "$name: retry");
	is($node->safe_psql($dbname, load_text('part', $version + 1, $schema)), 'diff', "$name: next load");
	is($node->safe_psql($dbname, "SELECT id, target, method FROM $h WHERE id > $last ORDER BY id"),
		($last + 1) . "|part|none\n" . ($last + 2) . '|part|diff', "$name: ids go on");
	expect_rows($node, "SELECT * FROM part WHERE day = '$day'",
		"SELECT * FROM rows_of('$day', @{[ $version + 1 ]})", "$name: day is loaded", $dbname);
	return;
}

$node->safe_psql('postgres', load_text('part', 1));
$node->safe_psql('postgres', load_text('plain', 1));
$node->safe_psql('postgres', load_text('part', 1));

$node->safe_psql('postgres', "SELECT run_once('paid', 'SELECT 1')");
$node->safe_psql('postgres',
	"INSERT INTO load_failures (target, logical_date, sqlstate, message, failed_by, failed_at)"
	  . " VALUES ('part', '$day', '22012', 'division by zero', current_user, now())");

my $history = history_of('postgres');

is(scalar(() = $history =~ /^/mg), 3, 'three loads to dump');

# Custom format, whole database.
$node->command_ok([ 'pg_dump', '-Fc', '-f', "$dir/custom", '-d', $node->connstr('postgres') ],
	'pg_dump -Fc');
$node->safe_psql('postgres', 'CREATE DATABASE custom');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', $node->connstr('custom'), "$dir/custom" ],
	'pg_restore of it');
check_restored('custom', 'custom', 1, $history);
is($node->safe_psql('custom', 'SELECT target, logical_date, message FROM load_failures'),
	"part|$day|division by zero", 'custom: failures are restored');
is($node->safe_psql('custom', "SELECT run_once('paid', 'SELECT 1')"), 'f', 'custom: so are tokens');
$node->safe_psql('custom',
	"INSERT INTO load_failures (logical_date, sqlstate, message, failed_by, failed_at)"
	  . " VALUES ('$day', '', '', '', now())");
is($node->safe_psql('custom', 'SELECT max(id) FROM load_failures'), '2', 'custom: ids of failures go on');

# The same by two jobs, which restore tables in another order.
$node->safe_psql('postgres', 'CREATE DATABASE jobs');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-j', '2', '-d', $node->connstr('jobs'), "$dir/custom" ],
	'pg_restore -j 2 of it');
check_restored('jobs', 'jobs', 1, $history);

# Plain text.
$node->command_ok([ 'pg_dump', '-f', "$dir/plain", '-d', $node->connstr('postgres') ], 'pg_dump');
$node->safe_psql('postgres', 'CREATE DATABASE plain');
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$dir/plain", '-d', $node->connstr('plain') ],
	'psql of it');
check_restored('plain', 'plain', 1, $history);

# Schema only: no history, no rows, and loads start from the beginning.
$node->command_ok([ 'pg_dump', '-Fc', '--schema-only', '-f', "$dir/schema", '-d', $node->connstr('postgres') ],
	'pg_dump --schema-only');
$node->safe_psql('postgres', 'CREATE DATABASE schema_only');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', $node->connstr('schema_only'), "$dir/schema" ],
	'pg_restore of it');
is(history_of('schema_only'), '', 'schema only: no history');
is($node->safe_psql('schema_only', load_text('part', 1)), 'swap', 'schema only: first load');
is($node->safe_psql('schema_only', 'SELECT id, rows_before FROM load_history'), '1|0',
	'schema only: it is the first one');

# One table: neither the extension nor its history comes along.
$node->command_ok(
	[ 'pg_dump', '-Fc', '-t', 'part*', '-f', "$dir/table", '-d', $node->connstr('postgres') ],
	'pg_dump -t of a target');
$node->safe_psql('postgres', 'CREATE DATABASE one_table');
$node->safe_psql('one_table', 'CREATE EXTENSION idempotent_load');
make_rows_function($node, 'one_table');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', $node->connstr('one_table'), "$dir/table" ],
	'pg_restore of it');
is(history_of('one_table'), '', 'one table: no history');
is($node->safe_psql('one_table', load_text('part', 1)), 'none', 'one table: retry finds nothing to do');

# A superuser has made the extension in a database whose owner is not one.  The
# owner restores all but the comment on the extension and the extension's own
# rows, which are not the owner's to write: --no-comments (or -L) and
# --exclude-table-data leave these out.
$node->safe_psql('postgres', 'CREATE ROLE warehouse LOGIN');
$node->safe_psql('postgres', 'CREATE DATABASE owned OWNER warehouse');
$node->safe_psql('owned', 'CREATE EXTENSION idempotent_load; GRANT ALL ON SCHEMA public TO warehouse');
my @as_owner = ('pg_restore', '--exit-on-error', '--no-owner', '--no-acl', '-d',
	$node->connstr('owned') . ' user=warehouse');

$node->command_fails([ @as_owner, "$dir/custom" ], 'owner of the database cannot restore a full dump');
$node->command_ok(
	[ 'pg_dump', '-Fc', '--no-comments',
		(map { "--exclude-table-data=$_" } 'load_history*', 'load_failures*', 'once_tokens', 'jobs', 'backfills*',
			'previous_versions'),
		'-f', "$dir/owned", '-d', $node->connstr('postgres') ],
	'pg_dump without the extension\'s rows');
$node->command_ok([ @as_owner, "$dir/owned" ], 'owner of the database restores that');
is(history_of('owned'), '', 'owned: no history');
{
	my $owner = session($node, dbname => 'owned', user => 'warehouse');

	is($owner->must(load_text('part', 1)), 'none', 'owned: retry as the owner');
	is($owner->must(load_text('part', 2)), 'diff', 'owned: next load as the owner');
	$owner->query("DELETE FROM load_history");
	like($owner->error, qr/42501: permission denied for table load_history/,
		'owned: history is not the owner\'s to write');
	$owner->finish;
}
is($node->safe_psql('owned', 'SELECT method, loaded_by FROM load_history ORDER BY id'),
	"none|warehouse\ndiff|warehouse", 'owned: history of the owner\'s loads');

# The extension in a schema of its own.
$node->safe_psql('postgres', 'CREATE DATABASE elsewhere');
$node->safe_psql('elsewhere', 'CREATE SCHEMA "Load tools"; CREATE EXTENSION idempotent_load SCHEMA "Load tools"');
make_rows_function($node, 'elsewhere');
$node->safe_psql('elsewhere',
	"CREATE TABLE part (day date, id int, amount numeric, note text) PARTITION BY RANGE (day);"
	  . "CREATE TABLE part_20260802 PARTITION OF part FOR VALUES FROM ('2026-08-02') TO ('2026-08-03')");
$node->safe_psql('elsewhere', load_text('part', 1, '"Load tools"'));
$history = history_of('elsewhere', '"Load tools"');
like($history, qr/^1\|part\|public\.part\|/, 'elsewhere: one load');
$node->command_ok([ 'pg_dump', '-Fc', '-f', "$dir/elsewhere", '-d', $node->connstr('elsewhere') ],
	'pg_dump of a database with the extension in another schema');
$node->safe_psql('postgres', 'CREATE DATABASE elsewhere_restored');
$node->command_ok(
	[ 'pg_restore', '--exit-on-error', '-d', $node->connstr('elsewhere_restored'), "$dir/elsewhere" ],
	'pg_restore of it');
check_restored('elsewhere', 'elsewhere_restored', 1, $history, '"Load tools"');

# A table that is dropped and made again has no loads of its own, before and
# after a dump.
$node->safe_psql('postgres', 'DROP TABLE plain');
make_table($node, 'plain');
my $claim = "SELECT count(*) FILTER (WHERE target = 'plain'::regclass),"
  . " count(*) FILTER (WHERE target_name = 'public.plain') FROM load_history";
is($node->safe_psql('postgres', $claim), '0|1', 'made again: the new table has no loads');
$node->command_ok([ 'pg_dump', '-Fc', '-f', "$dir/again", '-d', $node->connstr('postgres') ],
	'pg_dump with the history of a dropped table');
$node->safe_psql('postgres', 'CREATE DATABASE again');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', $node->connstr('again'), "$dir/again" ],
	'pg_restore of it');
is($node->safe_psql('again', $claim), '0|1', 'made again: nor has it after a restore');
is($node->safe_psql('again', load_text('plain', 1)), 'diff', 'made again: it can be loaded');
is($node->safe_psql('again', $claim), '1|2', 'made again: then it has a load');

$node->stop;
done_testing();
