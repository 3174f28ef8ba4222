# A load is cut off at each of its steps: by a crash of the whole server, and by
# the death of its own backend.  The day is the old one, whole, and nothing is
# left behind; the load then runs again as if nothing had been.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ILoadTest;
use Test::More;

my $node = new_node('main', conf => "work_mem = 64kB\nrestart_after_crash = on");
my $day = '2026-08-02';

make_rows_function($node);

# by method; part_new is loaded with a day for which it has no partition
my %method_of = (
	part_diff => 'diff',
	part_delete => 'delete',
	part_new => 'diff',
	plain_diff => 'diff',
	plain_delete => 'delete');
my @tables = sort keys %method_of;

make_table($node, $_) foreach @tables;

sub load_text
{
	my ($table, $date, $version) = @_;

	return "SELECT r.method FROM replace_partition('$table', '$date',"
	  . " 'SELECT * FROM rows_of(\$1, $version)', method => '$method_of{$table}') r";
}

my $round = 0;

# What is done in each round: loads of new versions of the day stop at a point.
sub stop_loads
{
	my ($point, $dates) = @_;
	my @loads;

	close_gate($node, $point);
	foreach my $table (@tables)
	{
		my $load = session($node);

		$load->query("SET idempotent_load.wait_point = '$point'");
		$load->send(load_text($table, $dates->{$table}, $round));
		push @loads, $load;
	}
	wait_at_gate($node, scalar @loads);
	return @loads;
}

foreach my $death ('server', 'backend')
{
	foreach my $point (qw(locked staged compared deleted inserted recorded))
	{
		my $what = "$death dies at \"$point\"";

		$round++;
		my %date_of = map { $_ => $day } @tables;
		$date_of{part_new} = sprintf('2026-09-%02d', $round);

		my $state = state_of($node, @tables);
		my $relations = relation_names($node);
		my @loads = stop_loads($point, \%date_of);

		cmp_ok(scalar temp_files($node), '>=', 1, "$what: the spool is in temporary files")
		  if $point eq 'staged';

		if ($death eq 'server')
		{
			$node->stop('immediate');
			$node->start;
		}
		else
		{
			my $offset = -s $node->logfile;

			kill 'KILL', $loads[ $round % @loads ]->pid;
			$node->wait_for_log(qr/all server processes terminated; reinitializing/, $offset);
			$node->poll_query_until('postgres', 'SELECT true') or die 'server is not back';
		}
		foreach my $load (@loads)
		{
			$load->wait;
			$load->finish;
		}

		is(state_of($node, @tables), $state, "$what: all days and the history are as before");
		is(relation_names($node), $relations, "$what: no relation is left");
		is(join(' ', temp_files($node)), '', "$what: no temporary file is left");

		my $rerun = session($node);
		foreach my $table (@tables)
		{
			my $load = load_text($table, $date_of{$table}, $round);
			my $method = $rerun->must($load);

			is($method eq 'none' ? 'nothing done' : $rerun->must($load), 'none',
				"$what: rerun of $table is done, the next one finds nothing to do");
			expect_rows($node, "SELECT * FROM $table WHERE day = '$date_of{$table}'",
				"SELECT * FROM rows_of('$date_of{$table}', $round)",
				"$what: rerun of $table has brought the new version");
		}
		$rerun->finish;
	}
}

# What was committed stays.
$round++;
foreach my $table (@tables)
{
	$node->safe_psql('postgres',
		load_text($table, $table eq 'part_new' ? '2026-09-30' : $day, $round));
}
my $committed = state_of($node, @tables);

$node->stop('immediate');
$node->start;
is(state_of($node, @tables), $committed, 'a committed load survives a crash of the server');
foreach my $table (@tables)
{
	my $date = $table eq 'part_new' ? '2026-09-30' : $day;

	expect_rows($node, "SELECT * FROM $table WHERE day = '$date'",
		"SELECT * FROM rows_of('$date', $round)", "committed load of $table is whole");
}

$node->stop;
done_testing();
