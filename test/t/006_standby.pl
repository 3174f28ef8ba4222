# Loads arrive on a standby whole; they are refused there; they go on once it is
# promoted.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ILoadTest;
use PostgreSQL::Test::Cluster;
use Test::More;

my $primary = new_node('primary', init => { allows_streaming => 1 });
my $standby = PostgreSQL::Test::Cluster->new('standby');
my $day = '2026-08-02';
my %method_of = (part => 'diff', plain => 'delete');
my @tables = sort keys %method_of;

make_rows_function($primary);
make_table($primary, $_) foreach @tables;
$primary->backup('backup');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;

sub load_text
{
	my ($table, $date, $version) = @_;

	return "SELECT r.method FROM replace_partition('$table', '$date',"
	  . " 'SELECT * FROM rows_of(\$1, $version)', method => '$method_of{$table}') r";
}

sub expect_same
{
	my ($name) = @_;

	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	is(state_of($standby, @tables), state_of($primary, @tables), $name);
	return;
}

# A new partition, and a changed day with out-of-line values.
foreach my $table (@tables)
{
	$primary->safe_psql('postgres', load_text($table, $day, 1));
	$primary->safe_psql('postgres', load_text($table, '2026-09-01', 1));
}
expect_same('loads arrive on the standby');
foreach my $table (@tables)
{
	expect_rows($standby, "SELECT * FROM $table WHERE day = '$day'",
		"SELECT * FROM rows_of('$day', 1)", "$table: the day on the standby");
}

# A reader on the standby sees no load until it has committed.
my $load = session($primary);
my $before = state_of($standby, @tables);

$load->must('BEGIN');
$load->must(load_text($_, $day, 2)) foreach @tables;
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is(state_of($standby, @tables), $before, 'a load that has not committed is not seen');
$load->must('COMMIT');
expect_same('it is once it has committed');

# A load on the standby.
$before = state_of($standby, @tables);
foreach my $table (@tables)
{
	like(error_of($standby, load_text($table, $day, 3)),
		qr/^25006: cannot execute a load/, "$table: refused on the standby");
	like(error_of($standby, "SELECT replace_slice('$table', '2026-08-02', '2026-08-03', 'SELECT * FROM rows_of(\$1, 3)')"),
		qr/^25006: cannot execute a load/, "$table: replace_slice is refused too");
}
is(state_of($standby, @tables), $before, 'nothing has changed');
is($standby->safe_psql('postgres', "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), 0,
	'no lock is left');
is($standby->safe_psql('postgres', 'SELECT fingerprint(p) FROM plain p'),
	$primary->safe_psql('postgres', 'SELECT fingerprint(p) FROM plain p'),
	'fingerprints can be taken there');

# The primary dies, the standby takes over.
$primary->stop('immediate');
$standby->promote;
foreach my $table (@tables)
{
	is($standby->safe_psql('postgres', load_text($table, $day, 2)), 'none',
		"$table: after promotion a retry finds nothing to do");
	is($standby->safe_psql('postgres', load_text($table, $day, 3)), $method_of{$table},
		"$table: after promotion a new version is loaded");
	is($standby->safe_psql('postgres', load_text($table, $day, 3)), 'none',
		"$table: its retry finds nothing to do");
	is($standby->safe_psql('postgres', load_text($table, '2026-09-02', 3)), $method_of{$table},
		"$table: a new day is loaded");
	expect_rows($standby, "SELECT * FROM $table WHERE day IN ('$day', '2026-09-02')",
		"SELECT * FROM rows_of('$day', 3) UNION ALL SELECT * FROM rows_of('2026-09-02', 3)",
		"$table: both are whole");
}
is($standby->safe_psql('postgres', 'SELECT count(*), count(DISTINCT id) FROM load_history'), '14|14',
	'the history goes on');

$standby->stop;
done_testing();
