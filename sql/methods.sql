--
-- methods: diff and delete, with all that hangs on a table
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotent_load;
CREATE SCHEMA iload_methods;
RESET client_min_messages;
SET search_path = iload_methods, public;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
\set SHOW_CONTEXT never

CREATE TABLE t (d date, id int, v text);
INSERT INTO t SELECT '2024-01-01', i, 'v' || i FROM generate_series(1, 4) i;
INSERT INTO t VALUES ('2024-01-02', 1, 'other');

-- asked for by name
SELECT m AS method_wanted, r.method, r.rows, r.rows_before, r.inserted, r.deleted
FROM unnest('{diff,delete,auto}'::text[]) WITH ORDINALITY AS u(m, i),
     LATERAL replace_partition('t', '2024-01-01', format('SELECT $1 AS d, i AS id, ''v'' || i AS v FROM generate_series(%s, %s) i', 1 + i, 4 + i), method => m) AS r
ORDER BY i;
SELECT * FROM t ORDER BY d, id;
-- none of them does anything where nothing differs, in whatever order it comes
SELECT m AS method_wanted, r.method, r.rows, r.inserted, r.deleted, r.changed
FROM unnest('{diff,delete,auto}'::text[]) AS m,
     LATERAL replace_partition('t', '2024-01-01', 'SELECT * FROM t WHERE d = $1 ORDER BY id DESC', method => m) AS r;
-- delete writes all rows, diff those that differ
CREATE TABLE places AS SELECT ctid AS place, id FROM t;
SELECT method, inserted, deleted FROM replace_partition('t', '2024-01-01', $$SELECT d, id, replace(v, 'v7', 'new') AS v FROM t WHERE d = $1$$, method => 'diff');
SELECT t.id, v, place IS NOT NULL AS stays FROM t LEFT JOIN places p ON p.id = t.id AND p.place = t.ctid WHERE d = '2024-01-01' ORDER BY t.id;
SELECT method, inserted, deleted FROM replace_partition('t', '2024-01-01', $$SELECT d, id, replace(v, 'new', 'v7') AS v FROM t WHERE d = $1$$, method => 'delete');
SELECT count(place) AS stay, count(*) FROM t LEFT JOIN places p ON p.id = t.id AND p.place = t.ctid WHERE d = '2024-01-01';

-- many rows, a few of which change; more than fits the memory that there is
CREATE TABLE big (d date, id int, v text) PARTITION BY RANGE (d);
CREATE TABLE big_202401 PARTITION OF big FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
SET work_mem = '64kB';
SELECT method, rows, inserted, deleted FROM replace_partition('big', '2024-01-01', $$SELECT $1 AS d, i AS id, md5(i::text) AS v FROM generate_series(1, 5000) i$$);
SELECT method, rows, inserted, deleted FROM replace_partition('big', '2024-01-02', $$SELECT $1 AS d, i AS id, md5(i::text) AS v FROM generate_series(1, 5000) i$$, method => 'delete');
SELECT method, rows, inserted, deleted FROM replace_partition('big', '2024-01-01', $$SELECT $1 AS d, i AS id, md5(i::text) AS v FROM generate_series(5000, 1, -1) i$$);
SELECT method, rows, inserted, deleted FROM replace_partition('big', '2024-01-01', $$SELECT $1 AS d, i AS id, md5((i + (i % 1000 = 0)::int)::text) AS v FROM generate_series(11, 5020) i$$);
SELECT d, count(*), count(DISTINCT id), sum(id) FROM big GROUP BY d ORDER BY d;
SELECT count(*) FROM big WHERE v <> md5(id::text);
SELECT method, rows, inserted, deleted FROM replace_partition('big', '2024-01-01', $$SELECT $1 AS d, i AS id, md5(i::text) AS v FROM generate_series(1, 5000) i$$, method => 'delete');
RESET work_mem;
SELECT count(*), sum(id) FROM big WHERE d = '2024-01-01' AND v = md5(id::text);
DROP TABLE big;

-- equal rows are counted: three become two, two become three
CREATE TABLE bag (d date, v text);
SELECT method, rows, inserted, deleted FROM replace_partition('bag', '2024-01-01', $$SELECT $1 AS d, 'a' AS v FROM generate_series(1, 3)$$);
SELECT method, rows, inserted, deleted FROM replace_partition('bag', '2024-01-01', $$SELECT $1 AS d, 'a' AS v FROM generate_series(1, 2)$$);
SELECT method, rows, inserted, deleted FROM replace_partition('bag', '2024-01-01', $$SELECT $1 AS d, v FROM unnest('{a,b,b,a,a}'::text[]) v$$);
SELECT method, rows, inserted, deleted FROM replace_partition('bag', '2024-01-01', $$SELECT $1 AS d, v FROM unnest('{b,NULL,b,NULL,a}'::text[]) v$$);
SELECT method, rows, inserted, deleted FROM replace_partition('bag', '2024-01-01', $$SELECT $1 AS d, v FROM unnest('{NULL,a,b,b,NULL}'::text[]) v$$);
SELECT v, count(*) FROM bag GROUP BY v ORDER BY v;

-- values that are equal to the eye of SQL and are not the same
CREATE TABLE nums (d date, n numeric, f float8, b char(3));
SELECT method, inserted FROM replace_partition('nums', '2024-01-01', $$SELECT $1 AS d, 1.0 AS n, 0 AS f$$);
SELECT method, inserted, deleted FROM replace_partition('nums', '2024-01-01', $$SELECT $1 AS d, 1.00 AS n, 0 AS f$$);
SELECT method, inserted, deleted FROM replace_partition('nums', '2024-01-01', $$SELECT $1 AS d, 1.00 AS n, '-0' AS f$$);
SELECT method, inserted, deleted FROM replace_partition('nums', '2024-01-01', $$SELECT $1 AS d, 'NaN' AS n, '-NaN' AS f$$);
SELECT method, inserted, deleted FROM replace_partition('nums', '2024-01-01', $$SELECT $1 AS d, 'NaN' AS n, 'Infinity'::float8 - 'Infinity'::float8 AS f$$);

-- columns that do not count: a row that differs only there keeps what it has
CREATE TABLE stamped (d date, id int, v text, loaded_at timestamp, loaded_by text);
SELECT method, inserted FROM replace_partition('stamped', '2024-01-01', $$SELECT $1 AS d, i AS id, 'v' AS v, timestamp '2024-01-02 03:00' AS loaded_at, 'first' AS loaded_by FROM generate_series(1, 3) i$$,
	date_column => 'd', ignore_columns => '{loaded_at,loaded_by}');
SELECT method, inserted, deleted FROM replace_partition('stamped', '2024-01-01', $$SELECT $1 AS d, i AS id, 'v' AS v, timestamp '2024-01-02 04:00' AS loaded_at, 'second' AS loaded_by FROM generate_series(1, 3) i$$,
	date_column => 'd', ignore_columns => '{loaded_at,loaded_by}');
SELECT method, inserted, deleted FROM replace_partition('stamped', '2024-01-01', $$SELECT $1 AS d, i AS id, CASE i WHEN 2 THEN 'w' ELSE 'v' END AS v, timestamp '2024-01-02 05:00' AS loaded_at, 'third' AS loaded_by FROM generate_series(1, 4) i$$,
	date_column => 'd', ignore_columns => '{loaded_at,loaded_by}');
SELECT id, v, loaded_at, loaded_by FROM stamped ORDER BY id;
SELECT method, inserted, deleted FROM replace_partition('stamped', '2024-01-01', $$SELECT $1 AS d, i AS id, 'v' AS v, timestamp '2024-01-02 06:00' AS loaded_at, 'fourth' AS loaded_by FROM generate_series(1, 4) i$$,
	date_column => 'd', ignore_columns => '{loaded_at,loaded_by}', method => 'delete');
SELECT id, v, loaded_at, loaded_by FROM stamped ORDER BY id;
-- the key may be ignored too, and all else
SELECT method, inserted, deleted FROM replace_partition('stamped', '2024-01-01', $$SELECT $1 AS d FROM generate_series(1, 4) i$$,
	date_column => 'd', ignore_columns => '{d,id,v,loaded_at,loaded_by}');

-- triggers see all that is written, and may change it
CREATE TABLE seen (i int GENERATED ALWAYS AS IDENTITY, what text);
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	n bigint;
	o bigint;
BEGIN
	IF tg_level = 'STATEMENT' AND tg_when = 'AFTER' THEN
		IF tg_op = 'INSERT' THEN
			SELECT count(*) INTO n FROM new_rows;
		ELSE
			SELECT count(*) INTO o FROM old_rows;
		END IF;
	END IF;
	INSERT INTO seen (what) VALUES (concat_ws(' ', tg_when, tg_op, tg_level, coalesce(new.v, old.v), n || ' new', o || ' old'));
	RETURN coalesce(new, old);
END
$$;
CREATE TABLE trig (d date, v text) PARTITION BY RANGE (d);
CREATE TABLE trig_202401 PARTITION OF trig FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
INSERT INTO trig VALUES ('2024-01-01', 'a'), ('2024-01-01', 'b'), ('2024-01-02', 'z');
CREATE TRIGGER b_row BEFORE INSERT OR DELETE ON trig FOR EACH ROW EXECUTE FUNCTION see();
CREATE TRIGGER a_row AFTER INSERT OR DELETE ON trig FOR EACH ROW EXECUTE FUNCTION see();
CREATE TRIGGER b_stmt BEFORE INSERT OR DELETE ON trig FOR EACH STATEMENT EXECUTE FUNCTION see();
CREATE TRIGGER a_insert AFTER INSERT ON trig REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION see();
CREATE TRIGGER a_delete AFTER DELETE ON trig REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION see();
SELECT method, inserted, deleted FROM replace_partition('trig', '2024-01-01', $$SELECT $1 AS d, v FROM unnest('{b,c,d}'::text[]) v$$);
SELECT what FROM seen ORDER BY i;
TRUNCATE seen;
SELECT method, inserted, deleted FROM replace_partition('trig', '2024-01-01', $$SELECT $1 AS d, v FROM unnest('{c,d}'::text[]) v$$, method => 'delete');
SELECT what FROM seen ORDER BY i;
TRUNCATE seen;
SELECT method, inserted, deleted FROM replace_partition('trig', '2024-01-01', $$SELECT $1 AS d, v FROM unnest('{d,c}'::text[]) v$$);
SELECT what FROM seen ORDER BY i;
SELECT * FROM trig ORDER BY d, v;

-- a trigger that refuses a row, and one that changes values: counts are of what
-- was written, and the table holds what the trigger made
CREATE TABLE upper_case (d date, v text);
CREATE FUNCTION make_upper() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF new.v = 'skip' THEN
		RETURN NULL;
	END IF;
	new.v := upper(new.v);
	RETURN new;
END
$$;
CREATE TRIGGER make_upper BEFORE INSERT ON upper_case FOR EACH ROW EXECUTE FUNCTION make_upper();
SELECT method, rows, inserted, deleted FROM replace_partition('upper_case', '2024-01-01', $$SELECT $1 AS d, v FROM unnest('{a,B,skip}'::text[]) v$$);
SELECT method, rows, rows_before, inserted, deleted FROM replace_partition('upper_case', '2024-01-01', $$SELECT $1 AS d, v FROM unnest('{a,B}'::text[]) v$$);
SELECT * FROM upper_case ORDER BY v;

-- rules
CREATE TABLE ruled (d date, v text);
CREATE TABLE ruled_log (v text);
CREATE RULE log_insert AS ON INSERT TO ruled DO ALSO INSERT INTO ruled_log VALUES (new.v);
SELECT method, rows, inserted, deleted FROM replace_partition('ruled', '2024-01-01', $$SELECT $1 AS d, v FROM unnest('{a,b}'::text[]) v$$);
SELECT * FROM ruled ORDER BY v;
SELECT * FROM ruled_log ORDER BY v;

-- rows that cannot be deleted, by a rule or by a trigger: beside the new rows
-- they would make the slice something that nobody asked for
CREATE TABLE kept (d date, v text);
INSERT INTO kept VALUES ('2024-01-01', 'a'), ('2024-01-01', 'b');
CREATE RULE keep AS ON DELETE TO kept DO INSTEAD NOTHING;
SELECT replace_partition('kept', '2024-01-01', $$SELECT $1 AS d, v FROM unnest('{b,c}'::text[]) v$$);
\echo :SQLSTATE
SELECT replace_partition('kept', '2024-01-01', $$SELECT $1 AS d, v FROM unnest('{b,c}'::text[]) v$$, method => 'delete');
\echo :SQLSTATE
SELECT replace_partition('kept', '2024-01-01', 'SELECT * FROM kept WHERE false', on_empty => 'replace');
\echo :SQLSTATE
SELECT * FROM kept ORDER BY d, v;
-- where there is nothing to delete, nothing is in the way
SELECT method, inserted, deleted FROM replace_partition('kept', '2024-01-01', $$SELECT $1 AS d, v FROM unnest('{a,b,c}'::text[]) v$$);
SELECT method, inserted, deleted FROM replace_partition('kept', '2024-01-02', $$SELECT $1 AS d, v FROM unnest('{a,b,c}'::text[]) v$$, method => 'delete');
-- a rule for some rows
DROP RULE keep ON kept;
CREATE RULE keep AS ON DELETE TO kept WHERE old.v = 'b' DO INSTEAD NOTHING;
SELECT replace_partition('kept', '2024-01-01', $$SELECT $1 AS d, 'x' AS v$$);
SELECT replace_partition('kept', '2024-01-01', $$SELECT $1 AS d, 'x' AS v$$, method => 'delete');
SELECT method, inserted, deleted FROM replace_partition('kept', '2024-01-01', $$SELECT $1 AS d, v FROM unnest('{b,x}'::text[]) v$$);
SELECT * FROM kept ORDER BY d, v;
SELECT count(*) FROM load_history WHERE target = 'kept'::regclass;
-- a trigger, on leaves that are the slice's alone and on one that is not
CREATE TABLE guarded (d date, v text) PARTITION BY RANGE (d);
CREATE TABLE guarded_20240101 PARTITION OF guarded FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
CREATE TABLE guarded_rest PARTITION OF guarded DEFAULT;
INSERT INTO guarded SELECT '2024-01-01'::date + i, v FROM generate_series(0, 1) i, unnest('{a,b}'::text[]) v;
CREATE FUNCTION guard() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN CASE WHEN old.v <> 'a' THEN old END; END$$;
CREATE TRIGGER guard BEFORE DELETE ON guarded FOR EACH ROW EXECUTE FUNCTION guard();
SELECT replace_partition('guarded', '2024-01-01', $$SELECT $1 AS d, v FROM unnest('{b,c}'::text[]) v$$, method => 'diff');
\echo :SQLSTATE
SELECT replace_partition('guarded', '2024-01-01', $$SELECT $1 AS d, v FROM unnest('{b,c}'::text[]) v$$, method => 'delete');
\echo :SQLSTATE
SELECT replace_partition('guarded', '2024-01-02', $$SELECT $1 AS d, v FROM unnest('{b,c}'::text[]) v$$, method => 'diff', create_partition => false);
\echo :SQLSTATE
SELECT replace_partition('guarded', '2024-01-02', $$SELECT $1 AS d, v FROM unnest('{b,c}'::text[]) v$$, method => 'delete', create_partition => false);
\echo :SQLSTATE
SELECT method, inserted, deleted FROM replace_partition('guarded', '2024-01-01', $$SELECT $1 AS d, v FROM unnest('{a,c}'::text[]) v$$);
SELECT * FROM guarded ORDER BY d, v;
SELECT count(*) FROM load_history WHERE target = 'guarded'::regclass;

-- a table with children by inheritance: its rows cannot be told by their place
CREATE TABLE parent (d date, v text);
CREATE TABLE child () INHERITS (parent);
INSERT INTO parent VALUES ('2024-01-01', 'p');
INSERT INTO child VALUES ('2024-01-01', 'c'), ('2024-01-02', 'd');
SELECT replace_partition('parent', '2024-01-01', $$SELECT $1 AS d, 'x' AS v$$, method => 'diff');
SELECT method, rows, rows_before, inserted, deleted FROM replace_partition('parent', '2024-01-01', $$SELECT $1 AS d, 'x' AS v$$);
SELECT method, rows FROM replace_partition('parent', '2024-01-01', $$SELECT $1 AS d, 'x' AS v$$);
SELECT tableoid::regclass, * FROM parent ORDER BY d;

-- foreign keys out of the table: a row without its parent is refused
CREATE TABLE customers (id int PRIMARY KEY);
INSERT INTO customers VALUES (1), (2), (3);
CREATE TABLE orders (d date, id int PRIMARY KEY, customer int REFERENCES customers);
SELECT method, inserted FROM replace_partition('orders', '2024-01-01', 'SELECT $1 AS d, i AS id, i AS customer FROM generate_series(1, 3) i');
SELECT replace_partition('orders', '2024-01-01', 'SELECT $1 AS d, i AS id, i AS customer FROM generate_series(1, 4) i');
SELECT replace_partition('orders', '2024-01-01', 'SELECT $1 AS d, i AS id, i AS customer FROM generate_series(1, 4) i', method => 'delete');
-- foreign keys to the table: rows that come again under their key may be
-- replaced, rows that are referred to may not go
CREATE TABLE lines (order_id int REFERENCES orders, n int);
INSERT INTO lines VALUES (1, 1), (1, 2), (2, 1);
SELECT method, inserted, deleted FROM replace_partition('orders', '2024-01-01', 'SELECT $1 AS d, i AS id, 4 - i AS customer FROM generate_series(1, 3) i');
SELECT method, inserted, deleted FROM replace_partition('orders', '2024-01-01', 'SELECT $1 AS d, i AS id, i AS customer FROM generate_series(1, 2) i', method => 'delete');
SELECT replace_partition('orders', '2024-01-01', 'SELECT $1 AS d, i AS id, i AS customer FROM generate_series(2, 3) i');
SELECT replace_partition('orders', '2024-01-01', 'SELECT $1 AS d, i AS id, i AS customer FROM generate_series(2, 3) i', method => 'delete');
SELECT * FROM orders ORDER BY id;
SELECT * FROM lines ORDER BY order_id, n;
DO $$
BEGIN
	PERFORM replace_partition('orders', '2024-01-01', 'SELECT $1 AS d, 1 AS id, 1 AS customer');
EXCEPTION WHEN foreign_key_violation THEN
	RAISE NOTICE '%', SQLSTATE;
END
$$;
-- a deferred one is judged at commit
CREATE TABLE notes (order_id int REFERENCES orders DEFERRABLE INITIALLY DEFERRED);
INSERT INTO notes VALUES (2);
DELETE FROM lines;
BEGIN;
SELECT method, inserted, deleted FROM replace_partition('orders', '2024-01-01', 'SELECT $1 AS d, 1 AS id, 1 AS customer');
DELETE FROM notes;
COMMIT;
SELECT * FROM orders ORDER BY id;
-- ON DELETE CASCADE takes the children of rows that go, as DELETE does; where a
-- row is only replaced under its key it would do the same, which is refused
CREATE TABLE cascaded (order_id int REFERENCES orders ON DELETE CASCADE, n int);
SELECT method FROM replace_partition('orders', '2024-01-01', 'SELECT $1 AS d, i AS id, i AS customer FROM generate_series(1, 3) i');
INSERT INTO cascaded SELECT i, i FROM generate_series(1, 3) i;
SELECT replace_partition('orders', '2024-01-01', 'SELECT $1 AS d, i AS id, CASE i WHEN 2 THEN 1 ELSE i END AS customer FROM generate_series(1, 3) i');
SELECT replace_partition('orders', '2024-01-01', 'SELECT $1 AS d, i AS id, i AS customer FROM generate_series(1, 2) i', method => 'delete');
SELECT order_id, n, o.customer FROM cascaded JOIN orders o ON o.id = order_id ORDER BY n;
SELECT method, inserted, deleted FROM replace_partition('orders', '2024-01-01', 'SELECT $1 AS d, i AS id, i AS customer FROM generate_series(1, 2) i');
SELECT order_id, n FROM cascaded ORDER BY n;
SELECT method, inserted, deleted FROM replace_partition('orders', '2024-01-01', 'SELECT $1 AS d, i AS id, i AS customer FROM generate_series(1, 3) i');
SELECT order_id, n FROM cascaded ORDER BY n;
-- the same goes for ON DELETE SET NULL and SET DEFAULT, and for a partitioned target
CREATE TABLE nulled (order_id int REFERENCES orders ON DELETE SET NULL);
DROP TABLE cascaded;
INSERT INTO nulled VALUES (3);
\set VERBOSITY terse
SELECT replace_partition('orders', '2024-01-01', 'SELECT $1 AS d, i AS id, 4 - i AS customer FROM generate_series(1, 3) i');
\set VERBOSITY default
SELECT * FROM nulled;
DROP TABLE nulled;
CREATE TABLE keyed (d date, id int, v text, PRIMARY KEY (d, id)) PARTITION BY RANGE (d);
CREATE TABLE keyed_20240101 PARTITION OF keyed FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
CREATE TABLE refers (d date, id int, FOREIGN KEY (d, id) REFERENCES keyed ON DELETE CASCADE);
SELECT method, inserted FROM replace_partition('keyed', '2024-01-01', $$SELECT $1 AS d, i AS id, 'v' AS v FROM generate_series(1, 3) i$$);
INSERT INTO refers VALUES ('2024-01-01', 1), ('2024-01-01', 3);
\set VERBOSITY terse
SELECT replace_partition('keyed', '2024-01-01', $$SELECT $1 AS d, i AS id, 'w' AS v FROM generate_series(1, 3) i$$);
\set VERBOSITY default
DO $$
BEGIN
	PERFORM replace_partition('keyed_20240101', '2024-01-01', 'SELECT $1 AS d, i AS id FROM generate_series(1, 3) i');
EXCEPTION WHEN feature_not_supported THEN
	RAISE NOTICE '%', SQLSTATE;
END
$$;
SELECT method, inserted, deleted FROM replace_partition('keyed', '2024-01-01', $$SELECT $1 AS d, i AS id, 'v' AS v FROM generate_series(2, 4) i$$);
SELECT * FROM refers;
DROP TABLE refers;
-- what refers may be partitioned itself
CREATE TABLE refers (d date, id int, n int, CONSTRAINT refers_fk FOREIGN KEY (d, id) REFERENCES keyed ON DELETE CASCADE) PARTITION BY LIST (n);
CREATE TABLE refers_2 PARTITION OF refers FOR VALUES IN (2);
CREATE TABLE refers_rest PARTITION OF refers DEFAULT;
INSERT INTO refers VALUES ('2024-01-01', 2, 2), ('2024-01-01', 3, 3), ('2024-01-01', 4, 4);
SELECT replace_partition('keyed', '2024-01-01', $$SELECT $1 AS d, i AS id, 'w' AS v FROM generate_series(2, 4) i$$);
\echo :SQLSTATE
SELECT replace_partition('keyed', '2024-01-01', $$SELECT $1 AS d, i AS id, 'v' AS v FROM generate_series(2, 3) i$$, method => 'delete');
\echo :SQLSTATE
SELECT count(*) FROM refers;
SELECT method, inserted, deleted FROM replace_partition('keyed', '2024-01-01', $$SELECT $1 AS d, i AS id, 'v' AS v FROM generate_series(3, 5) i$$);
SELECT method, inserted, deleted FROM replace_partition('keyed_20240101', '2024-01-01', $$SELECT $1 AS d, i AS id, 'v' AS v FROM generate_series(4, 6) i$$);
SELECT tableoid::regclass, * FROM refers;
DROP TABLE refers;
-- SET NULL and SET DEFAULT: only what refers to a row that is gone loses it
CREATE TABLE refers (d date DEFAULT '2024-01-01', id int DEFAULT 5, n int, CONSTRAINT refers_fk FOREIGN KEY (d, id) REFERENCES keyed ON DELETE SET DEFAULT);
CREATE TABLE nulled (d date, id int, n int, CONSTRAINT nulled_fk FOREIGN KEY (d, id) REFERENCES keyed ON DELETE SET NULL);
INSERT INTO refers VALUES ('2024-01-01', 4, 4), ('2024-01-01', 6, 6);
INSERT INTO nulled SELECT * FROM refers;
SELECT method, inserted, deleted FROM replace_partition('keyed', '2024-01-01', $$SELECT $1 AS d, i AS id, 'v' AS v FROM generate_series(5, 7) i$$);
SELECT * FROM refers ORDER BY n;
SELECT * FROM nulled ORDER BY n;
DROP TABLE nulled;
SELECT replace_partition('keyed', '2024-01-01', $$SELECT $1 AS d, i AS id, 'w' AS v FROM generate_series(5, 7) i$$);
\echo :SQLSTATE
DROP TABLE refers;
-- a foreign key to one leaf binds that leaf alone, by whatever name it is loaded
CREATE TABLE keyed_20240102 PARTITION OF keyed FOR VALUES FROM ('2024-01-02') TO ('2024-01-03');
INSERT INTO keyed SELECT '2024-01-02', i, 'v' FROM generate_series(1, 3) i;
CREATE TABLE leaf_refers (d date, id int, CONSTRAINT leaf_fk FOREIGN KEY (d, id) REFERENCES keyed_20240102 ON DELETE CASCADE);
INSERT INTO leaf_refers VALUES ('2024-01-02', 1), ('2024-01-02', 3);
SELECT replace_partition('keyed', '2024-01-02', $$SELECT $1 AS d, i AS id, 'w' AS v FROM generate_series(1, 3) i$$);
\echo :SQLSTATE
SELECT replace_partition('keyed', '2024-01-02', $$SELECT $1 AS d, i AS id, 'v' AS v FROM generate_series(1, 2) i$$, method => 'delete');
\echo :SQLSTATE
SELECT replace_partition('keyed_20240102', '2024-01-02', $$SELECT $1 AS d, i AS id, 'w' AS v FROM generate_series(1, 3) i$$);
\echo :SQLSTATE
SELECT method, inserted, deleted FROM replace_partition('keyed', '2024-01-01', $$SELECT $1 AS d, i AS id, 'w' AS v FROM generate_series(5, 7) i$$);
SELECT method, inserted, deleted FROM replace_partition('keyed', '2024-01-02', $$SELECT $1 AS d, i AS id, 'v' AS v FROM generate_series(2, 4) i$$);
SELECT * FROM leaf_refers;
DROP TABLE leaf_refers;
-- with NO ACTION, to the table or to a leaf, rows are replaced, and those that
-- are referred to may not go
CREATE TABLE refers (d date, id int, n int, CONSTRAINT refers_fk FOREIGN KEY (d, id) REFERENCES keyed) PARTITION BY LIST (n);
CREATE TABLE refers_2 PARTITION OF refers FOR VALUES IN (2);
CREATE TABLE refers_rest PARTITION OF refers DEFAULT;
CREATE TABLE leaf_refers (d date, id int, CONSTRAINT leaf_fk FOREIGN KEY (d, id) REFERENCES keyed_20240102);
INSERT INTO refers VALUES ('2024-01-02', 2, 2), ('2024-01-02', 3, 3);
INSERT INTO leaf_refers VALUES ('2024-01-02', 4);
SELECT m AS wanted, r.method, r.rows, r.inserted, r.deleted
FROM unnest('{diff,delete}'::text[]) WITH ORDINALITY AS u(m, i),
     LATERAL replace_partition('keyed', '2024-01-02', format('SELECT $1 AS d, i AS id, %L AS v FROM generate_series(2, 4) i', m), method => m) AS r
ORDER BY i;
SELECT method, inserted, deleted FROM replace_partition('keyed_20240102', '2024-01-02', $$SELECT $1 AS d, i AS id, 'leaf' AS v FROM generate_series(2, 4) i$$);
DO $$
BEGIN
	PERFORM replace_partition('keyed', '2024-01-02', 'SELECT $1 AS d, i AS id FROM generate_series(3, 4) i');
EXCEPTION WHEN foreign_key_violation THEN
	RAISE NOTICE '%', SQLSTATE;
END
$$;
SELECT replace_partition('keyed', '2024-01-02', $$SELECT $1 AS d, i AS id, 'leaf' AS v FROM generate_series(2, 3) i$$);
SELECT * FROM refers ORDER BY n;
SELECT * FROM leaf_refers;
SELECT * FROM keyed WHERE d = '2024-01-02' ORDER BY id;

-- a key that is not unique, within the query or with another day
SELECT replace_partition('orders', '2024-01-02', 'SELECT $1 AS d, 9 AS id FROM generate_series(1, 2)');
SELECT replace_partition('orders', '2024-01-02', 'SELECT $1 AS d, 3 AS id');
SELECT d, id, customer FROM orders ORDER BY id;
-- keys that change hands within the day
SELECT method, inserted, deleted FROM replace_partition('orders', '2024-01-01', 'SELECT $1 AS d, 4 - i AS id, i AS customer FROM generate_series(1, 3) i');
SELECT id, customer FROM orders ORDER BY id;

-- an exclusion constraint
CREATE TABLE bookings (d date, room int, during int4range, EXCLUDE USING gist (during WITH &&));
SELECT method, inserted FROM replace_partition('bookings', '2024-01-01', $$SELECT $1 AS d, 1 AS room, int4range(i, i + 10) AS during FROM generate_series(0, 20, 10) i$$);
SELECT method, inserted, deleted FROM replace_partition('bookings', '2024-01-01', $$SELECT $1 AS d, 1 AS room, int4range(i, i + 10) AS during FROM generate_series(5, 25, 10) i$$);
\set VERBOSITY terse
SELECT replace_partition('bookings', '2024-01-01', $$SELECT $1 AS d, 1 AS room, int4range(i, i + 10) AS during FROM generate_series(0, 20, 5) i$$);
\set VERBOSITY default
SELECT during FROM bookings ORDER BY during;

-- large values, compressed and out of line, of which one changes
CREATE TABLE large (d date, id int, v text, w text);
ALTER TABLE large ALTER v SET STORAGE EXTERNAL;
SELECT method, inserted FROM replace_partition('large', '2024-01-01', $$SELECT $1 AS d, i AS id, repeat(md5(i::text), 1000) AS v, repeat('w', 100000) AS w FROM generate_series(1, 3) i$$);
SELECT method, inserted, deleted FROM replace_partition('large', '2024-01-01', $$SELECT d, id, v || CASE id WHEN 2 THEN '!' ELSE '' END AS v, w FROM large WHERE d = $1$$);
SELECT method, inserted, deleted FROM replace_partition('large', '2024-01-01', $$SELECT d, id + 1 AS id, v, w FROM large WHERE d = $1$$, method => 'delete');
SELECT id, length(v), left(v, 32) = md5((id - 1)::text) AS v, w = repeat('w', 100000) AS w FROM large ORDER BY id;

-- rows are fetched by their place, with settings that triggers do not see
CREATE TABLE placed (d date, id int, n int);
INSERT INTO placed SELECT '2024-01-01', i, 0 FROM generate_series(1, 10) i;
CREATE FUNCTION show_settings() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF OLD.id = 1 THEN
		RAISE NOTICE 'enable_seqscan %, enable_hashjoin %', current_setting('enable_seqscan'), current_setting('enable_hashjoin');
	END IF;
	RETURN OLD;
END$$;
CREATE TRIGGER show BEFORE DELETE ON placed FOR EACH ROW EXECUTE FUNCTION show_settings();
SELECT method, inserted, deleted FROM replace_partition('placed', '2024-01-01', 'SELECT d, id, id % 2 AS n FROM placed WHERE d = $1');
SELECT id, n FROM placed ORDER BY id;

-- the key says to which slice a row belongs, and always counts
CREATE TABLE keyed_days (d date, n int);
SELECT replace_partition('keyed_days', '2024-01-01', 'SELECT $1 AS d, 1 AS n', ignore_columns => '{n,d}');
\echo :LAST_ERROR_SQLSTATE

-- a foreign key that refers to a partitioned part of the target
CREATE TABLE tri (d date, id int, v text, PRIMARY KEY (d, id)) PARTITION BY RANGE (d);
CREATE TABLE tri_1 PARTITION OF tri FOR VALUES FROM ('2024-01-01') TO ('2024-01-02') PARTITION BY RANGE (id);
CREATE TABLE tri_1_0 PARTITION OF tri_1 FOR VALUES FROM (0) TO (100);
CREATE TABLE tri_ref (d date, id int, FOREIGN KEY (d, id) REFERENCES tri_1 ON DELETE CASCADE);
INSERT INTO tri VALUES ('2024-01-01', 1, 'v');
INSERT INTO tri_ref VALUES ('2024-01-01', 1);
SELECT replace_partition('tri', '2024-01-01', $$SELECT $1 AS d, 1 AS id, 'w' AS v$$);
SELECT * FROM tri, tri_ref;

-- a trigger on a child by inheritance keeps a row
CREATE TABLE kin (d date, n int);
CREATE TABLE kin_child () INHERITS (kin);
CREATE FUNCTION keep_row() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER keep BEFORE DELETE ON kin_child FOR EACH ROW EXECUTE FUNCTION keep_row();
INSERT INTO kin_child VALUES ('2024-01-01', 1);
SELECT replace_partition('kin', '2024-01-01', 'SELECT $1 AS d, 2 AS n');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM kin;

SET client_min_messages = warning;
DROP SCHEMA iload_methods CASCADE;
