# The same load gives the same result, and the same fingerprint, whatever the
# settings of the session are; and one that hits a limit leaves nothing behind.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ILoadTest;
use Test::More;

my $node = new_node('main');
my ($big, $small) = ('2026-08-02', '2026-08-03');
my %rows_of = ($big => 200_000, $small => 20_000);
my @tables = ('part', 'plain');

# The source is made of tables, so that plans can differ.  The target's other
# days must stay as they are.
$node->safe_psql('postgres', <<SQL);
CREATE TABLE source AS
SELECT day, g AS id, (g % 777)::numeric(12,2) AS amount,
	CASE WHEN g % 11 > 0 THEN g / 7.0::float8 END AS ratio, 'note ' || g % 100 AS note,
	ARRAY[g % 5, NULL, g % 3] AS tags, day + g * interval '0.4 s' AS at
FROM (VALUES (date '$big', $rows_of{$big}), ('$small', $rows_of{$small})) v (day, count),
	generate_series(1, count) g;
CREATE INDEX ON source (id);
CREATE TABLE names (note text PRIMARY KEY, name text);
INSERT INTO names SELECT 'note ' || g, 'name ' || g FROM generate_series(0, 99) g;
CREATE TABLE part (LIKE source, name text) PARTITION BY RANGE (day);
CREATE TABLE part_20260802 PARTITION OF part FOR VALUES FROM ('2026-08-02') TO ('2026-08-03');
CREATE TABLE part_20260803 PARTITION OF part FOR VALUES FROM ('2026-08-03') TO ('2026-08-04');
CREATE TABLE plain (LIKE part);
VACUUM ANALYZE;
SQL

my $columns = 's.day, s.id, s.amount, s.ratio, s.note, s.tags, s.at, n.name';
my $query = "SELECT $columns FROM source s LEFT JOIN names n USING (note) WHERE s.day = \$1";
my %fingerprint_of = map { $_ => $node->safe_psql('postgres',
		"SELECT fingerprint(q) FROM ($query) q" =~ s/\$1/'$_'/r) } $big, $small;

sub load_text
{
	my ($table, $day, $text, $method) = @_;

	$method ||= 'diff';
	return "SELECT r.method, r.rows, r.inserted, r.fingerprint FROM replace_partition("
	  . "'$table', '$day', \$q\$$text\$q\$, date_column => 'day', method => '$method') r";
}

# A tenth of the rows are missing and a tenth are wrong.
sub spoil
{
	my ($session, $table, $day) = @_;

	$session->must("DELETE FROM $table WHERE day = '$day' AND id % 10 = 1");
	$session->must("UPDATE $table SET amount = -1 WHERE day = '$day' AND id % 10 = 2");
	return;
}

# Loads of the day; all of it is missing the first time, a fifth of it later.
sub load_both
{
	my ($name, $day, $missing, $settings, $text) = @_;
	my $rows = $rows_of{$day};
	my $fingerprint = $fingerprint_of{$day};

	foreach my $way ([ 'part', 'diff', $missing ], [ 'part', 'swap', $rows ], [ 'plain', 'diff', $missing ])
	{
		my ($table, $method, $inserted) = @$way;
		my $session = session($node);

		spoil($session, $table, $day);
		my $others = $session->must("SELECT fingerprint(t) FROM $table t WHERE day <> '$day'");

		$session->must($settings);
		is($session->must(load_text($table, $day, $text, $method)), "$method|$rows|$inserted|$fingerprint",
			"$name: $table is loaded by $method");
		is($session->must(load_text($table, $day, $text, $method)), "none|$rows|0|$fingerprint",
			"$name: a retry of $table by $method finds nothing to do");
		is($session->must("SELECT fingerprint(t) FROM $table t WHERE day <> '$day'"), $others,
			"$name: other days of $table are untouched");
		is($session->must("SELECT fingerprint(t) FROM $table t WHERE day = '$day'"), $fingerprint,
			"$name: rows of $table are those of the query");
		$session->finish;
	}
	return;
}

foreach my $day ($small, $big)
{
	load_both("first load of $day", $day, $rows_of{$day}, '', $query);
	expect_rows($node, "SELECT * FROM $_ WHERE day = '$day'", $query =~ s/\$1/'$day'/r,
		"first load of $day: rows of $_") foreach @tables;
}
$node->safe_psql('postgres', 'VACUUM ANALYZE');

# Everything spills to files.
load_both('work_mem of 64 kB', $big, $rows_of{$big} / 5,
	"SET work_mem = '64kB'; SET hash_mem_multiplier = 1", $query);

my $parallel = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;'
  . ' SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 4;'
  . ' SET parallel_leader_participation = off';

like($node->safe_psql('postgres', "$parallel; EXPLAIN " . $query =~ s/\$1/'$small'/r),
	qr/Gather/, 'the query can have a parallel plan');

foreach my $case (
	[ 'jit', 'SET jit = on; SET jit_above_cost = 0; SET jit_inline_above_cost = 0;'
		  . ' SET jit_optimize_above_cost = 0' ],
	[ 'parallel plans', $parallel ],
	[ 'repeatable read', "SET default_transaction_isolation = 'repeatable read'" ],
	[ 'serializable', 'SET default_transaction_isolation = serializable' ],
	[ 'session_replication_role', 'SET session_replication_role = replica' ],
	[ 'output styles', "SET extra_float_digits = 0; SET DateStyle = 'SQL, DMY';"
		  . " SET IntervalStyle = iso_8601; SET bytea_output = escape; SET xmloption = document" ],
	[ 'no index', 'SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off' ],
	[ 'no scan', 'SET enable_seqscan = off; SET enable_tidscan = off' ],
	[ 'no join', 'SET enable_nestloop = off; SET enable_hashjoin = off; SET enable_mergejoin = off' ],
	[ 'no pruning', 'SET enable_partition_pruning = off; SET constraint_exclusion = off' ],
	[ 'generic plans', 'SET plan_cache_mode = force_generic_plan' ],
	[ 'search_path', "SET search_path = pg_catalog, public; SET check_function_bodies = off" ],
	[ 'rows in descending order', '', "$query ORDER BY s.id DESC" ],
	[ 'rows in no order', '', "$query ORDER BY md5(s.id::text)" ])
{
	my ($name, $settings, $text) = @$case;

	load_both($name, $small, $rows_of{$small} / 5, $settings, $text || $query);
}

# A limit on temporary files, hit while staging and while comparing.
foreach my $table (@tables)
{
	my $session = session($node);

	spoil($session, $table, $big);
	my $state = $session->must("SELECT fingerprint(t) FROM $table t");
	my $history = $session->must('SELECT count(*) FROM load_history');

	foreach my $limit ('1MB', '25MB')
	{
		$session->must("SET work_mem = '64kB'; SET temp_file_limit = '$limit'");
		$session->query(load_text($table, $big, $query));
		like($session->error, qr/^ERROR:  53400: temporary file size exceeds/m,
			"$table: temp_file_limit of $limit ends the load");
		is($session->must("SELECT fingerprint(t) FROM $table t"), $state, "$table: it is as before");
		is($session->must('SELECT count(*) FROM load_history'), $history, "$table: no history");
		is(join(' ', temp_files($node)), '', "$table: no temporary file is left");
		is($session->must('SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()'
				  . " AND locktype = 'advisory'"), 0, "$table: no lock is left");
	}
	$session->must('RESET temp_file_limit');
	is($session->must(load_text($table, $big, $query)),
		"diff|$rows_of{$big}|@{[ $rows_of{$big} / 5 ]}|$fingerprint_of{$big}",
		"$table: the same session can load it without the limit");
	$session->finish;
}

# Without statistics, and with such that know nothing of the day, as is usual
# for the newest one, the planner takes the day for a few rows.  The time must
# not grow with the product of the rows stored and the rows to delete.
foreach my $case ([ 'never analyzed', '' ], [ 'analyzed before the day came', 'ANALYZE late' ])
{
	my ($name, $sql) = @$case;
	my $session = session($node);
	my $count = 100_000;

	$session->must("CREATE TABLE late AS SELECT date '2026-08-01' AS day, g AS id, 0 AS version"
		  . " FROM generate_series(1, $count) g");
	$session->must($sql) if $sql;
	$session->must("INSERT INTO late SELECT '$big', g, 0 FROM generate_series(1, $count) g");
	$session->must("SET statement_timeout = '30s'");
	is($session->query("SELECT r.method, r.deleted FROM replace_partition('late', '$big',"
			  . " 'SELECT \$1 AS day, g AS id, g % 2 AS version FROM generate_series(1, $count) g') r"),
		'diff|' . $count / 2, "$name: half of the rows change in time");
	$session->must('RESET statement_timeout; DROP TABLE late');
	$session->finish;
}

# A swap looks through all shared buffers once.  180 kB, all changed, are worth that where
# they are few; a fixed swap_min_size does not ask.
$node->safe_psql('postgres', <<SQL);
CREATE TABLE worth (day date, id int, note text) PARTITION BY RANGE (day);
CREATE TABLE worth_1 PARTITION OF worth FOR VALUES FROM ('$big') TO ('$small');
INSERT INTO worth SELECT '$big', g, repeat('x', 100) FROM generate_series(1, 1200) g;
SQL
my $round = 0;
foreach my $case ([ '128MB', -1, 'swap' ], [ '1GB', -1, 'delete' ], [ '1GB', "'128kB'", 'swap' ])
{
	my ($buffers, $least, $method) = @$case;

	$node->append_conf('postgresql.conf', "shared_buffers = $buffers");
	$node->restart;
	$round++;
	my $session = session($node);
	$session->must("SET idempotent_load.swap_min_size = $least");
	is($session->must("SELECT method FROM replace_partition('worth', '$big',"
			  . " 'SELECT \$1 AS day, g AS id, repeat(''$round'', 100) AS note FROM generate_series(1, 1200) g')"),
		$method, "shared_buffers = $buffers, swap_min_size = $least: method");
	$session->finish;
}

$node->stop;
done_testing();
