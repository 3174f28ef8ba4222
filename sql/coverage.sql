--
-- coverage: load_states, missing_dates, is_loaded, assert_loaded, load_calendar
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotent_load;
CREATE SCHEMA iload_coverage;
CREATE ROLE regress_iload_loader;
CREATE ROLE regress_iload_auditor IN ROLE pg_read_all_data;
CREATE ROLE regress_iload_nobody;
GRANT USAGE ON SCHEMA iload_coverage TO PUBLIC;
RESET client_min_messages;
SET search_path = iload_coverage, public;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
SET IntervalStyle = 'postgres';
\set SHOW_CONTEXT never

-- Four weeks from Monday, 1 January: 10 rows on weekdays, 4 on Saturdays, 2 on
-- Sundays.  The 10th has 5, the 17th 4, the 13th (a Saturday) 1, the 14th (a
-- Sunday) none.  The 18th and 19th are left out.
CREATE TABLE fact (d date, n int);
CREATE FUNCTION rows_of(day date) RETURNS int LANGUAGE sql AS $$
SELECT CASE extract(day FROM day) WHEN 10 THEN 5 WHEN 17 THEN 4 WHEN 13 THEN 1 WHEN 14 THEN 0
       ELSE CASE extract(isodow FROM day) WHEN 6 THEN 4 WHEN 7 THEN 2 ELSE 10 END END
$$;
SELECT count(replace_partition('fact', d::date, 'SELECT $1 AS d, n FROM generate_series(1, rows_of($1)) n'))
FROM generate_series(timestamp '2024-01-01', '2024-01-28', '1 day') d
WHERE d NOT IN ('2024-01-18', '2024-01-19');

-- What a backfill writes for a load that failed.
CREATE FUNCTION fail(t regclass, day date, failed_by text DEFAULT 'postgres') RETURNS void LANGUAGE sql AS $$
INSERT INTO load_failures (target, target_name, job, logical_date, sqlstate, message, detail, failed_by, failed_at)
VALUES (t, 'iload_coverage.' || t, 'facts', day, '22012', 'division by zero', 'secret', failed_by, clock_timestamp())
$$;
SELECT fail('fact', '2024-01-19');
SELECT fail('fact', '2024-01-22');
SELECT fail('fact', '2024-01-23');
SELECT method FROM replace_partition('fact', '2024-01-23', 'SELECT $1 AS d, n FROM generate_series(1, rows_of($1)) n');

-- each state; the 10th is not thin, as it has a half of 10, and no less
SELECT date, to_char(date, 'Dy') AS day, state, rows FROM load_states('fact', '2024-01-08', '2024-01-24');
-- both ends are included
SELECT * FROM missing_dates('fact', '2023-12-31', '2024-01-29');
SELECT * FROM missing_dates('fact', '2024-01-18', '2024-01-18');
SELECT * FROM missing_dates('fact', '2024-01-20', '2024-01-21');
-- other shares: of the 10th all others have 10 but the 17th
SELECT * FROM missing_dates('fact', '2024-01-01', '2024-01-28', thin => 0.51);
SELECT * FROM missing_dates('fact', '2024-01-01', '2024-01-28', thin => 0);
SELECT * FROM missing_dates('fact', '2024-01-01', '2024-01-28', thin => NULL, period => NULL);

SELECT day, is_loaded('fact', day) FROM (VALUES (date '2024-01-17'), ('2024-01-14'), ('2024-01-18'), ('2024-01-19'), ('2024-01-22'), ('2024-01-23')) d (day);

SELECT assert_loaded('fact', '2024-01-01', '2024-01-17');
SELECT assert_loaded('fact', '2024-01-01', '2024-01-17', thin => 0.5);
SELECT assert_loaded('fact', '2024-01-14', '2024-01-14', allow_empty => false);
SELECT assert_loaded('fact', '2024-01-14', '2024-01-14', NULL, NULL);
SELECT assert_loaded('fact', '2024-01-01', '2024-01-31');
SELECT assert_loaded('fact', '2023-12-20', '2024-01-01');
-- the whole story for the task after the load
\set VERBOSITY sqlstate
SELECT assert_loaded('fact', '2024-01-18', '2024-01-18');
\set VERBOSITY default

SELECT * FROM load_calendar('fact', '2024-01-01', '2024-01-31');
SELECT * FROM load_calendar('fact', '2023-12-31', '2023-12-31');
-- the year of a week is not always that of its Monday
SELECT week FROM load_calendar('fact', '2018-12-31', '2021-01-03') WHERE week LIKE '%W01%' OR week LIKE '%W53%';
SELECT sat, wed FROM load_calendar('fact', '2024-01-10', '2024-01-17', thin => 0.51) WHERE week <> '';

-- A day is compared with the same weekday up to eight weeks away, itself apart.
-- 26 February: 100 and 10, so 55.  4 March: only the 10 of 26 February.
CREATE TABLE weekly (d date, n int);
INSERT INTO load_history (target, target_name, lower_bound, logical_date, period, timezone, query_hash, method, rows, rows_before, inserted, deleted, updated, fingerprint, loaded_by, started_at, finished_at)
SELECT 'weekly'::regclass, 'iload_coverage.weekly', d::text, d, '1 day', 'UTC', '', 'diff', n, 0, n, 0, 0, '', 'postgres', now(), now()
FROM (VALUES (date '2024-01-01', 100), ('2024-02-26', 10), ('2024-03-04', 10), ('2024-03-05', 1)) v (d, n);
SELECT date, state, rows FROM load_states('weekly', '2024-01-01', '2024-03-05') WHERE state <> 'never loaded';
-- where all others are far away there is nothing to compare with
DELETE FROM load_history WHERE target = 'weekly'::regclass AND logical_date = '2024-02-26';
SELECT * FROM missing_dates('weekly', '2024-03-04', '2024-03-05');

-- other periods: those that begin in the range
CREATE TABLE monthly (d date, n int);
SELECT rows FROM replace_partition('monthly', '2024-01-01', 'SELECT $1 + n AS d, n FROM generate_series(1, 20) n', period => '1 month');
SELECT rows FROM replace_partition('monthly', '2024-02-01', 'SELECT $1 + n AS d, n FROM generate_series(1, 9) n', period => '1 month');
SELECT rows FROM replace_partition('monthly', '2024-04-01', 'SELECT $1 AS d, 0 AS n WHERE false', period => '1 month');
SELECT * FROM load_states('monthly', '2024-01-01', '2024-05-01', period => '1 month');
SELECT * FROM load_states('monthly', '2024-01-02', '2024-03-31', period => '1 month');
SELECT * FROM load_states('monthly', '2024-01-02', '2024-01-31', period => '1 month');
SELECT * FROM load_states('monthly', '2024-01-03', '2024-01-15', period => '1 week');
SELECT * FROM load_states('monthly', '2024-01-01', '2024-12-31', period => '1 year');
-- a day is loaded by a load of a longer period; how many rows it has is known where
-- the whole had none
SELECT * FROM load_states('monthly', '2024-02-28', '2024-03-01');
SELECT * FROM load_states('monthly', '2024-04-30', '2024-05-01');
SELECT is_loaded('monthly', '2024-01-31'), is_loaded('monthly', '2024-03-31');
-- the last load counts, of whatever period; a week that reaches out of a month was not
-- loaded by it
SELECT rows FROM replace_partition('monthly', '2024-02-28', 'SELECT $1 AS d, 0 AS n WHERE false');
SELECT * FROM load_states('monthly', '2024-02-27', '2024-02-28');
SELECT rows FROM replace_partition('monthly', '2024-02-01', 'SELECT $1 + n AS d, n FROM generate_series(1, 9) n', period => '1 month');
SELECT * FROM load_states('monthly', '2024-02-27', '2024-02-28');
SELECT * FROM load_states('monthly', '2024-02-19', '2024-02-26', period => '1 week');
-- slices without a date do not count
SELECT rows FROM replace_slice('monthly', '2024-06-01', '2024-06-02', 'SELECT $1 AS d, 1 AS n');
SELECT is_loaded('monthly', '2024-06-01');

-- neither does a load that was rolled back
BEGIN;
SELECT rows FROM replace_partition('fact', '2024-01-18', 'SELECT $1 AS d, 1 AS n');
SELECT is_loaded('fact', '2024-01-18');
ROLLBACK;
SELECT is_loaded('fact', '2024-01-18');
-- a table dropped and made again has no loads, nor failures
CREATE TABLE again (d date);
SELECT rows FROM replace_partition('again', '2024-01-01', 'SELECT $1 AS d');
SELECT fail('again', '2024-01-02');
SELECT state FROM load_states('again', '2024-01-01', '2024-01-02');
DROP TABLE again;
CREATE TABLE again (d date);
SELECT state FROM load_states('again', '2024-01-01', '2024-01-02');

-- errors: the state tells which
\set VERBOSITY sqlstate
SELECT * FROM missing_dates(NULL, '2024-01-01', '2024-01-01');
SELECT * FROM missing_dates('fact', NULL, '2024-01-01');
SELECT * FROM missing_dates('fact', '2024-01-01', NULL);
SELECT * FROM missing_dates('fact', '2024-01-01', 'infinity');
SELECT * FROM missing_dates('fact', '-infinity', '2024-01-01');
SELECT * FROM missing_dates('fact', '2024-01-01', '2024-01-01', period => '5 days');
SELECT * FROM missing_dates('fact', '2024-01-01', '2024-01-01', thin => -0.1);
SELECT * FROM missing_dates('fact', '2024-01-01', '2024-01-01', thin => 'NaN');
SELECT * FROM missing_dates(1, '2024-01-01', '2024-01-01');
SELECT * FROM load_calendar('fact', NULL, NULL);
SELECT is_loaded('fact', NULL);
SELECT assert_loaded(NULL, '2024-01-01', '2024-01-01');
\set VERBOSITY default
SELECT * FROM missing_dates('fact', '2024-01-02', '2024-01-01');
SELECT * FROM missing_dates('fact', '2024-01-01', '2024-01-01', period => '6 hours');
SELECT * FROM missing_dates('fact', '2024-01-01', '2024-01-01', thin => 1.5);

-- nothing depends on the session
SET search_path = '';
SET DateStyle = 'SQL, DMY';
SET TimeZone = 'Asia/Tokyo';
SELECT public.assert_loaded('iload_coverage.fact', '18/01/2024', '19/01/2024');
SELECT sum(length(thu)) FROM public.load_calendar('iload_coverage.fact', '01/01/2024', '31/01/2024');
SET search_path = iload_coverage, public;
SET DateStyle = 'ISO, YMD';
SET TimeZone = 'UTC';
CREATE FUNCTION never(anyelement, anyelement) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE OPERATOR = (FUNCTION = never, LEFTARG = anyelement, RIGHTARG = anyelement);
CREATE OPERATOR > (FUNCTION = never, LEFTARG = anyelement, RIGHTARG = anyelement);
SET search_path = iload_coverage, pg_catalog, public;
SELECT * FROM missing_dates('fact', '2024-01-15', '2024-01-20');
SET search_path = iload_coverage, public;

-- the table is not asked, so anybody may ask; what errors say is shown to members of
-- the role that met them, and to who reads all data
SELECT fail('fact', '2024-02-01', 'regress_iload_loader');
SELECT fail('fact', '2024-02-01', 'regress_iload_gone');
SET ROLE regress_iload_nobody;
SELECT * FROM missing_dates('fact', '2024-01-17', '2024-01-23');
SELECT is_loaded('fact', '2024-01-01'), is_loaded('fact', '2024-02-01');
SELECT sun FROM load_calendar('fact', '2024-01-01', '2024-01-28') ORDER BY 1;
SELECT count(*) FROM load_failures;
INSERT INTO load_failures (logical_date, sqlstate, message, failed_by, failed_at) VALUES ('2024-01-01', '', '', '', now());
DELETE FROM load_failures;
SET ROLE regress_iload_loader;
SELECT logical_date, sqlstate, message, detail FROM load_failures;
SET ROLE regress_iload_auditor;
SELECT logical_date, failed_by, detail FROM load_failures WHERE target = 'fact'::regclass ORDER BY id;
RESET ROLE;
SELECT count(*) FROM load_failures WHERE target_name LIKE 'iload\_coverage.%';

DELETE FROM load_history WHERE target_name LIKE 'iload\_coverage.%';
DELETE FROM load_failures WHERE target_name LIKE 'iload\_coverage.%';
SET client_min_messages = warning;
DROP SCHEMA iload_coverage CASCADE;
DROP ROLE regress_iload_loader, regress_iload_auditor, regress_iload_nobody;
