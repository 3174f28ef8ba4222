--
-- merge: merge_rows, rows put into a slice by key
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotent_load;
CREATE ROLE regress_iload_merge;
RESET client_min_messages;
SET DateStyle = 'ISO, YMD';
SET TimeZone = 'UTC';
SET IntervalStyle = 'postgres';
CREATE SCHEMA iload_merge;
SET search_path = iload_merge, public;

CREATE TABLE fact (d date, id int, name text, ver int, n int DEFAULT 7) PARTITION BY RANGE (d);
CREATE TABLE fact_01 PARTITION OF fact FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
CREATE TABLE src (d date, id int, name text, ver int);
CREATE FUNCTION merge(key text[], version text DEFAULT NULL, what text DEFAULT 'd, id, name, ver')
RETURNS TABLE (rows bigint, inserted bigint, updated bigint, changed boolean) LANGUAGE sql AS
$$SELECT rows, inserted, updated, changed
FROM merge_rows('fact', '2024-01-01', format('SELECT %s FROM src WHERE d = $1', what), key, version)$$;
-- places and transactions of rows: what was written, and what was not
CREATE FUNCTION places() RETURNS text LANGUAGE sql AS
$$SELECT string_agg(format('%s %s %s', tableoid::regclass, ctid, xmin), ',' ORDER BY tableoid, ctid) FROM fact$$;

-- what a merge returns and records
INSERT INTO fact VALUES ('2024-01-01', 1, 'one', 1, 1), ('2024-01-01', 2, 'two', 1, 1), ('2024-01-01', 9, 'stays', 1, 1);
INSERT INTO src VALUES ('2024-01-01', 1, 'one', 1), ('2024-01-01', 2, 'two, changed', 2), ('2024-01-01', 3, 'three', 1);
SELECT target, lower_bound, upper_bound, method, rows, rows_before, inserted, deleted, updated, changed, fingerprint, elapsed >= '0' AS elapsed
FROM merge_rows('fact', '2024-01-01', 'SELECT d, id, name, ver FROM src WHERE d = $1', '{id}', 'ver', run_id => 'run 1');
SELECT * FROM fact ORDER BY id;
SELECT method, rows, rows_before, inserted, deleted, updated, run_id, logical_date, fingerprint
FROM load_history WHERE target = 'fact'::regclass;
-- a rerun writes nothing
SELECT places() AS before \gset
SELECT * FROM merge('{id}', 'ver');
SELECT places() = :'before' AS same;
SELECT count(*) FROM load_history WHERE target = 'fact'::regclass;

-- the highest version wins, over stored and over staged rows; null is the oldest
TRUNCATE fact, src;
INSERT INTO fact VALUES ('2024-01-01', 1, 'new', 7), ('2024-01-01', 2, 'legacy', NULL), ('2024-01-01', 3, 'keep', 4), ('2024-01-01', 4, 'null', NULL);
INSERT INTO src VALUES ('2024-01-01', 1, 'late', 5), ('2024-01-01', 2, 'first', 1), ('2024-01-01', 3, 'no version', NULL),
	('2024-01-01', 5, 'a', NULL), ('2024-01-01', 5, 'b', 1), ('2024-01-01', 5, 'c', 2), ('2024-01-01', 5, 'c', 2), ('2024-01-01', 5, 'd', 0), ('2024-01-01', 5, 'e', 0);
SELECT * FROM merge('{id}', 'ver');
SELECT id, name, ver FROM fact ORDER BY id;
SELECT places() AS before \gset
SELECT * FROM merge('{id}', 'ver');
-- the version of the stored row with other content: it stays, in whatever order the batches come
TRUNCATE src;
INSERT INTO src VALUES ('2024-01-01', 1, 'other', 7), ('2024-01-01', 2, 'first', 1), ('2024-01-01', 4, 'other', NULL);
SELECT * FROM merge('{id}', 'ver');
SELECT places() = :'before' AS same;
-- without a version, what the query returns is right
SELECT * FROM merge('{id}');
SELECT id, name, ver FROM fact ORDER BY id;

-- ties are errors before anything is written
INSERT INTO src VALUES ('2024-01-01', 6, 'p', 1), ('2024-01-01', 6, 'q', 1), ('2024-01-01', 6, 'r', 0), ('2024-01-01', 7, 'new', 1);
SELECT places() AS before \gset
SELECT * FROM merge('{id}', 'ver');
SELECT * FROM merge('{id}');
SELECT * FROM merge('{id,ver}');
\set VERBOSITY sqlstate
SELECT * FROM merge('{id}', 'ver');
\set VERBOSITY default
SELECT places() = :'before' AS same;
-- of several stored rows with a key none can be preferred, unless one is what is wanted
TRUNCATE fact, src;
INSERT INTO fact VALUES ('2024-01-01', 1, 'a', 1), ('2024-01-01', 1, 'b', 2), ('2024-01-01', NULL, 'a', 1), ('2024-01-01', NULL, 'a', 1);
INSERT INTO src VALUES ('2024-01-01', 1, 'b', 2), ('2024-01-01', NULL, 'a', 1), ('2024-01-01', 2, 'new', 1);
SELECT * FROM merge('{id}', 'ver');
INSERT INTO src VALUES ('2024-01-01', 1, 'c', 3);
SELECT * FROM merge('{id}', 'ver');
UPDATE src SET id = NULL, name = 'z' WHERE name = 'c';
SELECT * FROM merge('{id}', 'ver');

-- null parts of a key match each other
TRUNCATE fact, src;
INSERT INTO src VALUES ('2024-01-01', NULL, NULL, 1), ('2024-01-01', NULL, 'a', 1), ('2024-01-01', 1, NULL, 1), ('2024-01-01', 1, 'a', 1);
SELECT * FROM merge('{id,name}', 'ver');
SELECT * FROM merge('{id,name}', 'ver');
UPDATE src SET ver = 2;
SELECT * FROM merge('{name,id}', 'ver');
SELECT id, name, ver FROM fact ORDER BY id, name;

-- a key is equal as its type has it; a column of the key keeps what it has
CREATE TABLE numbers (d date, k numeric, c text COLLATE "C", v float8, m money, j json);
INSERT INTO numbers VALUES ('2024-01-01', 1.0, 'x', 0.0, 1, '{"a":1}'), ('2024-01-01', 2.0, 'x', 'NaN', 1, '{"a":1}');
SELECT inserted, updated FROM merge_rows('numbers', '2024-01-01', $$VALUES ($1, 1.00, 'x', '-0', 1::money, '{"a":1}'), ($1, 2.00, 'x', 'NaN', 1::money, '{"a":1}')$$, '{k}');
SELECT inserted, updated FROM merge_rows('numbers', '2024-01-01', $$VALUES ($1, 1.000, 'x', '-0', 1::money, '{"a": 1}'), ($1, 1.0000, 'x', '-0', 1::money, '{"a": 1}')$$, '{k}');
SELECT * FROM numbers ORDER BY k;
-- a type that has an order but no hash
SELECT inserted, updated FROM merge_rows('numbers', '2024-01-01', $$SELECT $1 AS d, i::money AS m, 3 AS k FROM generate_series(2, 4) i UNION ALL SELECT $1, 2::money, 3$$, '{m}');
SELECT count(*), count(DISTINCT m) FROM numbers;
-- types that find other values equal
CREATE TABLE spans (d date, span interval, word char(5), n int);
INSERT INTO spans VALUES ('2024-01-01', '1 day', 'one', 1);
SELECT inserted, updated FROM merge_rows('spans', '2024-01-01', $$VALUES ($1, '24 hours', 'one  ', 2), ($1, '1440 minutes', 'one', 2), ($1, '25 hours', 'one', 1)$$, '{span,word}');
SELECT d, span, word, n FROM spans ORDER BY span;

-- columns that the query does not give: defaults for new rows, kept by others
CREATE TABLE items (d date, k int, id bigint GENERATED ALWAYS AS IDENTITY, s serial, v int, twice int GENERATED ALWAYS AS (v * 2) STORED,
	loaded_at text DEFAULT 'by default', note text);
INSERT INTO items (d, k, v, note) VALUES ('2024-01-01', 1, 10, 'mine'), ('2024-01-01', 2, 20, 'mine');
SELECT inserted, updated FROM merge_rows('items', '2024-01-01', 'SELECT $1 AS d, k, k * 10 + k / 2 AS v FROM generate_series(1, 3) k', '{k}');
SELECT * FROM items ORDER BY k;
-- rows that exist take no values of sequences
SELECT inserted, updated FROM merge_rows('items', '2024-01-01', 'SELECT $1 AS d, k, k AS v FROM generate_series(1, 3) k', '{k}');
SELECT nextval('items_id_seq'), nextval('items_s_seq');
-- ignored columns do not count, but are written with a row
SELECT inserted, updated FROM merge_rows('items', '2024-01-01', $$SELECT $1 AS d, 1 AS k, 1 AS v, 'ignored' AS note UNION ALL SELECT $1, 2, 2, 'ignored'$$, '{k}', ignore_columns => '{note}');
SELECT inserted, updated FROM merge_rows('items', '2024-01-01', $$SELECT $1 AS d, 1 AS k, 1 AS v, 'ignored' AS note UNION ALL SELECT $1, 2, 22, 'written'$$, '{k}', ignore_columns => '{note}');
SELECT inserted, updated FROM merge_rows('items', '2024-01-01', $$SELECT $1 AS d, 1 AS k, 1 AS v, 'ignored' AS note UNION ALL SELECT $1, 2, 23, 'written'$$, '{k}', ignore_columns => '{note}');
SELECT k, v, twice, note FROM items ORDER BY k;
-- nothing but a key
SELECT inserted, updated FROM merge_rows('items', '2024-01-01', 'SELECT $1 AS d, k FROM generate_series(1, 4) k', '{d,k}');
SELECT inserted, updated FROM merge_rows('items', '2024-01-01', 'SELECT $1 AS d, k FROM generate_series(1, 4) k', '{d,k}');
-- of rows that are the same but for ignored columns, the first is written
SELECT inserted, updated FROM merge_rows('items', '2024-01-01', $$SELECT $1 AS d, 5 AS k, 1 AS v, 'first' AS note UNION ALL SELECT $1, 5, 1, 'second'$$, '{k}', ignore_columns => '{note}');
SELECT note FROM items WHERE k = 5;
-- names that could be mistaken
CREATE TABLE odd (d date, ordinal int, lo int, "Key ""1" int, version int, relation text, tid text, c1 int, k1 int);
SELECT inserted, updated FROM merge_rows('odd', '2024-01-01', $$VALUES ($1, 1, 1, 1, 1, 'a', 'a', 1, 1)$$, '{"Key \"1",k1,tid}', 'version');
SELECT inserted, updated FROM merge_rows('odd', '2024-01-01', $$VALUES ($1, 2, 3, 1, 2, 'b', 'a', 4, 1)$$, '{"Key \"1",k1,tid}', 'version');
SELECT * FROM odd;

-- triggers see what is written and nothing else
TRUNCATE fact, src;
CREATE TABLE fired (op text, old text, new text);
CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN INSERT INTO iload_merge.fired VALUES (TG_WHEN || ' ' || TG_OP, CASE WHEN TG_OP <> 'INSERT' THEN OLD.name END, NEW.name); RETURN NEW; END$$;
INSERT INTO fact VALUES ('2024-01-01', 1, 'same', 1), ('2024-01-01', 2, 'old', 1);
CREATE TRIGGER before BEFORE INSERT OR UPDATE ON fact FOR EACH ROW EXECUTE FUNCTION fire();
CREATE TRIGGER after AFTER INSERT OR UPDATE OR DELETE ON fact FOR EACH ROW EXECUTE FUNCTION fire();
INSERT INTO src VALUES ('2024-01-01', 1, 'same', 1), ('2024-01-01', 2, 'new', 1), ('2024-01-01', 3, 'inserted', 1);
SELECT * FROM merge('{id}');
SELECT * FROM fired ORDER BY op, new;
TRUNCATE fired;
SELECT * FROM merge('{id}');
SELECT * FROM fired;
DROP TRIGGER before ON fact;
DROP TRIGGER after ON fact;
-- one that keeps a row from being updated
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER keep BEFORE UPDATE ON fact FOR EACH ROW EXECUTE FUNCTION keep();
UPDATE src SET name = 'newer' WHERE id = 2;
SELECT * FROM merge('{id}');
DROP TRIGGER keep ON fact;

-- the slice: rows of other days are other rows
INSERT INTO fact (d, id, name) VALUES ('2024-01-01', 50, 'here');
SELECT inserted, updated FROM merge_rows('fact', '2024-01-02', 'SELECT $1 AS d, 50 AS id', '{id}');
SELECT tableoid::regclass, d, name FROM fact WHERE id = 50 ORDER BY d;
SELECT merge_rows('fact', '2024-01-01', $$VALUES (date '2024-01-02', 50, 'stray')$$, '{id}');
-- leaves of an hour, and a row that moves between them
CREATE TABLE hours (at timestamptz, id int, v int) PARTITION BY RANGE (at);
CREATE TABLE h0 (v int, gone int, id int, at timestamptz);
ALTER TABLE h0 DROP gone;
ALTER TABLE hours ATTACH PARTITION h0 FOR VALUES FROM ('2024-01-01 00:00+00') TO ('2024-01-01 12:00+00');
CREATE TABLE h1 PARTITION OF hours FOR VALUES FROM ('2024-01-01 12:00+00') TO ('2024-01-02 00:00+00');
CREATE UNIQUE INDEX ON h0 (id);
SELECT inserted, updated FROM merge_rows('hours', '2024-01-01', $$SELECT $1 + i * interval '1 hour' AS at, i AS id, i AS v FROM generate_series(0, 23) i$$, '{id}', timezone => 'UTC');
SELECT inserted, updated FROM merge_rows('hours', '2024-01-01', $$SELECT $1 + (i + 1) * interval '1 hour' AS at, i AS id, i AS v FROM generate_series(10, 12) i$$, '{id}', timezone => 'UTC');
SELECT tableoid::regclass, count(*), min(id), max(id) FROM hours GROUP BY 1 ORDER BY 1;
-- a part of a leaf, and a plain table
CREATE TABLE month (d date, id int, v int);
INSERT INTO month SELECT date '2024-01-01' + i / 10, i % 10, i FROM generate_series(0, 99) i;
SELECT inserted, updated FROM merge_rows('month', '2024-01-03', 'SELECT $1 AS d, id, id AS v FROM generate_series(5, 14) id', '{id}');
SELECT count(*), sum(v), count(*) FILTER (WHERE d = '2024-01-03') AS that_day FROM month;
-- a period
SELECT inserted, updated FROM merge_rows('month', '2024-01-01', 'SELECT d, id, v + 1 AS v FROM month WHERE id = 3 AND d >= $1 AND d < $2', '{d,id}', period => '1 month');
-- many rows, of which few have changed: the slice is hashed first
INSERT INTO month SELECT date '2024-02-01', i, i FROM generate_series(1, 20000) i;
ANALYZE month;
SELECT rows, inserted, updated FROM merge_rows('month', '2024-02-01', 'SELECT $1 AS d, i AS id, CASE WHEN i % 100 = 0 THEN 0 ELSE i END AS v FROM generate_series(1, 20010) i', '{id}');
SELECT count(*), sum(v) FROM month WHERE d = '2024-02-01';
SELECT rows, inserted, updated FROM merge_rows('month', '2024-02-01', 'SELECT $1 AS d, i % 20010 + 1 AS id, CASE WHEN (i % 20010 + 1) % 100 = 0 THEN 0 ELSE i % 20010 + 1 END AS v FROM generate_series(1, 25000) i', '{id}');
-- with little memory
SET work_mem = '64kB';
SELECT rows, inserted, updated FROM merge_rows('month', '2024-02-01', 'SELECT $1 AS d, i % 20010 + 1 AS id, i % 20010 + 1 AS v FROM generate_series(1, 25000) i', '{id}');
SELECT count(*), sum(v) FROM month WHERE d = '2024-02-01';
RESET work_mem;
-- statistics are gathered where much has changed
INSERT INTO src SELECT '2024-01-05', i, 'x', 1 FROM generate_series(1, 500) i;
SELECT inserted FROM merge_rows('fact', '2024-01-05', 'SELECT d, id, name, ver FROM src WHERE d = $1', '{id}');
SELECT reltuples FROM pg_class WHERE oid = 'fact_20240105'::regclass;

-- tables whose rows cannot be named by their place
CREATE TABLE parent (d date, id int, v int);
CREATE TABLE child () INHERITS (parent);
INSERT INTO child VALUES ('2024-01-01', 1, 1), ('2024-01-01', NULL, 1);
SELECT inserted, updated FROM merge_rows('parent', '2024-01-01', 'VALUES ($1, 1, 2), ($1, 2, 2), ($1, NULL, 2)', '{id}');
SELECT tableoid::regclass, * FROM parent ORDER BY id;

-- rules, row security
CREATE TABLE ruled (d date, id int, v int);
INSERT INTO ruled VALUES ('2024-01-01', 1, 1);
CREATE RULE no_update AS ON UPDATE TO ruled DO INSTEAD NOTHING;
SELECT merge_rows('ruled', '2024-01-01', 'VALUES ($1, 1, 2)', '{id}');
CREATE TABLE secured (d date, id int, v int);
INSERT INTO secured SELECT '2024-01-01', i, i FROM generate_series(1, 4) i;
ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
CREATE POLICY see ON secured FOR SELECT USING (id < 4);
CREATE POLICY put ON secured FOR INSERT WITH CHECK (true);
CREATE POLICY change ON secured FOR UPDATE USING (id < 3);
GRANT USAGE ON SCHEMA iload_merge TO regress_iload_merge;
GRANT SELECT, INSERT ON secured TO regress_iload_merge;
SET ROLE regress_iload_merge;
SELECT merge_rows('secured', '2024-01-01', 'VALUES ($1, 1, 2)', '{id}');
RESET ROLE;
GRANT UPDATE ON secured TO regress_iload_merge;
SET ROLE regress_iload_merge;
SELECT inserted, updated FROM merge_rows('secured', '2024-01-01', 'VALUES ($1, 1, 2), ($1, 4, 9)', '{id}');
SELECT inserted, updated FROM merge_rows('secured', '2024-01-01', 'VALUES ($1, 3, 2)', '{id}');
RESET ROLE;
SELECT * FROM secured ORDER BY id, v;

-- other options
SELECT rows, inserted FROM merge_rows('month', '2024-03-01', 'SELECT $1 AS d, 1 AS id, 2 AS v WHERE false', '{id}');
SELECT merge_rows('month', '2024-03-01', 'VALUES ($1, 1, 2)', '{id}', audit => 'SELECT count(*) = 2 FROM staged');
SELECT inserted FROM merge_rows('month', '2024-03-01', 'VALUES ($1, 1, 2)', '{id}', audit => 'SELECT count(*) = 1 FROM staged, (SELECT count(*) FROM live) l', if_running => 'fail');
SELECT merge_rows('fact', '2024-03-01', 'SELECT $1 AS d, 1 AS id', '{id}', create_partition => false);
SELECT inserted FROM merge_rows('fact', '2024-03-01', 'SELECT $1 AS d, 1 AS id', '{id}', date_column => 'd', period => '1 day');

-- errors of the arguments
SELECT merge_rows(NULL, '2024-01-01', 'VALUES ($1, 1, 2)', '{id}');
SELECT merge_rows('month', NULL, 'VALUES ($1, 1, 2)', '{id}');
SELECT merge_rows('month', '2024-01-01', NULL, '{id}');
SELECT merge_rows('month', '2024-01-01', 'VALUES ($1, 1, 2)', NULL);
SELECT merge_rows('month', '2024-01-01', 'VALUES ($1, 1, 2)', '{}');
SELECT merge_rows('month', '2024-01-01', 'VALUES ($1, 1, 2)', '{id,NULL}');
SELECT merge_rows('month', '2024-01-01', 'VALUES ($1, 1, 2)', '{id,d,id}');
SELECT merge_rows('month', '2024-01-01', 'VALUES ($1, 1, 2)', '{id,v}', 'v');
SELECT merge_rows('month', '2024-01-01', 'VALUES ($1, 1, 2)', '{idd}');
SELECT merge_rows('month', '2024-01-01', 'VALUES ($1, 1, 2)', '{id}', 'ver');
SELECT merge_rows('month', '2024-01-01', 'SELECT $1 AS d, 1 AS v', '{id}');
SELECT merge_rows('month', '2024-01-01', 'SELECT $1 AS d, 1 AS id', '{id}', 'v');
SELECT merge_rows('month', '2024-01-01', 'SELECT 1 AS id', '{id}');
SELECT merge_rows('month', '2024-01-01', 'VALUES ($1, 1, 2)', '{id}', ignore_columns => '{id}');
SELECT merge_rows('month', '2024-01-01', 'VALUES ($1, 1, 2)', '{id}', 'v', ignore_columns => '{v}');
SELECT merge_rows('numbers', '2024-01-01', $$SELECT $1 AS d, '{}'::json AS j$$, '{j}');
SELECT merge_rows('items', '2024-01-01', 'SELECT $1 AS d, 1 AS twice', '{twice}');
SELECT merge_rows('items', '2024-01-01', 'SELECT $1 AS d, 1 AS id', '{id}');
SELECT merge_rows('month', '2024-01-01', 'VALUES ($1, 1, 2)', '{id}', if_running => 'stop');
SELECT merge_rows('month', '2024-01-01', 'VALUES ($1, 1, 2)', (SELECT array_agg('c' || i) FROM generate_series(1, 33) i));
SELECT replace_partition('month', '2024-01-01', 'VALUES ($1, 1, 2)', method => 'merge');

SET client_min_messages = warning;
DELETE FROM load_history WHERE target_name LIKE 'iload\_merge.%';
DROP SCHEMA iload_merge CASCADE;
DROP ROLE regress_iload_merge;
