--
-- assert: what assert_idempotent and check_idempotent say, take and refuse
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotent_load;
CREATE SCHEMA iload_assert;
CREATE ROLE regress_iload_checker;
CREATE ROLE regress_iload_owner;
RESET client_min_messages;
SET search_path = iload_assert, public;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
SET IntervalStyle = 'postgres';
SET extra_float_digits = 1;
-- what lint finds is told in lint.sql
SET idempotent_load.lint = off;
\set SHOW_CONTEXT never

CREATE TABLE source (d date, n int);
INSERT INTO source SELECT '2024-01-01', n FROM generate_series(1, 4) n;
INSERT INTO source VALUES ('2024-01-02', 9);
CREATE TABLE target (d date, n int);
INSERT INTO target VALUES ('2023-12-31', 0);
CREATE SEQUENCE numbers;
-- what must be the same at the end
CREATE VIEW state AS
SELECT (SELECT count(*) FROM load_history) AS loads, (SELECT fingerprint(t) FROM target t) AS target;
CREATE TABLE before AS TABLE state;

-- a job that may be retried
SELECT create_job('good', 'target', 'SELECT d, n FROM source WHERE d = $1');
SELECT assert_idempotent('good', '2024-01-01');
SELECT assert_idempotent('good', '2024-01-01', '{same,clock,crash,timezone,plan}');
SELECT rerun, passed, runs, world, relation, cause, added, missing, columns, added_rows, missing_rows, source, message, hint
FROM check_idempotent('good', '2024-01-01', '{same,clock,crash,timezone,plan}');

-- one of each cause
SELECT create_job('append', command => 'INSERT INTO target SELECT d, n FROM source WHERE d = $1');
SELECT assert_idempotent('append', '2024-01-01');
\echo :LAST_ERROR_SQLSTATE
SELECT create_job('skip_if_present', command => $$
INSERT INTO target SELECT d, n FROM source s
WHERE d = $1 AND NOT EXISTS (SELECT FROM target t WHERE t.d = $1)
$$);
SELECT assert_idempotent('skip_if_present', '2024-01-01');
CREATE FUNCTION clock(day date) RETURNS void LANGUAGE plpgsql AS
$$
BEGIN
	DELETE FROM target WHERE d = day;
	INSERT INTO target
	SELECT day, CASE WHEN now() < '2076-01-01' THEN 1 ELSE 2 END;
END
$$;
SELECT assert_idempotent('clock(date)', '2024-01-01', clock_shift => '60 years');
SELECT create_job('random', 'target', 'SELECT $1 AS d, floor(random() * 1000)::int AS n');
SELECT setseed(0.5);
SELECT assert_idempotent('random', '2024-01-01');
SELECT create_job('sequence', 'target', E'SELECT d,\n nextval(''numbers'') AS n FROM source WHERE d = $1');
SELECT assert_idempotent('sequence', '2024-01-01');
SELECT create_job('reads_target', command => 'UPDATE target SET n = n + 1');
SELECT assert_idempotent('reads_target', '2024-01-01');
CREATE TABLE first (d date, n int, m int);
SELECT create_job('order', 'first', 'SELECT d, n, 0 AS m FROM source WHERE d = $1 LIMIT 1');
SELECT assert_idempotent('order', '2024-01-01', '{plan}');
CREATE TABLE sums (d date PRIMARY KEY, x float8);
CREATE TABLE parts (x float8);
INSERT INTO parts SELECT n / 10.0 FROM generate_series(1, 20) n;
SELECT create_job('float', 'sums', 'SELECT $1 AS d, sum(x) AS x FROM parts');
SELECT assert_idempotent('float', '2024-01-01', '{same,plan}');
CREATE TABLE texts (d date, t text);
CREATE FUNCTION session(day date) RETURNS void LANGUAGE plpgsql AS
$$
BEGIN
	DELETE FROM texts WHERE d = day;
	INSERT INTO texts SELECT day, day + 1;
END
$$;
SELECT assert_idempotent('session(date)', '2024-01-01', '{timezone}');
-- a registered job has pinned the settings on which it depends
SELECT create_job('pinned', command => 'SELECT session($1)');
SELECT assert_idempotent('pinned', '2024-01-01', '{timezone}');
SELECT create_job('transaction', 'texts', 'SELECT $1 AS d, txid_current()::text AS t');
SELECT assert_idempotent('transaction', '2024-01-01');
SELECT create_job('error', command => 'CREATE TABLE made (d date); INSERT INTO made VALUES ($1)');
SELECT assert_idempotent('error', '2024-01-01');
\echo :LAST_ERROR_SQLSTATE
CREATE TABLE sized (d date, n bool);
SELECT create_job('unknown', 'sized', 'SELECT $1 AS d, pg_relation_size(''sized'') > 0 AS n');
SELECT assert_idempotent('unknown', '2024-01-01');

-- more than one table, and more rows than are shown
CREATE TABLE "Odd name" (d date, "Some column" text);
SELECT create_job('two tables', command => $$
INSERT INTO target SELECT $1, n FROM generate_series(1, 8) n;
INSERT INTO "Odd name" SELECT $1, repeat('long ', 200);
INSERT INTO texts VALUES ($1, NULL), (NULL, '');
$$);
SELECT rerun, passed, relation, cause, added, missing, columns, added_rows[5:], missing_rows, source
FROM check_idempotent('two tables', '2024-01-01', '{same}') ORDER BY relation;
-- each rerun has its rows
SELECT rerun, passed, runs, world, relation, cause, added, missing, columns, message
FROM check_idempotent('skip_if_present', '2024-01-01', '{plan,timezone,crash,clock,same}');
SELECT rerun, passed, runs, world, relation, cause, added, missing, columns, message
FROM check_idempotent('clock(date)', '2024-01-01', clock_shift => '-60 years');
SELECT rerun, passed, runs, world, relation, cause, added, missing, columns, message
FROM check_idempotent('clock(date)', '2024-01-01', clock_shift => '60 years', ignore_columns => '{n}');
SELECT rerun, passed, runs, message FROM check_idempotent('error', '2024-01-01', '{same,crash}');

-- options
SELECT assert_idempotent('sequence', '2024-01-01', ignore_columns => '{n}');
SELECT assert_idempotent('sequence', '2024-01-01', ignore_columns => '{target.n}');
SELECT assert_idempotent('sequence', '2024-01-01', ignore_columns => '{iload_assert.target.n}');
SELECT assert_idempotent('append', '2024-01-01', NULL, NULL, NULL);
SELECT assert_idempotent('good', '2024-01-01', '{}');
SELECT * FROM check_idempotent('good', '2024-01-01', '{}');
SELECT rerun FROM check_idempotent('good', '2024-01-01', '{plan,same,same}');
SELECT assert_idempotent('sequence', '2024-01-01', '{same}', ignore_columns => '{target.m}');
SELECT assert_idempotent('good', '2024-01-01', '{same}', ignore_columns => '{m}');
SELECT assert_idempotent('good', '2024-01-01', '{often}');
SELECT assert_idempotent('good', '2024-01-01', '{Same}');
SELECT assert_idempotent('good', '2024-01-01', '{NULL}');
SELECT assert_idempotent('good', '2024-01-01', ignore_columns => '{NULL}');
SELECT assert_idempotent(NULL, '2024-01-01');
SELECT assert_idempotent('good', NULL);
SELECT assert_idempotent('good', '2024-01-01', clock_shift => '0');
SELECT assert_idempotent('good', '2024-01-01', clock_shift => '0.5 s');
SELECT assert_idempotent('good', '2024-01-01', clock_shift => '70 years');
SELECT assert_idempotent('good', '2024-01-01', clock_shift => '-70 years');
SELECT assert_idempotent('good', '2024-01-01', clock_shift => '1 month -30 days');
SELECT assert_idempotent('bad', '2024-01-01');
SELECT assert_idempotent('bad(date)', '2024-01-01');
SELECT assert_idempotent('good', 'infinity');
SELECT * FROM check_idempotent(NULL, '2024-01-01');
SELECT * FROM check_idempotent('bad', '2024-01-01');

-- where it is called
CREATE FUNCTION checks(day date) RETURNS boolean LANGUAGE sql AS
$$SELECT assert_idempotent('good', day)$$;
SELECT assert_idempotent('checks(date)', '2024-01-01');
-- without being checked it may check
SELECT checks('2024-01-01');
BEGIN READ ONLY;
SELECT assert_idempotent('good', '2024-01-01');
ROLLBACK;
BEGIN;
INSERT INTO target VALUES ('2024-01-01', 7);
SELECT assert_idempotent('good', '2024-01-01');
SELECT * FROM target ORDER BY d, n;
SAVEPOINT a;
SELECT assert_idempotent('append', '2024-01-01');
ROLLBACK TO a;
SHOW transaction_isolation;
SELECT assert_idempotent('good', '2024-01-01');
SELECT * FROM target ORDER BY d, n;
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT assert_idempotent('good', '2024-01-01');
SHOW transaction_isolation;
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT assert_idempotent('good', '2024-01-01');
SHOW transaction_isolation;
COMMIT;
DO $$
BEGIN
	PERFORM assert_idempotent('append', '2024-01-01');
EXCEPTION WHEN SQLSTATE 'IL006' THEN
	RAISE NOTICE 'caught in %: %', current_setting('transaction_isolation'), SQLERRM;
END
$$;

-- the first run raises an error: that is it
CREATE TABLE unique_rows (d date, n int UNIQUE);
INSERT INTO unique_rows VALUES ('2024-01-01', 1);
SELECT create_job('fails', command => 'INSERT INTO target VALUES ($1, 1); INSERT INTO unique_rows VALUES ($1, 1)');
SELECT assert_idempotent('fails', '2024-01-01');
\echo :LAST_ERROR_SQLSTATE
SELECT assert_idempotent('good', '2024-01-03');
INSERT INTO target VALUES ('2024-01-03', 1);
SELECT assert_idempotent('good', '2024-01-03');
DELETE FROM target WHERE d = '2024-01-03';
CREATE PROCEDURE commits(d date) LANGUAGE plpgsql AS $$BEGIN INSERT INTO target VALUES (d, 1); COMMIT; END$$;
SELECT assert_idempotent('commits(date)', '2024-01-01');
\echo :LAST_ERROR_SQLSTATE

-- notes: what cannot be undone, or is not seen
SELECT create_job('effects', command => $$
NOTIFY loaded, 'a';
SELECT pg_notify('other', 'b');
SELECT pg_advisory_lock(1);
SELECT pg_try_advisory_lock_shared(2, -3);
SELECT lo_unlink(lo_from_bytea(0, 'a'));
COPY source TO '/dev/null'
$$);
LISTEN loaded;
LISTEN other;
SELECT assert_idempotent('effects', '2024-01-01', '{same,crash}');
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
UNLISTEN *;
SELECT rerun, passed, message FROM check_idempotent('effects', '2024-01-01', '{same}');
SELECT create_job('unread', command => $$
DELETE FROM target WHERE d = $1 AND txid_current() > 0;
INSERT INTO target VALUES ($1, 1)
$$);
SELECT assert_idempotent('unread', '2024-01-01');
-- a job that writes nothing, and one that writes only what is its own
SELECT create_job('nothing', command => 'SELECT count(*) FROM source');
SELECT assert_idempotent('nothing', '2024-01-01');
SELECT rerun, passed, runs, message FROM check_idempotent('nothing', '2024-01-01');
SELECT create_job('temporary', command => 'CREATE TEMP TABLE step ON COMMIT DROP AS SELECT now(), $1 AS d');
SELECT assert_idempotent('temporary', '2024-01-01');
SELECT to_regclass('step') IS NULL AS dropped;
-- settings that a run makes do not outlive it, as they would not outlive its session
SELECT create_job('sets', command => $$
DELETE FROM texts WHERE d = $1;
INSERT INTO texts VALUES ($1, current_setting('work_mem'));
SET work_mem = '5432kB'
$$);
SELECT assert_idempotent('sets', '2024-01-01');
SELECT current_setting('work_mem') = '5432kB' AS outlived;

-- rights: the job runs with those of the caller, who is told what he may read
GRANT USAGE ON SCHEMA iload_assert TO regress_iload_checker, regress_iload_owner;
GRANT SELECT ON source TO regress_iload_checker;
GRANT INSERT ON target TO regress_iload_checker;
SET ROLE regress_iload_checker;
SELECT assert_idempotent('good', '2024-01-01');
SELECT assert_idempotent('append', '2024-01-01');
SELECT rerun, passed, relation, added, missing, added_rows, missing_rows FROM check_idempotent('append', '2024-01-01', '{same}');
RESET ROLE;
-- no crash without the rights to delete
GRANT INSERT ON unique_rows TO regress_iload_checker;
SELECT create_job('keeps', command => 'INSERT INTO unique_rows SELECT d, n FROM source WHERE d = $1 ON CONFLICT DO NOTHING');
SET ROLE regress_iload_checker;
SELECT assert_idempotent('keeps', '2024-01-01');
SELECT rerun, passed, runs, message FROM check_idempotent('keeps', '2024-01-01', '{crash}');
RESET ROLE;
GRANT SELECT, DELETE ON unique_rows TO regress_iload_checker;
SET ROLE regress_iload_checker;
SELECT rerun, passed, runs, message FROM check_idempotent('keeps', '2024-01-01', '{crash}');
RESET ROLE;
-- row security
CREATE TABLE secured (d date, n int);
ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
CREATE POLICY low ON secured USING (n < 3);
GRANT SELECT, INSERT, DELETE ON secured TO regress_iload_checker;
INSERT INTO secured VALUES ('2024-01-01', 5);
SELECT create_job('secured append', command => 'INSERT INTO secured VALUES ($1, 1)');
SELECT create_job('secured replace', command => 'DELETE FROM secured WHERE d = $1; INSERT INTO secured VALUES ($1, 1)');
SET ROLE regress_iload_checker;
SELECT assert_idempotent('secured append', '2024-01-01');
SELECT assert_idempotent('secured replace', '2024-01-01');
RESET ROLE;
SELECT assert_idempotent('secured append', '2024-01-01', '{same}');
-- the clock of what another role has written
CREATE TABLE stamps (d date, x boolean);
GRANT SELECT, INSERT, DELETE ON stamps TO regress_iload_checker, regress_iload_owner;
CREATE FUNCTION definer(day date) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS
$$
BEGIN
	DELETE FROM iload_assert.stamps WHERE d = day;
	INSERT INTO iload_assert.stamps VALUES (day, now() < '2076-01-01');
END
$$;
ALTER FUNCTION definer(date) OWNER TO regress_iload_owner;
CREATE VIEW early AS SELECT now() < '2076-01-01' AS x;
ALTER VIEW early OWNER TO regress_iload_owner;
CREATE VIEW early_rows AS SELECT d FROM (SELECT d FROM source) s WHERE now() < '2076-01-01';
ALTER VIEW early_rows OWNER TO regress_iload_owner;
CREATE VIEW early_invoker WITH (security_invoker) AS SELECT now() < '2076-01-01' AS x;
ALTER VIEW early_invoker OWNER TO regress_iload_owner;
CREATE VIEW stamps_view AS TABLE stamps;
ALTER VIEW stamps_view OWNER TO regress_iload_owner;
GRANT SELECT, INSERT, DELETE ON stamps_view TO regress_iload_checker;
GRANT SELECT ON source TO regress_iload_owner;
GRANT SELECT ON early, early_rows, early_invoker TO regress_iload_checker;
SELECT create_job('by view', 'stamps', 'SELECT $1 AS d, x FROM early');
SELECT create_job('by view of rows', 'stamps', 'SELECT d FROM early_rows WHERE d = $1', on_empty => 'replace');
SELECT create_job('into view', command => $$
DELETE FROM stamps_view WHERE d = $1;
INSERT INTO stamps_view VALUES ($1, now() < '2076-01-01')
$$);
SELECT create_job('by invoker', 'stamps', 'SELECT $1 AS d, x FROM early_invoker');
-- a superuser has the rights of all
SELECT rerun, passed, cause, message FROM check_idempotent('definer(date)', '2024-01-01', '{clock}', clock_shift => '60 years');
SELECT rerun, passed, cause, message FROM check_idempotent('by view', '2024-01-01', '{clock}', clock_shift => '60 years');
SELECT rerun, passed, cause, message FROM check_idempotent('by view of rows', '2024-01-01', '{clock}', clock_shift => '60 years');
SET ROLE regress_iload_checker;
SELECT rerun, passed, cause, message FROM check_idempotent('definer(date)', '2024-01-01', '{clock}', clock_shift => '60 years');
SELECT assert_idempotent('definer(date)', '2024-01-01', clock_shift => '60 years');
SELECT rerun, passed, cause, message FROM check_idempotent('by view', '2024-01-01', '{clock}', clock_shift => '60 years');
SELECT rerun, passed, cause, message FROM check_idempotent('by view of rows', '2024-01-01', '{clock}', clock_shift => '60 years');
SELECT rerun, passed, cause, message FROM check_idempotent('into view', '2024-01-01', '{clock}', clock_shift => '60 years');
SELECT rerun, passed, cause, message FROM check_idempotent('by invoker', '2024-01-01', '{clock}', clock_shift => '60 years');
SET idempotent_load.clock_shift = 60;
SET idempotent_load.wait_point = 'rerun';
RESET ROLE;
-- with the rights of the other role it is moved
GRANT regress_iload_owner TO regress_iload_checker;
SET ROLE regress_iload_checker;
SELECT rerun, passed, cause, message FROM check_idempotent('definer(date)', '2024-01-01', '{clock}', clock_shift => '60 years');
SELECT rerun, passed, cause, message FROM check_idempotent('by view', '2024-01-01', '{clock}', clock_shift => '60 years');
SELECT rerun, passed, cause, message FROM check_idempotent('by view of rows', '2024-01-01', '{clock}', clock_shift => '60 years');
RESET ROLE;

-- without pgTAP
SELECT is_idempotent('good', '2024-01-01');
SELECT is_idempotent('good', '2024-01-01', 'can be retried');
\echo :LAST_ERROR_SQLSTATE

-- nothing is left of all that
SELECT s.loads - b.loads AS loads, s.target = b.target AS same_target, to_regclass('made') AS made FROM state s, before b;
SHOW idempotent_load.clock_shift;
SHOW transaction_isolation;
SELECT now() < '2076-01-01' AS now;

SELECT count(drop_job(name)) FROM (SELECT name FROM jobs ORDER BY name) j;
SET client_min_messages = warning;
DROP SCHEMA iload_assert CASCADE;
DROP ROLE regress_iload_checker, regress_iload_owner;
