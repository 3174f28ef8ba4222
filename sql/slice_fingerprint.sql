--
-- slice_fingerprint: the fingerprint of a slice as it is now
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotent_load;
CREATE SCHEMA iload_slice_fingerprint;
CREATE ROLE regress_iload_viewer;
GRANT USAGE ON SCHEMA iload_slice_fingerprint TO regress_iload_viewer;
RESET client_min_messages;
SET search_path = iload_slice_fingerprint, public;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
SET IntervalStyle = 'postgres';
\set SHOW_CONTEXT never

LOAD 'idempotent_load';
SET idempotent_load.swap_min_size = 0;

-- That of a table's last load.
CREATE FUNCTION loaded(t regclass) RETURNS text LANGUAGE sql AS $$
SELECT fingerprint FROM load_history WHERE target = t ORDER BY id DESC LIMIT 1
$$;

CREATE TABLE t (d date, id int, v text) PARTITION BY RANGE (d);
CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
CREATE TABLE t_2 PARTITION OF t FOR VALUES FROM ('2024-01-02') TO ('2024-01-03');

-- as the load has left it, by whatever method
SELECT r.method, r.fingerprint = partition_fingerprint('t', '2024-01-01') AS same, loaded('t') = r.fingerprint AS recorded
FROM replace_partition('t', '2024-01-01', $$SELECT $1 AS d, i AS id, repeat('v', i * 100) AS v FROM generate_series(1, 100) i$$, method => 'swap') r;
SELECT loaded('t') = partition_fingerprint('t', '2024-01-01') AS same, partition_fingerprint('t', '2024-01-01') ~ '^1:100:[0-9a-f]{32}$' AS form;
SELECT method FROM replace_partition('t', '2024-01-01', 'SELECT * FROM t WHERE d = $1 AND id > 10', method => 'diff');
SELECT loaded('t') = partition_fingerprint('t', '2024-01-01') AS same;
SELECT method FROM replace_partition('t', '2024-01-01', 'SELECT * FROM t WHERE d = $1 AND id > 20', method => 'delete');
SELECT loaded('t') = partition_fingerprint('t', '2024-01-01') AS same;
SELECT method FROM replace_partition('t', '2024-01-01', 'SELECT * FROM t WHERE d = $1');
SELECT loaded('t') = partition_fingerprint('t', '2024-01-01') AS same;
-- it is that of the aggregate
SELECT partition_fingerprint('t', '2024-01-01') = (SELECT fingerprint(t) FROM t WHERE d = '2024-01-01') AS same;
-- a row of another day does not count
INSERT INTO t VALUES ('2024-01-02', 1, 'other');
SELECT loaded('t') = partition_fingerprint('t', '2024-01-01') AS same;
-- a change does, and what the transaction has written itself, until it is undone
BEGIN;
UPDATE t SET v = v || '!' WHERE id = 50;
SELECT loaded('t') <> partition_fingerprint('t', '2024-01-01') AS differs;
UPDATE t SET v = rtrim(v, '!') WHERE id = 50;
SELECT loaded('t') = partition_fingerprint('t', '2024-01-01') AS same;
DELETE FROM t WHERE id = 50;
SELECT loaded('t') <> partition_fingerprint('t', '2024-01-01') AS differs;
ROLLBACK;
SELECT loaded('t') = partition_fingerprint('t', '2024-01-01') AS same;
INSERT INTO t SELECT * FROM t WHERE id = 50;
SELECT loaded('t') <> partition_fingerprint('t', '2024-01-01') AS differs, split_part(partition_fingerprint('t', '2024-01-01'), ':', 2) AS rows;

-- by bounds, by a leaf, by a longer period
SELECT partition_fingerprint('t', '2024-01-01') = slice_fingerprint('t', '2024-01-01', '2024-01-02') AS same,
       partition_fingerprint('t', '2024-01-01') = slice_fingerprint('t', '2024-01-01', NULL) AS same_value,
       partition_fingerprint('t', '2024-01-01') = partition_fingerprint('t_1', '2024-01-01') AS same_leaf,
       split_part(slice_fingerprint('t', '2024-01-01', '2024-01-03'), ':', 2) AS both,
       slice_fingerprint('t', '2024-01-01', '2024-02-01') = partition_fingerprint('t', '2024-01-01', period => '1 month') AS same_month;
-- no rows, and no partition
DELETE FROM t WHERE d = '2024-01-01';
SELECT partition_fingerprint('t', '2024-01-01');
SELECT partition_fingerprint('t', '2024-03-01');
SELECT slice_fingerprint('t', '2024-03-01', '2024-04-01');

-- layout and defaults of the leaf do not count, nor do generated columns
CREATE TABLE other (d date, id int, v text, g int GENERATED ALWAYS AS (id * 2) STORED) PARTITION BY RANGE (d);
CREATE TABLE other_1 (g int GENERATED ALWAYS AS (id * 2) STORED, v text, gone int, id int, d date);
ALTER TABLE other_1 DROP gone;
ALTER TABLE other ATTACH PARTITION other_1 FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
CREATE TABLE plain (d date, id int, v text);
INSERT INTO other SELECT '2024-01-01', i, 'v' || i FROM generate_series(1, 10) i;
INSERT INTO plain SELECT '2024-01-01', i, 'v' || i FROM generate_series(10, 1, -1) i;
INSERT INTO plain VALUES ('2024-01-02', 1, 'other');
SELECT partition_fingerprint('other', '2024-01-01') = partition_fingerprint('plain', '2024-01-01') AS same;
SELECT method, fingerprint = partition_fingerprint('plain', '2024-01-01') AS same FROM replace_partition('plain', '2024-01-01', $$SELECT * FROM plain WHERE d = $1$$);

-- columns that the load ignored
SELECT method FROM replace_partition('plain', '2024-01-01', $$SELECT $1 AS d, i AS id, 'new' AS v FROM generate_series(1, 11) i$$, ignore_columns => '{v}');
SELECT loaded('plain') = partition_fingerprint('plain', '2024-01-01', ignore_columns => '{v}') AS same,
       loaded('plain') = partition_fingerprint('plain', '2024-01-01') AS same_with_all,
       loaded('plain') = slice_fingerprint('plain', '2024-01-01', '2024-01-02', ignore_columns => '{v}') AS same_by_bounds;
UPDATE plain SET v = 'changed';
SELECT loaded('plain') = partition_fingerprint('plain', '2024-01-01', ignore_columns => '{v}') AS same;

-- the bounds of a day are those of the time zone
CREATE TABLE zoned (at timestamptz, d2 timestamptz, n int);
SELECT method FROM replace_partition('zoned', '2024-01-01', $$SELECT $1 AS at, 1 AS n UNION ALL SELECT $2::timestamptz - interval '1 second', 2$$, date_column => 'at', timezone => 'Asia/Tokyo');
SELECT loaded('zoned') = partition_fingerprint('zoned', '2024-01-01', 'at', timezone => 'Asia/Tokyo') AS same,
       split_part(partition_fingerprint('zoned', '2024-01-01', 'at'), ':', 2) AS of_utc,
       loaded('zoned') = slice_fingerprint('zoned', '2024-01-01', '2024-01-02', 'at', 'Asia/Tokyo') AS same_by_bounds;
SET TimeZone = 'Asia/Tokyo';
SELECT loaded('zoned') = partition_fingerprint('zoned', '2024-01-01', 'at') AS same;
SET TimeZone = 'UTC';
SELECT partition_fingerprint('zoned', '2024-01-01', 'at', timezone => 'Asia/Tokyo') IS NOT NULL AS some, current_setting('TimeZone');

-- SELECT is enough, and all that is needed; it may be used where nothing may be written
SET ROLE regress_iload_viewer;
SELECT partition_fingerprint('plain', '2024-01-01');
RESET ROLE;
GRANT SELECT ON plain, t TO regress_iload_viewer;
SET ROLE regress_iload_viewer;
SELECT partition_fingerprint('plain', '2024-01-01') ~ '^1:11:' AS rows, slice_fingerprint('t', '2024-01-02', NULL) ~ '^1:1:' AS rows_of_value;
BEGIN READ ONLY;
SELECT partition_fingerprint('t', '2024-01-02') ~ '^1:1:' AS rows;
SELECT mode FROM pg_locks WHERE pid = pg_backend_pid() AND relation IN ('t'::regclass, 't_1'::regclass, 't_2'::regclass) ORDER BY relation;
COMMIT;
RESET ROLE;
-- and shows what a policy lets the caller see
ALTER TABLE plain ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON plain FOR SELECT USING (id <= 3);
SET ROLE regress_iload_viewer;
SELECT split_part(partition_fingerprint('plain', '2024-01-01'), ':', 2) AS rows;
RESET ROLE;

-- not strict, not null
SELECT partition_fingerprint(NULL, '2024-01-01');
SELECT partition_fingerprint('t', NULL);
SELECT slice_fingerprint(NULL, '2024-01-01', NULL);
SELECT slice_fingerprint('t', NULL, '2024-01-01');
SELECT partition_fingerprint('t', '2024-01-01', NULL, NULL, NULL, NULL);
-- what cannot be
SELECT partition_fingerprint('t', '2024-01-02', period => '1 month');
SELECT partition_fingerprint('t', '2024-01-01', 'x');
SELECT partition_fingerprint('t', '2024-01-01', ignore_columns => '{nothing}');
SELECT partition_fingerprint('t', '2024-01-01', ignore_columns => '{d}');
SELECT partition_fingerprint('t', '2024-01-01', timezone => 'Nowhere');
SELECT slice_fingerprint('t', '2024-01-02', '2024-01-01');
SELECT slice_fingerprint('t', 'yesteryear', NULL);
CREATE VIEW look AS SELECT * FROM plain;
SELECT partition_fingerprint('look', '2024-01-01');

SET client_min_messages = warning;
DROP SCHEMA iload_slice_fingerprint CASCADE;
DROP ROLE regress_iload_viewer;
