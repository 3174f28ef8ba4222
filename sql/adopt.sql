--
-- adopt: history of days that were loaded before the extension came
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotent_load;
CREATE SCHEMA iload_adopt;
CREATE ROLE regress_iload_reader;
GRANT USAGE ON SCHEMA iload_adopt TO PUBLIC;
RESET client_min_messages;
SET search_path = iload_adopt, public;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
SET IntervalStyle = 'postgres';
\set SHOW_CONTEXT never

-- The 1st has 3 rows, the 2nd 2, the 3rd and the 4th none, the 5th 1; the 2nd and 3rd
-- have been loaded.
CREATE TABLE fact (d date NOT NULL, id int, v int) PARTITION BY RANGE (d);
CREATE TABLE fact_1 PARTITION OF fact FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
CREATE TABLE fact_2 PARTITION OF fact FOR VALUES FROM ('2024-01-02') TO ('2024-01-04');
INSERT INTO fact VALUES ('2024-01-01', 1, 10), ('2024-01-01', 2, 20), ('2024-01-01', 2, 20);
CREATE TABLE fact_5 PARTITION OF fact FOR VALUES FROM ('2024-01-05') TO ('2024-01-06');
INSERT INTO fact VALUES ('2024-01-05', 1, 50);
SELECT method FROM replace_partition('fact', '2024-01-02', 'SELECT $1 AS d, i AS id, i AS v FROM generate_series(1, 2) i');
SELECT method FROM replace_partition('fact', '2024-01-03', 'SELECT $1 AS d WHERE false');
CREATE TABLE before AS SELECT tableoid AS leaf, ctid AS place, xmin AS writer, f FROM fact f;

SELECT target, lower_bound, upper_bound, method, rows, rows_before, inserted, deleted, changed, elapsed >= '0' AS elapsed
FROM adopt_partitions('fact', '2024-01-01', '2024-01-31');
SELECT logical_date, period, timezone, run_id, query_hash, method, rows, rows_before, inserted, deleted,
       fingerprint = partition_fingerprint('fact', logical_date) AS same, loaded_by = current_user AS loaded_by
FROM load_history WHERE target = 'fact'::regclass ORDER BY id;
SELECT * FROM load_states('fact', '2024-01-01', '2024-01-06', NULL);
-- nothing was written to the table
SELECT count(*) FROM (SELECT tableoid, ctid, xmin, f FROM fact f EXCEPT SELECT * FROM before) AS changed;
-- once is enough
SELECT count(*) FROM adopt_partitions('fact', '2024-01-01', '2024-01-31');
-- the next load of an unchanged day has nothing to do
SELECT method, rows FROM replace_partition('fact', '2024-01-01', 'SELECT $1 AS d, least(i, 2) AS id, least(i, 2) * 10 AS v FROM generate_series(1, 3) i');
SELECT method, rows, inserted, deleted FROM replace_partition('fact', '2024-01-05', 'SELECT $1 AS d, 1 AS id, 51 AS v');
-- the transaction decides
BEGIN;
INSERT INTO fact VALUES ('2024-01-03', 1, 1);
DELETE FROM load_history WHERE target = 'fact'::regclass;
SELECT lower_bound, rows FROM adopt_partitions('fact', '2024-01-01', '2024-01-05');
ROLLBACK;

-- options: zone, column, period, columns that do not count
CREATE TABLE events (at timestamptz, made date, loaded_at timestamptz DEFAULT clock_timestamp());
INSERT INTO events VALUES ('2024-03-10 04:59+00', '2024-01-01'), ('2024-03-10 05:00+00', '2024-01-01'), ('2024-03-11 03:59+00', '2024-01-01'), ('2024-03-11 04:00+00', '2024-01-01');
SELECT lower_bound, upper_bound, rows FROM adopt_partitions('events', '2024-03-09', '2024-03-11', 'at', timezone => 'America/New_York', ignore_columns => '{loaded_at}');
SELECT logical_date, timezone, fingerprint = partition_fingerprint('events', logical_date, 'at', timezone => 'America/New_York', ignore_columns => '{loaded_at}') AS same
FROM load_history WHERE target = 'events'::regclass ORDER BY id;
SELECT method FROM replace_partition('events', '2024-03-10', 'SELECT x AS at, date ''2024-01-01'' AS made FROM unnest(''{2024-03-10 05:00+00,2024-03-11 03:59+00}''::timestamptz[]) x',
                                     'at', timezone => 'America/New_York', ignore_columns => '{loaded_at}');
SELECT lower_bound, upper_bound, rows FROM adopt_partitions('events', '2024-01-01', '2024-12-31', 'at', '1 month');
-- days of a month that was loaded have a load
SELECT count(*) FROM adopt_partitions('events', '2024-03-01', '2024-03-31', 'at');
SELECT current_setting('TimeZone');

-- the rights of a load are needed
GRANT SELECT ON fact TO regress_iload_reader;
SET ROLE regress_iload_reader;
SELECT adopt_partitions('fact', '2024-01-01', '2024-01-31');
RESET ROLE;
GRANT INSERT, DELETE ON fact TO regress_iload_reader;
SET ROLE regress_iload_reader;
SELECT count(*) FROM adopt_partitions('fact', '2024-01-01', '2024-01-31');
RESET ROLE;
-- errors
\set VERBOSITY sqlstate
SELECT adopt_partitions(NULL, '2024-01-01', '2024-01-31');
SELECT adopt_partitions('fact', NULL, '2024-01-31');
SELECT adopt_partitions('fact', '2024-01-01', NULL);
SELECT adopt_partitions('fact', '2024-01-02', '2024-01-01');
SELECT adopt_partitions('fact', '2024-01-01', '2024-01-01', period => '1 hour');
SELECT adopt_partitions('fact', '2024-01-01', '2024-01-01', date_column => 'x');
SELECT adopt_partitions('fact', '2024-01-01', '2024-01-01', timezone => 'Mars/Olympus');
SELECT adopt_partitions('load_history_pkey', '2024-01-01', '2024-01-01');
BEGIN READ ONLY;
SELECT adopt_partitions('fact', '2024-01-01', '2024-01-01');
ROLLBACK;
\set VERBOSITY default
-- an error tells where it was met
CREATE TABLE broken (d date, n int);
INSERT INTO broken VALUES ('2024-01-01', 0);
ALTER TABLE broken ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON broken USING (1 / n = 1);
GRANT SELECT, INSERT, DELETE ON broken TO regress_iload_reader;
SET ROLE regress_iload_reader;
\set SHOW_CONTEXT errors
SELECT adopt_partitions('broken', '2024-01-01', '2024-01-01');
\set SHOW_CONTEXT never
RESET ROLE;

DELETE FROM load_history WHERE target_name LIKE 'iload\_adopt.%';
SET client_min_messages = warning;
DROP SCHEMA iload_adopt CASCADE;
DROP ROLE regress_iload_reader;
