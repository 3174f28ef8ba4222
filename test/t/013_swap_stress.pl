# Swaps of the same days without end, while everything else goes on that could
# meet them: readers, vacuum of all kinds, checkpoints, indexes made and dropped
# concurrently, relations that come and go, loaders cancelled and terminated.
#
# ILOAD_STRESS_SECONDS says how long (60).
#
# What a reader is promised, and what is checked:
# - In READ COMMITTED each day is one version, whole, however it is read: by a
#   plan made before the swap, a cursor, CREATE TABLE AS.
# - In REPEATABLE READ, what a transaction has read once it reads again.
# - There, the first read of a day shows no load that began after the snapshot.
#   A load that began before it may be seen though it has committed later: the
#   snapshot may have been taken between the load's look at the open snapshots
#   and its commit, and to the frozen rows of the new file all snapshots are the
#   same.  But then, too, the day is one version, whole.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ILoadTest;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;

my $seconds = $ENV{ILOAD_STRESS_SECONDS} || 60;
my $days = 3;
my $versions = 6;
my $node = new_node('main', conf => <<CONF);
autovacuum = on
autovacuum_naptime = 1s
autovacuum_vacuum_threshold = 1
autovacuum_vacuum_scale_factor = 0
autovacuum_vacuum_insert_threshold = 1
autovacuum_vacuum_insert_scale_factor = 0
autovacuum_freeze_max_age = 100000
vacuum_freeze_min_age = 0
deadlock_timeout = 200ms
max_connections = 40
log_error_verbosity = verbose
log_line_prefix = '%m [%p] %b=%a '
synchronous_commit = off
CONF
my $dir = PostgreSQL::Test::Utils::tempdir;

plan skip_all => 'amcheck or pg_visibility is not installed' unless add_checkers($node);

# A version has 300 + 10 * version rows, and the n-th row of a day the id n; each
# fiftieth one has a note of 3200 bytes that is stored out of line, others one of
# 10 bytes.  What the sums of a version are follows from that, without a query.
# Rows that were appended have no positive id.
$node->safe_psql('postgres', <<SQL);
CREATE FUNCTION rows_of(day date, version int) RETURNS TABLE (day date, id int, version int, note text)
LANGUAGE sql STABLE AS
\$\$
SELECT \$1, g, \$2, CASE WHEN g % 50 = 0 THEN
	(SELECT string_agg(md5(\$2 || ' ' || g || ' ' || i), '') FROM generate_series(1, 100) i)
	ELSE lpad(g::text, 10, '0') END
FROM generate_series(1, 300 + 10 * \$2) g
\$\$;
CREATE TABLE part (day date NOT NULL, id int NOT NULL, version int NOT NULL, note text) PARTITION BY RANGE (day);
ALTER TABLE part ALTER note SET STORAGE EXTERNAL;
CREATE INDEX ON part (id);
CREATE INDEX ON part (version, id) WHERE id > 0;
@{[ join '', map { "CREATE TABLE part_2026080$_ PARTITION OF part FOR VALUES FROM ('2026-08-0$_') TO ('2026-08-0@{[ $_ + 1 ]}');" } 1 .. $days ]}

CREATE VIEW seen AS
SELECT day, min(version) AS version, max(version) AS other, count(*) AS n, sum(id) AS ids, sum(length(note)) AS bytes
FROM part WHERE id > 0 GROUP BY day;

-- What somebody has seen of all days must be whole versions of them.
CREATE FUNCTION must_be_whole(how text, rows seen[]) RETURNS void LANGUAGE plpgsql AS
\$\$
DECLARE
	r seen;
	n int;
BEGIN
	IF coalesce(cardinality(rows), 0) <> $days THEN
		RAISE 'wrong by %: % days', how, coalesce(cardinality(rows), 0);
	END IF;
	FOREACH r IN ARRAY rows LOOP
		n := 300 + 10 * r.version;
		IF r.version <> r.other OR r.n <> n OR r.ids <> n * (n + 1) / 2 OR r.bytes <> n / 50 * 3200 + (n - n / 50) * 10 THEN
			RAISE 'wrong by %: %', how, r;
		END IF;
	END LOOP;
END
\$\$;

-- By a plan that was made before, and by a cursor.
CREATE FUNCTION read_by_plan() RETURNS seen[] LANGUAGE plpgsql AS
\$\$ BEGIN RETURN (SELECT array_agg(s) FROM seen s); END \$\$;
CREATE FUNCTION read_by_cursor() RETURNS seen[] LANGUAGE plpgsql AS
\$\$
DECLARE
	c CURSOR FOR SELECT array_agg(s) FROM seen s;
	result seen[];
BEGIN
	OPEN c;
	FETCH c INTO result;
	CLOSE c;
	RETURN result;
END
\$\$;

-- The last load of each day that the present snapshot knows of; loads of a day
-- are recorded in the order in which they commit.
CREATE VIEW known AS
SELECT DISTINCT ON (logical_date) logical_date AS day, run_id::int AS version, id
FROM load_history ORDER BY logical_date, id DESC;

-- A transaction whose snapshot is older than "at" knew of "known" and saw "seen",
-- as JSON.  Called later, by a snapshot that knows of all that could be seen.
CREATE FUNCTION must_be_promised(at timestamptz, known json, seen json) RETURNS void LANGUAGE plpgsql AS
\$\$
DECLARE
	r record;
BEGIN
	FOR r IN
		SELECT s.day, s.version, k.version AS known
		FROM json_to_recordset(seen) s (day date, version int)
			JOIN json_to_recordset(known) k (day date, version int, id bigint) USING (day)
		WHERE s.version <> k.version AND NOT EXISTS (
			SELECT FROM load_history h
			WHERE h.logical_date = s.day AND h.run_id = s.version::text AND h.id > k.id AND h.started_at <= at)
	LOOP
		RAISE 'wrong by a load that began later: %', r;
	END LOOP;
END
\$\$;
SQL
foreach my $d (1 .. $days)
{
	is($node->safe_psql('postgres', "SELECT r.method FROM replace_partition('part', '2026-08-0$d',"
				. " 'SELECT * FROM rows_of(\$1, 1)', method => 'swap', run_id => '1') r"), 'swap', "day $d is there");
}

# Workers: each is a pgbench of one script, started again when it has ended, as
# loaders do that were cancelled or terminated.
my @workers;

sub worker
{
	my ($name, $count, $text) = @_;

	append_to_file("$dir/$name.sql", $text);
	push @workers, { name => $name, run => undef } foreach 1 .. $count;
	return;
}

my $load = "replace_partition('part', '2026-08-0:day', 'SELECT * FROM rows_of(\$1, :version)', run_id => ':version'";
my $draw = "\\set day random(1, $days)\n\\set version random(1, $versions)\n";

worker('loader_swap', 2, <<SQL);
$draw
SET idempotent_load.swap_patience = '1s';
SELECT $load, method => 'swap');
SQL
worker('loader_auto', 2, <<SQL);
$draw
SET idempotent_load.swap_patience = '1s';
SET idempotent_load.swap_min_size = 0;
SET idempotent_load.swap_threshold = 0;
SELECT $load);
SQL
worker('loader_undone', 1, <<SQL);
$draw
SET idempotent_load.swap_patience = '1s';
BEGIN;
SELECT $load, method => 'swap');
ROLLBACK;
BEGIN;
SAVEPOINT s;
SELECT $load, method => 'swap');
ROLLBACK TO s;
COMMIT;
SQL
worker('append', 1, <<SQL);
$draw
INSERT INTO part_2026080:day SELECT date '2026-08-01' + :day - 1, -g, 0, 'appended' FROM generate_series(1, 20) g;
DELETE FROM part WHERE id < -10;
\\sleep 1 s
SQL
worker('vacuum', 1, <<SQL);
$draw
VACUUM part_2026080:day;
VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) part_2026080:day;
VACUUM (ANALYZE) part;
ANALYZE part;
\\sleep 500 ms
SQL
worker('checkpoint', 1, <<SQL);
CHECKPOINT;
\\sleep 300 ms
SQL
worker('index', 1, <<SQL);
$draw
DROP INDEX CONCURRENTLY IF EXISTS extra;
CREATE INDEX CONCURRENTLY extra ON part_2026080:day (version, day);
\\sleep 2 s
SQL
worker('churn', 1, <<SQL);
CREATE TEMP TABLE churn AS SELECT g, repeat('x', 10) AS x FROM generate_series(1, 100) g;
CREATE INDEX ON churn (g);
TRUNCATE churn;
DROP TABLE churn;
CREATE TABLE churn_permanent (t text);
DROP TABLE churn_permanent;
\\sleep 20 ms
SQL
worker('killer', 1, <<SQL);
\\set end random(1, 3)
SELECT CASE WHEN :end = 1 THEN pg_terminate_backend(pid) ELSE pg_cancel_backend(pid) END
FROM pg_stat_activity WHERE application_name LIKE 'loader%' AND state = 'active' ORDER BY random() LIMIT 1;
\\sleep 1 s
SQL
worker('read', 1, <<SQL);
SELECT must_be_whole('SELECT', array_agg(s)) FROM seen s;
SELECT must_be_whole('plan', read_by_plan());
SELECT must_be_whole('cursor', read_by_cursor());
BEGIN;
CREATE TEMP TABLE copied ON COMMIT DROP AS SELECT * FROM seen;
SELECT must_be_whole('CREATE TABLE AS', array_agg((day, version, other, n, ids, bytes)::seen)) FROM copied;
COMMIT;
SET enable_seqscan = off;
SELECT must_be_whole('index', array_agg(s)) FROM seen s;
SET enable_seqscan = on;
SQL
worker('read_again', 1, <<SQL);
\\set ms random(1, 40)
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT must_be_whole('first read', array_agg(s)) FROM seen s;
SELECT json_agg(s ORDER BY day) AS first FROM seen s \\gset
\\sleep :ms ms
SELECT must_be_whole('later read', array_agg(s)) FROM seen s;
DO \$\$ BEGIN IF (SELECT json_agg(s ORDER BY day)::text FROM seen s) <> ':first' THEN RAISE 'wrong by reading again'; END IF; END \$\$;
COMMIT;
\\sleep :ms ms
SQL

# It reads what it knows, then waits, then reads the days for the first time.
worker('read_late', 1, <<SQL);
\\set ms random(1, 150)
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT json_agg(k) AS known FROM known k \\gset
SELECT clock_timestamp() AS at \\gset
\\sleep :ms ms
SELECT json_agg(s) AS seen FROM seen s \\gset
SELECT must_be_whole('late read', array_agg(s)) FROM seen s;
COMMIT;
SELECT must_be_promised(':at', ':known', ':seen');
\\sleep :ms ms
SQL

# Starts that a cancelled or terminated loader makes anew must not last longer
# than the rest, so the end is a point in time.
my $end = time + $seconds;

sub start_worker
{
	my ($worker) = @_;
	my $left = $end - time;

	return if $left <= 0;
	$worker->{out} = $worker->{err} = '';
	local $ENV{PGAPPNAME} = $worker->{name};
	$worker->{run} = IPC::Run::start(
		[ 'pgbench', '-n', '-h', $node->host, '-p', $node->port, '-T', $left, '--max-tries', 1,
			'-f', "$dir/$worker->{name}.sql", 'postgres' ],
		'<', \undef, '>', \$worker->{out}, '2>', \$worker->{err});
	return;
}

my @stderr;

start_worker($_) foreach @workers;
while (my @running = grep { $_->{run} } @workers)
{
	foreach my $worker (@running)
	{
		$worker->{run}->pump_nb;
		next if $worker->{run}->pumpable;
		$worker->{run}->finish;
		push @stderr, "$worker->{name}: $worker->{err}" if $worker->{err} =~ /error|ERROR|FATAL/;
		$worker->{run} = undef;
		start_worker($worker);
	}
	$node->poll_query_until('postgres', 'SELECT true') or die 'the server is gone';
}

# Everything that went wrong is in the server's log, by who met it.  A loader may
# be cancelled, terminated, or not get its locks; autovacuum gives way.
#
# CREATE and DROP INDEX CONCURRENTLY wait for everybody who has a snapshot, so also
# for a load that waits for the lock that they hold: the server ends that as a
# deadlock.  There must be no other deadlocks.
my %allowed = (
	loader_swap => '57014|57P01|55P03|40P01',
	loader_auto => '57014|57P01|40P01',
	loader_undone => '57014|57P01|55P03|40P01',
	index => '40P01',
	vacuum => '40P01',
	'autovacuum worker' => '57014');
my $log = slurp_file($node->logfile);
my (%count, @wrong);

foreach my $line (split /\n/, $log)
{
	my ($backend, $name, $state, $text) =
	  $line =~ /\] ([\w ]+)=(\S*) +(?:ERROR|FATAL|PANIC):  (\w+): (.*)/
	  or next;

	$name = $backend if $backend ne 'client backend';
	$count{"$name $state"}++;
	push @wrong, $line unless defined $allowed{$name} && $state =~ /^($allowed{$name})$/;
}
note("$_: $count{$_}") foreach sort keys %count;
is(join("\n", @wrong[ 0 .. ($#wrong < 9 ? $#wrong : 9) ]), '', 'nobody met an error that must not be');
unlike($log, qr/WARNING:/, 'nor a warning');
is(join("\n", grep { !/(CREATE|DROP) INDEX CONCURRENTLY/ } $log =~ /deadlock detected\n(.*?)\bHINT:/sg), '',
	'no deadlock but with an index that is made or dropped concurrently');

my $loads = $node->safe_psql('postgres', 'SELECT method, count(*) FROM load_history GROUP BY 1 ORDER BY 1');

note("loads: $loads" =~ s/\n/, /gr);
cmp_ok($loads =~ /^swap\|(\d+)/m ? $1 : 0, '>=', $seconds / 6, 'many swaps were among the loads');
cmp_ok(($count{'loader_swap 57014'} || 0) + ($count{'loader_auto 57014'} || 0), '>=', 1, 'loads were cancelled');
cmp_ok(($count{'loader_swap 57P01'} || 0) + ($count{'loader_auto 57P01'} || 0), '>=', 1, 'loads were terminated');

# Quiet: nothing is left but the tables.
$node->safe_psql('postgres', 'ALTER SYSTEM SET autovacuum = off; DROP INDEX IF EXISTS extra');
$node->reload;
$node->poll_query_until('postgres',
	"SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'autovacuum worker' OR application_name LIKE 'loader%'")
  or die 'it does not get quiet';
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), 0, 'no lock is left');
expect_sound($node, 'postgres', 'storage in the end');
$node->safe_psql('postgres', 'SELECT must_be_whole(\'SELECT\', array_agg(s)) FROM seen s');

# Each day is what its last load has made it, as the history tells.
is($node->safe_psql('postgres', 'SELECT s.day, s.version FROM seen s EXCEPT SELECT day, version FROM known'), '',
	'days are those of their last loads');
foreach my $d (1 .. $days)
{
	$node->safe_psql('postgres', "SELECT replace_partition('part', '2026-08-0$d', 'SELECT * FROM rows_of(\$1, 1 + $versions)', method => 'swap')");
}
$node->safe_psql('postgres', 'VACUUM part');
expect_rows($node, 'SELECT * FROM part', join(' UNION ALL ',
		map { "SELECT * FROM rows_of('2026-08-0$_', 1 + $versions)" } 1 .. $days), 'rows after one more load');
expect_sound($node, 'postgres', 'storage after one more load');
expect_frozen($node, 'postgres', '^part_', 15, 'pages after one more load');

# What is there survives a crash.
$node->stop('immediate');
$node->start;
expect_rows($node, 'SELECT * FROM part', join(' UNION ALL ',
		map { "SELECT * FROM rows_of('2026-08-0$_', 1 + $versions)" } 1 .. $days), 'rows after a crash');
expect_sound($node, 'postgres', 'storage after a crash', crashed => 1);
$node->stop;
done_testing();
