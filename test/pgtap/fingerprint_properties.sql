-- Two fingerprints are equal exactly where a reader could not tell the multisets
-- of rows apart: of single values of every type, of random multisets, of the
-- same rows stored in different ways, and of sums of parts.

BEGIN;
SELECT plan(102);
SELECT setseed(0.5);

SET LOCAL client_min_messages = warning;

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE pair AS (a int, b text);
CREATE TYPE nested AS (p pair, ps pair[], f float8);
CREATE TYPE textrange AS RANGE (subtype = text, collation = "C");
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE DOMAIN pair_domain AS pair;

--
-- Values of a type: equal fingerprints exactly where the texts are equal
--
-- Among the values are such as their type takes for equal though they show
-- differently (1.0 and 1.00), and such as show the same though they are stored
-- differently (NaN by other bits, arrays that have lost their null).

CREATE TABLE cases (n int GENERATED ALWAYS AS IDENTITY, type text, vals text);
INSERT INTO cases (type, vals) VALUES
('boolean', $$true, false, NULL, true$$),
('smallint', $$0, 1, -1, 32767, NULL, 1$$),
('int', $$0, 1, -1, 2147483647, NULL, 1$$),
('bigint', $$0, 1, -1, 4294967296, NULL, 1$$),
('oid', $$0, 1, 4294967295$$),
('real', $$0, '-0', 1, 'NaN', 'Infinity'::real - 'Infinity'::real, 'Infinity', '-Infinity', NULL, 0.1, 0.1::float8::real, 1e-40$$),
('double precision', $$0, '-0', 1, 'NaN', 'Infinity'::float8 - 'Infinity'::float8, 'Infinity', '-Infinity', NULL, 0.1, 0.1::real::float8, 0.1 + 0.2, 0.3, 1e-310$$),
('numeric', $$0, 0.0, 0.00, 1, 1.0, 1.00, -1, 'NaN', 'Infinity', '-Infinity', NULL, 1e20, 100000000000000000000, 1e-20, 123456789.123456789, -0.0$$),
('numeric(10,2)', $$0, 0.0, 1, 1.004, 1.00, -1, NULL$$),
('money', $$'0', '1.00', '1', NULL$$),
('text', $$'', ' ', 'a', 'a ', 'A', NULL, 'null', repeat('a', 126), repeat('a', 127), repeat('a', 128), repeat('a', 3000), repeat('a', 3001)$$),
('varchar(5)', $$'', 'a', 'a ', NULL$$),
('char(5)', $$'', ' ', 'a', 'a ', 'A', NULL$$),
('"char"', $$'', 'a', NULL$$),
('name', $$'', 'a', 'a ', NULL$$),
('bytea', $$'', '\x00', '\x0000', '\x5c', NULL$$),
('date', $$'2026-08-01', '2026-08-02', 'infinity', '-infinity', NULL, '0001-01-01 BC'$$),
('time', $$'00:00', '24:00', '12:00:00.000001', NULL$$),
('timetz', $$'12:00+00', '13:00+01', '12:00+01', NULL$$),
('timestamp', $$'2026-08-01', '2026-08-01 00:00:00.000001', 'infinity', NULL$$),
('timestamptz', $$'2026-08-01 00:00+00', '2026-08-01 01:00+01', '2026-08-01 00:00+01', '-infinity', NULL$$),
('interval', $$'1 day', '24:00:00', '1 month', '30 days', '0', '-1 day', NULL$$),
('uuid', $$'00000000-0000-0000-0000-000000000000', '00000000-0000-0000-0000-000000000001', NULL$$),
('inet', $$'10.0.0.1', '10.0.0.1/32', '10.0.0.1/24', '::1', NULL$$),
('cidr', $$'10.0.0.0/24', '10.0.0.0/25', NULL$$),
('macaddr', $$'08:00:2b:01:02:03', '08-00-2b-01-02-03', NULL$$),
('bit(3)', $$B'000', B'001', NULL$$),
('varbit', $$B'', B'0', B'00', B'01', NULL$$),
('mood', $$'sad', 'ok', 'happy', NULL$$),
('positive', $$1, 2, NULL$$),
('json', $$'{"a": 1}', '{"a":1}', '{"a": 1, "a": 1}', '1', '1.0', '"1"', 'null', NULL$$),
('jsonb', $$'{"a": 1}', '{"a":1}', '{"b": 2, "a": 1}', '{"a": 1, "b": 2}', '1', '1.0', '1.00', '"1"', 'null', '[]', '{}', '[null]', NULL$$),
('jsonpath', $$'$.a', '$.b', NULL$$),
('tsvector', $$'a b', 'b a', 'a', NULL$$),
('tsquery', $$'a & b', 'b & a', NULL$$),
('point', $$'(0,0)', '(0,1)', '(-0,0)', NULL$$),
('box', $$'(0,0),(1,1)', '(1,1),(0,0)', '(0,0),(1,2)'$$),
('int[]', $$'{}', '{1}', '{1,NULL}', '{1,2}', '{2,1}', '{{1,2}}', '[2:3]={1,2}', '[1:2]={1,2}', '{NULL}', NULL, array_remove('{1,NULL}'::int[], NULL), array_replace('{1,NULL}'::int[], NULL, 2), ('{1,NULL,2}'::int[])[1:1]$$),
('text[]', $$'{}', '{""}', '{NULL}', '{"NULL"}', '{a,b}', '{ab}', array_remove('{a,NULL}'::text[], NULL), '{a}', NULL, ARRAY[repeat('a', 4000)]$$),
('numeric[]', $$'{1}', '{1.0}', '{1.00}', NULL$$),
('float8[]', $$'{0}', '{-0}', '{NaN}', NULL, ARRAY[0::float8], '{1,NULL}'$$),
('mood[]', $$'{sad}', '{sad,ok}', '{ok,sad}', NULL$$),
('int4range', $$'empty', '[1,3)', '[1,2]', '(0,2]', '[1,)', '(,)', NULL$$),
('numrange', $$'[1,2]', '[1.0,2]', '[1,2)', '(1,2]', 'empty', '(1,1)', NULL$$),
('daterange', $$'[2026-08-01,2026-08-31]', '[2026-08-01,2026-09-01)', NULL$$),
('textrange', $$'[a,b]', '[a,b)', 'empty', '(a,)', NULL$$),
('int4multirange', $$'{}', '{[1,3)}', '{[1,2]}', '{[1,2],[3,4]}', '{[1,5)}', '{[1,2),[5,6)}', NULL$$),
('pair', $$ROW(1, 'a'), ROW(1, ''), ROW(1, NULL), ROW(NULL, NULL), NULL, '(1,a)', ROW(1, repeat('a', 5000))$$),
('pair_domain', $$ROW(1, 'a'), ROW(1, ''), ROW(NULL, NULL), NULL$$),
('pair[]', $$'{}', ARRAY[ROW(1, 'a')::pair], '{"(1,a)"}', ARRAY[NULL::pair], ARRAY[ROW(NULL, NULL)::pair], NULL$$),
('nested', $$ROW(ROW(1, 'a'), ARRAY[ROW(2, 'b')::pair], 'NaN'), ROW(ROW(1, 'a'), '{}', 'NaN'), ROW(NULL, NULL, NULL), ROW(ROW(NULL, NULL), NULL, 0), NULL$$);

-- Each value as an expression and as stored, three ways.
CREATE FUNCTION wrong_pairs(type text, vals text) RETURNS SETOF text LANGUAGE plpgsql AS
$$
DECLARE
	expression text;
BEGIN
	EXECUTE format('CREATE TABLE vals (v %s)', type);
	CREATE TABLE prints (txt text, way text, print text);
	FOR expression IN SELECT split_values(vals) LOOP
		EXECUTE format('INSERT INTO vals VALUES (%s)', expression);
	END LOOP;
	CREATE TABLE wide (id int, v int);
	EXECUTE format('ALTER TABLE wide ALTER v TYPE %s USING NULL', type);
	EXECUTE 'INSERT INTO wide SELECT 1, v FROM vals';
	EXECUTE 'INSERT INTO prints SELECT v::text, ''stored'', (SELECT fingerprint(r) FROM (SELECT vals.v) r) FROM vals';
	EXECUTE 'INSERT INTO prints SELECT max(v::text), ''whole row'', fingerprint(vals) FROM vals GROUP BY ctid';
	EXECUTE 'INSERT INTO prints SELECT v::text, ''of a wider row'', (SELECT fingerprint(r) FROM (SELECT wide.v) r) FROM wide';
	RETURN QUERY EXECUTE 'SELECT format(''%L %s, %L %s'', a.txt, a.way, b.txt, b.way) FROM prints a, prints b
		WHERE (a.print = b.print) <> (a.txt IS NOT DISTINCT FROM b.txt) LIMIT 5';
	DROP TABLE vals, wide, prints;
END
$$;

-- Split at commas that are outside of quotes and brackets.
CREATE FUNCTION split_values(vals text) RETURNS SETOF text LANGUAGE plpgsql AS
$$
DECLARE
	depth int := 0;
	quoted bool := false;
	part text := '';
	c text;
BEGIN
	FOREACH c IN ARRAY string_to_array(vals, NULL) LOOP
		IF c = '''' THEN
			quoted := NOT quoted;
		ELSIF NOT quoted AND c IN ('(', '[') THEN
			depth := depth + 1;
		ELSIF NOT quoted AND c IN (')', ']') THEN
			depth := depth - 1;
		END IF;
		IF c = ',' AND NOT quoted AND depth = 0 THEN
			RETURN NEXT part;
			part := '';
		ELSE
			part := part || c;
		END IF;
	END LOOP;
	RETURN NEXT part;
END
$$;

SELECT is_empty(format('SELECT * FROM wrong_pairs(%L, %L)', type, vals),
	format('%s: equal exactly where the texts are equal', type))
FROM cases ORDER BY n;

--
-- Random multisets
--

CREATE TABLE a (i int, t text, n numeric, f float8, x int[], j jsonb);
CREATE TABLE b (LIKE a);
CREATE TABLE tries (same_text bool, same_print bool);

CREATE FUNCTION random_rows(count int) RETURNS SETOF a LANGUAGE sql VOLATILE AS
$$
SELECT nullif((random() * 2)::int, 0), (ARRAY['x', '', NULL])[1 + floor(random() * 3)],
	(ARRAY[1, 1.0])[1 + floor(random() * 2)], (ARRAY[0, '-0', 'NaN']::float8[])[1 + floor(random() * 3)],
	CASE WHEN random() < 0.5 THEN ARRAY[1, NULL] END,
	(ARRAY['{"a": 1}', 'null', NULL]::jsonb[])[1 + floor(random() * 3)]
FROM generate_series(1, $1)
$$;

CREATE FUNCTION texts(relation regclass) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE result text;
BEGIN
	EXECUTE format('SELECT count(*) || string_agg(r::text, '' '' ORDER BY r::text COLLATE "C") FROM %s r', relation) INTO result;
	RETURN result;
END
$$;

DO $$
BEGIN
	FOR try IN 1 .. 400 LOOP
		TRUNCATE a, b;
		INSERT INTO a SELECT * FROM random_rows(floor(random() * 12)::int);
		-- the same rows in another order, of which perhaps one is left out,
		-- doubled, or exchanged
		INSERT INTO b SELECT * FROM a ORDER BY random();
		CASE floor(random() * 5)
			WHEN 1 THEN DELETE FROM b WHERE ctid = (SELECT min(ctid) FROM b);
			WHEN 2 THEN INSERT INTO b SELECT * FROM b LIMIT 1;
			WHEN 3 THEN DELETE FROM b WHERE ctid = (SELECT min(ctid) FROM b);
				INSERT INTO b SELECT * FROM random_rows(1);
			WHEN 4 THEN DELETE FROM b WHERE ctid = (SELECT min(ctid) FROM b);
				INSERT INTO b SELECT * FROM b LIMIT 1;
			ELSE NULL;
		END CASE;
		INSERT INTO tries SELECT texts('a') IS NOT DISTINCT FROM texts('b'),
			(SELECT fingerprint(a) FROM a) = (SELECT fingerprint(b) FROM b);
	END LOOP;
END
$$;
SELECT is((SELECT count(*) FROM tries WHERE same_text <> same_print), 0::bigint,
	'random multisets: equal exactly where the texts are equal');
SELECT cmp_ok((SELECT min(count)::int FROM (SELECT same_text, count(*) FROM tries GROUP BY 1) t), '>', 50,
	'random multisets: both answers were tried often');

-- All small multisets over a few rows have fingerprints of their own.
SELECT is(count(*), count(DISTINCT print), 'small multisets: as many fingerprints as multisets')
FROM (
	SELECT x, y, z, (SELECT fingerprint(r) FROM (
		SELECT 1 AS v FROM generate_series(1, x) UNION ALL SELECT 2 FROM generate_series(1, y)
		UNION ALL SELECT NULL FROM generate_series(1, z)) r) AS print
	FROM generate_series(0, 6) x, generate_series(0, 6) y, generate_series(0, 6) z) m;

-- So has every row of a few columns with nulls, and values that could run into
-- one another.
SELECT is(count(*), count(DISTINCT print), 'rows of integers and nulls: as many fingerprints as rows')
FROM (
	SELECT (SELECT fingerprint(r) FROM (SELECT x, y, z) r) AS print
	FROM unnest(ARRAY[NULL, 0, 1]) x, unnest(ARRAY[NULL, 0, 1]) y, unnest(ARRAY[NULL, 0, 1]) z
	UNION ALL SELECT (SELECT fingerprint(r) FROM (SELECT x, y) r)
	FROM unnest(ARRAY[NULL, 0, 1]) x, unnest(ARRAY[NULL, 0, 1]) y) q;
SELECT is(count(*), count(DISTINCT print), 'rows of texts and nulls: as many fingerprints as rows')
FROM (
	SELECT (SELECT fingerprint(r) FROM (SELECT x, y, z) r) AS print
	FROM unnest(ARRAY[NULL, '', 'a', 'aa', ' ']) x, unnest(ARRAY[NULL, '', 'a', 'aa', ' ']) y,
		unnest(ARRAY[NULL, '', 'a', 'aa', ' ']) z) q;

--
-- Sums
--

CREATE TABLE many AS
SELECT g AS id, md5(g::text) AS t, CASE WHEN g % 7 > 0 THEN g / 3.0 END AS n FROM generate_series(1, 20000) g;

-- The sum of two fingerprints, by plain arithmetic.
CREATE FUNCTION plus(a text, b text) RETURNS text LANGUAGE sql IMMUTABLE AS
$$
WITH part AS (
	SELECT split_part(f, ':', 1) AS version, split_part(f, ':', 2)::numeric AS rows,
		(SELECT sum(('x' || lpad(substr(split_part(f, ':', 3), 1 + 4 * i, 4), 8, '0'))::bit(32)::bigint
			* 2::numeric ^ (112 - 16 * i)) FROM generate_series(0, 7) i) AS sum
	FROM (VALUES (a), (b)) v (f)),
total AS (SELECT min(version) AS version, sum(rows) AS rows, mod(sum(sum), 2::numeric ^ 128) AS sum FROM part)
SELECT version || ':' || round(rows) || ':' || (
	SELECT string_agg(lpad(to_hex(mod(div(sum, 2::numeric ^ (112 - 16 * i)), 65536)::int), 4, '0'), '' ORDER BY i)
	FROM generate_series(0, 7) i)
FROM total
$$;

CREATE AGGREGATE plus_all(text) (SFUNC = plus, STYPE = text, INITCOND = '1:0:00000000000000000000000000000000');

SELECT is((SELECT fingerprint(r) FROM (SELECT 1 WHERE false) r), '1:0:00000000000000000000000000000000',
	'no rows: zero');
SELECT is((SELECT plus_all(print) FROM (SELECT fingerprint(m) AS print FROM many m GROUP BY id % 17) p),
	(SELECT fingerprint(m) FROM many m), 'fingerprints of parts add up to that of the whole');
SELECT is((SELECT plus_all(print) FROM (SELECT fingerprint(m) AS print FROM many m GROUP BY floor(random() * 5)) p),
	(SELECT fingerprint(m) FROM many m), 'those of random parts too');
SELECT is((SELECT plus_all(print) FROM (SELECT fingerprint(m) AS print FROM many m GROUP BY id ORDER BY id LIMIT 500) p),
	(SELECT fingerprint(m) FROM many m WHERE id <= 500), 'those of single rows too');
SELECT is((SELECT fingerprint(m) FROM (SELECT * FROM many ORDER BY t) m),
	(SELECT fingerprint(m) FROM (SELECT * FROM many ORDER BY id DESC) m), 'order does not matter');
SELECT is((SELECT fingerprint(m) FROM (SELECT * FROM many UNION ALL SELECT * FROM many) m),
	(SELECT plus(fingerprint(m), fingerprint(m)) FROM many m), 'every row twice is the double of it');

-- Parallel workers combine theirs.
CREATE TABLE serial_print AS SELECT fingerprint(m) AS print FROM many m;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL min_parallel_table_scan_size = 0;
SET LOCAL max_parallel_workers_per_gather = 3;
ALTER TABLE many SET (parallel_workers = 3);
CREATE FUNCTION plan_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS
$$ BEGIN RETURN QUERY EXECUTE 'EXPLAIN ' || query; END $$;
SELECT isnt_empty($$SELECT * FROM plan_of('SELECT fingerprint(m) FROM many m') p WHERE p ~ 'Partial Aggregate'$$,
	'parallel plan: partial aggregates');
SELECT is((SELECT fingerprint(m) FROM many m), (SELECT print FROM serial_print), 'parallel plan: the same');
RESET parallel_setup_cost;
RESET parallel_tuple_cost;

--
-- The same rows, stored in different ways: a load of them finds nothing to do,
-- by the path that hashes stored tuples (leaves that are the slice) and by the
-- one that reads them by a query (plain tables)
--

CREATE TABLE originals AS
SELECT date '2026-08-01' AS k, g AS id, g % 3 = 0 AS flag,
	CASE g % 4 WHEN 0 THEN repeat('compressible ', 500) WHEN 1 THEN 'short' WHEN 2 THEN NULL
		ELSE (SELECT string_agg(md5(i::text || g), '') FROM generate_series(1, 100) i) END AS t,
	CASE g % 3 WHEN 0 THEN g::numeric / 7 WHEN 1 THEN 1.50 END AS n,
	CASE g % 5 WHEN 0 THEN 'NaN' WHEN 1 THEN g::float8 END AS f,
	CASE g % 3 WHEN 0 THEN array_remove(ARRAY[g, NULL], NULL) WHEN 1 THEN ARRAY[NULL, g] END AS x,
	CASE g % 4 WHEN 0 THEN jsonb_build_object('k', repeat('v', 3000)) WHEN 1 THEN '{"a": 1.0}'::jsonb END AS j,
	CASE g % 3 WHEN 0 THEN ROW(g, repeat('p', 3000))::pair WHEN 1 THEN ROW(NULL, NULL)::pair END AS p,
	CASE g % 3 WHEN 0 THEN int4range(1, g + 1) END AS r
FROM generate_series(1, 60) g;

CREATE FUNCTION make_leaf(columns text) RETURNS void LANGUAGE plpgsql AS
$$
BEGIN
	CREATE TABLE target (LIKE originals) PARTITION BY RANGE (k);
	EXECUTE format('CREATE TABLE leaf (%s)', columns);
END
$$;
CREATE FUNCTION attach_leaf() RETURNS void LANGUAGE sql AS
$$ ALTER TABLE target ATTACH PARTITION leaf FOR VALUES FROM ('2026-08-01') TO ('2026-08-02') $$;

CREATE FUNCTION print_of_originals() RETURNS text LANGUAGE sql AS $$ SELECT fingerprint(o) FROM originals o $$;

-- Of the target, fingerprint and method of a retry; then it is gone.
CREATE FUNCTION retry(query text DEFAULT 'TABLE originals') RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	method text;
	print text;
	print2 text;
BEGIN
	SELECT r.method, r.fingerprint INTO method, print
	FROM replace_partition('target', '2026-08-01', query, date_column => 'k') r;
	SELECT fingerprint(got) INTO print2 FROM (SELECT k, id, flag, t, n, f, x, j, p, r FROM target) got;
	DROP TABLE target;
	RETURN method || CASE WHEN print = print_of_originals() THEN '' ELSE ', staged differ' END
		|| CASE WHEN print2 = print_of_originals() THEN '' ELSE ', stored differ' END;
END
$$;

SELECT make_leaf('LIKE originals');
SELECT attach_leaf();
INSERT INTO target TABLE originals;
SELECT is(retry(), 'none', 'stored in a leaf of the same layout');

SELECT make_leaf('r int4range, p pair, j jsonb, x int[], f float8, n numeric, t text, flag bool, id int, k date');
SELECT attach_leaf();
INSERT INTO target TABLE originals;
SELECT is(retry(), 'none', 'stored in a leaf of another order of columns');

SELECT make_leaf('gone1 text, LIKE originals, gone2 int');
INSERT INTO leaf SELECT 'gone', o.*, 1 FROM originals o;
ALTER TABLE leaf DROP gone1, DROP gone2;
SELECT attach_leaf();
SELECT is(retry(), 'none', 'stored with columns that were dropped later');

-- values that tuples do not have, because their columns were added later
CREATE TABLE target AS SELECT k, id FROM originals WHERE id = 7;
ALTER TABLE target ADD flag bool DEFAULT false, ADD t text DEFAULT 'x', ADD n numeric DEFAULT 1.50,
	ADD f float8, ADD x int[] DEFAULT '{1,NULL}', ADD j jsonb, ADD p pair, ADD r int4range;
SELECT is((SELECT fingerprint(target) FROM target),
	(SELECT fingerprint(q) FROM (SELECT k, id, false, 'x', 1.50, NULL::float8, ARRAY[1, NULL], NULL::jsonb, NULL::pair, NULL::int4range
		FROM originals WHERE id = 7) q), 'added columns have their default');
SELECT is((replace_partition('target', '2026-08-01',
	$$SELECT k, id, false AS flag, 'x' AS t, 1.50 AS n, ARRAY[1, NULL] AS x FROM originals WHERE id = 7$$)).method,
	'none', 'plain table with added columns');
CREATE TABLE root (LIKE target) PARTITION BY RANGE (k);
ALTER TABLE root ATTACH PARTITION target FOR VALUES FROM ('2026-08-01') TO ('2026-08-02');
SELECT is((replace_partition('root', '2026-08-01',
	$$SELECT k, id, false AS flag, 'x' AS t, 1.50 AS n, ARRAY[1, NULL] AS x FROM originals WHERE id = 7$$)).method,
	'none', 'leaf with added columns');
DROP TABLE root;

CREATE TABLE ways (n int, name text, ddl text);
INSERT INTO ways VALUES
(1, 'as it comes', ''),
(2, 'uncompressed, out of line', 'ALTER TABLE target ALTER t SET STORAGE EXTERNAL, ALTER j SET STORAGE EXTERNAL, ALTER p SET STORAGE EXTERNAL'),
(3, 'compressed, in line', 'ALTER TABLE target ALTER t SET STORAGE MAIN, ALTER j SET STORAGE MAIN'),
(4, 'arrays and numerics without short headers', 'ALTER TABLE target ALTER n SET STORAGE PLAIN, ALTER x SET STORAGE PLAIN'),
(5, 'compressed by pglz', 'ALTER TABLE target ALTER t SET COMPRESSION pglz, ALTER j SET COMPRESSION pglz'),
(6, 'as much as possible out of line', 'ALTER TABLE target SET (toast_tuple_target = 128)');

CREATE FUNCTION store(way text, partitioned bool) RETURNS text LANGUAGE plpgsql AS
$$
BEGIN
	IF partitioned THEN
		PERFORM make_leaf('LIKE originals');
		EXECUTE replace(way, 'TABLE target', 'TABLE leaf');
		PERFORM attach_leaf();
	ELSE
		CREATE TABLE target (LIKE originals);
		EXECUTE way;
	END IF;
	INSERT INTO target TABLE originals;
	RETURN retry();
END
$$;
SELECT is(store(ddl, partitioned), 'none',
	format('stored %s, %s', name, CASE WHEN partitioned THEN 'leaf' ELSE 'plain table' END))
FROM ways, (VALUES (true), (false)) p (partitioned) ORDER BY n, partitioned;

-- the query's rows come as expressions, from sorts, from joins, as they are stored
SELECT make_leaf('LIKE originals');
SELECT attach_leaf();
INSERT INTO target TABLE originals;
SELECT is(retry('SELECT o.* FROM originals o ORDER BY md5(id::text)'), 'none', 'rows from a sort');
SELECT make_leaf('LIKE originals');
SELECT attach_leaf();
INSERT INTO target TABLE originals;
SELECT is(retry('SELECT k, id + 0 AS id, NOT NOT flag AS flag, t || '''' AS t, n + 0 AS n, f + 0 AS f, x || ''{}'' AS x,
	j || ''{}'' AS j, ROW((p).a, (p).b)::pair AS p, r * ''(,)'' AS r
	FROM originals WHERE p IS DISTINCT FROM NULL
	UNION ALL SELECT * FROM originals WHERE NOT p IS DISTINCT FROM NULL'), 'none', 'rows from expressions');
SELECT make_leaf('LIKE originals');
SELECT attach_leaf();
INSERT INTO target TABLE originals;
SELECT is(retry('SELECT * FROM target'), 'none', 'rows of the target itself');
SELECT make_leaf('LIKE originals');
SELECT attach_leaf();
INSERT INTO target TABLE originals;
SELECT is(retry('SELECT a.* FROM originals a JOIN originals b USING (id)'), 'none', 'rows from a join');

-- and a change of any one column of one row is seen by both paths
CREATE FUNCTION change(set_clause text, partitioned bool) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE result text;
BEGIN
	IF partitioned THEN
		PERFORM make_leaf('LIKE originals');
		PERFORM attach_leaf();
	ELSE
		CREATE TABLE target (LIKE originals);
	END IF;
	INSERT INTO target TABLE originals;
	EXECUTE format('UPDATE target SET %s WHERE id = 12', set_clause);
	SELECT format('%s %s %s', r.method, r.inserted, r.deleted) INTO result
	FROM replace_partition('target', '2026-08-01', 'TABLE originals', date_column => 'k') r;
	RETURN result || ', ' || retry();
END
$$;
SELECT is(change(c, true), 'diff 1 1, none', format('a change of %s is seen in a leaf', c)) FROM
unnest(ARRAY['flag = NULL', 't = t || '' ''', 'n = n::numeric(20,3)', 'f = 0', 'x = NULL', 'j = j || ''{"z": null}''', 'p = ROW(12, NULL)', 'r = int4range(1, 14)']) c;
SELECT is(change(c, false), 'diff 1 1, none', format('a change of %s is seen in a plain table', c)) FROM
unnest(ARRAY['flag = NULL', 't = t || '' ''', 'n = n::numeric(20,3)', 'f = 0', 'x = NULL', 'j = j || ''{"z": null}''', 'p = ROW(12, NULL)', 'r = int4range(1, 14)']) c;

SELECT * FROM finish();
ROLLBACK;
