# Many loads of the same days at once, at each isolation level, with sessions
# that append to the same partitions.  A reader sees each day as one version of
# the source, whole, at any time.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ILoadTest;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('main', conf => <<CONF);
deadlock_timeout = 100ms
max_connections = 40
log_min_messages = log
synchronous_commit = off
CONF
my $days = 4;
my $versions = 5;
my $seconds = 15;
my $dir = PostgreSQL::Test::Utils::tempdir;

# Versions share half of their rows.  Rows that were appended have no such id.
# part_key has a primary key, so that a row that is replaced has its own key.
$node->safe_psql('postgres', <<SQL);
CREATE FUNCTION rows_of(day date, version int) RETURNS TABLE (day date, id int, version int)
LANGUAGE sql STABLE AS
\$\$ SELECT \$1, g, CASE WHEN g % 2 = 0 THEN \$2 ELSE 0 END FROM generate_series(1, 200 + 10 * \$2) g \$\$;

CREATE TABLE versions AS
SELECT d.day::date, v.version, (SELECT fingerprint(r) FROM rows_of(d.day::date, v.version) r)
FROM generate_series(timestamp '2026-08-01', timestamp '2026-08-0$days', '1 day') d (day),
	generate_series(1, $versions) v (version);

CREATE TABLE part (day date NOT NULL, id int, version int) PARTITION BY RANGE (day);
CREATE TABLE part_key (day date, id int, version int, PRIMARY KEY (day, id)) PARTITION BY RANGE (day);
CREATE TABLE plain (day date NOT NULL, id int, version int);
CREATE INDEX ON plain (day);
CREATE TABLE fresh (day date NOT NULL, id int, version int);
CREATE INDEX ON fresh (day);
CREATE VIEW seen AS
SELECT 'part' AS relation, day, count(*), fingerprint(t) FROM part t WHERE id > 0 GROUP BY day
UNION ALL
SELECT 'part_key', day, count(*), fingerprint(t) FROM part_key t WHERE id > 0 GROUP BY day
UNION ALL
SELECT 'plain', day, count(*), fingerprint(t) FROM plain t WHERE id > 0 GROUP BY day;
SQL
foreach my $d (1 .. $days)
{
	foreach my $table ('part', 'part_key')
	{
		$node->safe_psql('postgres', sprintf(
				"CREATE TABLE %1\$s_2026080%2\$d PARTITION OF %1\$s"
				  . " FOR VALUES FROM ('2026-08-0%2\$d') TO ('2026-08-0%3\$d')",
				$table, $d, $d + 1));
	}
	$node->safe_psql('postgres',
		"INSERT INTO $_ SELECT * FROM rows_of('2026-08-0$d', 1)") foreach 'part', 'part_key', 'plain';
}

# The scripts of pgbench, which runs a transaction again after 40001.
my @scripts;

sub script
{
	my ($name, $weight, $text) = @_;

	append_to_file("$dir/$name.sql", $text);
	push @scripts, '-f', "$dir/$name.sql\@$weight";
	return;
}

foreach my $level ('read committed', 'repeatable read', 'serializable')
{
	foreach my $table ('part', 'part_key', 'plain')
	{
		my $name = "$table $level" =~ s/ /_/gr;

		script($name, 3, <<SQL);
\\set day random(1, $days)
\\set version random(1, $versions)
BEGIN ISOLATION LEVEL $level;
SELECT replace_partition('$table', '2026-08-0:day', 'SELECT * FROM rows_of(\$1, :version)', method => (ARRAY['auto', 'diff', 'delete'])[1 + :version % 3]);
COMMIT;
SQL
	}

	# A day that was empty a moment ago, and that others load too.
	script("fresh $level" =~ s/ /_/gr, 3, <<SQL);
\\set version random(1, $versions)
BEGIN ISOLATION LEVEL $level;
SELECT replace_partition('fresh', date '2000-01-01' + (extract(epoch FROM clock_timestamp()) * 10 % 1000000)::int, 'SELECT * FROM rows_of(\$1, :version)');
COMMIT;
SQL
}
script('skip', 1, <<SQL);
\\set day random(1, $days)
\\set version random(1, $versions)
SELECT replace_partition('part', '2026-08-0:day', 'SELECT * FROM rows_of(\$1, :version)', if_running => 'skip');
SQL
script('several_days', 1, <<SQL);
\\set version random(1, $versions)
BEGIN;
SELECT replace_partition('part', '2026-08-01', 'SELECT * FROM rows_of(\$1, :version)');
SELECT replace_partition('part', '2026-08-0$days', 'SELECT * FROM rows_of(\$1, :version)');
COMMIT;
SQL
script('append', 2, <<SQL);
\\set day random(1, $days)
\\set id random(1, 1000000)
BEGIN;
INSERT INTO part SELECT date '2026-08-01' + :day - 1, -:id, g FROM generate_series(1, 20) g;
COMMIT;
SQL
script('append_to_leaf', 1, <<SQL);
\\set day random(1, $days)
\\set id random(1, 1000000)
INSERT INTO part_key_2026080:day SELECT date '2026-08-01' + :day - 1, -:id, g FROM generate_series(1, 1) g ON CONFLICT DO NOTHING;
SQL
script('append_and_undo', 1, <<SQL);
\\set day random(1, $days)
BEGIN;
INSERT INTO part SELECT * FROM rows_of(date '2026-08-01' + :day - 1, 1);
ROLLBACK;
SQL

my ($out, $err) = ('', '');
my $bench = IPC::Run::start(
	[ 'pgbench', '-n', '-h', $node->host, '-p', $node->port, '-c', 6, '-j', 2, '-T', $seconds,
		'--max-tries', 10000, '--failures-detailed', @scripts, 'postgres' ],
	'>', \$out, '2>', \$err);

# Read as long as it runs: single statements, and transactions with a snapshot.
my $reader = session($node);
my $snapshot_reader = session($node);
my $wrong = <<SQL;
SELECT coalesce(string_agg(format('%s %s: %s rows', s.relation, s.day, s.count), ', '), '')
	|| CASE WHEN count(s.day) < 3 * $days THEN ' and a day is empty' ELSE '' END
FROM seen s LEFT JOIN versions v USING (day, fingerprint)
WHERE v.version IS NULL
HAVING count(*) > 0
UNION ALL
SELECT count(*) || ' days instead of ' || 3 * $days FROM seen HAVING count(*) <> 3 * $days
SQL
my ($reads, @wrong, @moved) = (0);

while ($bench->pumpable)
{
	my $found = $reader->must($wrong);

	push @wrong, $found if $found ne '';

	$snapshot_reader->must('BEGIN ISOLATION LEVEL REPEATABLE READ');
	my $first = $snapshot_reader->must('SELECT * FROM seen ORDER BY 1, 2');
	$found = $snapshot_reader->must($wrong);
	push @wrong, $found if $found ne '';
	push @moved, $first if $first ne $snapshot_reader->must('SELECT * FROM seen ORDER BY 1, 2');
	$snapshot_reader->must('COMMIT');
	$reads++;
	$bench->pump_nb;
}
$bench->finish;

$err =~ s/^NOTICE:  skipped .*\n//mg;
is($bench->result(0) . substr($err, 0, 2000), '0', 'pgbench met no error but those that it tries again');
is($wrong[0], undef, 'a reader sees each day as one version, whole');
is($moved[0], undef, 'a reader with a snapshot sees the same all the time');
note("$reads rounds of reading");
note($1) while $out =~ /^(number of .*|total number of .*)$/mg;

unlike(slurp_file($node->logfile), qr/deadlock detected/, 'no deadlock');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), 0,
	'no lock is left');

my $loads = $node->safe_psql('postgres', 'SELECT method, count(*) FROM load_history GROUP BY 1 ORDER BY 1');

note("loads: $loads" =~ s/\n/, /gr);
# auto may swap too, where a leaf has grown
is(join(' ', grep { $_ ne 'swap' } $loads =~ /^(\w+)/mg), 'delete diff none',
	'loads of each method were among them');

cmp_ok($node->safe_psql('postgres', 'SELECT count(DISTINCT day) FROM fresh'), '>', $seconds,
	'many new days were loaded');
is($node->safe_psql('postgres', <<SQL), '', 'each new day is one version, whole');
SELECT day, count(*) FROM fresh GROUP BY day
HAVING count(*) <> 200 + 10 * max(version) OR count(DISTINCT id) <> count(*)
	OR count(DISTINCT version) FILTER (WHERE id % 2 = 0) <> 1 LIMIT 5
SQL

# Once all is quiet a load replaces whatever was appended.
foreach my $table ('part', 'part_key', 'plain')
{
	foreach my $d (1 .. $days)
	{
		$node->safe_psql('postgres',
			"SELECT replace_partition('$table', '2026-08-0$d', 'SELECT * FROM rows_of(\$1, 3)')");
	}
	expect_rows($node, "SELECT * FROM $table", join(' UNION ALL ',
			map { "SELECT * FROM rows_of('2026-08-0$_', 3)" } 1 .. $days),
		"$table: after all that each day is what the last load has made it");
}

$node->stop;
done_testing();
