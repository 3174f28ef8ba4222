--
-- alter_job: what is given of a job is changed, and the rest stays
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotent_load;
CREATE ROLE regress_iload_owner;
CREATE ROLE regress_iload_other;
CREATE ROLE regress_iload_belongs IN ROLE regress_iload_owner;
RESET client_min_messages;
SET DateStyle = 'ISO, YMD';
SET TimeZone = 'UTC';
SET IntervalStyle = 'postgres';
CREATE SCHEMA iload_alter_job;
SET search_path = iload_alter_job, public;
CREATE TABLE fact (d date, id int, v int, ver int);
CREATE TABLE src (d date, id int, v int, ver int);
INSERT INTO src SELECT '2024-01-01', i, i, 1 FROM generate_series(1, 3) i;
CREATE VIEW options AS SELECT name, period, timezone, method, on_empty, audit, if_running, create_partition, ignore_columns, key, version, keep_previous FROM jobs;

SELECT create_job('load', 'fact', 'SELECT * FROM src WHERE d = $1');
SELECT alter_job('load', on_empty => 'replace', audit => 'SELECT count(*) > 0 FROM staged', if_running => 'fail', period => '1 month',
	create_partition => false, ignore_columns => '{v}', timezone => 'Asia/Tokyo', date_column => 'd', keep_previous => true, method => 'diff');
SELECT * FROM options WHERE name = 'load';
SELECT alter_job('load');
SELECT alter_job('load', query => 'SELECT * FROM src WHERE d >= $1 AND d < $2');
SELECT * FROM options WHERE name = 'load';
SELECT date_column, query, target FROM jobs WHERE name = 'load';
SELECT method, rows, lower_bound, upper_bound FROM run_job('load', '2024-01-01');
-- what is named in reset is as by default
SELECT alter_job('load', reset => '{on_empty,audit,if_running,period,create_partition,ignore_columns,timezone,date_column,keep_previous,method}');
SELECT * FROM options WHERE name = 'load';
SELECT date_column FROM jobs WHERE name = 'load';
-- a method that goes with other options
SELECT alter_job('load', method => 'merge');
SELECT alter_job('load', method => 'merge', key => '{id,d}', version => 'ver');
SELECT * FROM options WHERE name = 'load';
SELECT alter_job('load', method => 'swap');
SELECT alter_job('load', method => 'swap', reset => '{key,version}');
SELECT * FROM options WHERE name = 'load';
-- another target
CREATE TABLE fact2 (LIKE fact);
SELECT alter_job('load', 'fact2', method => 'auto');
SELECT target, method, rows FROM run_job('load', '2024-01-01');
-- the environment stays as it was pinned, unless it is reset
CREATE SCHEMA iload_alter_job_other;
CREATE TABLE iload_alter_job_other.src (d date, id int, other int);
SET search_path = iload_alter_job_other, public;
SET DateStyle = 'German';
SET TimeZone = 'Europe/Paris';
SELECT alter_job('load', query => 'SELECT * FROM src WHERE d = $1');
SELECT timezone, datestyle, search_path FROM jobs WHERE name = 'load';
SELECT alter_job('load', reset => '{search_path}');
SELECT alter_job('load', query => 'SELECT d, id FROM src WHERE d = $1', reset => '{search_path}');
SELECT timezone, datestyle, search_path FROM jobs WHERE name = 'load';
SELECT alter_job('load', reset => '{datestyle,timezone}');
SELECT timezone, datestyle, search_path FROM jobs WHERE name = 'load';
SHOW search_path;
SET search_path = iload_alter_job, public;
SET DateStyle = 'ISO, YMD';
SET TimeZone = 'UTC';

-- a command
SELECT create_job('command', command => 'SELECT 1');
SELECT alter_job('command', command => 'SELECT $1');
SELECT name, command, timezone, method, period FROM jobs WHERE name = 'command';
SELECT alter_job('command', command => 'COMMIT');
SELECT alter_job('command', on_empty => 'keep');
SELECT alter_job('command', 'fact');
SELECT alter_job('command', query => 'SELECT 1');
SELECT alter_job('load', command => 'SELECT 1');
-- other errors change nothing
SELECT alter_job('missing', method => 'diff');
SELECT alter_job(NULL);
SELECT alter_job('load', method => 'fast');
SELECT alter_job('load', reset => '{name}');
SELECT alter_job('load', method => 'diff', reset => '{method}');
SELECT alter_job('load', query => 'SELECT 1 AS x');
SELECT alter_job('load', timezone => 'Mars');
SELECT alter_job('load(date)', method => 'diff');
SELECT * FROM options WHERE name = 'load';

-- who may drop a job may alter it
GRANT USAGE ON SCHEMA iload_alter_job TO regress_iload_owner, regress_iload_other, regress_iload_belongs;
GRANT SELECT ON fact, src TO regress_iload_owner;
SET ROLE regress_iload_owner;
SELECT create_job('owned', 'fact', 'SELECT * FROM src WHERE d = $1');
SET ROLE regress_iload_other;
SELECT alter_job('owned', method => 'diff');
SET ROLE regress_iload_belongs;
SELECT alter_job('owned', method => 'diff');
RESET ROLE;
SELECT method, created_by FROM jobs WHERE name = 'owned';
SELECT alter_job('owned', method => 'delete');
SELECT method, created_by FROM jobs WHERE name = 'owned';

SELECT count(drop_job(name)) FROM (SELECT name FROM jobs ORDER BY name) j;
DELETE FROM load_history WHERE target_name LIKE 'iload\_alter\_job.%';
SET client_min_messages = warning;
DROP SCHEMA iload_alter_job, iload_alter_job_other CASCADE;
DROP OWNED BY regress_iload_owner, regress_iload_other, regress_iload_belongs;
DROP ROLE regress_iload_belongs, regress_iload_owner, regress_iload_other;
