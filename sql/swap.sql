--
-- swap: new files in place of the old ones
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotent_load;
CREATE SCHEMA iload_swap;
CREATE ROLE regress_iload_swap;
GRANT USAGE ON SCHEMA iload_swap TO regress_iload_swap;
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE regress_iload_swap LOCATION '';
RESET client_min_messages;
SET search_path = iload_swap, public;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
\set SHOW_CONTEXT never

LOAD 'idempotent_load';
SET idempotent_load.swap_min_size = 0;

-- Has a relation another file than when it was last asked for?
CREATE TABLE files (rel regclass PRIMARY KEY, file oid);
CREATE FUNCTION is_new_file(r regclass) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	old_file oid := (SELECT file FROM files WHERE rel = r);
BEGIN
	INSERT INTO files VALUES (r, pg_relation_filenode(r)) ON CONFLICT (rel) DO UPDATE SET file = excluded.file;
	RETURN old_file IS DISTINCT FROM pg_relation_filenode(r);
END
$$;

CREATE TABLE t (d date, id int, v text, PRIMARY KEY (d, id)) PARTITION BY RANGE (d);
CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
CREATE TABLE t_2 PARTITION OF t FOR VALUES FROM ('2024-01-02') TO ('2024-01-03');
INSERT INTO t VALUES ('2024-01-02', 1, 'other');
SELECT is_new_file(r) FROM unnest('{t_1,t_1_pkey,t_2}'::regclass[]) r;

-- a first load goes straight into the new file; the index is built anew
SELECT method, rows, rows_before, inserted, deleted, changed FROM replace_partition('t', '2024-01-01', $$SELECT $1 AS d, i AS id, 'v' || i AS v FROM generate_series(1, 5) i$$);
SELECT r, is_new_file(r) FROM unnest('{t_1,t_1_pkey,t_2}'::regclass[]) r;
SELECT * FROM t ORDER BY d, id;
-- changed rows
SELECT method, rows, rows_before, inserted, deleted, changed FROM replace_partition('t', '2024-01-01', $$SELECT $1 AS d, i AS id, 'w' || i AS v FROM generate_series(4, 6) i$$);
SELECT r, is_new_file(r) FROM unnest('{t_1,t_1_pkey,t_2}'::regclass[]) r;
SELECT * FROM t ORDER BY d, id;
-- a retry writes nothing, also where a swap is asked for by name
SELECT method, inserted, deleted, changed FROM replace_partition('t', '2024-01-01', $$SELECT $1 AS d, i AS id, 'w' || i AS v FROM generate_series(6, 4, -1) i$$);
SELECT method, inserted, deleted, changed FROM replace_partition('t', '2024-01-01', 'SELECT * FROM t WHERE d = $1', method => 'swap');
SELECT r, is_new_file(r) FROM unnest('{t_1,t_1_pkey,t_2}'::regclass[]) r;
SELECT method, rows, rows_before, inserted, deleted, fingerprint ~ '^1:3:' AS three FROM load_history WHERE target = 't'::regclass ORDER BY id;

-- no rows: an error, the old rows, none
SELECT replace_partition('t', '2024-01-01', 'SELECT * FROM t WHERE false', method => 'swap');
SELECT method, rows, inserted, deleted FROM replace_partition('t', '2024-01-01', 'SELECT * FROM t WHERE false', method => 'swap', on_empty => 'keep');
SELECT count(*), is_new_file('t_1') FROM t_1;
SELECT method, rows, inserted, deleted FROM replace_partition('t', '2024-01-01', 'SELECT * FROM t WHERE false', method => 'swap', on_empty => 'replace');
SELECT count(*), is_new_file('t_1') FROM t_1;
-- into a day without rows, none
SELECT method, rows, inserted, deleted FROM replace_partition('t', '2024-01-01', 'SELECT * FROM t WHERE false', method => 'swap');
SELECT is_new_file('t_1');

-- nothing of a load is left but the leaf's own file
SELECT count(*) FROM pg_class WHERE relname ~ '^pg_temp_\d+$';

-- the audit sees staged rows before a swap, also of a first load
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d, 1 AS id', method => 'swap', audit => 'SELECT count(*) > 1 FROM staged');
SELECT method FROM replace_partition('t', '2024-01-01', 'SELECT $1 AS d, i AS id FROM generate_series(1, 2) i', method => 'swap', audit => 'SELECT (SELECT count(*) FROM staged) = 2 AND NOT EXISTS (SELECT FROM live)');
SELECT method FROM replace_partition('t', '2024-01-01', 'SELECT $1 AS d, i AS id FROM generate_series(1, 3) i', method => 'swap', audit => 'SELECT (SELECT count(*) FROM staged) = 3 AND (SELECT count(*) FROM live) = 2');

-- savepoints: rows and files come back
SELECT is_new_file(r) FROM unnest('{t_1,t_1_pkey}'::regclass[]) r;
BEGIN;
SAVEPOINT s;
SELECT method FROM replace_partition('t', '2024-01-01', $$SELECT $1 AS d, 1 AS id, 'undone' AS v$$, method => 'swap');
SELECT * FROM t_1;
ROLLBACK TO s;
SELECT count(*) FROM t_1;
SELECT is_new_file(r) FROM unnest('{t_1,t_1_pkey}'::regclass[]) r;
-- two swaps, and other changes between and after them
SELECT method, deleted FROM replace_partition('t', '2024-01-01', $$SELECT $1 AS d, 1 AS id, 'first' AS v$$, method => 'swap');
INSERT INTO t VALUES ('2024-01-01', 2, 'between');
UPDATE t SET v = v || ', updated' WHERE d = '2024-01-01';
SELECT * FROM t_1 ORDER BY id;
SELECT method, deleted FROM replace_partition('t', '2024-01-01', $$SELECT d, id + 10 AS id, v FROM t WHERE d = $1$$, method => 'swap');
DELETE FROM t WHERE id = 11;
INSERT INTO t VALUES ('2024-01-01', 13, 'after');
SELECT * FROM t WHERE d = '2024-01-01' ORDER BY id;
COMMIT;
SELECT * FROM t WHERE d = '2024-01-01' ORDER BY id;
BEGIN;
SELECT method FROM replace_partition('t', '2024-01-01', $$SELECT $1 AS d, 1 AS id, 'undone' AS v$$, method => 'swap');
SELECT method FROM replace_partition('t', '2024-01-02', $$SELECT $1 AS d, 1 AS id, 'undone' AS v$$, method => 'swap');
ROLLBACK;
SELECT * FROM t ORDER BY d, id;
-- plans and functions that were there before
PREPARE day AS SELECT v FROM t WHERE d = '2024-01-01' ORDER BY id;
EXECUTE day;
SELECT method FROM replace_partition('t', '2024-01-01', $$SELECT $1 AS d, 1 AS id, 'swapped' AS v$$, method => 'swap');
EXECUTE day;
DEALLOCATE day;
-- a leaf as the target
SELECT method, rows, deleted FROM replace_partition('t_1', '2024-01-01', $$SELECT $1 AS d, 2 AS id, 'by the leaf' AS v$$, method => 'swap');
SELECT tableoid::regclass, * FROM t ORDER BY d, id;
-- a slice of two days that are whole leaves
SELECT method, rows, deleted FROM replace_slice('t', '2024-01-01', '2024-01-03', $$SELECT date '2024-01-01' + i AS d, i AS id, 'both' AS v FROM generate_series(0, 1) i$$, method => 'swap');
SELECT tableoid::regclass, * FROM t ORDER BY d, id;

-- partitions that the load makes, at once and below one that is there
SELECT method, rows, inserted FROM replace_partition('t', '2024-01-03', $$SELECT $1 AS d, i AS id, 'made' AS v FROM generate_series(1, 2) i$$, method => 'swap');
SELECT method, rows, inserted FROM replace_partition('t', '2024-01-04', $$SELECT $1 AS d, i AS id, 'made' AS v FROM generate_series(1, 2) i$$);
SELECT method, rows, deleted FROM replace_slice('t', '2024-01-04', '2024-01-06', $$SELECT date '2024-01-04' + i AS d, i AS id, 'two' AS v FROM generate_series(0, 1) i$$, method => 'swap');
SELECT tableoid::regclass, * FROM t WHERE d > '2024-01-02' ORDER BY d, id;
SELECT replace_partition('t', '2024-01-09', 'SELECT $1 AS d, 1 AS id', method => 'swap', create_partition => false);

-- values out of line: the toast table is the leaf's own, and named so
CREATE TABLE large (d date, id int, v text) PARTITION BY RANGE (d);
CREATE TABLE large_1 PARTITION OF large FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
ALTER TABLE large_1 ALTER v SET STORAGE EXTERNAL;
SELECT method, inserted FROM replace_partition('large', '2024-01-01', $$SELECT $1 AS d, i AS id, repeat(md5(i::text), 1000) AS v FROM generate_series(1, 3) i$$);
SELECT method, inserted, deleted FROM replace_partition('large', '2024-01-01', $$SELECT d, id, v || '!' AS v FROM large WHERE d = $1$$, method => 'swap');
SELECT id, length(v), v = repeat(md5(id::text), 1000) || '!' AS same FROM large ORDER BY id;
SELECT replace(c.relname, 'large_1'::regclass::oid::text, 'OID') AS toast, replace(i.relname, 'large_1'::regclass::oid::text, 'OID') AS index, pg_relation_size(c.oid) >= 96000 AS filled
FROM pg_class r JOIN pg_class c ON c.oid = r.reltoastrelid JOIN pg_index x ON x.indrelid = c.oid JOIN pg_class i ON i.oid = x.indexrelid
WHERE r.oid = 'large_1'::regclass;
-- it can be emptied and filled again
SELECT method, inserted, deleted FROM replace_partition('large', '2024-01-01', 'SELECT * FROM large WHERE false', on_empty => 'replace', method => 'swap');
SELECT pg_table_size(reltoastrelid) FROM pg_class WHERE oid = 'large_1'::regclass;
SELECT method FROM replace_partition('large', '2024-01-01', $$SELECT $1 AS d, 1 AS id, repeat('x', 5000) AS v$$, method => 'swap');
UPDATE large SET v = v || 'y';
SELECT length(v) FROM large;
DROP TABLE large;

-- leaves, indexes and toast tables in other tablespaces
CREATE TABLE placed (d date, id int, v text) PARTITION BY RANGE (d);
CREATE TABLE placed_1 PARTITION OF placed FOR VALUES FROM ('2024-01-01') TO ('2024-01-02') TABLESPACE regress_iload_swap;
CREATE INDEX placed_1_id ON placed_1 (id);
CREATE INDEX placed_1_v ON placed_1 (v) TABLESPACE regress_iload_swap;
INSERT INTO placed VALUES ('2024-01-01', 1, 'old');
-- where new tables would go does not matter
SET default_tablespace = regress_iload_swap;
SELECT method FROM replace_partition('placed', '2024-01-01', $$SELECT $1 AS d, 2 AS id, 'new' AS v$$, method => 'swap');
RESET default_tablespace;
SELECT c.relkind, coalesce(s.spcname, 'the database''s') AS tablespace, pg_relation_filepath(c.oid) ~ '^pg_tblspc' AS elsewhere
FROM pg_class c LEFT JOIN pg_tablespace s ON s.oid = c.reltablespace
WHERE c.oid IN ('placed_1'::regclass, 'placed_1_id'::regclass, 'placed_1_v'::regclass) OR c.oid = (SELECT reltoastrelid FROM pg_class WHERE oid = 'placed_1'::regclass)
ORDER BY c.relkind, 2;
SELECT * FROM placed;
DROP TABLE placed;

-- unlogged and logged leaves of one day
CREATE TABLE mixed (d date, id int) PARTITION BY RANGE (d);
CREATE TABLE mixed_day PARTITION OF mixed FOR VALUES FROM ('2024-01-01') TO ('2024-01-02') PARTITION BY LIST (id);
CREATE UNLOGGED TABLE mixed_1 PARTITION OF mixed_day FOR VALUES IN (1);
CREATE TABLE mixed_2 PARTITION OF mixed_day FOR VALUES IN (2);
CREATE INDEX ON mixed (id);
SELECT method FROM replace_partition('mixed', '2024-01-01', 'SELECT $1 AS d, id FROM generate_series(1, 2) id');
SELECT relname, relpersistence FROM pg_class WHERE relname ~ '^mixed_\d' ORDER BY 1;
SELECT tableoid::regclass, id FROM mixed ORDER BY id;
DROP TABLE mixed;

-- leaves that number the columns each in its own way, none of which is the table's
CREATE TABLE own (gone int, d date, id int, v text) PARTITION BY RANGE (d);
ALTER TABLE own DROP gone;
CREATE TABLE own_day PARTITION OF own FOR VALUES FROM ('2024-01-01') TO ('2024-01-02') PARTITION BY LIST (id);
CREATE TABLE own_1 (v text, gone text, id int, d date);
ALTER TABLE own_1 DROP gone;
CREATE TABLE own_2 (id int, d date, v text);
ALTER TABLE own_day ATTACH PARTITION own_1 FOR VALUES IN (1);
ALTER TABLE own_day ATTACH PARTITION own_2 FOR VALUES IN (2);
SELECT method FROM replace_partition('own', '2024-01-01', $$SELECT $1 AS d, id, 'v' || id AS v FROM generate_series(1, 2) id$$, method => 'swap');
SELECT tableoid::regclass, * FROM own ORDER BY id;
SELECT method FROM replace_partition('own', '2024-01-01', $$SELECT $1 AS d, id, 'w' || id AS v FROM generate_series(1, 2) id$$, method => 'swap');
SELECT tableoid::regclass, * FROM own ORDER BY id;
-- no partition takes it
SELECT replace_partition('own', '2024-01-01', 'SELECT $1 AS d, 3 AS id', method => 'swap');
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) FROM own;
DROP TABLE own;

-- rows that INSERT would not take: the error is its own, and the old rows stay.  Into
-- new files at once, and by way of the stage
CREATE DOMAIN even AS int CHECK (VALUE % 2 = 0);
CREATE TABLE strict (d date, id int NOT NULL, e even, n int CHECK (n > 0), s text, g int GENERATED ALWAYS AS (n * 2) STORED CHECK (g < 100)) PARTITION BY RANGE (d);
CREATE TABLE strict_day PARTITION OF strict FOR VALUES FROM ('2024-01-01') TO ('2024-01-02') PARTITION BY LIST (s);
CREATE TABLE strict_1 PARTITION OF strict_day (CONSTRAINT short CHECK (length(s) < 3)) FOR VALUES IN ('a', 'aaa');
CREATE UNIQUE INDEX strict_key ON strict_1 (id);
CREATE FUNCTION refused(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	message text;
BEGIN
	PERFORM replace_partition('strict', '2024-01-01', query, method => 'swap');
	RETURN 'loaded';
EXCEPTION WHEN others THEN
	GET STACKED DIAGNOSTICS message = PG_EXCEPTION_DETAIL;
	RETURN SQLSTATE || ' ' || SQLERRM || ': ' || message;
END
$$;
CREATE TABLE mistakes (i int, query text);
INSERT INTO mistakes VALUES
(1, $$SELECT $1 AS d, NULL::int AS id, 2 AS e, 1 AS n, 'a' AS s$$),
(2, $$SELECT $1 AS d, 1 AS id, 3 AS e, 1 AS n, 'a' AS s$$),
(3, $$SELECT $1 AS d, 1 AS id, 2 AS e, 0 AS n, 'a' AS s$$),
(4, $$SELECT $1 AS d, 1 AS id, 2 AS e, 1 AS n, 'aaa' AS s$$),
(5, $$SELECT $1 AS d, 1 AS id, 2 AS e, 1 AS n, 'b' AS s$$),
(6, $$SELECT $1 AS d, 1 AS id, 2 AS e, 50 AS n, 'a' AS s$$),
(7, $$SELECT $1 AS d, 1 AS id, 2 AS e, 1 AS n, 'a' AS s FROM generate_series(1, 2)$$);
SELECT i, refused(query) FROM mistakes ORDER BY i;
INSERT INTO strict VALUES ('2024-01-01', 1, 2, 3, 'a');
SELECT i, refused(query) FROM mistakes ORDER BY i;
SELECT * FROM strict;
SELECT method, rows FROM replace_partition('strict', '2024-01-01', $$SELECT $1 AS d, 1 AS id, 2 AS e, 49 AS n, 'a' AS s$$, method => 'swap');
SELECT * FROM strict;
-- the leaf as the target: rows of another leaf
SELECT replace_partition('strict_1', '2024-01-01', $$SELECT $1 AS d, 1 AS id, 2 AS e, 1 AS n, 'b' AS s$$, method => 'swap');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM strict;
DROP TABLE strict;
-- an exclusion constraint
CREATE TABLE bookings (d date, during int4range) PARTITION BY RANGE (d);
CREATE TABLE bookings_1 PARTITION OF bookings FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
ALTER TABLE bookings_1 ADD EXCLUDE USING gist (during WITH &&);
SELECT method, rows FROM replace_partition('bookings', '2024-01-01', 'SELECT $1 AS d, int4range(i, i + 10) AS during FROM generate_series(0, 20, 10) i', method => 'swap');
\set VERBOSITY terse
SELECT replace_partition('bookings', '2024-01-01', 'SELECT $1 AS d, int4range(i, i + 10) AS during FROM generate_series(0, 20, 5) i', method => 'swap');
\set VERBOSITY default
SELECT during FROM bookings ORDER BY during;
DROP TABLE bookings;

-- an index that a failed CREATE INDEX CONCURRENTLY has left, which INSERT does not
-- heed, does not stand in the way of rows that are there twice
CREATE TABLE dubious (d date, id int) PARTITION BY RANGE (d);
CREATE TABLE dubious_1 PARTITION OF dubious FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
INSERT INTO dubious VALUES ('2024-01-01', 1), ('2024-01-01', 1);
\set VERBOSITY terse
CREATE UNIQUE INDEX CONCURRENTLY dubious_key ON dubious_1 (id);
\set VERBOSITY default
SELECT rows, rows_before FROM replace_partition('dubious', '2024-01-01', 'SELECT $1 AS d, 2 AS id FROM generate_series(1, 2)');
SELECT * FROM dubious;
DROP TABLE dubious;

-- who may only read, insert and delete loads by swap too; all stays the owner's
CREATE TABLE rights (d date, id int, v text, PRIMARY KEY (d, id)) PARTITION BY RANGE (d);
CREATE TABLE rights_1 PARTITION OF rights FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
GRANT SELECT, INSERT, DELETE ON rights TO regress_iload_swap;
SET ROLE regress_iload_swap;
SELECT method, rows FROM replace_partition('rights', '2024-01-01', $$SELECT $1 AS d, i AS id, repeat('x', 10) AS v FROM generate_series(1, 200) i$$);
SELECT method, rows, deleted FROM replace_partition('rights', '2024-01-01', $$SELECT $1 AS d, i AS id, repeat('y', 10) AS v FROM generate_series(1, 200) i$$, method => 'swap');
SELECT count(*) FROM rights_1;
SELECT count(*) FROM rights;
RESET ROLE;
SELECT count(*) FROM pg_class WHERE relowner = 'regress_iload_swap'::regrole;
-- functions of the owner's index would run as the owner: it is not swapped then, and they
-- run as the caller, as those of the query
CREATE FUNCTION whose(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF $1 = 1 THEN
		RAISE NOTICE 'as the %', CASE current_user WHEN 'regress_iload_swap' THEN 'caller' ELSE 'owner' END;
	END IF;
	RETURN $1;
END
$$;
CREATE INDEX ON rights_1 (whose(id));
SET idempotent_load.auto_analyze = off;
SET ROLE regress_iload_swap;
SELECT replace_partition('rights', '2024-01-01', $$SELECT $1 AS d, whose(id) AS id FROM generate_series(1, 1) id$$, method => 'swap');
SELECT method, rows FROM replace_partition('rights', '2024-01-01', $$SELECT $1 AS d, whose(id) AS id FROM generate_series(1, 1) id$$);
RESET ROLE;
RESET idempotent_load.auto_analyze;
DROP TABLE rights;

-- a function of the query writes to the slice that was empty before: its rows are
-- replaced too, whatever the method is then
CREATE TABLE busy (d date, id int, v text) PARTITION BY RANGE (d);
CREATE TABLE busy_1 PARTITION OF busy FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
CREATE FUNCTION write_too(text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO busy VALUES ('2024-01-01', 100, 'of the function');
	RETURN $1;
END
$$;
SELECT method, rows, rows_before, inserted, deleted FROM replace_partition('busy', '2024-01-01', $$SELECT $1 AS d, i AS id, CASE i WHEN 1 THEN write_too('v') ELSE 'v' END AS v FROM generate_series(1, 4) i$$, method => 'swap');
SELECT * FROM busy ORDER BY id;
TRUNCATE busy;
SELECT method, rows, rows_before, inserted, deleted FROM replace_partition('busy', '2024-01-01', $$SELECT $1 AS d, i AS id, CASE i WHEN 1 THEN write_too('v') ELSE 'v' END AS v FROM generate_series(1, 4) i$$);
SELECT * FROM busy ORDER BY id;
-- with ignored columns it is a diff by then
TRUNCATE busy;
SELECT method, rows, rows_before, inserted, deleted FROM replace_partition('busy', '2024-01-01', $$SELECT $1 AS d, i AS id, CASE i WHEN 1 THEN write_too('v') ELSE 'v' END AS v FROM generate_series(1, 4) i$$, ignore_columns => '{v}');
SELECT * FROM busy ORDER BY id;
TRUNCATE busy;
SELECT replace_partition('busy', '2024-01-01', $$SELECT $1 AS d, i AS id, CASE i WHEN 1 THEN write_too('v') ELSE 'v' END AS v FROM generate_series(1, 4) i$$, ignore_columns => '{v}', method => 'swap');
SELECT * FROM busy ORDER BY id;
-- the function publishes the leaf, so that it must be written row by row after all
CREATE FUNCTION forbid(text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO busy VALUES ('2024-01-01', 100, 'of the function');
	CREATE PUBLICATION iload_swap FOR TABLE busy_1 WITH (publish = 'insert');
	RETURN $1;
END
$$;
SET client_min_messages = error;
SELECT method <> 'swap' AS row_by_row, rows, rows_before, inserted, deleted FROM replace_partition('busy', '2024-01-01', $$SELECT $1 AS d, i AS id, CASE i WHEN 1 THEN forbid('v') ELSE 'v' END AS v FROM generate_series(1, 4) i$$);
RESET client_min_messages;
SELECT * FROM busy ORDER BY id;
DROP PUBLICATION iload_swap;
DROP TABLE busy;

--
-- auto: which method
--
CREATE TABLE auto (d date, id int, v text) PARTITION BY RANGE (d);
CREATE TABLE auto_1 PARTITION OF auto FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
-- Give the first n of 100 rows another value; 2n of the 200 rows of both sides differ.
CREATE FUNCTION change(n int) RETURNS text LANGUAGE sql AS $$
SELECT method FROM replace_partition('auto', '2024-01-01', format('SELECT $1 AS d, i AS id, CASE WHEN i <= %s THEN ''changed'' END AS v FROM generate_series(1, 100) i', n))
$$;
CREATE FUNCTION start() RETURNS text LANGUAGE sql AS $$
SELECT method FROM replace_partition('auto', '2024-01-01', 'SELECT $1 AS d, i AS id FROM generate_series(1, 100) i')
$$;
SELECT start();
-- a share of 0.1 by default
SELECT change(9), start(), change(11), start();
SET idempotent_load.swap_threshold = 0.5;
SELECT change(49), start(), change(51), start();
-- below that of swap and above that of delete
SET idempotent_load.delete_threshold = 0.2;
SELECT change(19), start(), change(21), start(), change(51), start();
SET idempotent_load.swap_threshold = 0;
SET idempotent_load.delete_threshold = 0;
SELECT change(1), start();
-- what cannot be swapped is deleted and inserted where most has changed; where one
-- side has no rows, there is nothing to compare
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER see AFTER INSERT ON auto FOR EACH STATEMENT EXECUTE FUNCTION nothing();
SET idempotent_load.delete_threshold = 0.2;
SELECT change(19), start(), change(21);
SELECT method FROM replace_partition('auto', '2024-01-01', 'SELECT * FROM auto WHERE false', on_empty => 'replace');
SELECT start();
DROP TRIGGER see ON auto;
-- ignored columns take diff
SELECT method FROM replace_partition('auto', '2024-01-01', 'SELECT $1 AS d, i + 50 AS id FROM generate_series(1, 100) i', ignore_columns => '{v}');
SELECT method FROM replace_partition('auto', '2024-01-01', 'SELECT $1 AS d, i AS id FROM generate_series(1, 100) i');
SET idempotent_load.swap_threshold = 0;
RESET idempotent_load.delete_threshold;
-- a small slice is not swapped, nor deleted: 100 rows take less than 8 kB, and so does
-- the file that they are in; the larger one of the two counts
SET idempotent_load.swap_min_size = '8kB';
SELECT change(100), start();
SET idempotent_load.swap_min_size = '9kB';
SELECT change(100);
-- (swapped by name, for a file without dead rows)
SELECT method FROM replace_partition('auto', '2024-01-01', 'SELECT $1 AS d, i AS id FROM generate_series(1, 100) i', method => 'swap');
SET idempotent_load.delete_threshold = 0;
SELECT change(100);
RESET idempotent_load.delete_threshold;
SELECT method FROM replace_partition('auto', '2024-01-01', 'SELECT $1 AS d, i AS id FROM generate_series(1, 100) i', method => 'swap');
SELECT method FROM replace_partition('auto', '2024-01-01', $$SELECT $1 AS d, i AS id, repeat('x', 100) AS v FROM generate_series(1, 100) i$$);
SELECT start();
-- by name it is, whatever the size
SELECT method FROM replace_partition('auto', '2024-01-01', 'SELECT $1 AS d, 1 AS id', method => 'swap');
-- into an empty slice, what the planner expects decides, and then what has come
SELECT method FROM replace_partition('auto', '2024-01-01', 'SELECT * FROM auto WHERE false', on_empty => 'replace', method => 'delete');
TRUNCATE auto;
SELECT method FROM replace_partition('auto', '2024-01-01', 'SELECT $1 AS d, i AS id FROM generate_series(1, 100) i');
TRUNCATE auto;
SELECT method FROM replace_partition('auto', '2024-01-01', $$SELECT $1 AS d, i AS id, repeat('x', 100) AS v FROM generate_series(1, 100) i$$);
SELECT count(*), sum(id) FROM auto;
-- by default a tenth, and 128 kB besides, and a little for the shared buffers
RESET idempotent_load.swap_min_size;
RESET idempotent_load.swap_threshold;
SHOW idempotent_load.swap_min_size;
TRUNCATE auto;
SELECT method FROM replace_partition('auto', '2024-01-01', $$SELECT $1 AS d, i AS id, repeat('x', 1000) AS v FROM generate_series(1, 100) i$$);
SELECT method FROM replace_partition('auto', '2024-01-01', $$SELECT $1 AS d, i AS id, repeat('y', 1000) AS v FROM generate_series(1, 1500) i$$);
SELECT count(*), sum(id) FROM auto WHERE v = repeat('y', 1000);

-- few rows for many, and more changes than work_mem has room to count, are much
INSERT INTO auto SELECT '2024-01-01', i FROM generate_series(1, 100000) i;
SELECT method, deleted FROM replace_partition('auto', '2024-01-01', 'SELECT $1 AS d, -i AS id FROM generate_series(1, 4000) i');
SET work_mem = '64kB';
INSERT INTO auto SELECT '2024-01-01', i FROM generate_series(1, 100000) i;
SELECT method, inserted FROM replace_partition('auto', '2024-01-01', 'SELECT $1 AS d, -i AS id FROM generate_series(1, 100000) i');
RESET work_mem;

-- straight into the new file from a query that runs in parallel: a constraint may call
-- what cannot run in parallel
CREATE TABLE source AS SELECT i AS id FROM generate_series(1, 10000) i;
ANALYZE source;
CREATE TABLE strict (d date, id int) PARTITION BY RANGE (d);
CREATE TABLE strict_1 PARTITION OF strict FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
CREATE FUNCTION is_right(int) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN PERFORM 1; RETURN $1 > 0; EXCEPTION WHEN division_by_zero THEN RETURN false; END';
ALTER TABLE strict ADD CHECK (is_right(id));
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET idempotent_load.swap_min_size = 0;
SELECT method, inserted FROM replace_partition('strict', '2024-01-01', 'SELECT $1 AS d, id FROM source');
SELECT count(*), sum(id) FROM strict;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

SET client_min_messages = warning;
DROP SCHEMA iload_swap CASCADE;
DROP TABLESPACE regress_iload_swap;
DROP ROLE regress_iload_swap;
