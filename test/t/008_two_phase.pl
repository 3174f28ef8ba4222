# Loads in prepared transactions: the slice stays locked until they are decided,
# over a restart and over a crash.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ILoadTest;
use Test::More;

my $node = new_node('main', conf => 'max_prepared_transactions = 10');
my $day = '2026-08-02';
my %method_of = (part => 'diff', plain => 'delete');
my @tables = sort keys %method_of;
my $version = 0;

make_rows_function($node);
make_table($node, $_) foreach @tables;

sub load_text
{
	my ($table, $date, $if_running) = @_;

	return "SELECT r.method FROM replace_partition('$table', '$date',"
	  . " 'SELECT * FROM rows_of(\$1, $version)', method => '$method_of{$table}',"
	  . " if_running => '$if_running') r";
}

sub prepare
{
	$version++;
	$node->safe_psql('postgres',
		"BEGIN; @{[ load_text($_, $day, 'wait') ]}; PREPARE TRANSACTION '$_'") foreach @tables;
	return;
}

sub expect_busy
{
	my ($when) = @_;

	foreach my $table (@tables)
	{
		like(error_of($node, load_text($table, $day, 'fail')), qr/^IL004: another load of slice/,
			"$table: busy $when");
		is($node->safe_psql('postgres', load_text($table, $day, 'skip')), 'skipped',
			"$table: skipped $when");
		like(error_of($node, "SET lock_timeout = '100ms'; " . load_text($table, $day, 'wait')),
			qr/^55P03: /, "$table: waits $when");
	}
	return;
}

# A load waits for the prepared one, which is then decided.
foreach my $decision ('COMMIT', 'ROLLBACK')
{
	my $before = state_of($node, @tables);

	prepare();
	is(state_of($node, @tables), $before, "$decision: a prepared load is not seen");
	expect_busy("$decision: while prepared");
	foreach my $table (@tables)
	{
		my $waiting = session($node);

		$waiting->send(load_text($table, $day, 'wait'));
		wait_for_lock($node, $waiting->pid);
		$node->safe_psql('postgres', "$decision PREPARED '$table'");
		is($waiting->wait, $decision eq 'COMMIT' ? 'none' : $method_of{$table},
			"$decision: the load of $table that waited finds what was decided");
		$waiting->finish;
		expect_rows($node, "SELECT * FROM $table WHERE day = '$day'",
			"SELECT * FROM rows_of('$day', $version)", "$decision: $table has the new day");
	}
}

# The same, but the server goes down in between.
foreach my $mode ('fast', 'immediate')
{
	foreach my $decision ('COMMIT', 'ROLLBACK')
	{
		my $name = "$mode stop, $decision";
		my $before = state_of($node, @tables);

		prepare();
		$node->stop($mode);
		$node->start;
		is(state_of($node, @tables), $before, "$name: a prepared load is not seen");
		expect_busy("after $name");

		is($node->safe_psql('postgres', load_text($_, '2026-08-03', 'fail')), $method_of{$_},
			"$name: another day of $_ is loaded meanwhile") foreach @tables;
		$before = state_of($node, @tables);

		$node->safe_psql('postgres', "$decision PREPARED '$_'") foreach @tables;
		foreach my $table (@tables)
		{
			if ($decision eq 'COMMIT')
			{
				expect_rows($node, "SELECT * FROM $table WHERE day = '$day'",
					"SELECT * FROM rows_of('$day', $version)", "$name: $table has the new day");
				is($node->safe_psql('postgres', load_text($table, $day, 'fail')), 'none',
					"$name: a retry of $table finds nothing to do");
			}
		}
		is(state_of($node, @tables), $before, "$name: everything is as before")
		  if $decision eq 'ROLLBACK';
		is($node->safe_psql('postgres', "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), 0,
			"$name: no lock is left");
	}
}

$node->stop;
done_testing();
