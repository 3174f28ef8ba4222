-- Swaps of tables of many shapes, compared with an oracle: the same table in
-- another schema, loaded by DELETE and INSERT.  Rows, and all that the catalogs
-- tell of the table, must come out the same.

SELECT plan(115);

SET client_min_messages = warning;
SET timezone = 'UTC';
LOAD 'idempotent_load';
SET idempotent_load.swap_min_size = 0;
-- before ANALYZE statistics differ by right: a swap sets them, DELETE does not
SET idempotent_load.auto_analyze = off;

-- A shape is a table "target" with a key "d", whose day 2024-01-01 is loaded with
-- the rows of the query "fresh".  They are of the columns "names".
CREATE TABLE shapes (
	n int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name text UNIQUE,
	ddl text,
	names text DEFAULT 'd, i, t',
	fresh text DEFAULT 'SELECT date ''2024-01-01'' AS d, g AS i, ''new '' || g % 7 AS t FROM generate_series(1, 300) g'
);

CREATE FUNCTION daily(columns text, more text DEFAULT '') RETURNS text LANGUAGE sql AS $$
SELECT format('CREATE TABLE target (%s) PARTITION BY RANGE (d);
	CREATE TABLE leaf PARTITION OF target FOR VALUES FROM (''2024-01-01'') TO (''2024-01-02'');
	CREATE TABLE other PARTITION OF target FOR VALUES FROM (''2024-01-02'') TO (''2024-01-03'');
	%s', columns, more)
$$;

CREATE DOMAIN public.small AS int CHECK (VALUE < 1000);
CREATE FUNCTION public.twice(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 2 * $1';

INSERT INTO shapes (name, ddl) VALUES
('empty', daily('d date, i int, t text')),
('with rows', daily('d date, i int, t text',
	'INSERT INTO target SELECT ''2024-01-01'', g, ''old'' FROM generate_series(1, 500) g;
	INSERT INTO target VALUES (''2024-01-02'', 1, ''other'')')),
('indexes', daily('d date NOT NULL, i int NOT NULL, t text, PRIMARY KEY (d, i)',
	'CREATE INDEX target_t ON target (t DESC NULLS LAST) INCLUDE (i);
	CREATE INDEX target_expression ON target (public.twice(i), lower(t)) WHERE i > 10;
	CREATE UNIQUE INDEX leaf_partial ON leaf (i) WHERE i < 100;
	CREATE INDEX leaf_hash ON leaf USING hash (t);
	CREATE INDEX leaf_brin ON leaf USING brin (i) WITH (pages_per_range = 2);
	CREATE INDEX leaf_gin ON leaf USING gin (to_tsvector(''simple'', t)) WITH (fastupdate = off);
	CREATE INDEX leaf_gist ON leaf USING gist (int4range(i, i + 1));
	CREATE INDEX leaf_fill ON leaf (i, t COLLATE "C") WITH (fillfactor = 60);
	ALTER TABLE leaf ADD CONSTRAINT leaf_excl EXCLUDE USING gist (int4range(i, i + 1) WITH &&);
	CREATE UNIQUE INDEX leaf_ident ON leaf (i);
	ALTER TABLE leaf REPLICA IDENTITY USING INDEX leaf_ident;
	ALTER TABLE leaf CLUSTER ON leaf_fill;
	ALTER INDEX target_expression ALTER COLUMN 1 SET STATISTICS 50;
	COMMENT ON INDEX leaf_hash IS ''an index'';
	INSERT INTO target SELECT ''2024-01-01'', g, ''old'' FROM generate_series(200, 400) g')),
('an index that the leaf is not attached to', daily('d date, i int, t text',
	'CREATE INDEX target_i ON ONLY target (i);
	CREATE INDEX leaf_i ON leaf (i);
	INSERT INTO target VALUES (''2024-01-01'', 1, ''old'')')),
('toast', daily('d date, i int, t text', 'ALTER TABLE leaf ALTER t SET STORAGE EXTERNAL;
	INSERT INTO target SELECT ''2024-01-01'', g, repeat(''old'', 3000) FROM generate_series(1, 20) g')),
('unlogged', 'CREATE TABLE target (d date, i int, t text) PARTITION BY RANGE (d);
	CREATE UNLOGGED TABLE leaf PARTITION OF target FOR VALUES FROM (''2024-01-01'') TO (''2024-01-02'');
	CREATE INDEX ON target (i);
	INSERT INTO target VALUES (''2024-01-01'', 1, ''old'')'),
('temporary', 'CREATE TEMP TABLE target (d date, i int, t text) PARTITION BY RANGE (d);
	CREATE TEMP TABLE leaf PARTITION OF target FOR VALUES FROM (''2024-01-01'') TO (''2024-01-02'');
	CREATE INDEX ON target (i);
	INSERT INTO target VALUES (''2024-01-01'', 1, ''old'')'),
('options', 'CREATE TABLE target (d date, i int, t text) PARTITION BY RANGE (d);
	CREATE TABLE leaf PARTITION OF target FOR VALUES FROM (''2024-01-01'') TO (''2024-01-02'')
		WITH (fillfactor = 70, autovacuum_enabled = off, parallel_workers = 3, toast.autovacuum_vacuum_threshold = 77);
	ALTER TABLE leaf ALTER i SET (n_distinct = -0.5), ALTER t SET STORAGE EXTENDED, ALTER t SET COMPRESSION pglz, ALTER i SET STATISTICS 77'),
('generated', daily('d date, i int, b int GENERATED ALWAYS AS (public.twice(i)) STORED, t text, c text GENERATED ALWAYS AS (t || ''!'') STORED',
	'CREATE INDEX ON target (b);
	INSERT INTO target VALUES (''2024-01-01'', 1, DEFAULT, ''old'')')),
('identity and defaults', daily('d date, i int, t text, id bigint GENERATED ALWAYS AS IDENTITY, s serial, v text DEFAULT ''a value''',
	'INSERT INTO target VALUES (''2024-01-01'', 1, ''old'')')),
('dropped and added columns', 'CREATE TABLE target (gone text, d date, i int) PARTITION BY RANGE (d);
	CREATE TABLE leaf (i int, gone numeric, also text, d date);
	ALTER TABLE leaf DROP also;
	ALTER TABLE leaf RENAME gone TO leaf_gone;
	ALTER TABLE leaf DROP leaf_gone;
	ALTER TABLE target DROP gone;
	ALTER TABLE target ATTACH PARTITION leaf FOR VALUES FROM (''2024-01-01'') TO (''2024-01-02'');
	INSERT INTO target VALUES (''2024-01-01'', 1), (''2024-01-01'', 2);
	ALTER TABLE target ADD t text DEFAULT ''missing'''),
('one leaf of two by list', 'CREATE TABLE target (d date, i int, t text) PARTITION BY RANGE (d);
	CREATE TABLE part PARTITION OF target FOR VALUES FROM (''2024-01-01'') TO (''2024-01-02'') PARTITION BY LIST (t);
	CREATE TABLE leaf PARTITION OF part FOR VALUES IN (''new 1'', ''new 2'');
	CREATE TABLE leaf_rest PARTITION OF part DEFAULT;
	INSERT INTO target SELECT ''2024-01-01'', g, ''new '' || g % 9 FROM generate_series(1, 50) g'),
('by hash', 'CREATE TABLE target (d date, i int, t text) PARTITION BY RANGE (d);
	CREATE TABLE part PARTITION OF target FOR VALUES FROM (''2024-01-01'') TO (''2024-01-02'') PARTITION BY HASH (i);
	CREATE TABLE leaf PARTITION OF part FOR VALUES WITH (MODULUS 3, REMAINDER 0);
	CREATE TABLE leaf_1 (t text, i int, d date);
	ALTER TABLE part ATTACH PARTITION leaf_1 FOR VALUES WITH (MODULUS 3, REMAINDER 1);
	CREATE TABLE leaf_2 PARTITION OF part FOR VALUES WITH (MODULUS 3, REMAINDER 2);
	CREATE INDEX ON target (t);
	INSERT INTO target SELECT ''2024-01-01'', g, ''old'' FROM generate_series(1, 50) g'),
('several keys', 'CREATE TABLE target (d date, i int, t text) PARTITION BY RANGE (d, i);
	CREATE TABLE leaf PARTITION OF target FOR VALUES FROM (''2024-01-01'', MINVALUE) TO (''2024-01-01'', 100);
	CREATE TABLE leaf_2 PARTITION OF target FOR VALUES FROM (''2024-01-01'', 100) TO (''2024-01-02'', MINVALUE)'),
('constraints', daily('d date, i int NOT NULL CHECK (i > 0), t text',
	'ALTER TABLE leaf ADD CONSTRAINT differ CHECK (t <> i::text);
	ALTER TABLE leaf ADD CONSTRAINT unchecked CHECK (i < 1000) NOT VALID;
	INSERT INTO target VALUES (''2024-01-01'', 1, ''old'')')),
('what refers to it', daily('d date, i int, t text',
	'CREATE VIEW look AS SELECT i, t FROM leaf WHERE i > 3;
	CREATE FUNCTION newest(leaf) RETURNS int LANGUAGE sql AS ''SELECT $1.i'';
	CREATE FUNCTION counted() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT count(*) FROM leaf; END;
	CREATE STATISTICS leaf_stat (ndistinct, dependencies) ON d, i, t FROM leaf;
	ALTER STATISTICS leaf_stat SET STATISTICS 33;
	CREATE MATERIALIZED VIEW kept AS SELECT * FROM leaf;
	INSERT INTO target VALUES (''2024-01-01'', 1, ''old'')')),
('rights and remarks', daily('d date, i int, t text',
	'ALTER TABLE leaf OWNER TO pg_monitor;
	GRANT SELECT (i), INSERT (t) ON leaf TO pg_read_all_stats;
	GRANT SELECT ON leaf TO PUBLIC;
	COMMENT ON TABLE leaf IS ''a leaf'';
	COMMENT ON COLUMN leaf.t IS ''a text'';
	ALTER TABLE leaf ENABLE ROW LEVEL SECURITY;
	CREATE POLICY p ON leaf FOR SELECT TO pg_read_all_stats USING (i > 5);
	INSERT INTO target VALUES (''2024-01-01'', 1, ''old'')'));
INSERT INTO shapes (name, ddl, names, fresh) VALUES
('no columns but the key', daily('d date'), 'd', 'SELECT date ''2024-01-01'' AS d FROM generate_series(1, 3)'),
('hours of a day', 'CREATE TABLE target (d timestamp, i int, t text) PARTITION BY RANGE (d);
	DO $d$ BEGIN FOR h IN 0 .. 23 LOOP
		EXECUTE format(''CREATE TABLE h%s PARTITION OF target FOR VALUES FROM (%L) TO (%L)'', h,
			timestamp ''2024-01-01'' + h * interval ''1 hour'', timestamp ''2024-01-01'' + (h + 1) * interval ''1 hour'');
	END LOOP; END $d$;
	CREATE INDEX ON target (i);
	INSERT INTO target SELECT timestamp ''2024-01-01'' + g * interval ''7 min'', g, ''old'' FROM generate_series(0, 199) g', 'd, i, t',
	'SELECT timestamp ''2024-01-01'' + g * interval ''4 min'' AS d, g AS i, ''new'' AS t FROM generate_series(0, 300) g'),
('no rows for some of the hours', 'CREATE TABLE target (d timestamp, i int, t text) PARTITION BY RANGE (d);
	CREATE TABLE h1 PARTITION OF target FOR VALUES FROM (''2024-01-01 00:00'') TO (''2024-01-01 12:00'');
	CREATE TABLE h2 PARTITION OF target FOR VALUES FROM (''2024-01-01 12:00'') TO (''2024-01-02 00:00'');
	INSERT INTO target VALUES (''2024-01-01 01:00'', 1, ''old''), (''2024-01-01 13:00'', 1, ''old'')', 'd, i, t',
	'SELECT timestamp ''2024-01-01 02:00'' AS d, 2 AS i, ''new'' AS t'),
('no rows', daily('d date, i int, t text', 'CREATE INDEX ON target (i);
	INSERT INTO target SELECT ''2024-01-01'', g, repeat(md5(g::text), 100) FROM generate_series(1, 50) g'), 'd, i, t',
	'SELECT date ''2024-01-01'' AS d, 1 AS i, ''never'' AS t WHERE false'),
('values out of line', daily('d date, i int, t text, e text, m text', 'ALTER TABLE leaf ALTER e SET STORAGE EXTERNAL, ALTER m SET STORAGE MAIN;
	INSERT INTO target SELECT ''2024-01-01'', g, repeat(md5(g::text), 1000), repeat(''e'', 9000), repeat(''m'', 9000) FROM generate_series(1, 20) g'), 'd, i, t, e, m',
	'SELECT d, i, t || ''new'' AS t, CASE i % 3 WHEN 0 THEN e WHEN 1 THEN ''short'' END AS e, m FROM target WHERE d = ''2024-01-01'' UNION ALL
	SELECT ''2024-01-01'', 99, (SELECT string_agg(md5(g::text), '''') FROM generate_series(1, 3000) g), repeat(''x'', 100000), NULL'),
('many types', daily('d date, b bool, n numeric, f float8, a int[], j jsonb, r int4range, u uuid, v varchar(10), c char(5), e public.small, x bytea'), 'd, b, n, f, a, j, r, u, v, c, e, x',
	'SELECT date ''2024-01-01'' AS d, g % 2 = 0 AS b, g * 1.50 AS n, CASE g % 3 WHEN 0 THEN ''NaN'' WHEN 1 THEN ''-0'' END::float8 AS f,
	CASE WHEN g % 4 > 0 THEN ARRAY[g, NULL] END AS a, jsonb_build_object(''g'', g) AS j, int4range(g, g + 3) AS r,
	md5(g::text)::uuid AS u, ''v'' || g AS v, ''c'' AS c, g AS e, decode(md5(g::text), ''hex'') AS x FROM generate_series(1, 99) g');

-- What the catalogs tell of the relations of a schema, without OIDs, names of files
-- and the schema's own name.
CREATE FUNCTION properties(schema regnamespace) RETURNS SETOF text LANGUAGE sql AS $$
WITH rels AS (SELECT c.oid, c.relname FROM pg_class c WHERE c.relnamespace = schema),
all_rels AS (
	SELECT r.oid, r.relname AS name FROM rels r
	UNION ALL
	SELECT t.oid, r.relname || '''s ' || replace(t.relname, r.oid::text, 'OID')
	FROM rels r JOIN pg_class c ON c.oid = r.oid JOIN pg_class t ON t.oid = c.reltoastrelid
	UNION ALL
	SELECT x.indexrelid, r.relname || '''s ' || replace(t.relname, r.oid::text, 'OID')
	FROM rels r JOIN pg_class c ON c.oid = r.oid JOIN pg_index x ON x.indrelid = c.reltoastrelid
	JOIN pg_class t ON t.oid = x.indexrelid
), lines AS (
	SELECT concat_ws(' ', 'class', a.name, c.relkind, c.relpersistence, c.reltablespace, c.relam, c.reloptions, c.relnatts,
		c.relchecks, c.relhasindex, c.relhasrules, c.relhastriggers, c.relreplident, c.relispartition, c.relhassubclass,
		c.relrowsecurity, c.relowner::regrole, c.relacl, c.relnamespace::regnamespace, pg_get_expr(c.relpartbound, c.oid),
		c.reltype::regtype, c.relispopulated) AS line
	FROM all_rels a JOIN pg_class c ON c.oid = a.oid
	UNION ALL
	SELECT concat_ws(' ', 'attribute', a.name, t.attnum, t.attname, t.atttypid::regtype, t.atttypmod, t.attlen, t.attstorage, t.attcompression,
		t.attstattarget, t.attislocal, t.attinhcount, t.attisdropped, t.attnotnull, t.attidentity, t.attgenerated, t.attacl,
		-- minor releases keep a version of the attribute there
		(SELECT string_agg(o, ',') FROM unnest(t.attoptions) o WHERE o !~ '^pg_attver='),
		pg_get_expr(d.adbin, d.adrelid), col_description(t.attrelid, t.attnum))
	FROM all_rels a JOIN pg_attribute t ON t.attrelid = a.oid LEFT JOIN pg_attrdef d ON d.adrelid = t.attrelid AND d.adnum = t.attnum
	UNION ALL
	SELECT concat_ws(' ', 'index', a.name, pg_get_indexdef(x.indexrelid), x.indisvalid, x.indisready, x.indislive, x.indisclustered,
		x.indisreplident, x.indimmediate, x.indisunique, x.indisprimary, inhparent::regclass)
	FROM all_rels a JOIN pg_index x ON x.indexrelid = a.oid LEFT JOIN pg_inherits ON inhrelid = a.oid
	WHERE a.name !~ 'OID'
	UNION ALL
	SELECT concat_ws(' ', 'constraint', a.name, o.conname, pg_get_constraintdef(o.oid), o.convalidated, o.conindid::regclass)
	FROM all_rels a JOIN pg_constraint o ON o.conrelid = a.oid
	UNION ALL
	SELECT concat_ws(' ', 'comment', a.name, obj_description(a.oid, 'pg_class')) FROM all_rels a
	UNION ALL
	SELECT concat_ws(' ', 'statistics', a.name, s.stxname, s.stxkind, s.stxstattarget) FROM all_rels a JOIN pg_statistic_ext s ON s.stxrelid = a.oid
	UNION ALL
	SELECT concat_ws(' ', 'view', a.name, pg_get_viewdef(a.oid)) FROM all_rels a JOIN pg_class c ON c.oid = a.oid AND c.relkind IN ('v', 'm')
	UNION ALL
	SELECT concat_ws(' ', 'policy', a.name, p.polname, pg_get_expr(p.polqual, p.polrelid), p.polroles::regrole[]) FROM all_rels a JOIN pg_policy p ON p.polrelid = a.oid
	UNION ALL
	SELECT concat_ws(' ', 'sequence', s.sequencename, s.last_value) FROM pg_sequences s WHERE s.schemaname = schema::text
	UNION ALL
	-- what depends on a relation, and on what it depends, and how much of it there is
	SELECT concat_ws(' ', 'depends', a.name, d.deptype, d.classid::regclass, d.objsubid, d.refobjsubid, count(*))
	FROM all_rels a JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = a.oid GROUP BY a.name, d.deptype, d.classid, d.objsubid, d.refobjsubid
	UNION ALL
	SELECT concat_ws(' ', 'refers', a.name, d.deptype, d.refclassid::regclass, d.objsubid, d.refobjsubid, count(*))
	FROM all_rels a JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = a.oid GROUP BY a.name, d.deptype, d.refclassid, d.objsubid, d.refobjsubid
)
SELECT regexp_replace(line, 'pg_temp_\d+|\m' || schema || '\M', 'SCHEMA', 'g') FROM lines
$$;

CREATE TABLE results (n int, property text, detail text);

CREATE FUNCTION compare(n int, property text, got text[], wanted text[]) RETURNS void LANGUAGE sql AS $$
INSERT INTO results
SELECT n, property, '+ ' || x FROM (SELECT unnest(got) EXCEPT ALL SELECT unnest(wanted)) AS d(x) UNION ALL
SELECT n, property, '- ' || x FROM (SELECT unnest(wanted) EXCEPT ALL SELECT unnest(got)) AS d(x)
$$;

-- Each row as text, with the relation that holds it.
CREATE FUNCTION rows_of(columns text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	result text[];
BEGIN
	EXECUTE format('SELECT array_agg((SELECT relname FROM pg_class WHERE oid = t.tableoid) || '' '' || t::text) FROM target t') INTO result;
	RETURN coalesce(result, '{}');
END
$$;

-- The rows of the loaded columns as index scans find them, by each of the indexes.
CREATE FUNCTION rows_by_index() RETURNS text[] LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
	result text[];
BEGIN
	SELECT array_agg(i::text) INTO result FROM (SELECT i FROM target WHERE i > 0 ORDER BY i) s;
	RETURN coalesce(result, '{}');
END
$$;

CREATE FUNCTION files() RETURNS text[] LANGUAGE sql AS $$
SELECT array_agg(relid::regclass || ' ' || pg_relation_filenode(relid)) FROM pg_partition_tree(to_regclass('target')) WHERE isleaf
$$;

CREATE PROCEDURE try_shape(s shapes) LANGUAGE plpgsql AS $$
DECLARE
	temporary bool := s.ddl ~ 'TEMP TABLE';
	wanted text[];
	props text[];
	by_index text[];
	before text[];
	r public.load_result;
	plain regnamespace;
BEGIN
	CREATE SCHEMA plain;
	PERFORM set_config('search_path', 'plain, public', false);
	EXECUTE s.ddl;
	IF temporary THEN
		plain := pg_my_temp_schema();
	ELSE
		plain := 'plain';
	END IF;
	COMMIT;
	EXECUTE format('CREATE TEMP TABLE fresh AS %s', s.fresh);
	EXECUTE 'DELETE FROM target WHERE d >= ''2024-01-01'' AND d < ''2024-01-02''';
	EXECUTE format('INSERT INTO target (%s) SELECT %s FROM fresh', s.names, s.names);
	DROP TABLE fresh;
	COMMIT;
	wanted := rows_of(s.names);
	IF s.names ~ 'i,' THEN
		by_index := rows_by_index();
	END IF;
	props := ARRAY(SELECT properties(plain));
	DROP TABLE target CASCADE;
	DROP SCHEMA plain CASCADE;
	COMMIT;

	CREATE SCHEMA swapped;
	PERFORM set_config('search_path', 'swapped, public', false);
	EXECUTE s.ddl;
	COMMIT;
	before := files();
	r := public.replace_partition('target', '2024-01-01', s.fresh, method => 'swap', on_empty => 'replace');
	COMMIT;
	IF (r.method, r.changed, r.rows, r.inserted, r.deleted) IS DISTINCT FROM
		('swap', true, r.inserted, r.rows, r.rows_before) THEN
		INSERT INTO results VALUES (s.n, 'result', r::text);
	END IF;
	INSERT INTO results SELECT s.n, 'files', x FROM unnest(files()) x WHERE x = ANY (before) AND x !~ '^other';
	PERFORM compare(s.n, 'rows', rows_of(s.names), wanted);
	IF s.names ~ 'i,' THEN
		PERFORM compare(s.n, 'rows', rows_by_index(), by_index);
	END IF;
	PERFORM compare(s.n, 'properties',
		ARRAY(SELECT properties(CASE WHEN temporary THEN pg_my_temp_schema() ELSE 'swapped'::regnamespace END)), props);
	COMMIT;

	-- a retry writes nothing
	before := files();
	r := public.replace_partition('target', '2024-01-01',
		CASE WHEN s.fresh ~ 'target' THEN format('SELECT %s FROM target WHERE d = ''2024-01-01''', s.names) ELSE s.fresh END,
		method => 'swap', on_empty => 'replace');
	-- but where a column takes another value each time
	IF s.ddl ~ 'IDENTITY' THEN
		before := files();
	ELSIF r.method <> 'none' THEN
		INSERT INTO results VALUES (s.n, 'retry', r::text);
	END IF;
	PERFORM compare(s.n, 'retry', files(), before);
	COMMIT;
	DROP TABLE target CASCADE;
	DROP SCHEMA swapped CASCADE;
	PERFORM set_config('search_path', 'public', false);
	COMMIT;
END
$$;

DO $$
DECLARE
	s shapes;
BEGIN
	FOR s IN SELECT * FROM shapes ORDER BY n LOOP
		CALL try_shape(s);
	END LOOP;
END
$$;

SELECT is_empty(
	format('SELECT detail FROM results WHERE n = %s AND property = %L LIMIT 10', s.n, p.name),
	format('%s: %s', s.name, p.description))
FROM shapes s, (VALUES
	(1, 'result', 'it is a swap, and counts what is gone and what has come'),
	(2, 'files', 'all leaves of the slice have new files'),
	(3, 'rows', 'the table has the rows that DELETE and INSERT leave'),
	(4, 'properties', 'the catalogs tell what they do after DELETE and INSERT'),
	(5, 'retry', 'a retry writes nothing')) p (n, name, description)
ORDER BY s.n, p.n;

SELECT * FROM finish();
