--
-- merge_job: jobs with method merge
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotent_load;
RESET client_min_messages;
SET DateStyle = 'ISO, YMD';
SET TimeZone = 'UTC';
SET IntervalStyle = 'postgres';
CREATE SCHEMA iload_merge_job;
SET search_path = iload_merge_job, public;
CREATE TABLE fact (d date, id int, v int, ver int);
CREATE TABLE src (d date, id int, v int, ver int);
INSERT INTO src SELECT '2024-01-01', i, i, 1 FROM generate_series(1, 3) i;
CREATE VIEW options AS SELECT name, period, timezone, method, on_empty, audit, if_running, create_partition, ignore_columns, key, version, keep_previous FROM jobs;

-- a job with method merge
SELECT create_job('merge', 'fact', 'SELECT * FROM src WHERE d = $1', method => 'merge', key => '{id}', version => 'ver');
SELECT create_job('kept', 'fact', 'SELECT * FROM src WHERE d = $1', keep_previous => true);
SELECT * FROM options ORDER BY name;
SELECT method, rows, inserted, updated FROM run_job('merge', '2024-01-01');
SELECT method, rows, inserted, updated FROM run_job('merge', '2024-01-01');
UPDATE src SET v = 10, ver = 2 WHERE id = 2;
SELECT method, rows, inserted, updated FROM run_job('merge', '2024-01-01', 'run 3');
SELECT method, rows, updated, run_id FROM load_history WHERE target = 'fact'::regclass ORDER BY id;
SELECT * FROM fact ORDER BY id;
-- it can be retried
UPDATE src SET v = v + 1, ver = 3;
SELECT assert_idempotent('merge', '2024-01-01', '{same,clock,crash,timezone,plan}');
SELECT sum(v) FROM fact;
-- one whose rows depend on the run cannot
SELECT create_job('random', 'fact', 'SELECT $1 AS d, 1 AS id, (random() * 1e9)::int AS v', method => 'merge', key => '{id}');
\set VERBOSITY sqlstate
SELECT assert_idempotent('random', '2024-01-01');
\set VERBOSITY default

-- options that go together
SELECT create_job('x', 'fact', 'SELECT * FROM src WHERE d = $1', method => 'merge');
SELECT create_job('x', 'fact', 'SELECT * FROM src WHERE d = $1', key => '{id}');
SELECT create_job('x', 'fact', 'SELECT * FROM src WHERE d = $1', version => 'ver');
SELECT create_job('x', 'fact', 'SELECT * FROM src WHERE d = $1', method => 'merge', key => '{id}', on_empty => 'keep');
SELECT create_job('x', 'fact', 'SELECT d, id FROM src WHERE d = $1', method => 'merge', key => '{id}', version => 'ver');
SELECT create_job('x', command => 'SELECT 1', method => 'merge');
SELECT create_job('x', command => 'SELECT 1', key => '{id}');
SELECT create_job('x', command => 'SELECT 1', version => 'ver');
SELECT create_job('x', command => 'SELECT 1', keep_previous => true);

SELECT count(drop_job(name)) FROM (SELECT name FROM jobs ORDER BY name) j;
DELETE FROM load_history WHERE target_name LIKE 'iload\_merge\_job.%';
SET client_min_messages = warning;
DROP SCHEMA iload_merge_job CASCADE;
