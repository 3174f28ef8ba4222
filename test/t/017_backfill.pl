# Backfills with workers, and what ends them: errors, cancels, lost connections, and
# the deaths of workers, leaders and servers.  Each slice is the old one or the new
# one, nothing is left behind, and another backfill completes the work.  A backfill is
# seen while it runs, tells who listens, and waits for standbys.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ILoadTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node(
	'main',
	init => { allows_streaming => 1 },
	conf => "max_worker_processes = 8\nmax_logical_replication_workers = 0\nrestart_after_crash = on");
my $days = 60;

# Rows of a day in one version of the source; "version" has the one that jobs load.
# A job that comes to a day whose lock the test holds waits there.
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION day_rows(day date, version int) RETURNS TABLE (day date, id int, amount numeric)
LANGUAGE sql STABLE AS
$$
SELECT $1, g, round((g * 37 % 900 + CASE WHEN g % 3 = 0 THEN $2 ELSE 0 END) * 0.5, 2)
FROM generate_series(1 + $2, 200 + 2 * $2) g
$$;
CREATE FUNCTION pass(day date) RETURNS void LANGUAGE sql VOLATILE AS
$$SELECT pg_advisory_xact_lock_shared(17, day - date '2026-08-01')$$;
CREATE TABLE version (v int);
INSERT INTO version VALUES (0);
CREATE TABLE fact (day date NOT NULL, id int NOT NULL, amount numeric(12,2), PRIMARY KEY (day, id)) PARTITION BY RANGE (day);
SELECT create_job('fact', 'fact', 'SELECT r.* FROM version, day_rows($1, v) r, pass($1)');
CREATE VIEW workers AS SELECT * FROM pg_stat_activity WHERE backend_type = 'idempotent_load backfill';
-- each day as it is, in which version it is
CREATE VIEW slices AS
SELECT day, coalesce((SELECT v FROM version, generate_series(v - 1, v) w
	WHERE (SELECT fingerprint(f) FROM fact f WHERE f.day = d.day) = (SELECT fingerprint(r) FROM day_rows(d.day, w) r)
	LIMIT 1) - v + 1, 0) AS whole,
	(SELECT fingerprint(f) FROM fact f WHERE f.day = d.day) = (SELECT fingerprint(r) FROM version, day_rows(d.day, v) r) AS new
FROM version, (SELECT date '2026-08-01' + n AS day FROM generate_series(0, 59) n) d;
SQL

sub day
{
	my ($n) = @_;

	return $node->safe_psql('postgres', "SELECT date '2026-08-01' + $n");
}

# A call for the first so many days.
sub backfill_text
{
	my ($job, $count, $options) = @_;
	my $last = day($count - 1);

	return "CALL backfill('$job', '2026-08-01', '$last'" . ($options ? ", $options" : '') . ')';
}

sub new_version
{
	$node->safe_psql('postgres', 'UPDATE version SET v = v + 1');
	return;
}

# Jobs that come to these days wait until the session that is returned is finished.
sub close_days
{
	my (@numbers) = @_;
	my $gate = session($node);

	$gate->must("SELECT pg_advisory_lock(17, $_)") foreach @numbers;
	return $gate;
}

sub expect_no_worker
{
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM workers'), "$name: no worker is left");
}

sub last_backfill
{
	my ($columns) = @_;

	return $node->safe_psql('postgres', "SELECT $columns FROM backfill_progress ORDER BY id DESC LIMIT 1");
}

# Nothing tells of a backfill that has ended, but the table.
sub expect_ended
{
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	expect_no_worker($name);
	return is($node->safe_psql('postgres', <<'SQL'), '0|0', "$name: nothing says that it runs, no lock is left");
SELECT (SELECT count(*) FROM backfill_progress WHERE state = 'running'), (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')
SQL
}

# Wait until a session is in a pause, or waits for its workers or a standby.
sub wait_for_pace
{
	my ($condition) = @_;

	$node->poll_query_until('postgres',
		"SELECT count(*) > 0 AND bool_and(wait_event_type = 'Extension') FROM pg_stat_activity WHERE $condition")
	  or die "no wait where $condition";
	return;
}

# All slices are of the new version, and so is the sum.
sub expect_complete
{
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(
		$node->safe_psql('postgres', <<SQL), "$days|t", "$name: each slice is the new one, and the totals are exact");
SELECT (SELECT count(*) FROM slices WHERE new),
	(SELECT (count(*), sum(amount)) FROM fact) =
	(SELECT (count(*), sum(r.amount)) FROM version, generate_series(0, 59) n, day_rows(date '2026-08-01' + n, v) r)
SQL
}

#
# Workers
#

my $leader = session($node);
my $listener = session($node);

$listener->must('LISTEN idempotent_load');

# The slices are those of one worker, each is told of once, and the totals are exact.
# Half of them have a partition; the other ones are made by workers side by side.
foreach my $n (grep { $_ % 2 == 0 } 0 .. $days - 1)
{
	$node->safe_psql('postgres', sprintf(
		"CREATE TABLE fact_%d PARTITION OF fact FOR VALUES FROM ('%s') TO ('%s')", $n, day($n), day($n + 1)));
}
$leader->query(backfill_text('fact', $days, 'workers => 3'));
my @lines = $leader->error =~ /NOTICE:  00000: (2026-\S+: 200 rows, \w+, inserted 200, deleted 0, updated 0 \(\d+ of 60, about \d+ s left\))/g;
is(scalar @lines, $days, 'workers: a line for each slice');
is(scalar keys %{ { map { /^(\S+):/ => 1 } @lines } }, $days, 'workers: each slice once');
is($leader->error =~ /ERROR|WARNING/ ? $leader->error : '', '', 'workers: no error');
expect_complete('workers');
is($node->safe_psql('postgres', "SELECT count(*), count(DISTINCT logical_date) FROM load_history WHERE target = 'fact'::regclass"),
	"$days|$days", 'workers: each slice was loaded once');
is(last_backfill(q(workers, state, total, done, failed, "left")), "3|done|$days|$days|0|0", 'workers: the row in backfills');
expect_ended('workers');

# The other time nothing is written; one worker tells the slices in their order.
$leader->query(backfill_text('fact', $days, 'workers => 2'));
is(scalar(() = $leader->error =~ /200 rows, none, inserted 0, deleted 0, updated 0/g), $days, 'workers again: nothing is written');
foreach my $first ('oldest', 'newest')
{
	my @wanted = map { day($_) } 0 .. 9;

	@wanted = reverse @wanted if $first eq 'newest';
	$leader->query(backfill_text('fact', 10, "first => '$first'"));
	is(join(' ', $leader->error =~ /NOTICE:  00000: (\S+):/g), "@wanted", "the $first first");
}

# Days that are held show in which order workers take the slices.
foreach my $first ('oldest', 'newest')
{
	my $gate = close_days(20, 21, 22);

	new_version();
	$leader->send(backfill_text('fact', $days, "first => '$first', workers => 3"));
	wait_at_gate($node, 3);
	is($node->safe_psql('postgres', 'SELECT min(day), max(day), count(*) FROM slices WHERE new'),
		$first eq 'oldest' ? day(0) . '|' . day(19) . '|20' : day(23) . '|' . day(59) . '|37',
		"workers, the $first first: those before have been done");

	# another session sees it
	ok($node->poll_query_until('postgres', sprintf(<<'SQL', $leader->pid, $first eq 'oldest' ? 20 : 37)), 'progress is seen while it runs');
SELECT state = 'running' AND pid = %1$d AND total = 60 AND done = %2$d AND "left" = 60 - %2$d AND time_left > '0'
	AND finished_at IS NULL AND from_date = '2026-08-01' AND to_date = '2026-09-29'
FROM backfill_progress ORDER BY id DESC LIMIT 1
SQL
	is($node->safe_psql('postgres', q(SELECT count(DISTINCT query) FROM workers WHERE query ~ '^backfill of job "fact": 2026-08-2[123]$')),
		3, 'workers tell what they do');
	$gate->finish;
	$leader->wait;
	expect_complete("workers, the $first first");
}

# One that has no workers is seen too: what it has done is counted at once.
{
	my $gate = close_days(3);

	new_version();
	$leader->send(backfill_text('fact', 5));
	wait_at_gate($node, 1);
	is(last_backfill('state, done, "left", time_left > \'0\''), 'running|3|2|t', 'progress without workers is seen while it runs');
	$gate->finish;
	$leader->wait;
}

# More workers than there are slices, or slots for them.
$leader->query(backfill_text('fact', 2, 'workers => 8'));
is($leader->error =~ /WARNING|ERROR/ ? $leader->error : '', '', 'more workers than slices');
foreach my $taken (7, 8)
{
	my $gate = close_days(0 .. 7);
	my $other = session($node);

	$other->send(backfill_text('fact', $days, "workers => $taken"));
	wait_at_gate($node, $taken);
	$leader->query("CALL backfill('fact', '2026-09-20', '2026-09-22', workers => 2)");
	if ($taken == 7)
	{
		like($leader->error, qr/WARNING:  01000: backfill has 1 workers instead of 2\nHINT:  You might need to increase max_worker_processes/,
			'fewer workers than asked for: a warning');
		like($leader->error, qr/2026-09-22: .* \(3 of 3/, 'it runs for all that');
	}
	else
	{
		like($leader->error, qr/ERROR:  53000: could not start a worker for the backfill\nHINT: .*workers => 1/, 'no worker: an error');
	}
	$gate->finish;
	$other->wait;
	is($other->error =~ /ERROR/ ? $other->error : '', '', "the one with $taken workers is not disturbed");
	$other->finish;
}
expect_ended('few slots');

#
# Errors in workers
#

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE seen (day date, what text);
SELECT create_job('fails', command => $$SELECT pass($1); INSERT INTO seen SELECT $1, 1 / ($1 - date '2026-08-01')$$);
SQL

# One fails while the other one is at work: it finishes its slice, and no other one is begun.
{
	my $first = close_days(0);
	my $gate = close_days(1);

	$leader->send(backfill_text('fails', 60, 'workers => 2'));
	wait_at_gate($node, 2);
	$first->finish;
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM load_failures WHERE job = 'fails'") or die 'no failure';
	$gate->finish;
	$leader->wait;
	like($leader->error, qr/WARNING:  01000: 2026-08-01: failed: division by zero \(/, 'stop: a warning for the slice');
	like($leader->error, qr/ERROR:  22012: backfill of job "fails" failed at 2026-08-01: division by zero
DETAIL:  Done: 1 of 60 slices. Failed: 2026-08-01. Left: 2026-08-03, 2026-08-04, .* and 48 more.
HINT:  Slices that are done stay done./, 'stop: the error tells what is done and left');
	is(last_backfill('state, done, failed, "left"'), 'failed|1|1|58', 'stop: the row in backfills');
	is($node->safe_psql('postgres', "SELECT logical_date, sqlstate, message, context FROM load_failures WHERE job = 'fails'"),
		qq(2026-08-01|22012|division by zero|SQL statement "SELECT pass(\$1); INSERT INTO seen SELECT \$1, 1 / (\$1 - date '2026-08-01')"\njob "fails" for date 2026-08-01),
		'stop: the failure is on record, with its context');
}
$leader->query(backfill_text('fails', 60, "workers => 2, on_error => 'continue'"));
like($leader->error, qr/DETAIL:  Done: 59 of 60 slices. Failed: 2026-08-01. Left: none./, 'continue: all others are done');
is(last_backfill('state, done, failed, "left"'), 'failed|59|1|0', 'continue: the row in backfills');
is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT day) FROM seen'), '60|59', 'continue: each was run once');

# What the caller passes as run_id is on record, also by workers.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE named (day date, n int CHECK (n <> 3));
SELECT create_job('named', 'named', $$SELECT $1 AS day, extract(day FROM $1)::int AS n$$);
SQL
$leader->query("CALL backfill('named', '2026-08-01', '2026-08-04', workers => 2, on_error => 'continue', run_id => 'manual__''é')");
is($node->safe_psql('postgres', <<'SQL'), "4|manual__'é|manual__'é\nmanual__'é", 'run_id is on record');
SELECT count(*), min(run_id), max(run_id) FROM (
	SELECT run_id FROM load_history WHERE target = 'named'::regclass
	UNION ALL SELECT run_id FROM load_failures WHERE job = 'named') AS slice;
SELECT run_id FROM backfill_progress WHERE job = 'named';
SQL

# A message longer than there is room for is not cut within a character.
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION shout(day date) RETURNS void LANGUAGE plpgsql AS $$BEGIN RAISE '%', repeat('é', 300); END$$;
SQL
foreach my $workers (1, 2)
{
	$leader->query(backfill_text('shout(date)', 2, "workers => $workers"));
	like($leader->error, qr/failed at 2026-08-0[12]: (\xc3\xa9){100,}\n/, "$workers workers: a long message is cut between characters");
}
is($node->safe_psql('postgres', "SELECT DISTINCT length(message) FROM load_failures WHERE job ~ 'shout'"), 300, 'and whole on record');

#
# Settings and role
#

# All that a job can see of the session is the leader's, but for the process.
$node->safe_psql('postgres', <<'SQL');
CREATE SCHEMA other;
CREATE TABLE session (day date, leader bool, what text);
CREATE FUNCTION public.look(day date) RETURNS void LANGUAGE sql AS
$$
INSERT INTO public.session SELECT $1, $1 > '2026-08-02', concat_ws('; ', current_user, session_user, current_setting('role'), '03/04/05'::date - date '2000-01-01',
	current_setting('work_mem'), current_setting('search_path'), current_setting('TimeZone'), current_setting('DateStyle'), current_setting('IntervalStyle'),
	current_setting('lock_timeout'), current_setting('application_name'), current_setting('transaction_isolation'),
	current_setting('idempotent_load.swap_min_size'), current_setting('idempotent_load.lint'), current_setting('my.own', true),
	current_setting('enable_seqscan'), current_setting('is_superuser'), has_table_privilege('fact', 'SELECT'))
$$;
CREATE ROLE filler LOGIN;
CREATE ROLE member LOGIN;
GRANT filler TO member;
GRANT INSERT ON session TO filler, member;
GRANT USAGE ON SCHEMA other TO filler, member;
ALTER ROLE member SET work_mem = '9MB';
ALTER DATABASE postgres SET IntervalStyle = 'iso_8601';
SQL
foreach my $case (
	[ 'postgres', 'SET ROLE filler' ],
	[ 'postgres', 'SET SESSION AUTHORIZATION member' ],
	[ 'postgres', 'SET SESSION AUTHORIZATION member; SET ROLE filler' ],
	[ 'member', 'SET ROLE filler' ],
	[ 'member', 'SELECT 1' ])
{
	my ($user, $set) = @$case;
	my $session = session($node, user => $user);

	$session->must($_) foreach (
		$set, "SET work_mem = '7MB'", 'SET search_path = other, public', "SET TimeZone = 'Asia/Tokyo'",
		"SET DateStyle = 'SQL, DMY'", "SET lock_timeout = '77s'", "SET application_name = 'night'",
		"SET default_transaction_isolation = 'repeatable read'", 'SELECT public.fingerprint(r) FROM (SELECT 1) r',
		'SET idempotent_load.swap_min_size = 0', "SET idempotent_load.lint = 'off'", "SET my.own = 'mine'", 'SET enable_seqscan = off');
	$session->must("CALL backfill('public.look(date)', '2026-08-01', '2026-08-02', workers => 2)");
	$session->must("CALL backfill('public.look(date)', '2026-08-03', '2026-08-03')");
	is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT what), count(*) FILTER (WHERE leader) FROM session'), '3|1|1',
		"$user, $set: a worker's session is like the leader's")
	  or diag $node->safe_psql('postgres', 'TABLE session');
	$node->safe_psql('postgres', 'TRUNCATE session');
	$session->finish;
}
$node->safe_psql('postgres', 'ALTER DATABASE postgres RESET IntervalStyle');

#
# Notifications
#

$node->safe_psql('postgres', q(SELECT create_job('it''s a "job" \ ', 'fact', 'SELECT r.* FROM version, day_rows($1, v) r, pass($1) WHERE 1 / ($1 - date ''2026-08-05'') IS NOT NULL')));
foreach my $workers (1, 2)
{
	my $gate = close_days(2 .. 4);

	new_version();
	$node->safe_psql('postgres', "SELECT replace_partition('fact', '2026-08-02', 'SELECT r.* FROM version, day_rows(\$1, v) r')");
	$listener->query('SELECT 1');
	$leader->send(backfill_text(q(it''s a "job" \ ), 6, "on_error => 'continue', workers => $workers"));
	wait_at_gate($node, $workers);

	# the first day has changed, the second one has not
	my @payloads = $listener->query('SELECT 1') =~ /with payload "(.*)" received/g;
	is(scalar @payloads, 2, "$workers workers: notifications arrive as slices commit");
	$gate->finish;
	$leader->wait;
	push @payloads, $listener->query('SELECT 1') =~ /with payload "(.*)" received/g;
	my $array = join ', ', map { "\$json\$$_\$json\$" } @payloads;
	my $id = last_backfill('id');

	is($node->safe_psql('postgres', <<SQL), <<WANTED =~ s/\n$//r, "$workers workers: the notifications are valid JSON");
WITH payload AS (SELECT p::json AS p FROM unnest(ARRAY[$array]) p)
SELECT p->>'event', p->>'date', p->>'method' IN ('swap', 'diff', 'delete'), (p->>'updated')::int = 0 AND (p->>'rows')::int = (p->>'inserted')::int - (p->>'deleted')::int + 200 + (SELECT v - 1 FROM version),
	p->>'total', p->>'done', p->>'failed'
FROM payload WHERE p->>'job' = 'it''s a "job" \\ ' AND (p->>'backfill')::bigint = $id
ORDER BY p->>'event' = 'end', p->>'event' = 'slice', p->>'date'
SQL
start||||6|0|0
slice|2026-08-01|t|t|||
slice|2026-08-03|t|t|||
slice|2026-08-04|t|t|||
slice|2026-08-06|t|t|||
end||||6|5|1
WANTED
}

#
# Deaths
#

# Who dies while three workers are at work: at a step of their loads, or with certain
# days done.  The seed is fixed.
srand(17);
my @deaths = ('leader is terminated', 'leader is cancelled', 'worker is terminated', 'server stops', 'worker is killed', 'leader is killed');
my @points = qw(locked staged compared inserted recorded filled swapped);
my $round = 0;

$node->safe_psql('postgres', backfill_text('fact', $days));
foreach my $place (map { ($_, int(rand($days - 3))) } @points)
{
	my $at_point = $place =~ /\D/;
	my $swaps = $at_point ? $place =~ /filled|swapped/ : $round % 3 == 0;
	my $first = $round % 2 ? 'newest' : 'oldest';

	foreach my $death (@deaths[ $round % 6, ($round + 3) % 6 ])
	{
		my $what = "$death at " . ($at_point ? "\"$place\"" : "day $place, the $first first");
		my $gate = $at_point ? close_gate($node, $place) : close_days($place .. $place + 2);
		my $caller = session($node);

		new_version();
		my $last_load = $node->safe_psql('postgres', 'SELECT max(id) FROM load_history');
		$caller->must("LOAD 'idempotent_load'");
		$caller->must("SET idempotent_load.wait_point = '$place'") if $at_point;
		$caller->must('SET idempotent_load.swap_min_size = 0; SET idempotent_load.swap_threshold = 0') if $swaps;
		$caller->send(backfill_text('fact', $days, "workers => 3, first => '$first'"));
		wait_at_gate($node, 3);

		my $worker = $node->safe_psql('postgres', 'SELECT pid FROM workers ORDER BY pid LIMIT 1 OFFSET ' . int(rand(3)));
		my $offset = -s $node->logfile;
		if ($death eq 'server stops')
		{
			$node->stop('immediate');
			$node->start;
		}
		elsif ($death =~ /(\w+) is killed/)
		{
			kill 'KILL', $1 eq 'worker' ? $worker : $caller->pid;
			$node->wait_for_log(qr/all server processes terminated; reinitializing/, $offset);
			$node->poll_query_until('postgres', 'SELECT true') or die 'server is not back';
		}
		elsif ($death eq 'worker is terminated')
		{
			# the other ones finish their slices, and begin no other ones
			$node->safe_psql('postgres', "SELECT pg_terminate_backend($worker)");
			$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM load_failures WHERE failed_at > now() - interval '1 hour' AND sqlstate = '57P01'")
			  or die 'no failure';
			$gate->finish;
		}
		else
		{
			my $function = $death eq 'leader is cancelled' ? 'pg_cancel_backend' : 'pg_terminate_backend';
			$node->safe_psql('postgres', sprintf("SELECT $function(%d)", $caller->pid));

			# they end though the gate is closed
			expect_no_worker($what);
			$gate->finish;
		}
		$caller->wait;
		like($caller->error, {
			'leader is cancelled' => qr/ERROR:  57014: canceling statement due to user request/,
			'worker is terminated' => qr/ERROR:  57P01: backfill of job "fact" failed at \S+: the worker ended before the slice was done\nDETAIL:  Done: /
		  }->{$death} || qr/FATAL|closed the connection/, "$what: the caller is told");
		$caller->finish;
		$gate->finish;

		expect_ended($what);
		is(last_backfill('state'), $death eq 'worker is terminated' ? 'failed' : 'interrupted', "$what: its state");
		is($node->safe_psql('postgres', "SELECT count(*), count(*) FILTER (WHERE new) = (SELECT count(*) FROM load_history WHERE id > $last_load) FROM slices WHERE whole = 1"),
			"$days|t", "$what: each slice is old or new, and the new ones are on record");
		unless ($at_point)
		{
			my $done = $first eq 'oldest' ? $place : $days - 3 - $place;

			$done += 2 if $death eq 'worker is terminated';
			is($node->safe_psql('postgres', 'SELECT count(*) FROM slices WHERE new'), $done, "$what: what was done before stays done");
		}
		$node->safe_psql('postgres', 'DELETE FROM load_failures');

		my $again = session($node);
		$again->query(backfill_text('fact', $days, 'workers => 3, resume => ' . ($round % 2 ? 'true' : 'false')));
		is($again->error =~ /ERROR|WARNING/ ? $again->error : '', '', "$what: another one has no error");
		$again->finish;

		# a slice that was loaded by the same query is skipped on resume, whatever it then read
		$node->safe_psql('postgres', backfill_text('fact', $days)) if $round % 2;
		expect_complete($what);
	}
	$round++;
}
$leader->finish;
$leader = session($node);

# Workers that die between slices, or cannot begin at all, are no success.
{
	$leader->send(backfill_text('fact', 60, "workers => 2, pause => '1 hour'"));
	wait_for_pace("backend_type = 'idempotent_load backfill' AND (SELECT count(*) FROM workers WHERE state = 'idle') = 2");
	$node->safe_psql('postgres', 'SELECT pg_terminate_backend(pid) FROM workers');
	$leader->wait;
	like($leader->error, qr/ERROR:  57P01: the workers of the backfill of job "fact" ended before all slices were done\nDETAIL:  Done: 2 of 60 slices. Failed: none. Left: 2026-08-03, /,
		'all workers are terminated in their pause: an error');
	is(last_backfill('state, done, failed, "left"'), 'failed|2|0|58', 'the row in backfills tells');

	my $session = session($node, user => 'member');
	$node->safe_psql('postgres', 'ALTER ROLE member NOLOGIN');
	$session->query("CALL backfill('public.look(date)', '2026-08-01', '2026-08-02', workers => 2)");
	like($session->error, qr/ERROR:  57P01: the workers .*\nDETAIL:  Done: 0 of 2 slices/, 'workers that may not log in: an error');
	$session->finish;
	expect_ended('workers that die between slices');
}

#
# Cancels and lost connections
#

foreach my $workers (1, 3)
{
	foreach my $end ('cancel', 'statement_timeout', 'terminate', 'lost connection')
	{
		foreach my $where ('at a gate', 'in a pause')
		{
			my $what = "$end, $workers workers, $where";
			my $gate = $where eq 'at a gate' ? close_days(5 .. 7) : undef;
			my $caller = session($node);

			new_version();
			$caller->must("SET client_connection_check_interval = '50ms'; SET client_min_messages = error");
			$caller->must("SET statement_timeout = '1s'") if $end eq 'statement_timeout';
			$caller->send(backfill_text('fact', 10, "workers => $workers" . ($gate ? '' : ", pause => '1 hour'")));
			if ($end ne 'statement_timeout')
			{
				wait_at_gate($node, $workers) if $gate;
				wait_for_pace($workers == 1 ? 'pid = ' . $caller->pid : "backend_type = 'idempotent_load backfill' AND (SELECT count(*) FROM workers WHERE state = 'idle') = 3") unless $gate;
			}
			if ($end eq 'lost connection')
			{
				$caller->{run}->kill_kill;
				$node->poll_query_until('postgres', sprintf('SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = %d', $caller->pid))
				  or die 'the leader does not notice';
			}
			else
			{
				$node->safe_psql('postgres', sprintf('SELECT pg_%s_backend(%d)', $end, $caller->pid)) unless $end eq 'statement_timeout';
				$caller->wait;
				like($caller->error, { cancel => qr/57014: canceling statement due to user request/,
						statement_timeout => qr/57014: canceling statement due to statement timeout/,
						terminate => qr/57P01: terminating connection/ }->{$end}, "$what: the error");
			}
			expect_no_worker($what);
			if ($end =~ /cancel|timeout/)
			{
				# the session can go on
				is($caller->query('SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = \'advisory\''), 0, "$what: no lock is left in the session");
			}
			$caller->finish;
			$gate->finish if $gate;
			expect_ended($what);
			is(last_backfill('state'), 'interrupted', "$what: its state");
			is($node->safe_psql('postgres', 'SELECT min(whole), count(*) FILTER (WHERE new) FROM slices'), '1|' . ($gate ? 5 : $workers),
				"$what: each slice is old or new") if $end ne 'statement_timeout';
			$node->safe_psql('postgres', backfill_text('fact', $days, 'workers => 3'));
			expect_complete($what);
		}
	}
}

#
# The pace
#

# A pause is between slices: not after the last one, nor for those that are skipped.
$leader->must(backfill_text('fact', 1, "pause => '1 hour'"));
$leader->must(backfill_text('fact', 2, "workers => 2, pause => '1 hour'"));
$leader->must(backfill_text('fact', 5, "pause => '1 hour', resume => true"));
$leader->must(backfill_text('fact', 5, "pause => '1 hour', resume => true, workers => 2"));
is(last_backfill('state, skipped'), 'done|5', 'no pause where there is nothing to wait for');
my $last = $node->safe_psql('postgres', 'SELECT max(id) FROM load_history');
$leader->must(backfill_text('fact', 4, "pause => '0.1 s'"));
is($node->safe_psql('postgres', "SELECT count(*), bool_and(gap >= '0.1 s') FROM (SELECT started_at - lag(started_at) OVER (ORDER BY id) AS gap FROM load_history WHERE id > $last) g"),
	'4|t', 'a pause between slices');
# What has been done is seen during a pause, and a failure ends that of the other worker.
$leader->send(backfill_text('fact', 3, "pause => '1 hour'"));
wait_for_pace('pid = ' . $leader->pid);
is(last_backfill('state, done, "left"'), 'running|1|2', 'progress is seen in a pause');
$node->safe_psql('postgres', sprintf('SELECT pg_cancel_backend(%d)', $leader->pid));
$leader->wait;
{
	my $gate = close_days(0);

	$leader->send(backfill_text('fails', 9, "pause => '1 hour', workers => 2"));
	wait_for_pace("backend_type = 'idempotent_load backfill' AND state = 'idle'");
	$gate->finish;
	$leader->wait;
	like($leader->error, qr/DETAIL:  Done: 1 of 9 slices. Failed: 2026-08-01. Left: 2026-08-03, /, 'a failure ends the pause of the other worker');
}

# A standby that is behind, by bytes or by time, is waited for.
$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->append_conf('postgresql.conf', "wal_receiver_status_interval = 1s\nhot_standby_feedback = off");
$standby->start;
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
$node->safe_psql('postgres', backfill_text('fact', 3, "max_lag => '16MB'"));
is(last_backfill('state, done'), 'done|3', 'a standby that is not behind is no obstacle');
foreach my $max_lag ('32kB', '1s')
{
	foreach my $workers (1, 2)
	{
		my $what = "max_lag $max_lag, $workers workers";

		$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
		$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
		$standby->poll_query_until('postgres', "SELECT pg_get_wal_replay_pause_state() = 'paused'") or die 'no pause';
		new_version();
		$node->safe_psql('postgres', "INSERT INTO seen SELECT '2026-08-01', repeat('x', 100) FROM generate_series(1, 1000)");
		$node->poll_query_until('postgres', $max_lag eq '1s' ? "SELECT replay_lag > '1s' FROM pg_stat_replication" :
			'SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn) > 32768 FROM pg_stat_replication') or die 'no lag';
		$leader->send(backfill_text('fact', 6, "max_lag => '$max_lag', workers => $workers"));
		wait_for_pace($workers == 1 ? 'pid = ' . $leader->pid : "backend_type = 'idempotent_load backfill' AND (SELECT count(*) FROM workers WHERE state = 'idle') = 2");
		is($node->safe_psql('postgres', 'SELECT count(*) FROM slices WHERE new'), $workers, "$what: each waits after its slice");
		# who waits keeps nobody waiting
		ok($node->poll_query_until('postgres', sprintf(<<'SQL', $leader->pid)), "$what: no snapshot is held meanwhile");
SELECT count(*) = 0 FROM pg_stat_activity
WHERE (pid = %d OR backend_type = 'idempotent_load backfill') AND (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL)
SQL
		$standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
		$leader->wait;
		is($leader->error =~ /ERROR|WARNING/ ? $leader->error : '', '', "$what: it goes on");
		is(last_backfill('state, done'), 'done|6', "$what: all is done");
	}
}
# a wait can be cancelled
$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
$standby->poll_query_until('postgres', "SELECT pg_get_wal_replay_pause_state() = 'paused'") or die 'no pause';
$node->safe_psql('postgres', "INSERT INTO seen SELECT '2026-08-01', repeat('x', 100) FROM generate_series(1, 1000)");
$leader->send(backfill_text('fact', 6, "max_lag => '32kB', workers => 2"));
wait_for_pace("backend_type = 'idempotent_load backfill' AND (SELECT count(*) FROM workers WHERE state = 'idle') = 2");
$node->safe_psql('postgres', sprintf('SELECT pg_cancel_backend(%d)', $leader->pid));
$leader->wait;
like($leader->error, qr/57014/, 'a wait for a standby can be cancelled');
expect_ended('a wait for a standby');
$standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is($standby->safe_psql('postgres', 'SELECT count(*), sum(amount) FROM fact'), $node->safe_psql('postgres', 'SELECT count(*), sum(amount) FROM fact'),
	'the standby has it all');
is($standby->safe_psql('postgres', "SELECT count(*) FROM backfill_progress WHERE state = 'running'"), 0, 'nothing runs on the standby');

$standby->stop;
$node->stop;
done_testing();
