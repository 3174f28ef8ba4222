--
-- fingerprint: the order-independent digest of a multiset of rows
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotent_load;
CREATE SCHEMA iload_fingerprint;
RESET client_min_messages;
SET search_path = iload_fingerprint, public;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';

-- The digest of what a query returns, each column typed by itself.
CREATE FUNCTION fp(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE format('SELECT fingerprint(q) FROM (%s) AS q', query) INTO result;
	RETURN result;
END
$$;

-- the form: version, rows, 32 digits; of no rows all are zero
SELECT fp('SELECT 1') ~ '^1:1:[0-9a-f]{32}$' AS form;
SELECT fp('SELECT 1 WHERE false');
SELECT fingerprint(NULL) FROM generate_series(1, 2);
SELECT fingerprint(NULL::pg_class) FROM generate_series(1, 3) WHERE false;

-- order does not count, duplicates do, and so does each column
CREATE TABLE rows (a int, b text, c numeric);
INSERT INTO rows SELECT i % 7, 'b' || i % 3, i / 4.0 FROM generate_series(1, 100) i;
SELECT fp('SELECT * FROM rows ORDER BY a, b, c') = fp('SELECT * FROM rows ORDER BY c DESC, a') AS same;
SELECT fp('SELECT * FROM rows') = fp('SELECT * FROM rows WHERE a < 7') AS same;
SELECT fp('SELECT * FROM rows UNION ALL SELECT 1, ''x'', 1') <> fp('SELECT * FROM rows UNION ALL SELECT 1, ''x'', 1 UNION ALL SELECT 1, ''x'', 1') AS differ;
SELECT fp('SELECT 1 UNION ALL SELECT 1') <> fp('SELECT 2 UNION ALL SELECT 2') AS differ,
       fp('SELECT 1 UNION ALL SELECT 3') <> fp('SELECT 2 UNION ALL SELECT 2') AS differ,
       fp('SELECT 1, 2') <> fp('SELECT 2, 1') AS differ,
       fp('SELECT ''ab'' AS x, ''c'' AS y') <> fp('SELECT ''a'' AS x, ''bc'' AS y') AS differ,
       fp('SELECT 1, NULL::int') <> fp('SELECT NULL::int, 1') AS differ,
       fp('SELECT 1') <> fp('SELECT 1, NULL::int') AS differ;
-- names of columns do not count
SELECT fp('SELECT 1 AS a') = fp('SELECT 1 AS b') AS same;

-- each pair as a reader sees it
CREATE DOMAIN float_domain AS float8;
CREATE DOMAIN floats AS float8[];
CREATE DOMAIN reals AS float4[];
SELECT what, a = b AS same, wanted
FROM (VALUES
	('1.0 and 1.00', fp('SELECT 1.0'), fp('SELECT 1.00'), false),
	('1.0 and 1.0', fp('SELECT 1.0'), fp('SELECT 0.5 + 0.5'), true),
	('-0 and 0', fp('SELECT ''-0''::float8'), fp('SELECT 0::float8'), false),
	('-0 and 0, real', fp('SELECT ''-0''::float4'), fp('SELECT 0::float4'), false),
	('NaN and NaN', fp('SELECT ''NaN''::float8'), fp('SELECT ''inf''::float8 - ''inf''::float8'), true),
	('NaN and -NaN', fp('SELECT ''NaN''::float8'), fp('SELECT -''NaN''::float8'), true),
	('NaN and -NaN, real', fp('SELECT ''NaN''::float4'), fp('SELECT -''NaN''::float4'), true),
	('NaN and -NaN in an array', fp('SELECT ARRAY[''NaN''::float8]'), fp('SELECT ARRAY[-''NaN''::float8]'), true),
	('NaN and -NaN in an array, real', fp('SELECT ARRAY[''NaN''::float4]'), fp('SELECT ARRAY[-''NaN''::float4]'), true),
	('NaN and -NaN beside others', fp('SELECT ARRAY[[1, NULL], [''NaN''::float8, -1]]'), fp('SELECT ARRAY[[1, NULL], [-''NaN''::float8, -1]]'), true),
	('NaN and -NaN in a domain', fp('SELECT ''NaN''::float8::float_domain'), fp('SELECT (-''NaN''::float8)::float_domain'), true),
	('NaN and -NaN in a domain over an array', fp('SELECT ARRAY[''NaN''::float8]::floats'), fp('SELECT ARRAY[-''NaN''::float8]::floats'), true),
	('NaN and -NaN in a domain over an array, real', fp('SELECT ARRAY[''NaN''::float4]::reals'), fp('SELECT ARRAY[-''NaN''::float4]::reals'), true),
	('NaN and -NaN in an array of a domain', fp('SELECT ARRAY[''NaN''::float8::float_domain]'), fp('SELECT ARRAY[(-''NaN''::float8)::float_domain]'), true),
	('NaN and 1 in an array', fp('SELECT ARRAY[''NaN''::float8]'), fp('SELECT ARRAY[1::float8]'), false),
	('-0 and 0 in an array', fp('SELECT ARRAY[''-0''::float8]'), fp('SELECT ARRAY[0::float8]'), false),
	('-0 and 0 in an array, real', fp('SELECT ARRAY[''-0''::float4]'), fp('SELECT ARRAY[0::float4]'), false),
	('-0 and 0 in a domain over an array', fp('SELECT ARRAY[''-0''::float8]::floats'), fp('SELECT ARRAY[0::float8]::floats'), false),
	('NaN of numeric', fp('SELECT ''NaN''::numeric'), fp('SELECT ''NaN''::numeric + 1'), true),
	('null and empty', fp('SELECT NULL::text'), fp('SELECT ''''::text'), false),
	('null and zero', fp('SELECT NULL::int'), fp('SELECT 0'), false),
	('a and a with a blank', fp('SELECT ''a''::text'), fp('SELECT ''a ''::text'), false),
	('blanks of char', fp('SELECT ''a''::char(3)'), fp('SELECT ''a  ''::char(3)'), true),
	('json text', fp('SELECT ''{"a":1}''::json'), fp('SELECT ''{"a": 1}''::json'), false),
	('jsonb', fp('SELECT ''{"a":1, "b":2}''::jsonb'), fp('SELECT ''{"b":2,"a":1,"a":1}''::jsonb'), true),
	('jsonb numbers', fp('SELECT ''1.0''::jsonb'), fp('SELECT ''1.00''::jsonb'), false),
	('one instant', fp('SELECT timestamptz ''2024-01-01 00:00+00'''), fp('SELECT timestamptz ''2024-01-01 01:00+01'''), true),
	('one day', fp('SELECT interval ''24 hours'''), fp('SELECT interval ''1 day'''), false),
	('array bounds', fp('SELECT ''{1,2}''::int[]'), fp('SELECT ''[0:1]={1,2}''::int[]'), false),
	('array shape', fp('SELECT ''{1,2}''::int[]'), fp('SELECT ''{{1,2}}''::int[]'), false),
	('array null', fp('SELECT ''{1,NULL}''::int[]'), fp('SELECT ''{1,0}''::int[]'), false),
	('array that had a null', fp('SELECT array_replace(''{1,NULL}''::int[], NULL, 2)'), fp('SELECT ''{1,2}''::int[]'), true),
	('text array that had a null', fp('SELECT array_replace(''{a,NULL,c}''::text[], NULL, ''b'')'), fp('SELECT ''{a,b,c}''::text[]'), true),
	('slice of an array', fp('SELECT (''{9,1,2,NULL}''::int[])[2:3]'), fp('SELECT ''{1,2}''::int[]'), true),
	('row in a row', fp('SELECT ROW(1, ''a''::text)'), fp('SELECT ROW(1, ''b''::text)'), false),
	('rows alike', fp('SELECT ROW(1, ''a''::text)'), fp('SELECT ROW(2 - 1, chr(97))'), true),
	('range', fp('SELECT int4range(1, 4)'), fp('SELECT ''[1,3]''::int4range'), true),
	('multirange', fp('SELECT ''{[1,3),[2,5)}''::int4multirange'), fp('SELECT ''{[1,5)}''::int4multirange'), true)
) AS v(what, a, b, wanted)
WHERE (a = b) IS DISTINCT FROM wanted;

-- a row of a table is the same as the row of its values
SELECT (SELECT fingerprint(r) FROM rows r) = (SELECT fingerprint(ROW(a, b, c)) FROM rows) AS same;

-- how a value is stored does not count
CREATE TABLE stored (id int, v text, a int[], e bytea);
INSERT INTO stored SELECT i, repeat('x', (10 ^ i)::int), array_fill(i, ARRAY[(10 ^ i)::int]), decode(repeat('ab', (10 ^ i)::int), 'hex') FROM generate_series(0, 5) i;
CREATE TABLE stored_plain (LIKE stored);
ALTER TABLE stored_plain ALTER v SET STORAGE EXTERNAL, ALTER a SET STORAGE EXTERNAL, ALTER e SET STORAGE EXTERNAL;
INSERT INTO stored_plain SELECT id, v || '', a, e FROM stored WHERE id < 3;
INSERT INTO stored_plain SELECT id, repeat('x', (10 ^ id)::int), array_fill(id, ARRAY[(10 ^ id)::int]), decode(repeat('ab', (10 ^ id)::int), 'hex') FROM generate_series(3, 5) id;
CREATE TABLE stored_main (LIKE stored);
ALTER TABLE stored_main ALTER v SET STORAGE MAIN, ALTER a SET STORAGE MAIN, ALTER e SET STORAGE MAIN;
INSERT INTO stored_main SELECT * FROM stored_plain WHERE id < 4;
SELECT max(pg_column_size(s.v)) < max(pg_column_size(p.v)) AS compressed FROM stored s JOIN stored_plain p USING (id);
SELECT s.id, f.f = p.f AS plain, f.f = c.f AS computed
FROM stored s,
     LATERAL (SELECT fingerprint(x) AS f FROM stored x WHERE x.id = s.id) AS f,
     LATERAL (SELECT fingerprint(x) AS f FROM stored_plain x WHERE x.id = s.id) AS p,
     LATERAL (SELECT fingerprint(ROW(x.id, x.v || '', x.a || '{}'::int[], x.e || ''::bytea)) AS f FROM stored x WHERE x.id = s.id) AS c
ORDER BY s.id;
SELECT (SELECT fingerprint(s) FROM stored s WHERE id < 4) = (SELECT fingerprint(m) FROM stored_main m) AS main;

-- nor do columns that were added or dropped later, or a rewrite
CREATE TABLE aged (gone text, a int, b text);
INSERT INTO aged VALUES ('g', 1, 'one'), (NULL, 2, NULL);
ALTER TABLE aged DROP gone;
ALTER TABLE aged ADD c int DEFAULT 7, ADD e text, ADD f text DEFAULT 'f';
INSERT INTO aged VALUES (3, 'three', 7, NULL, 'f');
CREATE TABLE young AS SELECT * FROM aged;
SELECT (SELECT fingerprint(x) FROM aged x) = (SELECT fingerprint(x) FROM young x) AS same;
CREATE TABLE rewritten AS SELECT fingerprint(x) FROM aged x;
VACUUM FULL aged;
UPDATE aged SET a = a;
SELECT (SELECT fingerprint(x) FROM aged x) = fingerprint AS same FROM rewritten;
ALTER TABLE aged ADD g int;
SELECT (SELECT fingerprint(x) FROM aged x) = fingerprint AS same, (SELECT fingerprint(ROW(a, b, c, e, f)) FROM aged) = fingerprint AS same_part FROM rewritten;

-- composite columns: what they carry of their past does not count
CREATE TYPE pair AS (x int, y text);
CREATE TABLE composites (p pair, ps pair[]);
INSERT INTO composites VALUES (ROW(1, 'a'), ARRAY[ROW(1, 'a')::pair, NULL]), (NULL, NULL), (ROW(NULL, NULL), '{}');
CREATE TABLE composites_before AS SELECT fingerprint(c) FROM composites c;
ALTER TYPE pair ADD ATTRIBUTE z int;
CREATE TABLE composites_anew (p pair, ps pair[]);
INSERT INTO composites_anew VALUES (ROW(1, 'a', NULL), ARRAY[ROW(1, 'a', NULL)::pair, NULL]), (NULL, NULL), (ROW(NULL, NULL, NULL), '{}');
SELECT (SELECT fingerprint(c) FROM composites c) = (SELECT fingerprint(c) FROM composites_anew c) AS same,
       (SELECT fingerprint(c) FROM composites c) <> fingerprint AS another_type FROM composites_before;

-- many columns, with nulls at the ends of the bitmap
SELECT count(DISTINCT fp(format('SELECT %s', (SELECT string_agg(CASE WHEN i = n THEN 'NULL::int' ELSE '1' END, ', ') FROM generate_series(1, 17) i)))) AS distinct
FROM generate_series(0, 17) n;

-- partial sums make the whole, by a parallel plan and without one
CREATE TABLE many AS SELECT i AS id, md5(i::text) AS v, CASE WHEN i % 3 > 0 THEN i / 7.0 END AS n FROM generate_series(1, 20000) i;
ANALYZE many;
CREATE TABLE serial_result AS SELECT fingerprint(m) FROM many m;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
ALTER TABLE many SET (parallel_workers = 2);
CREATE FUNCTION is_parallel(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	line text;
	found boolean := false;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		found := found OR line ~ 'Partial Aggregate';
	END LOOP;
	RETURN found;
END
$$;
SELECT is_parallel('SELECT fingerprint(m) FROM many m');
SELECT (SELECT fingerprint(m) FROM many m) = fingerprint AS same FROM serial_result;
SELECT fingerprint(m) FROM many m WHERE false;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET max_parallel_workers_per_gather;
-- by partition
CREATE TABLE parts (d date, n int) PARTITION BY RANGE (d);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
CREATE TABLE parts_2 (n int, x text, d date);
ALTER TABLE parts_2 DROP x;
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES FROM ('2024-01-02') TO ('2024-01-03');
INSERT INTO parts SELECT '2024-01-01'::date + i % 2, i FROM generate_series(1, 100) i;
SET enable_partitionwise_aggregate = on;
SELECT (SELECT fingerprint(p) FROM parts p) = (SELECT fingerprint(ROW(d, n)) FROM (SELECT * FROM parts ORDER BY n DESC) s) AS same;
SELECT count(DISTINCT f) FROM (SELECT fingerprint(p) AS f FROM parts p GROUP BY d) s;
RESET enable_partitionwise_aggregate;
-- grouped, filtered, distinct, over a window
SELECT odd, fingerprint(m) = CASE odd WHEN 0 THEN (SELECT fingerprint(x) FROM many x WHERE id % 2 = 0) ELSE (SELECT fingerprint(x) FROM many x WHERE id % 2 = 1) END AS same
FROM many m, LATERAL (SELECT id % 2 AS odd) o GROUP BY odd ORDER BY odd;
SELECT fingerprint(m) FILTER (WHERE id <= 10) = (SELECT fingerprint(x) FROM many x WHERE id <= 10) AS same FROM many m;
SELECT fingerprint(DISTINCT r) = (SELECT fingerprint(s) FROM (SELECT DISTINCT * FROM rows) s) AS same FROM rows r;
SELECT count(DISTINCT f) FROM (SELECT fingerprint(m) OVER (ORDER BY id) AS f FROM many m WHERE id <= 10) s;

-- the fingerprint of a load is that of the slice in the table afterwards
CREATE TABLE loaded (d date, id int, gone int, v text, twice int GENERATED ALWAYS AS (id * 2) STORED, at timestamp DEFAULT now());
ALTER TABLE loaded DROP gone;
CREATE TABLE results AS
SELECT * FROM replace_partition('loaded', '2024-01-01', $$SELECT $1 AS d, i AS id, repeat('x', i * 1000) AS v, NULL AS at FROM generate_series(1, 20) i$$, date_column => 'd');
INSERT INTO loaded (d, id) VALUES ('2024-01-02', 1);
SELECT r.fingerprint = (SELECT fingerprint(ROW(d, id, v, at)) FROM loaded WHERE d = '2024-01-01') AS same,
       r.fingerprint = (SELECT fingerprint FROM replace_partition('loaded', '2024-01-01', 'SELECT d, at, id, v FROM loaded WHERE d = $1', date_column => 'd')) AS retry
FROM results r;
SELECT fingerprint = (SELECT fingerprint(ROW(d, id)) FROM loaded WHERE d = '2024-01-01') AS same
FROM replace_partition('loaded', '2024-01-01', 'SELECT d, at, id, v FROM loaded WHERE d = $1', date_column => 'd', ignore_columns => '{v,at}');

-- composites: whatever the client's encoding, and with one NaN
CREATE TYPE tpair AS (t text, f float8);
CREATE TABLE composed (id int, p tpair, ps tpair[]);
INSERT INTO composed VALUES (1, ('ä', 'NaN'), ARRAY[('é', 'NaN')::tpair, NULL]);
SELECT fingerprint(c) AS utf8 FROM composed c \gset
SET client_encoding = 'LATIN1';
SELECT fingerprint(c) = :'utf8' AS same FROM composed c;
RESET client_encoding;
SELECT fingerprint(ROW(1, ('ä', -'NaN'::float8)::tpair, ARRAY[('é', -'NaN'::float8)::tpair, NULL])) = :'utf8' AS same;
SELECT fingerprint(ROW(1, ('ä', 0)::tpair, ARRAY[('é', 'NaN')::tpair, NULL])) = :'utf8' AS same;
SELECT fingerprint(ROW(1, ('ä', 'NaN')::tpair, ARRAY[NULL, ('é', 'NaN')::tpair])) = :'utf8' AS same;
-- records of changing type
SELECT fingerprint(r) = (SELECT fingerprint(r) FROM (SELECT CASE WHEN i % 2 = 1 THEN ROW(1) ELSE ROW(1, 2) END FROM generate_series(1, 1000) i) s(r)) AS same
FROM (SELECT CASE WHEN i % 2 = 0 THEN ROW(1) ELSE ROW(1, 2) END FROM generate_series(1, 1000) i) s(r);

SET client_min_messages = warning;
DROP SCHEMA iload_fingerprint CASCADE;
