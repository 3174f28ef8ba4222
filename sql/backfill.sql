--
-- backfill: a job for each date of a range, with a commit after each
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotent_load;
CREATE SCHEMA iload_backfill;
CREATE ROLE regress_iload_filler;
RESET client_min_messages;
SET search_path = iload_backfill, public;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
SET IntervalStyle = 'postgres';
\set SHOW_CONTEXT never
-- a line a slice tells how long the rest will take; test/t/017_backfill.pl reads these
SET client_min_messages = error;

CREATE TABLE src (d date, n int);
INSERT INTO src SELECT date '2024-01-01' + i, n FROM generate_series(0, 40) i, generate_series(1, 3) n;
-- a day without rows
DELETE FROM src WHERE d = '2024-01-03';
CREATE TABLE fact (d date, n int);
SELECT create_job('facts', 'fact', 'SELECT d, n FROM src WHERE d = $1');
-- the last backfill, as other sessions see it
CREATE VIEW last_backfill AS
SELECT job, from_date, to_date, workers, state, total, done, skipped, failed, "left", run_by = current_user AS own, pid = pg_backend_pid() AS here,
	started_at <= updated_at AS updated, finished_at IS NOT NULL AS finished, time_left
FROM backfill_progress ORDER BY id DESC LIMIT 1;

-- a week, with an empty day in it; and once more
CALL backfill('facts', '2024-01-01', '2024-01-07');
SELECT d, count(*) FROM fact GROUP BY d ORDER BY d;
SELECT logical_date, method, rows FROM load_history WHERE target = 'fact'::regclass ORDER BY id;
TABLE last_backfill;
CALL backfill('facts', '2024-01-01', '2024-01-07');
SELECT count(*) FILTER (WHERE method = 'none' AND inserted + deleted = 0), count(DISTINCT started_at) FROM load_history
WHERE target = 'fact'::regclass AND id > (SELECT min(id) + 6 FROM load_history WHERE target = 'fact'::regclass);
-- one day; both ends belong to the range; nulls are defaults; arguments by name
CALL backfill('facts', '2024-01-08', '2024-01-08', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
CALL backfill(job => 'facts', to_date => '2024-01-09', from_date => '2024-01-09', pause => '1 millisecond', workers => 1);
SELECT max(d), count(*) FROM fact;
-- the newest first
CALL backfill('facts', '2024-01-10', '2024-01-12', first => 'newest');
SELECT logical_date FROM load_history WHERE target = 'fact'::regclass ORDER BY id DESC LIMIT 3;

-- arguments
\set VERBOSITY terse
CALL backfill(NULL, '2024-01-01', '2024-01-02');
CALL backfill('facts', NULL, '2024-01-02');
CALL backfill('facts', '2024-01-01', NULL);
CALL backfill('facts', '2024-01-02', '2024-01-01');
CALL backfill('facts', '-infinity', '2024-01-01');
CALL backfill('facts', '2024-01-01', 'infinity');
CALL backfill('facts', '0001-01-01', '9999-12-31');
CALL backfill('facts', '2024-01-01', '2024-01-02', first => 'Oldest');
CALL backfill('facts', '2024-01-01', '2024-01-02', on_error => 'ignore');
CALL backfill('facts', '2024-01-01', '2024-01-02', max_lag => '16');
CALL backfill('facts', '2024-01-01', '2024-01-02', max_lag => '0MB');
CALL backfill('facts', '2024-01-01', '2024-01-02', max_lag => '-1s');
CALL backfill('facts', '2024-01-01', '2024-01-02', max_lag => 'much');
CALL backfill('missing', '2024-01-01', '2024-01-02');
CALL backfill('missing(date)', '2024-01-01', '2024-01-02');
\set VERBOSITY default
CALL backfill('facts', '2024-01-01', '2024-01-02', first => 'last');
CALL backfill('facts', '2024-01-01', '2024-01-02', max_lag => 'much');
\set VERBOSITY sqlstate
CALL backfill(NULL, '2024-01-01', '2024-01-02');
CALL backfill('facts', '2024-01-02', '2024-01-01');
CALL backfill('facts', '0001-01-01', '9999-12-31');
CALL backfill('facts', '2024-01-01', '2024-01-02', 0);
CALL backfill('facts', '2024-01-01', '2024-01-02', 100000);
CALL backfill('facts', '2024-01-01', '2024-01-02', first => 'last');
CALL backfill('facts', '2024-01-01', '2024-01-02', max_lag => 'much');
CALL backfill('missing', '2024-01-01', '2024-01-02');
CALL backfill('missing(date)', '2024-01-01', '2024-01-02');
-- none of these left a row
SELECT count(*) FROM backfills WHERE job LIKE 'missing%' OR job = 'facts' AND state <> 'done';
-- no standby is behind, for there is none
CALL backfill('facts', '2024-01-01', '2024-01-02', max_lag => '16MB');
CALL backfill('facts', '2024-01-01', '2024-01-02', max_lag => '5min');

-- where somebody else is to commit it is refused, before any work
\set VERBOSITY default
BEGIN;
CALL backfill('facts', '2024-01-13', '2024-01-14');
ROLLBACK;
\set VERBOSITY sqlstate
BEGIN;
SAVEPOINT a;
CALL backfill('facts', '2024-01-13', '2024-01-14');
ROLLBACK;
CALL backfill('facts', '2024-01-13', '2024-01-14')\; SELECT 1;
CREATE FUNCTION fills() RETURNS void LANGUAGE plpgsql AS $$BEGIN CALL backfill('facts', '2024-01-13', '2024-01-14'); END$$;
SELECT fills();
CREATE PROCEDURE fills_with_set() LANGUAGE plpgsql SET work_mem = '8MB' AS $$BEGIN CALL backfill('facts', '2024-01-13', '2024-01-14'); END$$;
CALL fills_with_set();
CREATE PROCEDURE fills_as_definer() LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN CALL backfill('facts', '2024-01-13', '2024-01-14'); END$$;
CALL fills_as_definer();
CREATE PROCEDURE fills_in_sql() LANGUAGE sql AS $$CALL backfill('facts', '2024-01-13', '2024-01-14')$$;
CALL fills_in_sql();
DO $$BEGIN CALL backfill('facts', '2024-01-13', '2024-01-14'); EXCEPTION WHEN division_by_zero THEN NULL; END$$;
SELECT max(d) FROM fact;
-- where nobody is it works
DO $$BEGIN CALL backfill('facts', '2024-01-13', '2024-01-13'); CALL backfill('facts', '2024-01-14', '2024-01-14'); END$$;
CREATE PROCEDURE fills_itself(day date) LANGUAGE plpgsql AS
$$
BEGIN
	CALL backfill('facts', day, day);
	ROLLBACK;
	CALL backfill('facts', day + 1, day + 1);
	ROLLBACK;
END
$$;
CALL fills_itself('2024-01-15');
-- it sees what the procedure did before, and that is committed with the first slice
CREATE PROCEDURE fills_new(day date) LANGUAGE plpgsql AS
$$
BEGIN
	PERFORM create_job('new', 'fact', 'SELECT d, n FROM src WHERE d = $1');
	CALL backfill('new', day, day);
	ROLLBACK;
END
$$;
CALL fills_new('2024-01-16');
SELECT count(*) FROM jobs WHERE name = 'new';
SELECT max(d), count(DISTINCT d) FROM fact;
BEGIN READ ONLY;
CALL backfill('facts', '2024-01-13', '2024-01-14');
ROLLBACK;
SET default_transaction_read_only = on;
CALL backfill('facts', '2024-01-13', '2024-01-14');
SET default_transaction_read_only = off;
\set VERBOSITY default

-- a failure stops it: what is done stays, the failure is on record, and what is left is told
CREATE TABLE strict (d date, n int CHECK (n < 100), note text);
INSERT INTO src VALUES ('2024-01-04', 100), ('2024-01-06', 200);
SELECT create_job('strict', 'strict', 'SELECT d, n FROM src WHERE d = $1');
CALL backfill('strict', '2024-01-01', '2024-01-07');
TABLE last_backfill;
SELECT d, count(*) FROM strict GROUP BY d ORDER BY d;
\x
SELECT target, target_name, job, logical_date, sqlstate, message, detail, hint, context, failed_by = current_user AS own, failed_at <= clock_timestamp() AS failed_at
FROM load_failures WHERE job = 'strict';
\x
SELECT * FROM missing_dates('strict', '2024-01-01', '2024-01-07');
-- or it does not: the error comes at the end
CALL backfill('strict', '2024-01-01', '2024-01-07', on_error => 'continue', run_id => 'manual__2024-01-08');
TABLE last_backfill;
SELECT * FROM missing_dates('strict', '2024-01-01', '2024-01-07');
SELECT logical_date, message, run_id FROM load_failures WHERE job = 'strict' ORDER BY id;
SELECT logical_date, method, run_id FROM load_history WHERE target = 'strict'::regclass ORDER BY id;
SELECT run_id FROM backfill_progress WHERE job = 'strict' ORDER BY id;
\set VERBOSITY sqlstate
CALL backfill('strict', '2024-01-04', '2024-01-04');
\set VERBOSITY default
-- the newest first: what is left is older
CALL backfill('strict', '2024-01-01', '2024-01-07', first => 'newest');
-- resume: what was done by the same query is skipped, what failed is not
DELETE FROM src WHERE n >= 100;
CALL backfill('strict', '2024-01-01', '2024-01-08', resume => true);
TABLE last_backfill;
SELECT d, count(*) FROM strict GROUP BY d ORDER BY d;
SELECT * FROM missing_dates('strict', '2024-01-01', '2024-01-08');
-- what a skipped slice holds is not looked at
DELETE FROM strict WHERE d = '2024-01-02';
CALL backfill('strict', '2024-01-01', '2024-01-08', resume => true);
SELECT count(*) FROM strict WHERE d = '2024-01-02';
CALL backfill('strict', '2024-01-01', '2024-01-08');
SELECT count(*) FROM strict WHERE d = '2024-01-02';
-- by another query it was not done; nor where another load came after it
SELECT drop_job('strict');
SELECT create_job('strict', 'strict', 'SELECT d, n, ''new'' AS note FROM src WHERE d = $1');
CALL backfill('strict', '2024-01-01', '2024-01-02', resume => true);
SELECT rows FROM replace_partition('strict', '2024-01-01', 'SELECT $1 AS d, 1 AS n');
CALL backfill('strict', '2024-01-01', '2024-01-02', resume => true);
TABLE last_backfill;
SELECT d, count(*) FROM strict WHERE note = 'new' GROUP BY d ORDER BY d;
-- more dates than a message lists
SELECT create_job('never', command => 'SELECT 1 / ($1 - $1)');
CALL backfill('never', '2024-01-01', '2024-01-31', on_error => 'continue');
CALL backfill('never', '2024-01-01', '2024-01-31');
SELECT count(*), count(target), count(target_name), min(context) FROM load_failures WHERE job = 'never';
-- jobs that merge
SELECT create_job('merged', 'fact', 'SELECT d, n FROM src WHERE d = $1', method => 'merge', key => '{d,n}');
CALL backfill('merged', '2024-01-16', '2024-01-18');
SELECT logical_date, method, rows, inserted, updated FROM load_history WHERE target = 'fact'::regclass ORDER BY id DESC LIMIT 3;
-- each slice commits: a deferred constraint is checked before, and is that slice's failure
CREATE TABLE dim (n int PRIMARY KEY);
INSERT INTO dim VALUES (1), (2), (3);
CREATE TABLE child (d date, n int REFERENCES dim DEFERRABLE INITIALLY DEFERRED);
SELECT create_job('child', 'child', 'SELECT d, CASE WHEN d = ''2024-01-02'' THEN n + 1 ELSE n END AS n FROM src WHERE d = $1');
CALL backfill('child', '2024-01-01', '2024-01-04', on_error => 'continue');
SELECT d, count(*) FROM child GROUP BY d ORDER BY d;
SELECT logical_date, sqlstate, context FROM load_failures WHERE job = 'child';

-- commands, and functions by their signature; their failures too
CREATE TABLE calls (d date, what text);
SELECT create_job('command', command => 'INSERT INTO calls SELECT $1, ''command''; INSERT INTO calls SELECT $1, 100 / ($1 - date ''2024-01-03'')');
CREATE FUNCTION load_day(day date) RETURNS void LANGUAGE sql AS $$INSERT INTO iload_backfill.calls VALUES ($1, 'function')$$;
CREATE PROCEDURE "Load it"(day date) LANGUAGE sql AS $$INSERT INTO iload_backfill.calls VALUES ($1, 'procedure')$$;
CALL backfill('command', '2024-01-01', '2024-01-04', on_error => 'continue');
CALL backfill('load_day(date)', '2024-01-01', '2024-01-02');
TABLE last_backfill;
CALL backfill('iload_backfill."Load it"(pg_catalog.date)', '2024-01-01', '2024-01-02');
-- of these nothing is known to be done
CALL backfill('load_day(date)', '2024-01-01', '2024-01-01', resume => true);
SELECT d, string_agg(what, ', ' ORDER BY what) FROM calls GROUP BY d ORDER BY d;
SELECT job, logical_date, target, message FROM load_failures WHERE job = 'command';
-- a job that would commit by itself fails
CREATE PROCEDURE commits(day date) LANGUAGE plpgsql AS $$BEGIN DELETE FROM iload_backfill.calls; COMMIT; END$$;
\set VERBOSITY sqlstate
CALL backfill('commits(date)', '2024-01-01', '2024-01-01');
\set VERBOSITY default
SELECT count(*) FROM calls;

-- periods: the dates are their first days, and the last one is loaded whole
CREATE TABLE weekly (d date, n int);
SELECT create_job('weeks', 'weekly', 'SELECT d, n FROM src WHERE d >= $1 AND d < $2', period => '1 week');
CALL backfill('weeks', '2024-01-01', '2024-01-15');
SELECT logical_date, lower_bound, upper_bound, rows FROM load_history WHERE target = 'weekly'::regclass ORDER BY id;
CREATE TABLE monthly (d date, n int);
SELECT create_job('months', 'monthly', 'SELECT d, n FROM src WHERE d >= $1 AND d < $2', period => '1 month');
CALL backfill('months', '2024-01-01', '2024-02-02', first => 'newest');
SELECT logical_date, lower_bound, upper_bound, rows FROM load_history WHERE target = 'monthly'::regclass ORDER BY id;
CALL backfill('months', '2024-01-01', '2024-03-31', resume => true);
TABLE last_backfill;
CALL backfill('months', '2024-01-15', '2024-02-15');
CREATE TABLE hourly (t timestamp);
SELECT create_job('hours', 'hourly', 'SELECT $1 AS t', period => '1 hour');
\set VERBOSITY sqlstate
CALL backfill('hours', '2024-01-01', '2024-01-01');
\set VERBOSITY default

-- a dry run tells, and writes nothing; its notices are the same each time
SET client_min_messages = notice;
CREATE TABLE sums (d date NOT NULL, n int, amount numeric(8,2)) PARTITION BY RANGE (d);
CREATE TABLE sums_1 PARTITION OF sums FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
INSERT INTO sums VALUES ('2024-01-01', 7, 0.50);
SELECT create_job('sums', 'sums', 'SELECT d, n, 1.25 AS amount FROM src WHERE d = $1');
SELECT count(*) AS backfills FROM backfills \gset
CALL backfill('sums', '2024-01-01', '2024-01-03', dry_run => true);
CALL backfill('sums', '2024-01-01', '2024-01-02', dry_run => true, first => 'newest', workers => 2);
BEGIN;
CALL backfill('sums', '2024-01-01', '2024-01-01', dry_run => true);
COMMIT;
CREATE FUNCTION dry() RETURNS void LANGUAGE plpgsql AS $$BEGIN CALL backfill('sums', '2024-01-01', '2024-01-01', dry_run => true); END$$;
SELECT dry();
BEGIN READ ONLY;
CALL backfill('sums', '2024-01-01', '2024-01-01', dry_run => true);
COMMIT;
CALL backfill('weeks', '2024-01-08', '2024-01-08', dry_run => true);
SELECT count(*) - :backfills AS backfills FROM backfills;
SELECT count(*), sum(amount), (SELECT count(*) FROM pg_inherits WHERE inhparent = 'sums'::regclass) AS partitions FROM sums;
SELECT count(*) FROM load_history WHERE target = 'sums'::regclass;
-- what would fail fails; of a command it is not known what it would write
SELECT create_job('stray', 'sums', 'SELECT $1 + ($1 - date ''2024-01-01'') AS d, 1 AS n');
CALL backfill('stray', '2024-01-01', '2024-01-03', dry_run => true);
CALL backfill('command', '2024-01-01', '2024-01-03', dry_run => true);
CALL backfill('load_day(date)', '2024-01-01', '2024-01-03', dry_run => true);
CALL backfill('merged', '2024-01-01', '2024-01-03', dry_run => true);
\set VERBOSITY sqlstate
CALL backfill('command', '2024-01-01', '2024-01-03', dry_run => true);
\set VERBOSITY default
SELECT count(*) FROM load_failures WHERE job IN ('stray', 'sums');
SET client_min_messages = error;

-- the job's environment is pinned, and the session's is as before; also after a failure
SELECT create_job('look', command => $$INSERT INTO calls SELECT $1, current_setting('DateStyle') || ', ' || (1 / ($1 - date '2024-06-02'))$$);
SET DateStyle = 'German';
SET search_path = public;
CALL backfill('look', '2024-06-01', '2024-06-03', on_error => 'continue');
SHOW DateStyle;
SHOW search_path;
SET DateStyle = 'ISO, YMD';
SET search_path = iload_backfill, public;
SELECT d, what FROM calls WHERE d >= '2024-06-01' ORDER BY d;

-- rights: a job runs with those of its caller; what they do not allow is a failure as any other
GRANT USAGE ON SCHEMA iload_backfill TO regress_iload_filler;
GRANT SELECT ON src, last_backfill TO regress_iload_filler;
SET ROLE regress_iload_filler;
CALL backfill('facts', '2024-01-01', '2024-01-02', on_error => 'continue');
SELECT logical_date, sqlstate, failed_by FROM load_failures WHERE target = 'fact'::regclass ORDER BY id;
TABLE last_backfill;
\set VERBOSITY terse
CALL backfill('facts', '2024-01-01', '2024-01-02', max_lag => '1MB');
\set VERBOSITY sqlstate
CALL backfill('facts', '2024-01-01', '2024-01-02', max_lag => '1MB');
INSERT INTO backfills (job, from_date, to_date, workers, total, pid, run_by) VALUES ('', '2024-01-01', '2024-01-01', 1, 1, 1, '');
UPDATE backfills SET state = 'done';
DELETE FROM backfills;
TRUNCATE backfills;
\set VERBOSITY default
RESET ROLE;
GRANT SELECT, INSERT, DELETE ON fact TO regress_iload_filler;
GRANT pg_read_all_stats TO regress_iload_filler;
SET ROLE regress_iload_filler;
CALL backfill('facts', '2024-01-01', '2024-01-02', max_lag => '1MB');
RESET ROLE;
SELECT run_by, state, done FROM backfills ORDER BY id DESC LIMIT 1;
-- nothing depends on the caller's search_path
SET search_path = '';
CALL public.backfill('facts', '2024-01-01', '2024-01-02');
SET search_path = iload_backfill, public;

-- no lock is left in the session, and no row that says running
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
SELECT count(*) FROM backfill_progress WHERE state NOT IN ('done', 'failed');

DELETE FROM load_history WHERE target_name LIKE 'iload\_backfill.%';
DELETE FROM load_failures;
DELETE FROM backfills;
SELECT count(drop_job(name)) FROM jobs;
SET client_min_messages = warning;
DROP SCHEMA iload_backfill CASCADE;
DROP ROLE regress_iload_filler;
