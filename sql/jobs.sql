--
-- jobs: create_job, drop_job and run_job
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotent_load;
CREATE SCHEMA iload_jobs;
CREATE ROLE regress_iload_maker;
CREATE ROLE regress_iload_runner;
CREATE ROLE regress_iload_member IN ROLE regress_iload_maker;
RESET client_min_messages;
SET search_path = iload_jobs, public;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
SET IntervalStyle = 'postgres';
\set SHOW_CONTEXT never

CREATE TABLE fact (d date, n int, loaded_at text);
CREATE TABLE src (d date, n int);
INSERT INTO src SELECT d::date, i FROM generate_series(timestamp '2024-01-01', '2024-01-03', '1 day') d, generate_series(1, 2) i;

-- the ordinary life of a job with a query
SELECT create_job('facts', 'fact', 'SELECT d, n, clock_timestamp()::text AS loaded_at FROM src WHERE d = $1', ignore_columns => '{loaded_at}');
SELECT target, lower_bound, upper_bound, method, rows, inserted, changed, elapsed >= '0' AS elapsed FROM run_job('facts', '2024-01-01', 'run 1');
SELECT method, rows, inserted, changed FROM run_job('facts', '2024-01-01', run_id => 'run 2');
SELECT logical_date, method, rows, run_id FROM load_history WHERE target = 'fact'::regclass ORDER BY id;
SELECT d, n FROM fact ORDER BY d, n;
-- all options, and all columns
SELECT create_job('all', 'fact', 'SELECT $1 AS d, 1 AS n WHERE $1 < ''2024-06-01''', NULL, 'd', '1 month', 'Asia/Tokyo', 'delete', 'replace',
                  'SELECT count(*) < 2 FROM staged', 'fail', false, '{n,loaded_at}');
\x
SELECT name, target, query, command, date_column, period, timezone, datestyle, search_path, method, on_empty, audit, if_running,
       create_partition, ignore_columns, created_by = current_user AS created_by, created_at > now() - interval '1 hour' AS created_at
FROM jobs ORDER BY name;
\x
SELECT lower_bound, upper_bound, method, rows FROM run_job('all', '2024-05-01');
SELECT lower_bound, upper_bound, method, rows FROM run_job('all', '2024-06-01');
SELECT timezone, period, logical_date FROM load_history WHERE target = 'fact'::regclass ORDER BY id DESC LIMIT 1;
SELECT drop_job('all');
SELECT drop_job('all', if_exists => true);
SELECT name FROM jobs ORDER BY name;
-- nulls are defaults
SELECT create_job('nulls', 'fact', 'SELECT $1 AS d', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
SELECT period, method, on_empty, if_running, create_partition FROM jobs WHERE name = 'nulls';
SELECT drop_job('nulls');
-- a script that is run again: what there was is replaced, whatever it was, with all options
SELECT create_job('script', 'fact', 'SELECT $1 AS d, 1 AS n', or_replace => true, audit => 'SELECT true', keep_previous => true);
SET TimeZone = 'Asia/Tokyo';
SELECT create_job('script', command => 'SELECT 2', or_replace => true);
SET TimeZone = 'UTC';
SELECT target, query, command, period, method, audit, keep_previous, timezone FROM jobs WHERE name = 'script';
SELECT create_job('script', 'fact', 'SELECT $1 AS d, 3 AS n', or_replace => true);
SELECT target, query, command, period, method, audit, keep_previous, timezone FROM jobs WHERE name = 'script';
SELECT create_job('script', 'fact', 'SELECT $1 AS d, no_such_column AS n', or_replace => true);
SELECT create_job('script', command => 'SELECT 4', or_replace => NULL);
SELECT query FROM jobs WHERE name = 'script';
SELECT drop_job('script');
-- the transaction decides
BEGIN;
SELECT create_job('undone', command => 'SELECT 1');
ROLLBACK;
SELECT drop_job('undone', true);

-- errors of create_job: the state tells which
\set VERBOSITY sqlstate
SELECT create_job(NULL, 'fact', 'SELECT $1 AS d');
SELECT create_job('', 'fact', 'SELECT $1 AS d');
SELECT create_job('f(date)', 'fact', 'SELECT $1 AS d');
SELECT create_job('facts', 'fact', 'SELECT $1 AS d');
SELECT create_job('facts', command => 'SELECT 1');
-- neither, or both
SELECT create_job('bad');
SELECT create_job('bad', 'fact');
SELECT create_job('bad', query => 'SELECT $1 AS d');
SELECT create_job('bad', 'fact', 'SELECT $1 AS d', 'SELECT 1');
SELECT create_job('bad', 'fact', command => 'SELECT 1');
SELECT create_job('bad', query => 'SELECT $1 AS d', command => 'SELECT 1');
-- target, query, columns
SELECT create_job('bad', 'jobs_pkey', 'SELECT $1 AS d');
SELECT create_job('bad', 'pg_class', 'SELECT $1 AS d');
SELECT create_job('bad', 'fact', 'SELEC $1 AS d');
SELECT create_job('bad', 'fact', 'DELETE FROM fact');
SELECT create_job('bad', 'fact', 'SELECT $1 AS d; SELECT $1 AS d');
SELECT create_job('bad', 'fact', 'SELECT $1 AS d FROM missing');
SELECT create_job('bad', 'fact', 'SELECT $1 AS d, 1 AS m');
SELECT create_job('bad', 'fact', 'SELECT 1 AS n');
SELECT create_job('bad', 'fact', 'SELECT $1 AS d, ''{}''::json AS n');
SELECT create_job('bad', 'fact', 'SELECT $3 AS d');
SELECT create_job('bad', 'fact', 'SELECT $1 AS d', date_column => 'm');
SELECT create_job('bad', 'fact', 'SELECT $1 AS d', ignore_columns => '{m}');
SELECT create_job('bad', 'fact', 'SELECT $1 AS d', ignore_columns => '{NULL}');
-- options
SELECT create_job('bad', 'fact', 'SELECT $1 AS d', period => '5 days');
SELECT create_job('bad', 'fact', 'SELECT $1 AS d', timezone => 'Mars/Olympus');
SELECT create_job('bad', 'fact', 'SELECT $1 AS d', method => 'none');
SELECT create_job('bad', 'fact', 'SELECT $1 AS d', on_empty => 'ignore');
SELECT create_job('bad', 'fact', 'SELECT $1 AS d', if_running => 'kill');
SELECT create_job('bad', 'fact', 'SELECT $1 AS d', audit => 'DELETE FROM staged');
-- commands
SELECT create_job('bad', command => 'SELEC 1');
SELECT create_job('bad', command => '');
SELECT create_job('bad', command => ' ; -- nothing');
SELECT create_job('bad', command => 'SELECT 1; COMMIT');
SELECT create_job('bad', command => 'BEGIN; SELECT 1');
SELECT create_job('bad', command => 'SAVEPOINT a; SELECT 1');
SELECT create_job('bad', command => 'SELECT 1', timezone => 'Mars/Olympus');
\set VERBOSITY default
-- options that a command does not have
SELECT create_job('bad', command => 'SELECT 1', date_column => 'd');
SELECT create_job('bad', command => 'SELECT 1', period => '24 hours');
SELECT create_job('bad', command => 'SELECT 1', method => 'delete');
SELECT create_job('bad', command => 'SELECT 1', on_empty => 'keep');
SELECT create_job('bad', command => 'SELECT 1', audit => 'SELECT true');
SELECT create_job('bad', command => 'SELECT 1', if_running => 'skip');
SELECT create_job('bad', command => 'SELECT 1', create_partition => false);
SELECT create_job('bad', command => 'SELECT 1', ignore_columns => '{n}');
-- the place of an error is shown in the call, or in the text
SELECT create_job('bad', command => 'SELECT 1; SELECT FROM FROM fact');
SELECT create_job('bad', command => concat('SELECT 1; ', 'SELECT FROM FROM fact'));
SELECT create_job('bad', command => 'SELECT 1; ROLLBACK');
SELECT create_job('facts', command => 'SELECT 1');
SELECT count(*) FROM jobs WHERE name = 'bad';

-- errors of the others
\set VERBOSITY sqlstate
SELECT drop_job(NULL);
SELECT drop_job('bad');
SELECT run_job(NULL, '2024-01-01');
SELECT run_job('facts', NULL);
SELECT run_job('facts', 'infinity');
\set VERBOSITY default
SELECT run_job('bad', '2024-01-01');
SELECT run_job('"facts"', '2024-01-01');

-- a command of several statements; a later one uses what an earlier one made
SELECT create_job('steps', command => $$
    CREATE TEMP TABLE step ON COMMIT DROP AS SELECT d, n FROM src WHERE d = $1;
    DELETE FROM fact WHERE d = $1;
    INSERT INTO fact SELECT d, n * 10 FROM step; -- the last one
$$);
SELECT target, lower_bound, upper_bound, method, rows, rows_before, inserted, deleted, changed, fingerprint, elapsed >= '0' AS elapsed
FROM run_job('steps', '2024-01-02', 'run 1');
SELECT method FROM run_job('steps', '2024-01-02');
SELECT d, n FROM fact WHERE d = '2024-01-02' ORDER BY n;
SELECT count(*) FROM load_history WHERE target = 'fact'::regclass AND logical_date = '2024-01-02';
-- $1 is a date, and there is no other parameter
SELECT create_job('type', command => 'INSERT INTO fact (d, n) VALUES ($1 + 365, length(pg_typeof($1)::text))');
SELECT method FROM run_job('type', '2024-01-01');
SELECT d, n FROM fact WHERE d >= '2024-12-01';
DELETE FROM fact WHERE d >= '2024-12-01';
SELECT create_job('second parameter', command => 'SELECT $2');
SELECT run_job('second parameter', '2024-01-01');
-- all or nothing: an error undoes the statements before it
SELECT create_job('halfway', command => 'DELETE FROM fact; SELECT 1 / ($1 - $1)');
SELECT run_job('halfway', '2024-01-01');
SELECT count(*) FROM fact;
-- an error names the job and the date in ISO style
SET DateStyle = 'SQL, DMY';
\set SHOW_CONTEXT errors
SELECT run_job('halfway', '2024-02-01');
DELETE FROM src WHERE d = '2024-01-01';
SELECT run_job('facts', '2024-01-01');
\set SHOW_CONTEXT never
SET DateStyle = 'ISO, YMD';

-- a job leaves COMMIT and ROLLBACK to its caller
CREATE PROCEDURE commits(d date) LANGUAGE plpgsql AS $$BEGIN DELETE FROM fact; COMMIT; END$$;
CREATE FUNCTION rolls_back(d date) RETURNS void LANGUAGE plpgsql AS $$BEGIN DELETE FROM fact; ROLLBACK; END$$;
SELECT create_job('do', command => 'DO $$BEGIN DELETE FROM fact; COMMIT; END$$');
SELECT create_job('call', command => 'CALL commits($1)');
SELECT run_job('do', '2024-01-01');
\set VERBOSITY sqlstate
SELECT run_job('do', '2024-01-01');
SELECT run_job('call', '2024-01-01');
SELECT run_job('commits(date)', '2024-01-01');
SELECT run_job('rolls_back(date)', '2024-01-01');
\set VERBOSITY default
SELECT count(*) FROM fact;
-- other statements that cannot be in a job
SELECT create_job('copy', command => 'COPY fact FROM STDIN');
SELECT create_job('vacuum', command => 'VACUUM fact');
SELECT run_job('copy', '2024-01-01');
\set VERBOSITY sqlstate
SELECT run_job('vacuum', '2024-01-01');
\set VERBOSITY default

-- functions and procedures by their signature
CREATE TABLE calls (d date, what text);
CREATE FUNCTION load_day(d date) RETURNS int LANGUAGE sql AS $$INSERT INTO calls VALUES ($1, 'function'); SELECT 1$$;
CREATE FUNCTION load_rows(d date) RETURNS TABLE (i int) LANGUAGE plpgsql AS
$$BEGIN FOR i IN 1..3 LOOP INSERT INTO calls VALUES (d, 'row ' || i); RETURN NEXT; END LOOP; END$$;
CREATE FUNCTION load_lazily(d date) RETURNS SETOF int LANGUAGE sql AS
$$INSERT INTO calls VALUES ($1, 'lazy 1'), ($1, 'lazy 2') RETURNING 1$$;
CREATE FUNCTION load_out(INOUT d date, OUT n int) LANGUAGE sql AS $$INSERT INTO calls VALUES ($1, 'out'); SELECT $1, 1$$;
CREATE PROCEDURE "Load it"(d date) LANGUAGE sql AS $$INSERT INTO calls VALUES ($1, 'procedure')$$;
SELECT method, rows, elapsed >= '0' AS elapsed FROM run_job('load_day(date)', '2024-01-01');
SELECT method FROM run_job(' iload_jobs.load_rows( pg_catalog.date )', '2024-01-02');
SELECT method FROM run_job('load_lazily(date)', '2024-01-03');
SELECT method FROM run_job('load_out(date)', '2024-01-04');
SELECT method FROM run_job('"Load it"(date)', '2024-01-05');
SELECT * FROM calls ORDER BY d, what;
-- what cannot be a job
CREATE FUNCTION two(d date, n int DEFAULT 1) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION many(VARIADIC d date[]) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION at(t timestamptz) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION fires() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE PROCEDURE returns(INOUT d date) LANGUAGE sql AS 'SELECT $1';
CREATE PROCEDURE gives(d date, OUT n int) LANGUAGE sql AS 'SELECT 1';
CREATE AGGREGATE last_day(date) (SFUNC = date_larger, STYPE = date);
SELECT run_job('two(date,integer)', '2024-01-01');
SELECT run_job('many(date[])', '2024-01-01');
SELECT run_job('at(timestamptz)', '2024-01-01');
SELECT run_job('fires()', '2024-01-01');
SELECT run_job('returns(date)', '2024-01-01');
SELECT run_job('gives(date)', '2024-01-01');
SELECT run_job('last_day(date)', '2024-01-01');
SELECT run_job('missing(date)', '2024-01-01');
SELECT run_job('missing(date', '2024-01-01');
SELECT run_job('load_day()', '2024-01-01');

-- the environment is pinned for the job, and the caller's after it
CREATE SCHEMA iload_jobs_other;
CREATE TABLE iload_jobs_other.src (d date, n int);
CREATE TABLE seen (job text, timezone text, datestyle text, search_path text, t timestamptz, n bigint);
CREATE FUNCTION look(d date) RETURNS void LANGUAGE sql AS
$$INSERT INTO iload_jobs.seen SELECT 'function', current_setting('TimeZone'), current_setting('DateStyle'), current_setting('search_path'), NULL, NULL$$;
SELECT create_job('look', command => $$INSERT INTO seen
SELECT 'command', current_setting('TimeZone'), current_setting('DateStyle'), current_setting('search_path'), '03/04/05', count(*) FROM src$$,
                  timezone => 'Asia/Tokyo');
SELECT create_job('env', 'fact', $$SELECT $1 AS d, count(*) AS n, '03/04/05 12:00+00'::timestamptz::text AS loaded_at FROM src$$, timezone => 'America/New_York');
SHOW TimeZone;
SELECT timezone, datestyle, search_path FROM jobs WHERE name IN ('look', 'env') ORDER BY timezone;
SET TimeZone = 'Europe/Paris';
SET DateStyle = 'German';
SET search_path = iload_jobs_other, public;
SELECT method FROM run_job('look', '2024-01-01');
SELECT method FROM run_job('iload_jobs.look(date)', '2024-01-01');
BEGIN;
SELECT method, rows FROM run_job('env', '2024-05-01');
SHOW TimeZone;
SHOW DateStyle;
SHOW search_path;
COMMIT;
-- it is also undone where the error is caught
DO $$BEGIN PERFORM public.run_job('halfway', '2024-01-01'); EXCEPTION WHEN division_by_zero THEN RAISE NOTICE '%', current_setting('search_path'); END$$;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
SET search_path = iload_jobs, public;
SELECT * FROM seen ORDER BY job;
SELECT d, n, loaded_at FROM fact WHERE d = '2024-05-01';
SELECT timezone FROM load_history WHERE target = 'fact'::regclass ORDER BY id DESC LIMIT 1;

-- a target that is gone, or renamed
CREATE TABLE gone (d date);
SELECT create_job('gone', 'gone', 'SELECT $1 AS d');
ALTER TABLE gone RENAME TO renamed;
SELECT target, method FROM run_job('gone', '2024-01-01');
DROP TABLE renamed;
\set VERBOSITY sqlstate
SELECT run_job('gone', '2024-01-01');
\set VERBOSITY default

-- rights: a job runs with those of its caller
GRANT USAGE ON SCHEMA iload_jobs TO regress_iload_maker, regress_iload_runner, regress_iload_member;
GRANT SELECT ON fact, src TO regress_iload_maker;
SET ROLE regress_iload_maker;
SELECT create_job('made', 'fact', 'SELECT d, n FROM src WHERE d = $1');
SELECT create_job('made command', command => 'SELECT count(*) FROM seen');
SELECT created_by FROM jobs WHERE name = 'made';
SELECT run_job('made', '2024-01-03');
SELECT run_job('made command', '2024-01-03');
-- to see the target is needed to make a job for it
SELECT create_job('not made', 'calls', 'SELECT $1 AS d');
RESET ROLE;
SELECT method, rows FROM run_job('made', '2024-01-03');
GRANT SELECT, INSERT, DELETE ON fact TO regress_iload_runner;
GRANT SELECT ON src, seen TO regress_iload_runner;
SET ROLE regress_iload_runner;
SELECT method, rows FROM run_job('made', '2024-01-03');
SELECT method FROM run_job('made command', '2024-01-03');
RESET ROLE;
SELECT loaded_by = current_user AS own, loaded_by FROM load_history WHERE target = 'fact'::regclass ORDER BY id DESC LIMIT 1;
REVOKE EXECUTE ON FUNCTION load_day FROM PUBLIC;
REVOKE EXECUTE ON PROCEDURE "Load it" FROM PUBLIC;
SET ROLE regress_iload_runner;
SELECT run_job('load_day(date)', '2024-01-01');
SELECT run_job('"Load it"(date)', '2024-01-01');
-- everybody reads the table, nobody else writes it
SELECT count(*) FROM jobs WHERE created_by = 'regress_iload_maker';
\set VERBOSITY sqlstate
INSERT INTO jobs (name) VALUES ('x');
UPDATE jobs SET command = 'DROP TABLE iload_jobs.fact';
DELETE FROM jobs;
TRUNCATE jobs;
\set VERBOSITY default
-- a job is dropped by its creator, members of that role, and the extension's owner
SELECT drop_job('made');
SELECT drop_job('made', true);
SELECT create_job('made', command => 'SELECT 1', or_replace => true);
SET ROLE regress_iload_maker;
SELECT create_job('made', command => 'SELECT 2', or_replace => true);
SELECT drop_job('made');
\set VERBOSITY sqlstate
SELECT drop_job('facts');
\set VERBOSITY default
SET ROLE regress_iload_member;
SELECT create_job('made command', command => 'SELECT 2', or_replace => true);
SELECT command, created_by FROM jobs WHERE name = 'made command';
SELECT drop_job('made command');
RESET ROLE;
SELECT count(*) FROM jobs WHERE created_by = 'regress_iload_maker';
-- also where the creator is gone
SET ROLE regress_iload_maker;
SELECT create_job('orphan', command => 'SELECT 1');
RESET ROLE;
DROP OWNED BY regress_iload_maker, regress_iload_runner, regress_iload_member;
DROP ROLE regress_iload_maker, regress_iload_member;
SET ROLE regress_iload_runner;
SELECT drop_job('orphan');
RESET ROLE;
SELECT drop_job('orphan');

-- jobs go with a dump
SELECT condition FROM pg_extension e, unnest(e.extconfig, e.extcondition) AS c(oid, condition)
WHERE e.extname = 'idempotent_load' AND c.oid = 'jobs'::regclass;
-- the extension's schema may be any
BEGIN;
SET LOCAL client_min_messages = warning;
DROP EXTENSION idempotent_load CASCADE;
CREATE SCHEMA "Other Schema";
CREATE EXTENSION idempotent_load SCHEMA "Other Schema";
SET LOCAL search_path = '';
SELECT "Other Schema".create_job('there', command => 'SELECT 1');
SELECT method FROM "Other Schema".run_job('there', '2024-01-01');
SAVEPOINT a;
SELECT "Other Schema".run_job('here', '2024-01-01');
ROLLBACK TO a;
SELECT "Other Schema".drop_job('there');
ROLLBACK;

SELECT count(drop_job(name)) FROM (SELECT name FROM jobs ORDER BY name) j;
DELETE FROM load_history WHERE target_name LIKE 'iload\_jobs.%';
SET client_min_messages = warning;
DROP SCHEMA iload_jobs, iload_jobs_other CASCADE;
DROP ROLE regress_iload_runner;
