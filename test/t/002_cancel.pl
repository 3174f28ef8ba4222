# A load is cancelled, terminated or timed out at each of its steps.  The day is
# the old one, no lock and no file is left, and the same session can go on.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ILoadTest;
use Test::More;

my $node = new_node('main', conf => "work_mem = 64kB\ntimezone = 'Europe/Berlin'");
my $day = '2026-08-02';
my %method_of = (part_diff => 'diff', plain_delete => 'delete');
my @tables = sort keys %method_of;

make_rows_function($node);
make_table($node, $_) foreach @tables;

my $version = 0;

sub load_text
{
	my ($table) = @_;

	return "SELECT r.method FROM replace_partition('$table', '$day',"
	  . " 'SELECT * FROM rows_of(\$1, $version)', method => '$method_of{$table}',"
	  . " timezone => 'Pacific/Apia') r";
}

# A backend that is idle outside of a transaction holds no lock at all.
sub locks_of
{
	my ($pid) = @_;

	return $node->safe_psql('postgres', "SELECT count(*) FROM pg_locks WHERE pid = $pid");
}

my %ended_by = (
	cancel => qr/^ERROR:  57014: canceling statement due to user request/m,
	timeout => qr/^ERROR:  57014: canceling statement due to statement timeout/m,
	terminate => qr/^FATAL:  57P01: terminating connection/m);

foreach my $point (qw(locked staged compared deleted inserted recorded))
{
	my $gate = close_gate($node, $point);

	foreach my $way (sort keys %ended_by)
	{
		my $state = state_of($node, @tables);
		my %load;

		$version++;
		foreach my $table (@tables)
		{
			my $load = $load{$table} = session($node);

			$load->query("SET idempotent_load.wait_point = '$point'");
			$load->query("SET statement_timeout = '300ms'") if $way eq 'timeout';
			$load->send(load_text($table));
		}
		if ($way ne 'timeout')
		{
			wait_at_gate($node, scalar @tables);
			$node->safe_psql('postgres', "SELECT pg_${way}_backend(" . $_->pid . ')')
			  foreach values %load;
		}
		foreach my $table (@tables)
		{
			$load{$table}->wait;
			like($load{$table}->error, $ended_by{$way}, "$way at \"$point\" ends load of $table");
		}

		is(state_of($node, @tables), $state, "$way at \"$point\": everything is as before");
		is(join(' ', temp_files($node)), '', "$way at \"$point\": no temporary file is left");
		foreach my $table (@tables)
		{
			my $load = $load{$table};

			is(locks_of($load->pid), 0, "$way at \"$point\": no lock is left on $table");
			if ($way eq 'terminate')
			{
				$load->finish;
				$load = session($node);
			}
			$load->must("RESET statement_timeout; SET idempotent_load.wait_point = ''");
			is($load->must('SHOW timezone'), 'Europe/Berlin', "$way at \"$point\": time zone of the session");
			is($load->must(load_text($table)), $method_of{$table}, "$way at \"$point\": $table is loaded after all");
			is($load->must(load_text($table)), 'none', "$way at \"$point\": $table is loaded");
			$load->finish;
		}
	}
	$gate->finish;
}
foreach my $table (@tables)
{
	expect_rows($node, "SELECT * FROM $table WHERE day = '$day'",
		"SELECT * FROM rows_of('$day', $version)", "$table has the last version");
}

# A load waits for the slice lock, in vain.
my $first = session($node);
my $second = session($node);

foreach my $table (@tables)
{
	$version++;
	$first->must('BEGIN');
	$first->must(load_text($table));
	$second->must("SET lock_timeout = '100ms'");
	$second->query(load_text($table));
	like($second->error, qr/^ERROR:  55P03: canceling statement due to lock timeout/m,
		"$table: lock_timeout counts for the slice lock");
	is(locks_of($second->pid), 0, "$table: no lock is left");
	is($second->must('SHOW timezone'), 'Europe/Berlin', "$table: time zone after lock_timeout");
	$second->must('RESET lock_timeout');
	$second->send(load_text($table));
	wait_for_lock($node, $second->pid);
	$first->must('ROLLBACK');
	is($second->wait, $method_of{$table}, "$table: loaded once the other one has rolled back");
}

# Cancelled after a savepoint, and again in the same transaction.
foreach my $table (@tables)
{
	my $gate = close_gate($node, 'inserted');

	$version++;
	$first->must('BEGIN; SAVEPOINT s');
	$first->must("SET LOCAL idempotent_load.wait_point = 'inserted'");
	$first->send(load_text($table));
	wait_at_gate($node, 1);
	$second->must('SELECT pg_cancel_backend(' . $first->pid . ')');
	$first->wait;
	like($first->error, $ended_by{cancel}, "$table: cancelled after a savepoint");
	$first->must('ROLLBACK TO s');
	is($first->must("SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'"),
		0, "$table: slice lock is given back with the savepoint");
	is($first->must(load_text($table)), $method_of{$table}, "$table: loaded in the same transaction");
	$first->must('COMMIT');
	$gate->finish;
	expect_rows($node, "SELECT * FROM $table WHERE day = '$day'",
		"SELECT * FROM rows_of('$day', $version)", "$table: committed");
}

# Errors that PL/pgSQL catches leave time zone and user as they were.
$node->safe_psql('postgres', <<'SQL');
CREATE ROLE loader;
GRANT SELECT, INSERT, DELETE ON plain_delete TO loader;
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE 'refused for %', current_user; END $$;
CREATE TABLE seen (what text, zone text, who text, state text, message text);
GRANT INSERT ON seen TO loader;
CREATE FUNCTION try(what text, query text) RETURNS void LANGUAGE plpgsql AS
$$
DECLARE s text; m text;
BEGIN
	PERFORM replace_partition('plain_delete', '2026-08-02', query, timezone => 'Pacific/Apia');
	INSERT INTO seen SELECT what, current_setting('TimeZone'), current_user, 'loaded';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS s = RETURNED_SQLSTATE, m = MESSAGE_TEXT;
	INSERT INTO seen SELECT what, current_setting('TimeZone'), current_user, s, m;
END
$$;
SQL
$version++;
$first->must('SET ROLE loader');
$first->must("SELECT try('in the query', 'SELECT \$1 AS day, 1 / 0 AS id')");
$first->must("SELECT try('stray row', 'SELECT \$1 + 1 AS day, 1 AS id')");
$second->must('CREATE TRIGGER refuse BEFORE INSERT ON load_history FOR EACH ROW EXECUTE FUNCTION refuse()');
$first->must("SELECT try('in the history', 'SELECT * FROM rows_of(\$1, $version)')");
$second->must('DROP TRIGGER refuse ON load_history');
$first->must("SELECT try('none', 'SELECT * FROM rows_of(\$1, $version)')");
is($node->safe_psql('postgres', 'SELECT * FROM seen ORDER BY what'),
	join("\n",
		'in the history|Europe/Berlin|loader|P0001|refused for ' . $node->safe_psql('postgres', 'SELECT current_user'),
		'in the query|Europe/Berlin|loader|22012|division by zero',
		'none|Europe/Berlin|loader|loaded|',
		'stray row|Europe/Berlin|loader|IL001|query returned a row that is not in slice [2026-08-02, 2026-08-03) of table "plain_delete"'),
	'time zone and user are restored when PL/pgSQL catches the error');
expect_rows($node, "SELECT * FROM plain_delete WHERE day = '$day'",
	"SELECT * FROM rows_of('$day', $version)", 'the load after the errors is whole');
is($first->must('SHOW timezone'), 'Europe/Berlin', 'time zone of the session');
is(locks_of($first->pid), 0, 'no lock is left');

$node->stop;
done_testing();
