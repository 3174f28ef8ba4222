--
-- prune: what is forgotten of the history, and what is not
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotent_load;
CREATE SCHEMA iload_prune;
CREATE ROLE regress_iload_keeper;
RESET client_min_messages;
SET search_path = iload_prune, public;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
SET IntervalStyle = 'postgres';
\set SHOW_CONTEXT never

-- What other tests have left does not count here; it is all undone at the end.
BEGIN;
DELETE FROM load_history;
DELETE FROM load_failures;
DELETE FROM once_tokens;

-- Three loads of each of two days, a value, and a table that is dropped; each load is a
-- day younger than the one before it.
CREATE TABLE fact (d date, n int);
CREATE TABLE gone (d date);
CREATE FUNCTION query(i int) RETURNS text LANGUAGE sql AS $$SELECT format('SELECT $1 AS d, %s AS n', i)$$;
SELECT count(replace_partition('fact', d, query(i))) FROM generate_series(1, 3) i, (VALUES (date '2024-01-01'), ('2024-01-02')) AS v (d);
SELECT count(replace_slice('fact', '2024-02-01', NULL, query(i))) FROM generate_series(1, 2) i;
SELECT count(replace_slice('fact', '2024-02-01', '2024-02-02', query(i))) FROM generate_series(1, 2) i;
SELECT method FROM replace_partition('gone', '2024-01-01', 'SELECT $1 AS d');
DROP TABLE gone;
UPDATE load_history h SET finished_at = timestamptz '2024-06-01' + o.n * interval '1 day'
FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM load_history) AS o WHERE o.id = h.id;
INSERT INTO load_failures (logical_date, sqlstate, message, failed_by, failed_at)
SELECT '2024-01-01', '22012', 'division by zero', 'postgres', t FROM unnest('{2024-06-03,2024-06-04}'::timestamptz[]) t;
INSERT INTO once_tokens SELECT 'pg_monitor', t, '', t FROM unnest('{2024-06-03,2024-06-04}'::timestamptz[]) t;
CREATE VIEW history AS SELECT target_name, lower_bound, upper_bound, finished_at::date AS finished FROM load_history;
SELECT * FROM history ORDER BY finished;

-- older means older: what was on the very instant stays
SAVEPOINT a;
SELECT prune_history('2024-06-04');
SELECT * FROM history ORDER BY finished;
SELECT (SELECT array_agg(failed_at::date) FROM load_failures) AS failures, (SELECT array_agg(ran_at::date) FROM once_tokens) AS tokens;
SELECT prune_history('2024-06-04');
ROLLBACK TO a;
-- the last load of a slice stays, however old; nothing stays of a table that is gone
SELECT prune_history('infinity');
SELECT * FROM history ORDER BY finished;
SELECT (SELECT count(*) FROM load_failures) AS failures, (SELECT count(*) FROM once_tokens) AS tokens;
SELECT * FROM load_states('fact', '2024-01-01', '2024-01-03');
ROLLBACK TO a;
SELECT prune_history('-infinity');

-- the extension's owner and his members
SET ROLE regress_iload_keeper;
SELECT prune_history('2024-06-04');
ROLLBACK TO a;
SELECT format('GRANT %I TO regress_iload_keeper', extowner::regrole) FROM pg_extension WHERE extname = 'idempotent_load' \gexec
SET ROLE regress_iload_keeper;
SELECT prune_history('2024-06-04');
ROLLBACK;

\set VERBOSITY sqlstate
SELECT prune_history(NULL);
BEGIN READ ONLY;
SELECT prune_history('2024-06-04');
ROLLBACK;
\set VERBOSITY default

SET client_min_messages = warning;
DROP SCHEMA iload_prune CASCADE;
DROP ROLE regress_iload_keeper;
