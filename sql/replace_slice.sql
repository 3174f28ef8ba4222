--
-- replace_slice: slices that are not days, with bounds in the key's own type
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotent_load;
CREATE SCHEMA iload_replace_slice;
RESET client_min_messages;
SET search_path = iload_replace_slice, public;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
SET IntervalStyle = 'postgres';
\set SHOW_CONTEXT never

-- a span of time; $1 and $2 are its bounds, in the type of the key
CREATE TABLE spans (at timestamp, n int);
INSERT INTO spans SELECT '2024-01-01 00:00'::timestamp + i * interval '10 minutes', i FROM generate_series(0, 11) i;
SELECT target, lower_bound, upper_bound, method, rows, rows_before, inserted, deleted
FROM replace_slice('spans', '2024-01-01 00:20', '2024-01-01 01:00',
                   $$SELECT t AS at, 100 AS n FROM generate_series($1, $2 - interval '1 microsecond', '15 minutes') t$$);
SELECT * FROM spans WHERE n >= 100 OR n < 3 OR n BETWEEN 5 AND 6 ORDER BY at;
SELECT method, rows
FROM replace_slice('spans', '2024-01-01 00:20', '2024-01-01 01:00',
                   $$SELECT $1 AS at, CASE WHEN pg_typeof($1) = 'timestamp'::regtype AND pg_typeof($2) = 'timestamp'::regtype THEN 7 END AS n$$);
SELECT at, n FROM spans WHERE at >= '2024-01-01 00:20' AND at < '2024-01-01 01:00';
-- the bounds may be as long as time
SELECT lower_bound, upper_bound, rows, rows_before FROM replace_slice('spans', '-infinity', '2024-01-01 00:10', $$SELECT timestamp '1999-12-31' AS at$$);
SELECT lower_bound, upper_bound, rows, rows_before FROM replace_slice('spans', '2024-01-01 01:30', 'infinity', $$SELECT timestamp '2999-12-31' AS at, 5 AS n$$);
SELECT count(*), min(at), max(at) FROM spans;
-- and in timestamptz they are read and written in the zone of the load
CREATE TABLE zoned (at timestamptz, n int);
SELECT lower_bound, upper_bound, rows
FROM replace_slice('zoned', '2024-03-10 01:00', '2024-03-10 04:00', $$SELECT t AS at, 1 AS n FROM generate_series($1, $2 - interval '1 microsecond', '1 hour') t$$,
                   timezone => 'America/New_York');
SELECT method, rows
FROM replace_slice('zoned', '2024-03-10 06:00Z', '2024-03-10 08:00Z', $$SELECT t AS at, 1 AS n FROM generate_series($1, $2 - interval '1 microsecond', '1 hour') t$$);
SELECT * FROM zoned ORDER BY at;

-- dates: the bounds are days, and no calendar is asked
CREATE TABLE days (d date, n int);
SELECT lower_bound, upper_bound, rows FROM replace_slice('days', '2024-01-30', '2024-02-03', 'SELECT $1 + i AS d, i AS n FROM generate_series(0, $2 - $1 - 1) i');
SELECT lower_bound, upper_bound, rows, rows_before FROM replace_slice('days', '2024-02-01', NULL, $$SELECT $1 AS d, CASE WHEN $2 IS NULL THEN 9 END AS n$$);
SELECT * FROM days ORDER BY d;

-- numbers: a batch, or a span of ids; the key column has to be named where the
-- table is not partitioned by it
CREATE TABLE batches (batch int, v text);
SELECT lower_bound, upper_bound, rows FROM replace_slice('batches', '7', NULL, $$SELECT $1 AS batch, 'v' || i AS v FROM generate_series(1, 3) i$$, date_column => 'batch');
SELECT lower_bound, upper_bound, rows FROM replace_slice('batches', '8', '10', $$SELECT i AS batch, 'w' AS v FROM generate_series($1, $2 - 1) i$$, date_column => 'batch');
SELECT method, rows, inserted, deleted FROM replace_slice('batches', '7', NULL, $$SELECT $1 AS batch, 'v' || i AS v FROM generate_series(2, 4) i$$, date_column => 'batch');
SELECT method, rows, inserted, deleted FROM replace_slice('batches', '-5', '8', $$SELECT -5 AS batch, 'neg' AS v$$, date_column => 'batch');
SELECT * FROM batches ORDER BY batch, v;
\set VERBOSITY terse
SELECT replace_slice('batches', '7', NULL, 'SELECT 7 AS batch');
SELECT replace_slice('batches', '7', NULL, 'SELECT $1 + 1 AS batch', date_column => 'batch');
\set VERBOSITY default
-- as partitions
CREATE TABLE ranges (id bigint, v text) PARTITION BY RANGE (id);
CREATE TABLE ranges_0 PARTITION OF ranges FOR VALUES FROM (0) TO (1000);
SELECT lower_bound, upper_bound, rows FROM replace_slice('ranges', '2500', '2600', $$SELECT $1 AS id, 'a' AS v$$);
SELECT lower_bound, upper_bound, rows FROM replace_slice('ranges', '-10', '10', $$SELECT i AS id, 'b' AS v FROM generate_series($1, $2 - 1) i$$);
SELECT c.oid::regclass AS part, count(*), min(id), max(id), pg_get_expr(c.relpartbound, c.oid) AS bound
FROM ranges r JOIN pg_class c ON c.oid = r.tableoid GROUP BY c.oid ORDER BY 3;
-- spans wider than a bigint, and the ends of the type
CREATE TABLE wide (id bigint, v text);
INSERT INTO wide VALUES (-9223372036854775808, 'least'), (-9000000000000000000, 'first'), (0, 'zero'),
  (8999999999999999999, 'last'), (9000000000000000000, 'end'), (9223372036854775807, 'most');
SELECT lower_bound, upper_bound, method, rows, rows_before, inserted, deleted
FROM replace_slice('wide', '-9000000000000000000', '9000000000000000000', $$SELECT i AS id, 'new' AS v FROM unnest(ARRAY[$1, $2 - 1]) i$$, date_column => 'id');
SELECT * FROM wide ORDER BY id;
SELECT lower_bound, upper_bound, method, rows, rows_before
FROM replace_slice('wide', '9223372036854775807', NULL, $$SELECT $1 AS id, 'new most' AS v$$, date_column => 'id');
SELECT lower_bound, upper_bound, method, rows, rows_before
FROM replace_slice('wide', '-9223372036854775808', NULL, $$SELECT $1 AS id, 'new least' AS v$$, date_column => 'id');
SELECT lower_bound, upper_bound, method, rows, rows_before
FROM replace_slice('wide', '-9223372036854775808', '9223372036854775807', $$SELECT $2 - 1 AS id, 'alone' AS v$$, date_column => 'id');
SELECT * FROM wide ORDER BY id;

-- one value of a list
CREATE TABLE by_region (region text, n int) PARTITION BY LIST (region);
CREATE TABLE by_region_eu PARTITION OF by_region FOR VALUES IN ('eu', 'uk');
INSERT INTO by_region VALUES ('eu', 1), ('uk', 2);
SELECT lower_bound, upper_bound, method, rows, inserted, deleted FROM replace_slice('by_region', 'eu', NULL, 'SELECT $1 AS region, i AS n FROM generate_series(1, 2) i');
SELECT lower_bound, upper_bound, method, rows, inserted, deleted FROM replace_slice('by_region', 'us', NULL, 'SELECT $1 AS region, 3 AS n');
SELECT lower_bound, upper_bound, method, rows, inserted, deleted FROM replace_slice('by_region', 'O''Brien; DROP', NULL, 'SELECT $1 AS region, 4 AS n');
SELECT lower_bound, upper_bound, method, rows, inserted, deleted FROM replace_slice('by_region', '', NULL, 'SELECT $1 AS region, 5 AS n');
SELECT lower_bound, upper_bound, method, rows, inserted, deleted FROM replace_slice('by_region', 'eu', 'uk', 'SELECT region, n * 10 AS n FROM by_region WHERE region >= $1 AND region < $2 AND n = 2');
SELECT tableoid::regclass, * FROM by_region ORDER BY n, region;
SELECT replace_slice('by_region', 'eu', NULL, $$SELECT 'uk' AS region$$);
SELECT replace_slice('by_region', 'a', 'b', $$SELECT 'aa' AS region$$);

-- other ordered types: uuid, numeric; and what such a type does not take
CREATE TABLE by_uuid (tenant uuid, n int) PARTITION BY LIST (tenant);
SELECT lower_bound, method, rows FROM replace_slice('by_uuid', '00000000-0000-0000-0000-00000000000A', NULL, 'SELECT $1 AS tenant, 1 AS n');
SELECT lower_bound, method, rows FROM replace_slice('by_uuid', '{0000000000000000-000000000000000a}', NULL, 'SELECT $1 AS tenant, 1 AS n');
SELECT tableoid::regclass, * FROM by_uuid;
CREATE TABLE by_numeric (amount numeric, n int);
SELECT lower_bound, upper_bound, method, rows FROM replace_slice('by_numeric', '1.50', '1.5000001', 'SELECT 1.5 AS amount, 1 AS n', date_column => 'amount');
SELECT lower_bound, upper_bound, method, rows_before FROM replace_slice('by_numeric', '1.5', NULL, 'SELECT 1.500 AS amount, 1 AS n', date_column => 'amount');
SELECT * FROM by_numeric;
CREATE TYPE stage AS ENUM ('raw', 'clean', 'final');
CREATE TABLE by_stage (stage stage, n int);
SELECT replace_slice('by_stage', 'draft', NULL, 'SELECT $1 AS stage', date_column => 'stage');
INSERT INTO by_stage VALUES ('raw', 1), ('clean', 2), ('final', 3);
SELECT lower_bound, upper_bound, method, rows, rows_before
FROM replace_slice('by_stage', 'raw', 'final', $$SELECT s AS stage, 10 AS n FROM unnest(ARRAY[$1, 'clean']) s$$, date_column => 'stage');
SELECT lower_bound, upper_bound, method, rows, rows_before
FROM replace_slice('by_stage', 'clean', NULL, 'SELECT $1 AS stage, 20 AS n', date_column => 'stage', method => 'delete');
-- in the order of the type, not of the alphabet
SELECT replace_slice('by_stage', 'clean', 'raw', 'SELECT $1 AS stage', date_column => 'stage');
SELECT replace_slice('by_stage', 'raw', 'final', $$SELECT 'final' AS stage$$, date_column => 'stage');
SELECT * FROM by_stage ORDER BY stage;
CREATE TABLE stages (stage stage, n int) PARTITION BY LIST (stage);
SELECT method, rows FROM replace_slice('stages', 'clean', NULL, 'SELECT $1 AS stage, 1 AS n');
SELECT method, rows FROM replace_slice('stages', 'clean', NULL, 'SELECT $1 AS stage, 1 AS n');
SELECT tableoid::regclass, * FROM stages;
-- arrays
CREATE TABLE by_path (path int[], n int);
INSERT INTO by_path VALUES ('{0,9}', 1), ('{1}', 2), ('{1,2}', 3), ('{2}', 4);
SELECT lower_bound, upper_bound, method, rows, rows_before
FROM replace_slice('by_path', '{1}', '{2}', 'SELECT $1 || i AS path, i * 10 AS n FROM generate_series(1, 3) i', date_column => 'path');
SELECT lower_bound, upper_bound, method, rows, rows_before
FROM replace_slice('by_path', '{1,3}', NULL, 'SELECT $1 AS path, 40 AS n', date_column => 'path', method => 'delete');
SELECT replace_slice('by_path', '{1}', '{2}', 'SELECT $2 AS path', date_column => 'path');
SELECT * FROM by_path ORDER BY path;
CREATE TABLE paths (path text[], n int) PARTITION BY LIST (path);
CREATE TABLE paths_ab PARTITION OF paths FOR VALUES IN ('{a,b}');
SELECT method, rows FROM replace_slice('paths', '{"a",b}', NULL, 'SELECT $1 AS path, 1 AS n');
SELECT method, rows FROM replace_slice('paths', '{"a",b}', NULL, 'SELECT $1 AS path, 1 AS n');
SELECT method, rows FROM replace_slice('paths', '{"it''s, \"c\""}', NULL, 'SELECT $1 AS path, 2 AS n');
SELECT method, rows FROM replace_slice('paths', '{"it''s, \"c\""}', NULL, 'SELECT $1 AS path, 2 AS n');
SELECT path, n, tableoid = 'paths_ab'::regclass AS ab FROM paths ORDER BY n;
-- ranges
CREATE TABLE by_range (during int4range, n int);
INSERT INTO by_range VALUES ('[1,5)', 1), ('[5,9)', 2), ('[9,12)', 3);
SELECT lower_bound, upper_bound, method, rows, rows_before
FROM replace_slice('by_range', '[1,4]', '[9,9]', 'SELECT r AS during, 10 AS n FROM unnest(ARRAY[$1, int4range(5, 9)]) r', date_column => 'during');
SELECT lower_bound, upper_bound, method, rows, rows_before
FROM replace_slice('by_range', '[5,8]', NULL, 'SELECT $1 AS during, 20 AS n', date_column => 'during', method => 'delete');
SELECT replace_slice('by_range', '[5,8]', NULL, $$SELECT '[5,7]' AS during$$, date_column => 'during');
SELECT * FROM by_range ORDER BY during;
CREATE TABLE periods (during daterange, n int) PARTITION BY LIST (during);
SELECT method, rows FROM replace_slice('periods', '[2024-01-01,2024-01-31]', NULL, 'SELECT $1 AS during, 1 AS n');
SELECT method, rows FROM replace_slice('periods', '[2024-01-01,2024-02-01)', NULL, 'SELECT $1 AS during, 1 AS n');
SELECT during, n FROM periods;
CREATE TABLE by_point (p point, n int);
SELECT replace_slice('by_point', '(0,0)', NULL, 'SELECT $1 AS p', date_column => 'p');

-- bounds that are none
SELECT replace_slice('days', '2024-02-01', '2024-02-01', 'SELECT $1 AS d');
SELECT replace_slice('days', '2024-02-02', '2024-02-01', 'SELECT $1 AS d');
SELECT replace_slice('batches', '9', '10', 'SELECT 9 AS batch', date_column => 'v');
SELECT replace_slice('days', 'yesterday-ish', NULL, 'SELECT $1 AS d');
SELECT replace_slice('days', NULL, '2024-02-01', 'SELECT $1 AS d');
SELECT replace_slice('batches', '1e9', '99999999999', 'SELECT 1 AS batch', date_column => 'batch');

-- options are the same as those of replace_partition
SELECT replace_slice('days', '2024-02-01', NULL, 'SELECT * FROM days WHERE false');
SELECT method, rows FROM replace_slice('days', '2024-02-01', NULL, 'SELECT * FROM days WHERE false', on_empty => 'keep');
SELECT method, rows, inserted, deleted
FROM replace_slice('days', '2024-02-01', NULL, 'SELECT $1 AS d, 11 AS n', method => 'delete', audit => 'SELECT count(*) = 1 AND $2 IS NULL FROM staged WHERE d = $1',
                   if_running => 'fail', create_partition => false, ignore_columns => '{}', run_id => 'r');
SELECT lower_bound, upper_bound, logical_date, period, timezone, run_id, method
FROM load_history WHERE target = 'days'::regclass ORDER BY id;

-- a domain over an enum
CREATE TYPE step AS ENUM ('raw', 'clean', 'final');
CREATE DOMAIN dstep AS step;
CREATE TABLE steps (k dstep, n int);
INSERT INTO steps VALUES ('raw', 1), ('clean', 1), ('final', 1);
SELECT method, rows, inserted, deleted FROM replace_slice('steps', 'raw', 'final', $$SELECT 'clean'::step AS k, 2 AS n$$, date_column => 'k');
SELECT method, rows, inserted, deleted FROM replace_slice('steps', 'final', NULL, $$SELECT $1 AS k, 3 AS n$$, date_column => 'k');
SELECT * FROM steps ORDER BY k;

SET client_min_messages = warning;
DROP SCHEMA iload_replace_slice CASCADE;
