# A swap is cut off at each of its steps, by a crash of the server or the death
# of its own backend, where WAL is replicated and where it is minimal: the day is
# the old one or the new one, whole, also through its indexes, and nothing in the
# catalogs is left of the new files.  What was committed is there even if the
# server crashes at once.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ILoadTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $day = '2026-08-02';

# part_first has no rows of the day, so that they go straight into the new file;
# part_lost is not logged.
my @tables = ('part', 'part_first', 'part_lost');

sub load_text
{
	my ($table, $version) = @_;

	return "SELECT r.method FROM replace_partition('$table', '$day',"
	  . " 'SELECT * FROM rows_of(\$1, $version)', method => 'swap', on_empty => 'replace') r";
}

# The rows of a table are those of a version of the day, undef being none, and of
# version 0 of the days beside it.
sub expect_version
{
	my ($node, $table, $version, $name) = @_;
	my $expected = "SELECT * FROM rows_of('2026-08-01', 0) UNION ALL SELECT * FROM rows_of('2026-08-03', 0)";

	$expected .= " UNION ALL SELECT * FROM rows_of('$day', $version)" if defined $version;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	expect_rows($node, "SELECT * FROM $table", $expected, "$name: $table");
	return is($node->safe_psql('postgres', <<SQL), 't|', "$name: index of $table");
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(i.id) = @{[ defined $version ? 'count(*)' : 0 ]}, string_agg(i.id::text, ' ') FILTER (WHERE i.n <> h.n)
FROM (SELECT id, count(*) AS n FROM rows_of('$day', @{[ $version // 0 ]}) GROUP BY id) h
	LEFT JOIN LATERAL (SELECT p.id, count(*) AS n FROM ${table}_20260802 p WHERE p.id = h.id GROUP BY p.id) i ON true
SQL
}

foreach my $level ('minimal', 'replica')
{
	my $node = new_node($level, conf => "restart_after_crash = on\nmax_wal_size = 1GB\n",
		init => { allows_streaming => $level eq 'replica', extra => ['--data-checksums'] });
	my $version = 0;
	my %now = (part => 0, part_first => undef, part_lost => 0);

	plan skip_all => 'amcheck or pg_visibility is not installed' unless add_checkers($node);
	is($node->safe_psql('postgres', 'SHOW wal_level'), $level, "$level: wal_level");
	make_rows_function($node);
	make_table($node, $_) foreach @tables;
	$node->safe_psql('postgres', 'TRUNCATE part_first_20260802; ALTER TABLE part_lost_20260802 SET UNLOGGED');

	foreach my $death ('server', 'backend')
	{
		foreach my $point (qw(staged compared filled swapped recorded))
		{
			my $what = "$level: $death dies at \"$point\"";
			my @loads;

			$version++;
			close_gate($node, $point);
			foreach my $table (@tables)
			{
				my $load = session($node);

				$load->query("SET idempotent_load.wait_point = '$point'");
				$load->send(load_text($table, $version));
				push @loads, $load;
			}
			wait_at_gate($node, scalar @loads);
			my $locked = $node->safe_psql('postgres', <<SQL);
SELECT count(*) FROM pg_locks JOIN pg_class c ON c.oid = relation
WHERE mode = 'AccessExclusiveLock' AND relname LIKE '%_20260802'
SQL
			is($locked, $point =~ /swapped|recorded/ ? 3 : 0,
				"$what: leaves are locked exclusively once they are exchanged");
			# before that only what has gone straight into them, which depends on
			# who else has a snapshot in that moment
			is($node->safe_psql('postgres', <<SQL), 3, "$what: there are new files") unless $point =~ /staged|compared/;
SELECT count(DISTINCT pid) FROM pg_locks l LEFT JOIN pg_class c ON c.oid = relation
WHERE mode = 'AccessExclusiveLock' AND locktype = 'relation' AND c.oid IS NULL
SQL

			# what the loads have written is on disk as far as it can be
			$node->safe_psql('postgres', 'CHECKPOINT') if $point eq 'filled' && $death eq 'server';
			if ($death eq 'server')
			{
				$node->stop('immediate');
				$node->start;
			}
			else
			{
				my $offset = -s $node->logfile;

				kill 'KILL', $loads[ $version % @loads ]->pid;
				$node->wait_for_log(qr/all server processes terminated; reinitializing/, $offset);
				$node->poll_query_until('postgres', 'SELECT true') or die 'server is not back';
			}
			foreach my $load (@loads)
			{
				$load->wait;
				$load->finish;
			}

			# a crash empties what is not logged
			$now{part_lost} = undef;
			expect_version($node, $_, $now{$_}, $what) foreach @tables;
			expect_sound($node, 'postgres', "$what: storage", crashed => 1);

			# the load runs again as if nothing had been; part_first is emptied, so that
			# the next one is a first load once more
			is($node->safe_psql('postgres', load_text($_, $version)), 'swap', "$what: rerun of $_") foreach @tables;
			expect_version($node, $_, $version, "$what: rerun") foreach @tables;
			$now{part} = $now{part_lost} = $version;
			$node->safe_psql('postgres', "TRUNCATE part_first_20260802");
		}
	}

	# Committed, and then a crash at once: by restart, and by restart after a
	# checkpoint in between, in which nothing may be missing either.
	foreach my $checkpoint (0, 1)
	{
		my $what = "$level: crash after commit" . ($checkpoint ? ' and checkpoint' : '');

		$version++;
		$node->safe_psql('postgres', 'CHECKPOINT');
		is($node->safe_psql('postgres', load_text($_, $version)), 'swap', "$what: $_") foreach @tables;
		$node->safe_psql('postgres', 'CHECKPOINT') if $checkpoint;
		$node->stop('immediate');
		$node->start;
		$now{part} = $now{part_first} = $version;
		$now{part_lost} = undef;
		expect_version($node, $_, $now{$_}, $what) foreach @tables;
		expect_sound($node, 'postgres', "$what: storage", crashed => 1);
		expect_frozen($node, 'postgres', '^part.*_20260802', 30, "$what: pages");

		# after a clean stop too
		$node->stop;
		$node->command_ok([ 'pg_checksums', '--check', '-D', $node->data_dir ], "$what: checksums");
		$node->start;
		is($node->safe_psql('postgres', load_text('part_lost', $version)), 'swap', "$what: what was lost is loaded again");
		expect_version($node, 'part_lost', $version, "$what: loaded again");
	}

	# Rows that are written to the new file after the commit, or in the same
	# transaction, are found after a crash like any others.
	$version++;
	$node->safe_psql('postgres', <<SQL);
BEGIN;
@{[ load_text('part', $version) ]};
DELETE FROM part WHERE day = '$day' AND id % 2 = 0;
COMMIT;
INSERT INTO part SELECT * FROM rows_of('$day', $version) WHERE id % 2 = 0;
UPDATE part SET note = note WHERE day = '$day' AND id % 7 = 0;
SQL
	$node->stop('immediate');
	$node->start;
	expect_version($node, 'part', $version, "$level: written after a swap");
	expect_sound($node, 'postgres', "$level: storage of what was written after a swap", crashed => 1);
	$node->safe_psql('postgres', 'VACUUM');
	expect_version($node, 'part', $version, "$level: vacuumed after that");
	expect_sound($node, 'postgres', "$level: storage after VACUUM", crashed => 1);
	$node->stop;
}
done_testing();
