# Loads while the server's caches are thrown away at every chance: nothing may
# point into them that is used later.  Only a server with assertions can do that.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->start;

my ($status) = $node->psql('postgres', 'SET debug_discard_caches = 1');
plan skip_all => 'this server cannot discard its caches' if $status != 0;

$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION idempotent_load;
CREATE TABLE days (k text, n int) PARTITION BY RANGE (k);
CREATE TABLE days_20240101 PARTITION OF days FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
CREATE TABLE list (k text, n int) PARTITION BY LIST (k);
CREATE TABLE list_a PARTITION OF list FOR VALUES IN ('a''b');
CREATE TABLE rest (at timestamptz, n int) PARTITION BY RANGE (at);
CREATE TABLE rest_20240101 PARTITION OF rest FOR VALUES FROM ('2024-01-01 00:00+00') TO ('2024-01-02 00:00+00');
CREATE TABLE rest_default PARTITION OF rest DEFAULT;
CREATE TABLE years (k text, n int) PARTITION BY RANGE (k);
CREATE TABLE years_2023 PARTITION OF years FOR VALUES FROM ('2023-01-01') TO ('2024-01-01') PARTITION BY RANGE (k);
CREATE TABLE years_2023_12 PARTITION OF years_2023 FOR VALUES FROM ('2023-12-01') TO ('2024-01-01');
SQL

# Each call makes a partition; run again it is compared, with another number it is
# written by diff.
my %loads = (
	days => q{replace_partition('days', '2024-01-03', $$SELECT '2024-01-03' AS k, %d AS n$$)},
	list => q{replace_slice('list', 'c''d', NULL, 'SELECT $1 AS k, %d AS n')},
	rest => q{replace_partition('rest', '2024-01-03', 'SELECT $1 AS at, %d AS n', timezone => 'UTC')},
	years => q{replace_partition('years', '2024-03-05', $$SELECT '2024-03-05' AS k, %d AS n$$)});

foreach my $table (sort keys %loads)
{
	foreach my $try ([ 1, 'diff|0|1' ], [ 1, 'none|1|0' ], [ 2, 'diff|1|1' ])
	{
		my ($number, $expected) = @$try;
		my $load = sprintf($loads{$table}, $number);

		is( $node->safe_psql('postgres',
				"SET debug_discard_caches = 1; SELECT method, rows_before, inserted FROM $load"),
			$expected, "$table: load of $number");
	}
	is($node->safe_psql('postgres', "SELECT n FROM $table"), '2', "$table: one row");
}

is( $node->safe_psql('postgres', <<'SQL'), "days_20240103\nlist_c'd\nrest_20240103\nyears_2024\nyears_2024_03", 'partitions are made');
SELECT relname FROM pg_class
WHERE relispartition AND relname ~ '(20240103|_2024|2024_03|d)$' AND relkind IN ('r', 'p') ORDER BY 1
SQL

$node->stop;
done_testing();
