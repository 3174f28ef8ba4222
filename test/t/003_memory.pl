# Peak memory of a load does not grow with its rows: work_mem plus 64 MB.
#
# What is measured: each load runs in a backend of its own, whose
# /proc/<pid>/status tells the peak of its resident memory (VmHWM).  From that
# are taken away the pages of the server's shared memory (RssShmem) and of
# executables (RssFile) as they are mapped when the load has ended; both only
# grow meanwhile.  What is left is the peak of the backend's own memory, the
# 10 MB or so that every backend has included.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ILoadTest;
use Test::More;
use Time::HiRes qw(time);

plan skip_all => 'needs /proc' unless -r '/proc/self/status';

# Rewriting every row takes long, so that is tried with fewer; but 64 MB are 16
# bytes for each of its row versions, so whatever were kept for a row would show.
my $rows = 5_000_000;
my $rewritten = 2_000_000;
my $allowed_mb = 64;
my $node = new_node('main', conf => <<CONF);
shared_buffers = 16MB
max_wal_size = 8GB
synchronous_commit = off
max_parallel_workers_per_gather = 0
CONF

$node->safe_psql('postgres', <<SQL);
CREATE TABLE facts (day date, id int, customer int, amount numeric, note text, at timestamptz)
	PARTITION BY RANGE (day);
CREATE UNLOGGED TABLE facts_20260801 PARTITION OF facts
	FOR VALUES FROM ('2026-08-01') TO ('2026-08-02');
CREATE UNLOGGED TABLE facts_20260802 PARTITION OF facts
	FOR VALUES FROM ('2026-08-02') TO ('2026-08-03');
SQL

# The source, made as it is read, so that the query itself needs no memory.
# Where "changed" is true for a row, it is another one.
sub query
{
	my ($count, $changed) = @_;

	return "SELECT \$1 AS day, g AS id, g % 1000 AS customer, g % 777 + 0.25 AS amount,"
	  . " CASE WHEN $changed THEN ''changed'' ELSE ''note'' END AS note,"
	  . " timestamptz ''2026-08-01 12:00+00'' AS at FROM (SELECT generate_series(1, $count) AS g) s";
}

sub load
{
	my ($name, $work_mem_mb, $date, $count, $changed, $expected, $method) = @_;

	$method ||= 'auto';
	my $session = session($node);
	my $started = time;

	$session->must("SET work_mem = '${work_mem_mb}MB'");
	my $result = $session->must('SELECT r.method, r.inserted, r.deleted FROM'
		  . " replace_partition('facts', '$date', '" . query($count, $changed) . "', method => '$method') r");
	my $seconds = time - $started;
	my $mb = private_mb($session->pid);

	is($result, $expected, "$name, work_mem $work_mem_mb MB: loaded");
	cmp_ok($mb, '<=', $work_mem_mb + $allowed_mb,
		"$name, work_mem $work_mem_mb MB: memory within work_mem plus $allowed_mb MB");
	note(sprintf('%s, %d rows, work_mem %d MB: %.1f MB in %.1f s',
			$name, $count, $work_mem_mb, $mb, $seconds));
	$session->finish;
	return;
}

my $percent = $rows / 100;

load('first load', 4, '2026-08-01', $rows, 'false', "swap|$rows|0");
load('unchanged retry', 4, '2026-08-01', $rows, 'false', 'none|0|0');
load('one percent changed', 64, '2026-08-01', $rows, 'g % 100 = 0', "diff|$percent|$percent");
load('first load', 64, '2026-08-02', $rewritten, 'false', "swap|$rewritten|0");
load('all rows changed', 4, '2026-08-02', $rewritten, 'true', "swap|$rewritten|$rewritten");
load('all rows changed', 4, '2026-08-02', $rewritten, 'false', "diff|$rewritten|$rewritten", 'diff');

$node->stop;
done_testing();
