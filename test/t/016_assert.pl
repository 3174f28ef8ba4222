# Checks of jobs under other settings and in bad times: beside other libraries that
# hook into the server, cancelled and terminated, of large tables and of many
# partitions, with parallel workers, with many statements and subtransactions, over
# foreign tables, after a restore.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ILoadTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('main', conf => <<CONF);
max_wal_size = 4GB
timezone = 'UTC'
CONF
my $day = '2026-08-02';

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE source AS
SELECT date '2026-08-01' + d AS d, n FROM generate_series(0, 2) d, generate_series(1, 10) n;
CREATE TABLE target (d date, n int);
INSERT INTO target VALUES ('2026-08-01', 0), ('2026-08-02', 0);
CREATE TABLE stamps (d date, at timestamptz);
CREATE FUNCTION replace_day(day date) RETURNS void LANGUAGE plpgsql AS
$$
BEGIN
	DELETE FROM target WHERE d = day;
	INSERT INTO target SELECT d, n FROM source WHERE d = day;
END
$$;
CREATE FUNCTION stamp(day date) RETURNS void LANGUAGE plpgsql AS
$$
BEGIN
	DELETE FROM stamps WHERE d = day;
	INSERT INTO stamps VALUES (day, now());
END
$$;
SELECT create_job('good', 'target', 'SELECT d, n FROM source WHERE d = $1');
SELECT create_job('append', command => 'INSERT INTO target SELECT d, n FROM source WHERE d = $1');
SQL

# The result of a check as text: a line for each rerun.
sub check_text
{
	my ($job, $reruns) = @_;

	return "SELECT rerun, passed, cause, added, missing FROM check_idempotent('$job', '$day', '{$reruns}')"
	  . ' WHERE rerun IS NOT NULL';
}

sub assert_text
{
	my ($job, $reruns) = @_;

	return "SELECT assert_idempotent('$job', '$day', '{@{[ $reruns || 'same,crash,clock' ]}}')";
}

#
# Other libraries that hook into the server, loaded before and after ours
#

sub permutations
{
	my @items = @_;

	return [] unless @items;
	return map {
		my $i = $_;
		map { [ $items[$i], @$_ ] } permutations(@items[ grep { $_ != $i } 0 .. $#items ]);
	} 0 .. $#items;
}

my %available = map { $_ => 1 } split /\n/,
  $node->safe_psql('postgres', 'SELECT name FROM pg_available_extensions');
my @others = grep { $available{$_} } 'pg_stat_statements', 'pgaudit';

push @others, 'auto_explain' if $available{pg_stat_statements};
diag('pgaudit is not installed, so checks are not tried beside it') unless $available{pgaudit};

# What they are set to makes them look at everything.
my %conf_of = (
	pg_stat_statements => "pg_stat_statements.track = all\npg_stat_statements.track_planning = on\n",
	auto_explain => "auto_explain.log_min_duration = 0\nauto_explain.log_analyze = on\n"
	  . "auto_explain.log_nested_statements = on\n",
	pgaudit => "pgaudit.log = 'all'\n");
my $conf = slurp_file($node->data_dir . '/postgresql.conf');

foreach my $libraries (permutations(@others), permutations(@others, 'idempotent_load'))
{
	my $list = join ', ', @$libraries;

	$node->append_conf('postgresql.conf', "shared_preload_libraries = '$list'\n"
		  . join('', map { $conf_of{$_} || '' } @$libraries));
	$node->restart;
	$node->safe_psql('postgres', 'CREATE EXTENSION IF NOT EXISTS pg_stat_statements; SELECT pg_stat_statements_reset()')
	  if $available{pg_stat_statements};

	my $session = session($node);
	my $counted = 'SELECT sum(n) AS counted FROM source';

	# the first use of ours loads it, where it has not been preloaded
	$session->must($counted);
	is($session->must(check_text('good', 'same,crash,clock,timezone,plan')),
		"same|t|||\ncrash|t|||\nclock|t|||\ntimezone|t|||\nplan|t|||", "$list: good job");
	is($session->must(check_text('stamp(date)', 'same')), 'same|f|clock|1|1', "$list: job that reads the clock");
	is($session->must(check_text('append', 'same')), 'same|f|append|10|0', "$list: job that appends");
	$session->must($counted);
	is($session->must("SELECT max(at) FROM stamps"), '', "$list: nothing is left");
	is($session->must(<<SQL), '2|t|t', "$list: statements are counted") if $available{pg_stat_statements};
SELECT (SELECT calls FROM pg_stat_statements WHERE query = '$counted'),
	(SELECT sum(calls) > 1 FROM pg_stat_statements WHERE query LIKE 'INSERT INTO stamps%'),
	(SELECT bool_and(calls >= plans OR plans > 0) FROM pg_stat_statements)
SQL
	$session->finish;
}
unlink $node->data_dir . '/postgresql.conf';
append_to_file($node->data_dir . '/postgresql.conf', $conf);
$node->restart;

#
# Cancelled, timed out and terminated: before a rerun, and while a run sees a moved clock
#

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE before AS TABLE target;
-- true where the clock is not moved: what pg_stat_activity shows is no reading of the clock
CREATE FUNCTION clock_is_true() RETURNS boolean LANGUAGE plpgsql AS
$$
BEGIN
	RETURN now() = (SELECT xact_start FROM pg_stat_activity WHERE pid = pg_backend_pid());
END
$$;
-- waits where the clock is moved
CREATE FUNCTION wait_if_moved(day date) RETURNS void LANGUAGE plpgsql AS
$$
BEGIN
	PERFORM replace_day(day);
	PERFORM stamp(day);
	EXECUTE 'EXECUTE clock_is_true';
	IF NOT clock_is_true() THEN
		PERFORM pg_advisory_xact_lock_shared(hashtext('idempotent_load'), hashtext('rerun'));
	END IF;
END
$$;
SQL

my $prepare = 'PREPARE clock_is_true AS SELECT now() = xact_start FROM pg_stat_activity WHERE pid = pg_backend_pid()';
my %ended_by = (
	cancel => qr/^ERROR:  57014: canceling statement due to user request/m,
	timeout => qr/^ERROR:  57014: canceling statement due to statement timeout/m,
	terminate => qr/^FATAL:  57P01: terminating connection/m);

# The session is what it was, whatever a check did.
sub expect_usual
{
	my ($session, $name, $isolation) = @_;

	is($session->must(<<'SQL'), "$isolation|0|UTC|ISO, MDY", "$name: settings");
SELECT current_setting('transaction_isolation'), current_setting('idempotent_load.clock_shift'),
	current_setting('TimeZone'), current_setting('DateStyle')
SQL
	is($session->must('SELECT clock_is_true()'), 't', "$name: clock of a function");
	is($session->must('EXECUTE clock_is_true'), 't', "$name: clock of a prepared statement");
	is($session->must('SELECT now() = xact_start FROM pg_stat_activity WHERE pid = pg_backend_pid()'),
		't', "$name: clock");
	return;
}

sub expect_before
{
	my ($name) = @_;

	expect_rows($node, 'TABLE target', 'TABLE before', "$name: target is as before");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM stamps'), 0, "$name: the other table too");
	return;
}

sub start_session
{
	my ($point) = @_;
	my $session = session($node);

	$session->must("LOAD 'idempotent_load'");
	$session->must($prepare);
	# functions have plans from before
	$session->must('SELECT clock_is_true() FROM generate_series(1, 6)');
	$session->must("SET idempotent_load.wait_point = 'rerun'") if $point eq 'before a rerun';
	return $session;
}

my $gate = close_gate($node, 'rerun');

foreach my $point ('before a rerun', 'in a run')
{
	foreach my $way (sort keys %ended_by)
	{
		foreach my $begin ('', 'READ COMMITTED', 'REPEATABLE READ')
		{
			my $name = "$way $point" . ($begin && " in $begin");
			my $session = start_session($point);

			$session->must("BEGIN ISOLATION LEVEL $begin; SAVEPOINT s") if $begin;
			$session->must("SET statement_timeout = '300ms'") if $way eq 'timeout';
			$session->send(assert_text('wait_if_moved(date)', 'same'));
			if ($way ne 'timeout')
			{
				wait_at_gate($node, 1);
				$node->safe_psql('postgres', "SELECT pg_${way}_backend(" . $session->pid . ')');
			}
			$session->wait;
			like($session->error, $ended_by{$way}, "$name: ended");
			expect_before($name);
			is(join(' ', temp_files($node)), '', "$name: no temporary file is left");
			if ($way eq 'terminate')
			{
				$session->finish;
				next;
			}
			$session->must('ROLLBACK TO s') if $begin;
			$session->must("RESET statement_timeout; SET idempotent_load.wait_point = ''");
			expect_usual($session, $name, lc($begin || 'READ COMMITTED'));
			is($session->must(assert_text('good')), 't', "$name: another check");
			is($session->must(check_text('append', 'same')), 'same|f|append|10|0', "$name: and one more");
			expect_usual($session, "$name and checked again", lc($begin || 'READ COMMITTED'));
			$session->must('COMMIT') if $begin;
			is($session->must("SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'"),
				0, "$name: no lock is left");
			$session->finish;
			expect_before($name);
		}
	}
}

# A cancel that PL/pgSQL catches, in a transaction that goes on.
{
	my $session = start_session('in a run');

	$session->must('BEGIN');
	$session->send(<<SQL);
DO \$\$
BEGIN
	PERFORM assert_idempotent('wait_if_moved(date)', '$day', '{same}');
EXCEPTION WHEN query_canceled THEN
	INSERT INTO stamps SELECT NULL, now() WHERE clock_is_true();
END
\$\$
SQL
	wait_at_gate($node, 1);
	$node->safe_psql('postgres', 'SELECT pg_cancel_backend(' . $session->pid . ')');
	$session->wait;
	is($session->error, '', 'cancel that is caught');
	expect_usual($session, 'cancel that is caught', 'read committed');
	is($session->must('SELECT at = (SELECT xact_start FROM pg_stat_activity WHERE pid = pg_backend_pid()) FROM stamps'),
		't', 'cancel that is caught: the clock is true at once');
	is($session->must(assert_text('good')), 't', 'cancel that is caught: another check');
	$session->must('ROLLBACK');
	$session->finish;
	expect_before('cancel that is caught');
}
$gate->finish;

# With the gate open the same job fails, and its reruns have seen the moved clock.
{
	my $session = start_session('in a run');

	is($session->must(check_text('wait_if_moved(date)', 'same')), 'same|f|clock|1|1', 'nobody waits');
	expect_usual($session, 'nobody waits', 'read committed');
	$session->finish;
}

#
# Memory: all rows of a large table differ
#

SKIP:
{
	skip 'needs /proc', 3 unless -r '/proc/self/status';

	my $rows = 2_000_000;
	my ($work_mem_mb, $allowed_mb) = (4, 64);

	$node->safe_psql('postgres', <<SQL);
CREATE UNLOGGED TABLE large (id int, n int, note text);
INSERT INTO large SELECT g, g % 100, 'note ' || g FROM generate_series(1, $rows) g;
SELECT create_job('large', command => 'UPDATE large SET n = n + 1');
SQL
	my $session = session($node);

	$session->must("SET work_mem = '${work_mem_mb}MB'");
	is($session->must(check_text('large', 'same')), "same|f|reads_target|$rows|$rows", 'large table: all rows differ');

	my $mb = private_mb($session->pid);

	cmp_ok($mb, '<=', $work_mem_mb + $allowed_mb, "large table: memory within work_mem plus $allowed_mb MB");
	note(sprintf('check of %d rows that differ: %.1f MB', $rows, $mb));
	is(join(' ', temp_files($node)), '', 'large table: no temporary file is left');
	$session->finish;
	$node->safe_psql('postgres', "SELECT drop_job('large'); DROP TABLE large");
}

#
# One day of a table with many partitions: the others are not read, nor locked
#

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE days (d date, n int) PARTITION BY RANGE (d);
DO $$
BEGIN
	FOR i IN 0 .. 399 LOOP
		EXECUTE format('CREATE TABLE days_%s PARTITION OF days FOR VALUES FROM (%L) TO (%L)',
			i, date '2026-01-01' + i, date '2026-01-02' + i);
	END LOOP;
END
$$;
CREATE INDEX ON days (n);
INSERT INTO days SELECT date '2026-01-01' + i, n FROM generate_series(0, 399) i, generate_series(1, 10) n;
SELECT create_job('day by command', command =>
	'DELETE FROM days WHERE d = $1; INSERT INTO days SELECT $1, n FROM generate_series(1, 20) n');
SELECT create_job('day by query', 'days', 'SELECT $1 AS d, n FROM generate_series(1, 20) n');
SELECT create_job('day appended', command => 'INSERT INTO days SELECT $1, n FROM generate_series(1, 20) n');
SQL

# Scans of the partitions of all days but one, and of that one.
sub scans
{
	return $node->safe_psql('postgres', <<SQL);
SELECT sum(seq_scan + coalesce(idx_scan, 0)) FILTER (WHERE relid NOT IN (SELECT tableoid FROM days WHERE d = '$day'))
FROM pg_stat_user_tables WHERE relname LIKE 'days%'
SQL
}

foreach my $job ('day by command', 'day by query', 'day appended')
{
	my $session = session($node);
	my $gate = close_gate($node, 'rerun');
	my $before = scans();
	my $plan = $job eq 'day appended' ? 'same' : 'same,crash,clock,timezone,plan';

	$session->must("LOAD 'idempotent_load'");
	$session->must("SET idempotent_load.wait_point = 'rerun'");
	$session->send(check_text($job, $plan));
	wait_at_gate($node, 1);
	cmp_ok($node->safe_psql('postgres', 'SELECT count(DISTINCT relation) FROM pg_locks JOIN pg_class c ON c.oid = relation'
			  . " WHERE pid = @{[ $session->pid ]} AND relname LIKE 'days%'"),
		'<=', 4, "$job: few partitions and indexes are locked");
	$gate->finish;
	is($session->wait, $plan eq 'same' ? 'same|f|append|20|0' :
		"same|t|||\ncrash|t|||\nclock|t|||\ntimezone|t|||\nplan|t|||", "$job: checked");
	is($session->error, '', "$job: no error");
	$session->must('SELECT pg_stat_force_next_flush()');
	$session->finish;
	is(scans(), $before, "$job: partitions of other days are not read");
}

#
# Parallel workers see the moved clock
#

$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION clock_here() RETURNS text LANGUAGE plpgsql PARALLEL SAFE AS
$$
BEGIN
	RETURN concat_ws('|', now(), current_date, 'now'::timestamptz, pg_backend_pid());
END
$$;
SQL

sub clock_in_worker
{
	my ($session) = @_;
	my $parallel = $session->must(q{SELECT name FROM pg_settings WHERE name IN ('debug_parallel_query', 'force_parallel_mode')});

	$session->must("BEGIN; SET LOCAL $parallel = on");

	my ($start, $pid) = split /\|/, $session->must(
		'SELECT xact_start, pg_backend_pid() FROM pg_stat_activity WHERE pid = pg_backend_pid()');
	my ($now, $date, $literal, $worker) = split /\|/, $session->must('SELECT clock_here()');
	my $moved = $session->must("SELECT timestamptz '$now' - timestamptz '$start', date '$date' - (timestamptz '$start')::date,"
		  . " timestamptz '$literal' - timestamptz '$start'");

	$session->must('COMMIT');
	isnt($worker, $pid, 'the function runs in a worker');
	return $moved;
}

{
	my $session = session($node);

	is(clock_in_worker($session), '00:00:00|0|00:00:00', 'clock of a worker');
	$session->must("LOAD 'idempotent_load'; SET idempotent_load.clock_shift = '31d'");
	is(clock_in_worker($session), '31 days|31|31 days', 'moved clock of a worker');
	$session->must('RESET idempotent_load.clock_shift');
	is(clock_in_worker($session), '00:00:00|0|00:00:00', 'clock of a worker, no longer moved');
	$session->finish;
}

# In a check too; but not in what another role has written, whose rights the user has not.
# The function asks for a worker, since runs are not parallel unless told to.
$node->safe_psql('postgres', <<'SQL');
CREATE ROLE keeper;
CREATE ROLE reader;
CREATE TABLE letters (open_at timestamptz);
INSERT INTO letters VALUES ('-infinity'), (now() + interval '1 year');
CREATE VIEW open_letters AS SELECT * FROM letters WHERE open_at <= now();
ALTER TABLE letters OWNER TO keeper;
ALTER VIEW open_letters OWNER TO keeper;
CREATE TABLE counted (open bigint, in_worker boolean);
GRANT SELECT ON open_letters TO reader;
GRANT SELECT, INSERT, DELETE ON counted TO reader;
CREATE FUNCTION count_open(leader int, OUT open bigint, OUT in_worker boolean) LANGUAGE plpgsql PARALLEL SAFE AS
$$
BEGIN
	in_worker := pg_backend_pid() <> leader;
	SELECT count(*) INTO open FROM open_letters;
END
$$;
CREATE FUNCTION count_in_worker(leader int) RETURNS SETOF counted LANGUAGE plpgsql AS
'BEGIN RETURN QUERY SELECT c.* FROM (SELECT (count_open(leader)).*) c; END';
CREATE FUNCTION count_letters(day date) RETURNS void LANGUAGE plpgsql AS
$$
BEGIN
	DELETE FROM counted;
	INSERT INTO counted SELECT * FROM count_in_worker(pg_backend_pid());
END
$$;
SELECT format('ALTER FUNCTION count_in_worker SET %I = on', name)
FROM pg_settings WHERE name IN ('debug_parallel_query', 'force_parallel_mode') \gexec
ALTER FUNCTION count_in_worker SET max_parallel_workers_per_gather = 2;
SQL
{
	my $check = "SELECT passed, relation, added_rows, missing_rows FROM check_idempotent('count_letters(date)', '$day', '{clock}',"
	  . " clock_shift => '60 years') WHERE rerun IS NOT NULL";

	is($node->safe_psql('postgres', $check),
		'f|public.counted|{"(2, t)"}|{"(1, t)"}', 'check of a job with a worker');
	is($node->safe_psql('postgres', "SET ROLE reader; $check"), 't|||',
		'check of a job with a worker, and a view of another role');
	is($node->safe_psql('postgres', "SET ROLE reader; SELECT count_letters('$day'); SELECT * FROM counted"), "\n1|t",
		'which runs in a worker');
}

#
# Many statements, and deep subtransactions
#

{
	my $statements = join ";\n", map { "INSERT INTO target VALUES (\$1, $_)" } 1 .. 2000;

	$node->safe_psql('postgres', "SELECT create_job('many', command => \$c\$DELETE FROM target WHERE d = \$1;\n$statements\$c\$);"
		  . "SELECT create_job('many appended', command => \$c\$$statements\$c\$)");
	is($node->safe_psql('postgres', assert_text('many')), 't', 'two thousand statements');
	is($node->safe_psql('postgres', check_text('many appended', 'same')), 'same|f|append|2000|0',
		'two thousand statements that append');
}

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE undone (d date, n int);
CREATE TABLE kept (d date, n int);
-- blocks in a loop, of which each second one is undone
CREATE FUNCTION write_in_blocks(day date) RETURNS void LANGUAGE plpgsql AS
$$
BEGIN
	FOR i IN 1 .. 300 LOOP
		BEGIN
			INSERT INTO undone VALUES (day, i);
			INSERT INTO kept VALUES (day, i);
			IF i % 2 = 0 THEN
				RAISE 'undone';
			END IF;
			DELETE FROM undone WHERE n = i;
		EXCEPTION WHEN raise_exception THEN
			NULL;
		END;
	END LOOP;
END
$$;
-- nothing is kept
CREATE FUNCTION write_nothing(day date) RETURNS void LANGUAGE plpgsql AS
$$
BEGIN
	FOR i IN 1 .. 100 LOOP
		BEGIN
			INSERT INTO undone VALUES (day, i);
			UPDATE kept SET n = n + 1;
			RAISE 'undone';
		EXCEPTION WHEN raise_exception THEN
			NULL;
		END;
	END LOOP;
END
$$;
-- blocks within blocks
CREATE FUNCTION write_deep(day date, level int) RETURNS void LANGUAGE plpgsql AS
$$
BEGIN
	BEGIN
		INSERT INTO kept VALUES (day, level);
		IF level > 0 THEN
			PERFORM write_deep(day, level - 1);
		END IF;
		INSERT INTO undone VALUES (day, level);
		RAISE 'undone' USING ERRCODE = CASE WHEN level % 3 = 0 THEN 'P0001' ELSE 'P0002' END;
	EXCEPTION WHEN raise_exception THEN
		NULL;
	WHEN no_data_found THEN
		INSERT INTO kept VALUES (day, -level);
	END;
END
$$;
CREATE FUNCTION append_deep(day date) RETURNS void LANGUAGE sql AS 'SELECT write_deep(day, 100)';
CREATE FUNCTION replace_deep(day date) RETURNS void LANGUAGE sql AS
'DELETE FROM kept WHERE d = day; SELECT write_deep(day, 100)';
CREATE FUNCTION replace_in_blocks(day date) RETURNS void LANGUAGE sql AS
'DELETE FROM kept WHERE d = day; SELECT write_in_blocks(day)';
INSERT INTO kept VALUES ('2026-08-01', 1);
SQL
my $relations = 'SELECT string_agg(relation, $$,$$) FROM check_idempotent';

is($node->safe_psql('postgres', check_text('write_in_blocks(date)', 'same')), 'same|f|append|150|0',
	'blocks that are undone do not count');
is($node->safe_psql('postgres', "$relations('write_in_blocks(date)', '$day', '{same}')"), 'public.kept',
	'nor do their tables');
is($node->safe_psql('postgres', assert_text('replace_in_blocks(date)', 'same,crash,clock,timezone,plan')), 't',
	'job with blocks that are undone');
is($node->safe_psql('postgres', "SELECT message FROM check_idempotent('write_nothing(date)', '$day', '{same}')"
		  . ' WHERE rerun IS NULL'),
	'The first run wrote nothing, so the reruns prove little.', 'job of which all is undone');
is($node->safe_psql('postgres', check_text('append_deep(date)', 'same')), 'same|f|append|1|0', 'deep blocks');
is($node->safe_psql('postgres', assert_text('replace_deep(date)', 'same,crash,clock,timezone,plan')), 't',
	'job with deep blocks');
is($node->safe_psql('postgres', 'SELECT (SELECT count(*) FROM kept), (SELECT count(*) FROM undone)'), '1|0',
	'nothing of the blocks is left');

#
# Foreign tables
#

SKIP:
{
	skip 'needs postgres_fdw', 3 unless $available{postgres_fdw};
	$node->safe_psql('postgres', sprintf(<<'SQL', $node->host, $node->port));
CREATE EXTENSION postgres_fdw;
CREATE SERVER loopback FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%s', port '%s', dbname 'postgres');
CREATE USER MAPPING FOR CURRENT_USER SERVER loopback;
CREATE TABLE remote (d date, n int);
CREATE FOREIGN TABLE far (d date, n int) SERVER loopback OPTIONS (table_name 'remote');
CREATE TABLE partly (d date, n int) PARTITION BY RANGE (d);
CREATE FOREIGN TABLE partly_far PARTITION OF partly FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')
	SERVER loopback OPTIONS (table_name 'remote');
SELECT create_job('far', command => 'INSERT INTO far VALUES ($1, 1)');
SELECT create_job('partly', command => 'INSERT INTO partly VALUES ($1, 1); DELETE FROM target WHERE d = $1');
SQL
	is($node->safe_psql('postgres', "SELECT message FROM check_idempotent('far', '$day', '{same}') WHERE rerun IS NULL ORDER BY 1"),
		"Foreign table \"far\" is written; that may not be undone, and is not compared.\n"
		  . 'The first run wrote nothing, so the reruns prove little.', 'foreign table: notes');
	is($node->safe_psql('postgres', "SELECT message FROM check_idempotent('partly', '$day', '{same}') WHERE rerun IS NULL"),
		'Foreign table "partly_far" is written; that may not be undone, and is not compared.', 'foreign partition: note');
	is($node->safe_psql('postgres', 'SELECT count(*) FROM remote'), 0, 'foreign table: undone by its own server');
}

#
# Jobs go with a dump
#

{
	my $file = PostgreSQL::Test::Utils::tempdir . '/dump.sql';
	my $jobs = 'SELECT * FROM jobs ORDER BY name';

	$node->safe_psql('postgres', q{SELECT create_job('all options', 'days', 'SELECT $1 AS d, 1 AS n', NULL, 'd', '1 month',
		'Asia/Tokyo', 'delete', 'replace', 'SELECT true', 'fail', false, '{n}')});
	$node->safe_psql('postgres', 'CREATE DATABASE restored');
	$node->command_ok([ 'pg_dump', '-f', $file, $node->connstr('postgres') ], 'dump');
	$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $file, $node->connstr('restored') ], 'restore');
	is($node->safe_psql('restored', $jobs), $node->safe_psql('postgres', $jobs), 'jobs are restored');
	is($node->safe_psql('restored', assert_text('good')), 't', 'a restored job is checked');
	is($node->safe_psql('restored', check_text('append', 'same')), 'same|f|append|10|0', 'another one');
	is($node->safe_psql('restored', "SELECT method FROM run_job('good', '$day')"), 'diff', 'a restored job is run');
}

$node->stop;
done_testing();
