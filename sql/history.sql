--
-- history: one row a load, in the load's transaction
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotent_load;
CREATE SCHEMA iload_history;
RESET client_min_messages;
SET search_path = iload_history, public;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
SET IntervalStyle = 'postgres';
\set SHOW_CONTEXT never

CREATE TABLE "Fact" (at timestamptz, n int);
CREATE VIEW loads AS SELECT * FROM load_history h WHERE target = '"Fact"'::regclass;

-- each column of a first load
CREATE TABLE results AS
SELECT * FROM replace_partition('"Fact"', '2024-03-10', $$SELECT $1 AS at, i AS n FROM generate_series(1, 3) i$$, timezone => 'America/New_York', run_id => 'run 1');
\x
SELECT target, target_name, lower_bound, upper_bound, logical_date, period, timezone, run_id, method, rows, rows_before, inserted, deleted
FROM loads;
SELECT h.target = r.target AS target, h.lower_bound = r.lower_bound AS lower_bound, h.upper_bound = r.upper_bound AS upper_bound,
       h.method = r.method AS method, h.rows = r.rows AS rows, h.rows_before = r.rows_before AS rows_before,
       h.inserted = r.inserted AS inserted, h.deleted = r.deleted AS deleted, h.fingerprint = r.fingerprint AS fingerprint,
       h.finished_at - h.started_at = r.elapsed AS elapsed,
       h.fingerprint = (SELECT fingerprint(f) FROM "Fact" f) AS of_the_slice,
       loaded_by = current_user AS loaded_by, query_hash ~ '^[0-9a-f]{32}$' AS query_hash,
       started_at <= finished_at AND finished_at <= clock_timestamp() AND started_at > now() - interval '1 hour' AS times
FROM loads h, results r;
\x
-- a retry, a change, nothing, an empty slice, a kept one, a period, a span, a value
SELECT method FROM replace_partition('"Fact"', '2024-03-10', $$SELECT $1 AS at, i AS n FROM generate_series(1, 3) i$$, timezone => 'America/New_York', run_id => 'run 2');
SELECT method FROM replace_partition('"Fact"', '2024-03-10', $$SELECT $1 AS at, i AS n FROM generate_series(2, 5) i$$, timezone => 'America/New_York');
SELECT method FROM replace_partition('"Fact"', '2024-03-11', $$SELECT $1 AS at WHERE false$$);
SELECT method FROM replace_partition('"Fact"', '2024-03-10', $$SELECT $1 AS at WHERE false$$, on_empty => 'keep', timezone => 'America/New_York');
SELECT method FROM replace_partition('"Fact"', '2024-03-10', $$SELECT $1 AS at WHERE false$$, on_empty => 'replace', timezone => 'America/New_York');
SELECT method FROM replace_partition('"Fact"', '2024-04-01', $$SELECT $1 AS at, 1 AS n$$, period => '1 month', method => 'delete');
SELECT method FROM replace_slice('"Fact"', '2024-05-01 10:00', '2024-05-01 11:00', $$SELECT $1 AS at, 1 AS n$$);
SELECT method FROM replace_slice('"Fact"', '2024-05-01 10:00', NULL, $$SELECT $1 AS at, 1 AS n$$);
SELECT lower_bound, upper_bound, logical_date, period, timezone, run_id, method, rows, rows_before, inserted, deleted
FROM loads ORDER BY id;

-- the hash is of the text of the query, and of nothing else
SELECT count(*), count(DISTINCT query_hash) FROM loads;
SELECT method FROM replace_partition('"Fact"', '2024-06-01', 'SELECT $1 AS at, 1 AS n');
SELECT method FROM replace_partition('"Fact"', '2024-06-02', 'SELECT $1 AS at, 1 AS n', run_id => 'x');
SELECT method FROM replace_partition('"Fact"', '2024-06-02', 'SELECT $1 AS at, 1  AS n');
SELECT logical_date, query_hash = lag(query_hash) OVER (ORDER BY id) AS same FROM loads WHERE logical_date >= '2024-06-01' ORDER BY id;

-- a load that failed, or was rolled back, left no row; its number may be missing
SELECT count(*) FROM loads;
SELECT replace_partition('"Fact"', '2024-06-01', 'SELECT $1 + 1 AS at');
BEGIN;
SELECT method FROM replace_partition('"Fact"', '2024-06-01', 'SELECT $1 AS at, 2 AS n');
SELECT count(*) FROM loads;
ROLLBACK;
BEGIN;
SAVEPOINT a;
SELECT method FROM replace_partition('"Fact"', '2024-06-01', 'SELECT $1 AS at, 2 AS n');
ROLLBACK TO a;
SELECT method FROM replace_partition('"Fact"', '2024-06-01', 'SELECT $1 AS at, 1 AS n');
COMMIT;
SELECT count(*) FROM loads;

-- the time is the clock's, not the transaction's
BEGIN;
SELECT 1 FROM replace_partition('"Fact"', '2024-06-01', 'SELECT $1 AS at, 1 AS n');
SELECT 1 FROM replace_partition('"Fact"', '2024-06-01', 'SELECT $1 AS at, 1 AS n');
SELECT started_at > now() AS after_begin, started_at >= lag(finished_at) OVER (ORDER BY id) AS in_turn FROM loads ORDER BY id DESC LIMIT 2;
COMMIT;

-- a leaf that is loaded by its own name is its own target
CREATE TABLE part (d date) PARTITION BY RANGE (d);
CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
SELECT method FROM replace_partition('part', '2024-01-01', 'SELECT $1 AS d');
SELECT method FROM replace_partition('part_1', '2024-01-01', 'SELECT $1 AS d');
SELECT target, target_name, method FROM load_history WHERE target IN ('part'::regclass, 'part_1'::regclass) ORDER BY id;
-- it follows a table that is renamed, and keeps the name that it had
ALTER TABLE part RENAME TO renamed;
SELECT target, target_name FROM load_history WHERE target = 'renamed'::regclass;
-- a table dropped and made again has no loads
DROP TABLE renamed;
CREATE TABLE part (d date);
SELECT count(*) FROM load_history WHERE target = 'part'::regclass;
SELECT count(*) FROM load_history WHERE target_name = 'iload_history.part';
DELETE FROM load_history WHERE target_name LIKE 'iload\_history.%';

SET client_min_messages = warning;
DROP SCHEMA iload_history CASCADE;
