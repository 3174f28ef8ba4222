# What a retry writes: nothing to the target, no tuple and no WAL.  What a load
# with changes writes: the rows that changed.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ILoadTest;
use IPC::Run;
use Test::More;

# Nothing but the loads writes WAL: no autovacuum, no checkpoint on its own, and
# the background writer logs running transactions only where WAL is replicated,
# which it is not here: wal_level is minimal.
my $node = new_node('main', conf => <<CONF);
checkpoint_timeout = 1d
max_wal_size = 4GB
shared_buffers = 256MB
CONF
my $rows = 1_000_000;

$node->safe_psql('postgres', <<SQL);
CREATE TABLE part (day date, id int, amount numeric, note text) PARTITION BY RANGE (day);
CREATE TABLE part_20260801 PARTITION OF part FOR VALUES FROM ('2026-08-01') TO ('2026-08-02');
CREATE INDEX ON part (id);
CREATE TABLE plain (day date, id int, amount numeric, note text);
CREATE INDEX ON plain (id);
CREATE INDEX ON plain (day);
SQL

sub load_text
{
	my ($table, $count, $changed) = @_;

	return "replace_partition('$table', '2026-08-01', 'SELECT \$1 AS day, g AS id,"
	  . " g % 777 + 0.25 AS amount, CASE WHEN $changed THEN ''changed'' ELSE ''note'' END AS note"
	  . " FROM (SELECT generate_series(1, $count) AS g) s')";
}

sub lsn
{
	return $node->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
}

my $has_waldump = eval {
	IPC::Run::run([ 'pg_waldump', '--version' ], '>', \my $out, '2>', \my $err);
};

# WAL records between two places for a relation and what belongs to it.
sub records_for
{
	my ($table, $from, $to) = @_;
	my $files = $node->safe_psql('postgres', <<SQL);
SELECT format('%s/%s/%s', CASE reltablespace WHEN 0 THEN d.dattablespace ELSE reltablespace END,
	d.oid, pg_relation_filenode(c.oid))
FROM pg_class c, pg_database d
WHERE d.datname = current_database() AND c.relkind IN ('r', 'i', 't') AND
	(c.relname LIKE '$table%' OR c.oid IN (SELECT reltoastrelid FROM pg_class WHERE relname LIKE '$table%'))
SQL
	my $found = '';

	foreach my $file (split /\n/, $files)
	{
		my ($out, $err);

		IPC::Run::run([ 'pg_waldump', '-p', $node->data_dir . '/pg_wal',
				'-s', $from, '-e', $to, '--relation', $file ], '>', \$out, '2>', \$err)
		  or die "pg_waldump: $err";
		$found .= $out;
	}
	return $found;
}

foreach my $table ('part', 'plain')
{
	my $count = $table eq 'part' ? $rows : $rows / 4;
	my $session = session($node);
	my $counts = <<SQL;
SELECT coalesce(sum(n_tup_ins), 0), coalesce(sum(n_tup_upd), 0), coalesce(sum(n_tup_del), 0)
FROM pg_stat_xact_user_tables WHERE relname LIKE '$table%'
SQL

	# The view counts all that the session has not yet reported, earlier
	# transactions included.
	my $flush = 'SELECT pg_stat_force_next_flush()';

	$session->must('SET max_parallel_workers_per_gather = 0');
	is($session->must('SELECT r.inserted FROM ' . load_text($table, $count, 'false') . ' r'),
		$count, "$table: loaded");

	# The first retry sets hint bits, which costs no WAL without checksums and a
	# page image each with them.
	$session->must('SELECT ' . load_text($table, $count, 'false'));

	# Then two: on the first touch after a checkpoint, pages of the history, and with
	# checksums also those of catalogs that get a hint bit, are imaged.
	$node->safe_psql('postgres', 'CHECKPOINT');
	foreach my $try ('first retry after a checkpoint', 'second retry')
	{
		my $from = lsn();

		$session->must($flush);
		$session->must('BEGIN');
		is($session->must('SELECT r.method FROM ' . load_text($table, $count, 'false') . ' r'),
			'none', "$table: $try changes nothing");
		is($session->must($counts), '0|0|0', "$table: $try writes no tuple");
		$session->must('COMMIT');

		my $to = lsn();
		my $bytes = $node->safe_psql('postgres', "SELECT pg_lsn '$to' - pg_lsn '$from'");
		my $limit = $try eq 'second retry' ? 1024 : 64 * 1024;

		cmp_ok($bytes, '<', $limit, "$table: $try writes less than $limit bytes of WAL");
		note("$table: $try of $count rows wrote $bytes bytes of WAL");
	  SKIP:
		{
			skip 'no pg_waldump', 1 unless $has_waldump;
			is(records_for($table, $from, $to), '',
				"$table: $try leaves no WAL record of the table, its indexes, its TOAST");
		}
	}

	# One percent changes.
	my $percent = $count / 100;
	my $from = lsn();

	$session->must($flush);
	$session->must('BEGIN');
	is($session->must('SELECT r.method, r.inserted, r.deleted FROM '
			  . load_text($table, $count, 'g % 100 = 0') . ' r'),
		"diff|$percent|$percent", "$table: one percent changes");
	is($session->must($counts), "$percent|0|$percent", "$table: only changed rows are written");
	$session->must('COMMIT');

	my $to = lsn();

	note("$table: one percent of $count rows wrote "
		  . $node->safe_psql('postgres', "SELECT pg_lsn '$to' - pg_lsn '$from'") . ' bytes of WAL');
  SKIP:
	{
		skip 'no pg_waldump', 1 unless $has_waldump;
		isnt(records_for($table, $from, $to), '', "$table: a change does leave WAL records");
	}
	$session->finish;
}

$node->stop;
done_testing();
