--
-- partition: where the rows of a slice lie, and partitions that are made
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotent_load;
CREATE SCHEMA iload_partition;
RESET client_min_messages;
SET search_path = iload_partition, public;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
SET IntervalStyle = 'postgres';
\set SHOW_CONTEXT never

-- The tree below a table, with bounds and numbers of rows.
CREATE FUNCTION tree(root regclass) RETURNS TABLE (part text, bound text, rows bigint)
LANGUAGE plpgsql AS $$
DECLARE
	p record;
BEGIN
	FOR p IN SELECT t.relid, t.level, t.isleaf, pg_get_expr(c.relpartbound, c.oid) AS bound
			 FROM pg_partition_tree(root) t JOIN pg_class c ON c.oid = t.relid
			 WHERE t.level > 0 ORDER BY c.relname COLLATE "C" LOOP
		part := repeat('  ', p.level - 1) || p.relid::regclass;
		bound := replace(p.bound, 'FOR VALUES ', '');
		rows := NULL;
		IF p.isleaf THEN
			EXECUTE format('SELECT count(*) FROM %s', p.relid::regclass) INTO rows;
		END IF;
		RETURN NEXT;
	END LOOP;
END
$$;

-- leaves of a month: the rest of the month stays
CREATE TABLE monthly (d date, n int) PARTITION BY RANGE (d);
CREATE TABLE monthly_2024_01 PARTITION OF monthly FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
INSERT INTO monthly SELECT '2024-01-01'::date + i, i FROM generate_series(0, 30) i;
SELECT method, rows, rows_before, inserted, deleted
FROM replace_partition('monthly', '2024-01-15', 'SELECT $1 AS d, n FROM generate_series(101, 103) n');
SELECT count(*), sum(n) FROM monthly WHERE d <> '2024-01-15';
SELECT n FROM monthly WHERE d = '2024-01-15' ORDER BY n;
-- the next month is made as wide and named alike, also one that comes before
SELECT method, rows FROM replace_partition('monthly', '2024-02-29', 'SELECT $1 AS d, 1 AS n');
SELECT method, rows FROM replace_partition('monthly', '2023-11-05', 'SELECT $1 AS d, 1 AS n');
SELECT method, rows FROM replace_partition('monthly', '2024-02-01', 'SELECT $1 AS d, 1 AS n');
SELECT * FROM tree('monthly');
-- a period over several leaves, some of which are missing
SELECT method, rows, rows_before, inserted, deleted
FROM replace_partition('monthly', '2024-01-01', 'SELECT $1 + i AS d, i AS n FROM generate_series(0, 90, 10) i', period => '3 months');
SELECT * FROM tree('monthly');

-- leaves of an hour: the day is all of them
CREATE TABLE hourly (at timestamp, n int) PARTITION BY RANGE (at);
CREATE TABLE hourly_20240101_00 PARTITION OF hourly FOR VALUES FROM ('2024-01-01 00:00') TO ('2024-01-01 01:00');
CREATE TABLE hourly_20240101_01 PARTITION OF hourly FOR VALUES FROM ('2024-01-01 01:00') TO ('2024-01-01 02:00');
SELECT method, rows FROM replace_slice('hourly', '2024-01-01 00:00', '2024-01-01 02:00', $$SELECT $1 + i * interval '30 minutes' AS at, i AS n FROM generate_series(0, 3) i$$);
SELECT method, rows FROM replace_slice('hourly', '2024-01-01 00:00', '2024-01-01 02:00', $$SELECT $1 + i * interval '30 minutes' AS at, i AS n FROM generate_series(3, 0, -1) i$$);
-- gaps are filled with hours, whether rows come into each or not
SELECT method, rows, inserted, deleted FROM replace_slice('hourly', '2024-01-01 01:00', '2024-01-01 05:00', $$SELECT $2 - interval '1 second' AS at, 9 AS n$$);
SELECT * FROM tree('hourly');
SELECT method, rows, rows_before, inserted, deleted FROM replace_partition('hourly', '2024-01-01', $$SELECT $1 + i * interval '1 hour' AS at, i AS n FROM generate_series(0, 23) i$$);
SELECT count(*), min(part), max(part), min(bound), max(bound), min(rows), max(rows) FROM tree('hourly');

-- leaves of a day in another time zone: exact there, parts here
CREATE TABLE zoned (at timestamptz, n int) PARTITION BY RANGE (at);
CREATE TABLE zoned_20240101 PARTITION OF zoned FOR VALUES FROM ('2024-01-01 00:00-05') TO ('2024-01-02 00:00-05');
SELECT method, rows FROM replace_partition('zoned', '2024-01-02', 'SELECT $1 AS at, 1 AS n', timezone => 'America/New_York');
SELECT method, rows FROM replace_partition('zoned', '2024-03-10', 'SELECT $1 AS at, 1 AS n', timezone => 'America/New_York');
SELECT * FROM tree('zoned');

-- integers that are days: months are counted by the calendar, days too
CREATE TABLE ints (day int, n int) PARTITION BY RANGE (day);
CREATE TABLE ints_20240228 PARTITION OF ints FOR VALUES FROM (20240228) TO (20240229);
SELECT method, rows FROM replace_partition('ints', '2024-02-29', $$SELECT to_char($1, 'yyyymmdd')::int AS day, 1 AS n$$);
SELECT method, rows FROM replace_partition('ints', '2024-03-01', $$SELECT to_char($1, 'yyyymmdd')::int AS day, 1 AS n$$);
SELECT method, rows FROM replace_partition('ints', '2024-12-31', $$SELECT to_char($1, 'yyyymmdd')::int AS day, 1 AS n$$);
SELECT * FROM tree('ints');
CREATE TABLE int_months (day bigint, n int) PARTITION BY RANGE (day);
CREATE TABLE int_months_202401 PARTITION OF int_months FOR VALUES FROM (20240101) TO (20240201);
SELECT method, rows FROM replace_partition('int_months', '2024-12-31', $$SELECT to_char($1, 'yyyymmdd')::bigint AS day, 1 AS n$$);
SELECT * FROM tree('int_months');

-- text that is days
CREATE TABLE texts (day text, n int) PARTITION BY RANGE (day);
CREATE TABLE "texts-2024-02-28" PARTITION OF texts FOR VALUES FROM ('2024-02-28') TO ('2024-02-29');
SELECT method, rows FROM replace_partition('texts', '2024-02-29', 'SELECT $1::text AS day, 1 AS n');
SELECT * FROM tree('texts');

-- lists of days, one or several to a partition
CREATE TABLE lists (d date, n int) PARTITION BY LIST (d);
CREATE TABLE lists_a PARTITION OF lists FOR VALUES IN ('2024-01-01', '2024-01-02');
CREATE TABLE lists_20240103 PARTITION OF lists FOR VALUES IN ('2024-01-03', NULL);
INSERT INTO lists VALUES ('2024-01-01', 1), ('2024-01-02', 2), ('2024-01-03', 3), (NULL, 4);
SELECT method, rows, rows_before, inserted, deleted FROM replace_partition('lists', '2024-01-02', 'SELECT $1 AS d, 22 AS n');
SELECT method, rows, rows_before, inserted, deleted FROM replace_partition('lists', '2024-01-03', 'SELECT $1 AS d, 33 AS n');
SELECT method, rows, rows_before, inserted, deleted FROM replace_partition('lists', '2024-01-04', 'SELECT $1 AS d, 44 AS n');
SELECT * FROM lists ORDER BY d, n;
SELECT * FROM tree('lists');
-- over a period only the days that were missing get partitions
SELECT method, rows FROM replace_partition('lists', '2024-01-01', 'SELECT $1 + i AS d, i AS n FROM generate_series(0, 6) i', period => '1 week');
SELECT * FROM tree('lists');

-- first by day, then by list, then by hash: the new day is divided alike
CREATE TABLE sub (d date, region text, id int) PARTITION BY RANGE (d);
CREATE TABLE sub_20240101 PARTITION OF sub FOR VALUES FROM ('2024-01-01') TO ('2024-01-02') PARTITION BY LIST (region);
CREATE TABLE sub_20240101_eu PARTITION OF sub_20240101 FOR VALUES IN ('eu', 'uk') PARTITION BY HASH (id);
CREATE TABLE sub_20240101_eu_0 PARTITION OF sub_20240101_eu FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE sub_20240101_eu_1 PARTITION OF sub_20240101_eu FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE sub_20240101_rest PARTITION OF sub_20240101 DEFAULT;
SELECT method, rows FROM replace_partition('sub', '2024-01-01', $$SELECT $1 AS d, r AS region, i AS id FROM generate_series(1, 8) i, unnest('{eu,us}'::text[]) r$$);
SELECT method, rows FROM replace_partition('sub', '2024-01-01', $$SELECT $1 AS d, r AS region, i AS id FROM generate_series(1, 8) i, unnest('{us,eu}'::text[]) r$$);
SELECT method, rows FROM replace_partition('sub', '2024-01-02', $$SELECT $1 AS d, r AS region, i AS id FROM generate_series(1, 8) i, unnest('{eu,us}'::text[]) r$$);
SELECT part, bound FROM tree('sub');
SELECT d, region, count(*), sum(id) FROM sub GROUP BY d, region ORDER BY d, region;
-- a load of one of them leaves its neighbours alone
SELECT method, rows, rows_before FROM replace_partition('sub_20240101', '2024-01-01', $$SELECT $1 AS d, 'eu' AS region, 1 AS id$$);
SELECT d, region, count(*), sum(id) FROM sub GROUP BY d, region ORDER BY d, region;

-- first by list, then by day: each list gets the day that it lacks
CREATE TABLE by_region (d date, region text, id int) PARTITION BY LIST (region);
CREATE TABLE by_region_eu PARTITION OF by_region FOR VALUES IN ('eu') PARTITION BY RANGE (d);
CREATE TABLE by_region_us PARTITION OF by_region FOR VALUES IN ('us') PARTITION BY RANGE (d);
CREATE TABLE by_region_eu_20240101 PARTITION OF by_region_eu FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
CREATE TABLE by_region_us_2024_01 PARTITION OF by_region_us FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
SELECT method, rows FROM replace_partition('by_region', '2024-01-02', $$SELECT $1 AS d, r AS region, 1 AS id FROM unnest('{eu,us}'::text[]) r$$);
SELECT method, rows, inserted, deleted FROM replace_partition('by_region', '2024-01-02', $$SELECT $1 AS d, 'us' AS region, i AS id FROM generate_series(1, 2) AS i$$);
SELECT * FROM tree('by_region');

-- by year, then by month: the month is made in its year
CREATE TABLE years (d date, n int) PARTITION BY RANGE (d);
CREATE TABLE years_2023 PARTITION OF years FOR VALUES FROM ('2023-01-01') TO ('2024-01-01') PARTITION BY RANGE (d);
CREATE TABLE years_2023_12 PARTITION OF years_2023 FOR VALUES FROM ('2023-12-01') TO ('2024-01-01');
SELECT method, rows FROM replace_partition('years', '2023-11-30', 'SELECT $1 AS d, 1 AS n');
SELECT method, rows FROM replace_partition('years', '2023-12-31', 'SELECT $1 AS d, 1 AS n');
SELECT * FROM tree('years');
-- a new year gets the month alone, as wide and named as those of the other year
SELECT method, rows FROM replace_partition('years', '2024-02-29', 'SELECT $1 AS d, 1 AS n');
SELECT * FROM tree('years');
-- a whole year: the months that it lacks, and all those of a new one
SELECT method, rows, rows_before, inserted, deleted
FROM replace_partition('years', '2023-01-01', $$SELECT d, 2 AS n FROM generate_series($1, $2 - 1, '1 month') AS d$$, period => '1 year');
SELECT method, rows, rows_before, inserted, deleted
FROM replace_partition('years', '2026-01-01', $$SELECT d, 3 AS n FROM generate_series($1, $2 - 1, '2 months') AS d$$, period => '1 year');
SELECT method, rows, rows_before
FROM replace_partition('years', '2026-01-01', $$SELECT d, 3 AS n FROM generate_series($1, $2 - 1, '2 months') AS d$$, period => '1 year');
SELECT * FROM tree('years');

-- by day, then by hour: the day is exact, and still has gaps
CREATE TABLE hours (at timestamp, n int) PARTITION BY RANGE (at);
CREATE TABLE hours_20240101 PARTITION OF hours FOR VALUES FROM ('2024-01-01') TO ('2024-01-02') PARTITION BY RANGE (at);
CREATE TABLE hours_20240101_20 PARTITION OF hours_20240101 FOR VALUES FROM ('2024-01-01 20:00') TO ('2024-01-01 21:00');
INSERT INTO hours VALUES ('2024-01-01 20:20', 20);
SELECT method, rows, rows_before, inserted, deleted
FROM replace_partition('hours', '2024-01-01', $$SELECT $1 + i * interval '1 hour' AS at, i AS n FROM generate_series(0, 23) i$$);
SELECT * FROM tree('hours');
SELECT method, rows, rows_before
FROM replace_partition('hours', '2024-01-01', $$SELECT $1 + i * interval '1 hour' AS at, i AS n FROM generate_series(0, 23) i$$);
-- the next day is divided into hours too
SELECT method, rows, rows_before, inserted
FROM replace_partition('hours', '2024-01-02', $$SELECT $1 + i * interval '6 hours' AS at, i AS n FROM generate_series(0, 3) i$$);
SELECT trim(part) AS part, bound, rows FROM tree('hours') WHERE part ~ '20240102' AND (part !~ '_..$' OR rows > 0 OR part ~ '_23$');
SELECT count(*), sum(rows), min(bound), max(bound) FROM tree('hours') WHERE part ~ '20240102_..$';

-- by several columns, of which the first is the day, or not
CREATE TABLE two (d date, id int, n int) PARTITION BY RANGE (d, id);
CREATE TABLE two_a PARTITION OF two FOR VALUES FROM ('2024-01-01', MINVALUE) TO ('2024-01-02', 100);
CREATE TABLE two_b PARTITION OF two FOR VALUES FROM ('2024-01-02', 100) TO ('2024-01-03', MINVALUE);
INSERT INTO two VALUES ('2024-01-01', 1, 1), ('2024-01-02', 1, 2), ('2024-01-02', 200, 3);
SELECT method, rows, rows_before, inserted, deleted FROM replace_partition('two', '2024-01-02', 'SELECT $1 AS d, i * 100 AS id, 9 AS n FROM generate_series(0, 3) i');
SELECT method, rows, rows_before, inserted, deleted FROM replace_partition('two', '2024-01-01', 'SELECT $1 AS d, i * 100 AS id, 8 AS n FROM generate_series(0, 3) i');
SELECT tableoid::regclass, * FROM two ORDER BY d, id;
SELECT replace_partition('two', '2024-01-03', 'SELECT $1 AS d, 1 AS id, 1 AS n');
CREATE TABLE two_last (id int, d date) PARTITION BY RANGE (id, d);
CREATE TABLE two_last_1 PARTITION OF two_last FOR VALUES FROM (0, MINVALUE) TO (10, MINVALUE);
INSERT INTO two_last VALUES (1, '2024-01-01'), (2, '2024-01-02');
SELECT method, rows, rows_before FROM replace_partition('two_last', '2024-01-02', 'SELECT $1 AS d, i AS id FROM generate_series(1, 3) i');
SELECT * FROM two_last ORDER BY id, d;

-- by an expression: the column has to be named, or be the only one
CREATE TABLE expr (at timestamp, seen timestamp) PARTITION BY RANGE ((at::date));
CREATE TABLE expr_1 PARTITION OF expr FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
SELECT replace_partition('expr', '2024-01-01', 'SELECT $1 AS at');
SELECT method, rows FROM replace_partition('expr', '2024-01-01', 'SELECT $1 AS at', date_column => 'at');
SELECT method, rows, rows_before FROM replace_partition('expr', '2024-01-01', 'SELECT $1 AS at FROM generate_series(1, 2)', date_column => 'at');

-- by hash
CREATE TABLE hashed (d date, id int) PARTITION BY HASH (id);
CREATE TABLE hashed_0 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 1);
SELECT method, rows FROM replace_partition('hashed', '2024-01-01', 'SELECT $1 AS d, i AS id FROM generate_series(1, 10) i');
SELECT method, rows, inserted, deleted FROM replace_partition('hashed', '2024-01-02', 'SELECT $1 AS d, i AS id FROM generate_series(1, 10) i');
SELECT method, rows, inserted, deleted FROM replace_partition('hashed', '2024-01-02', 'SELECT $1 AS d, i AS id FROM generate_series(2, 11) i');
SELECT d, count(*), sum(id) FROM hashed GROUP BY d ORDER BY d;
-- the column of the hash is the key column, though there is another date
CREATE TABLE hashed_day (seen date, d date, id int) PARTITION BY HASH (d);
CREATE TABLE hashed_day_0 PARTITION OF hashed_day FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE hashed_day_1 PARTITION OF hashed_day FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO hashed_day VALUES ('2024-01-02', '2024-01-01', 1), ('2024-01-02', '2024-01-02', 2);
SELECT method, rows, rows_before, inserted, deleted FROM replace_partition('hashed_day', '2024-01-02', 'SELECT $1 AS d, $1 + 1 AS seen, i AS id FROM generate_series(3, 4) i');
SELECT method, rows, rows_before, inserted, deleted FROM replace_partition('hashed_day', '2024-01-03', 'SELECT $1 AS d, $1 AS seen, 5 AS id');
SELECT d, seen, id FROM hashed_day ORDER BY id;
-- a hash of a column of another type tells nothing
ALTER TABLE hashed ADD seen date;
SELECT replace_partition('hashed', '2024-01-01', 'SELECT $1 AS d');
-- by another column than the named one
CREATE TABLE other_column (d date, loaded_on date) PARTITION BY RANGE (loaded_on);
CREATE TABLE other_column_1 PARTITION OF other_column FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
CREATE TABLE other_column_2 PARTITION OF other_column FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
INSERT INTO other_column VALUES ('2024-03-03', '2024-03-04'), ('2024-03-03', '2025-03-04'), ('2024-03-04', '2025-03-04');
SELECT method, rows, rows_before FROM replace_partition('other_column', '2024-03-03', $$SELECT $1 AS d, date '2025-05-05' AS loaded_on$$, date_column => 'd');
SELECT * FROM other_column ORDER BY d;

-- a default partition that has rows of the slice gets the new ones; without
-- such rows a partition is made
CREATE TABLE dflt (d date, n int) PARTITION BY RANGE (d);
CREATE TABLE dflt_20240101 PARTITION OF dflt FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
CREATE TABLE dflt_rest PARTITION OF dflt DEFAULT;
INSERT INTO dflt VALUES ('2024-01-05', 1), ('2024-01-05', 2), ('2024-01-06', 3), (NULL, 4);
SELECT method, rows, rows_before, inserted, deleted FROM replace_partition('dflt', '2024-01-05', 'SELECT $1 AS d, i AS n FROM generate_series(2, 4) i');
SELECT method, rows, rows_before FROM replace_partition('dflt', '2024-01-05', 'SELECT $1 AS d, i AS n FROM generate_series(2, 4) i');
SELECT method, rows, rows_before FROM replace_partition('dflt', '2024-01-02', 'SELECT $1 AS d, 1 AS n');
SELECT * FROM tree('dflt');
SELECT * FROM dflt ORDER BY d, n;
-- asked not to make one, the default partition takes the rows
SELECT method, rows FROM replace_partition('dflt', '2024-01-03', 'SELECT $1 AS d, 1 AS n', create_partition => false);
SELECT tableoid::regclass, * FROM dflt WHERE d = '2024-01-03';
-- emptied, the slice gets a partition with the next load
SELECT method, rows FROM replace_partition('dflt', '2024-01-05', 'SELECT * FROM dflt WHERE false', on_empty => 'replace');
SELECT method, rows FROM replace_partition('dflt', '2024-01-05', 'SELECT $1 AS d, 1 AS n');
SELECT * FROM tree('dflt');

-- a default partition that has other days of the month that would be made
CREATE TABLE mdflt (d date, n int) PARTITION BY RANGE (d);
CREATE TABLE mdflt_202401 PARTITION OF mdflt FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
CREATE TABLE mdflt_rest PARTITION OF mdflt DEFAULT;
INSERT INTO mdflt VALUES ('2024-02-20', 20);
SELECT method, rows, rows_before FROM replace_partition('mdflt', '2024-02-05', 'SELECT $1 AS d, 5 AS n');
SELECT method, rows, rows_before FROM replace_partition('mdflt', '2024-02-05', 'SELECT $1 AS d, 5 AS n');
SELECT method, rows, rows_before FROM replace_partition('mdflt', '2024-03-05', 'SELECT $1 AS d, 5 AS n');
SELECT * FROM tree('mdflt');
-- of a longer slice, the months that can have a partition get one
SELECT method, rows, rows_before, deleted FROM replace_partition('mdflt', '2024-01-01', $$SELECT d, 7 AS n FROM generate_series($1, $2 - 1, '1 month') AS d$$, period => '6 months');
SELECT * FROM tree('mdflt');
SELECT tableoid::regclass, * FROM mdflt ORDER BY d;

-- lists with a default
CREATE TABLE ldflt (d date, n int) PARTITION BY LIST (d);
CREATE TABLE ldflt_rest PARTITION OF ldflt DEFAULT;
INSERT INTO ldflt VALUES ('2024-01-05', 1);
SELECT method, rows FROM replace_partition('ldflt', '2024-01-05', 'SELECT $1 AS d, 2 AS n');
SELECT method, rows FROM replace_partition('ldflt', '2024-01-06', 'SELECT $1 AS d, 3 AS n');
SELECT * FROM tree('ldflt');

-- no sibling to go by: the slice itself, named after the table
CREATE TABLE fresh (d date, n int) PARTITION BY RANGE (d);
SELECT method, rows FROM replace_partition('fresh', '2024-01-01', 'SELECT $1 AS d, 1 AS n');
SELECT method, rows FROM replace_partition('fresh', '2024-01-02', 'SELECT $1 AS d, 1 AS n');
SELECT * FROM tree('fresh');

-- gaps between partitions of unequal width are not crossed
CREATE TABLE uneven (d date, n int) PARTITION BY RANGE (d);
CREATE TABLE uneven_early PARTITION OF uneven FOR VALUES FROM (MINVALUE) TO ('2024-01-10');
CREATE TABLE uneven_week PARTITION OF uneven FOR VALUES FROM ('2024-01-15') TO ('2024-01-22');
CREATE TABLE uneven_late PARTITION OF uneven FOR VALUES FROM ('2024-01-25') TO (MAXVALUE);
SELECT method, rows FROM replace_partition('uneven', '2024-01-12', 'SELECT $1 AS d, 1 AS n');
SELECT method, rows FROM replace_partition('uneven', '2024-01-23', 'SELECT $1 AS d, 2 AS n');
SELECT method, rows FROM replace_partition('uneven', '2024-01-30', 'SELECT $1 AS d, 3 AS n');
SELECT method, rows FROM replace_partition('uneven', '2023-01-01', 'SELECT $1 AS d, 4 AS n');
SELECT * FROM tree('uneven');

-- create_partition => false
SELECT replace_partition('fresh', '2024-01-03', 'SELECT $1 AS d, 1 AS n', create_partition => false);
SELECT method, rows FROM replace_partition('fresh', '2024-01-02', 'SELECT $1 AS d, 2 AS n', create_partition => false);
-- nothing to put in: no partition is made, and none is missed
SELECT method, rows FROM replace_partition('fresh', '2024-01-03', 'SELECT $1 AS d, 1 AS n WHERE false', create_partition => false);
SELECT method, rows FROM replace_partition('fresh', '2024-01-03', 'SELECT $1 AS d, 1 AS n WHERE false');
SELECT * FROM tree('fresh');

-- leaves whose columns come in another order, or have gaps
CREATE TABLE orders (d date NOT NULL, id int, note text DEFAULT 'none') PARTITION BY RANGE (d);
CREATE TABLE orders_20240101 (junk int, note text, d date NOT NULL, gone text, id int);
ALTER TABLE orders_20240101 DROP junk, DROP gone;
ALTER TABLE orders ATTACH PARTITION orders_20240101 FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
ALTER TABLE orders ADD amount numeric(10,2) DEFAULT 0, DROP note, ADD note text DEFAULT 'later';
SELECT method, rows, inserted, deleted FROM replace_partition('orders', '2024-01-01', 'SELECT $1 AS d, i AS id, i * 1.5 AS amount FROM generate_series(1, 3) i');
SELECT method, rows, inserted, deleted FROM replace_partition('orders', '2024-01-01', 'SELECT i AS id, i * 1.5 AS amount, $1 AS d FROM generate_series(1, 3) i');
SELECT method, rows, inserted, deleted FROM replace_partition('orders', '2024-01-02', 'SELECT $1 AS d, i AS id, i * 1.5 AS amount FROM generate_series(1, 3) i');
SELECT method, rows, inserted, deleted FROM replace_partition('orders', '2024-01-01', 'SELECT $1 AS d, i AS id, i * 1.5 AS amount FROM generate_series(2, 4) i');
SELECT method, rows, inserted, deleted FROM replace_partition('orders_20240101', '2024-01-01', $$SELECT $1 AS d, i AS id, i * 1.5 AS amount, 'later' AS note FROM generate_series(2, 4) i$$);
SELECT tableoid::regclass, * FROM orders ORDER BY d, id;

-- a new partition is like the table: defaults, checks, indexes, keys, owner
CREATE ROLE regress_iload_owner;
GRANT USAGE, CREATE ON SCHEMA iload_partition TO regress_iload_owner;
CREATE TABLE full_table (d date NOT NULL, id int DEFAULT 7, twice int GENERATED ALWAYS AS (id * 2) STORED,
                         v text CHECK (v <> 'bad'), PRIMARY KEY (d, id)) PARTITION BY RANGE (d);
CREATE INDEX full_table_v ON full_table (v);
CREATE TABLE full_table_2024 PARTITION OF full_table FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
ALTER TABLE full_table OWNER TO regress_iload_owner;
SELECT method, rows FROM replace_partition('full_table', '2026-02-03', $$SELECT $1 AS d, 'good' AS v$$);
SELECT replace_partition('full_table', '2026-02-04', $$SELECT $1 AS d, 'bad' AS v$$);
SELECT * FROM tree('full_table');
SELECT * FROM full_table;
SELECT conname, contype, conislocal, coninhcount FROM pg_constraint
WHERE conrelid = 'full_table_2026'::regclass AND contype IN ('c', 'p') ORDER BY contype;
SELECT count(*) AS indexes FROM pg_index WHERE indrelid = 'full_table_2026'::regclass;
SELECT relowner::regrole FROM pg_class WHERE oid = 'full_table_2026'::regclass;

-- and stored as its sibling is, also further down
CREATE TABLE stored (d date, region text, n int) PARTITION BY RANGE (d);
CREATE UNLOGGED TABLE stored_20240101 PARTITION OF stored FOR VALUES FROM ('2024-01-01') TO ('2024-01-02') WITH (fillfactor = 70, autovacuum_enabled = false);
SELECT method, rows FROM replace_partition('stored', '2024-01-02', $$SELECT $1 AS d, 'eu' AS region, 1 AS n$$);
CREATE TABLE stored_20240103 PARTITION OF stored FOR VALUES FROM ('2024-01-03') TO ('2024-01-04') PARTITION BY LIST (region);
CREATE UNLOGGED TABLE stored_20240103_eu PARTITION OF stored_20240103 FOR VALUES IN ('eu') WITH (fillfactor = 60);
CREATE TABLE stored_20240103_rest PARTITION OF stored_20240103 DEFAULT WITH (parallel_workers = 3);
SELECT method, rows FROM replace_partition('stored', '2024-01-04', $$SELECT $1 AS d, 'eu' AS region, 1 AS n$$);
SELECT relname, relkind, relpersistence, reloptions FROM pg_class
WHERE oid IN (SELECT relid FROM pg_partition_tree('stored')) ORDER BY relname COLLATE "C";

-- one who may load but does not own the table cannot have a partition made
CREATE ROLE regress_iload_loader;
GRANT USAGE ON SCHEMA iload_partition TO regress_iload_loader;
GRANT SELECT, INSERT, DELETE ON full_table TO regress_iload_loader;
SET ROLE regress_iload_loader;
SELECT method, rows FROM replace_partition('full_table', '2026-02-05', $$SELECT $1 AS d, 'good' AS v$$);
SELECT replace_partition('full_table', '2027-02-05', $$SELECT $1 AS d, 'good' AS v$$);
RESET ROLE;
-- where there is a default partition, it takes the rows
CREATE TABLE full_table_rest PARTITION OF full_table DEFAULT;
SET ROLE regress_iload_loader;
SELECT method, rows FROM replace_partition('full_table', '2027-02-05', $$SELECT $1 AS d, 'good' AS v$$);
SELECT method, rows FROM replace_partition('full_table', '2027-02-06', $$SELECT $1 AS d, 'good' AS v$$, create_partition => false);
RESET ROLE;
SELECT tableoid::regclass, d, v FROM full_table WHERE d >= '2027-01-01' ORDER BY d;
DROP TABLE full_table_rest;
GRANT regress_iload_owner TO regress_iload_loader;
SET ROLE regress_iload_loader;
SELECT method, rows FROM replace_partition('full_table', '2027-02-05', $$SELECT $1 AS d, 'good' AS v$$);
RESET ROLE;
SELECT relowner::regrole FROM pg_class WHERE oid = 'full_table_2027'::regclass;
DROP TABLE full_table;
DROP OWNED BY regress_iload_owner, regress_iload_loader;
DROP ROLE regress_iload_loader, regress_iload_owner;

-- names at the limit of 63 bytes, and names that are taken
CREATE TABLE a23456789_123456789_123456789_123456789_123456789_123456789_123 (d date, n int) PARTITION BY RANGE (d);
SELECT method, rows FROM replace_partition('a23456789_123456789_123456789_123456789_123456789_123456789_123', '2024-01-01', 'SELECT $1 AS d, 1 AS n');
SELECT method, rows FROM replace_partition('a23456789_123456789_123456789_123456789_123456789_123456789_123', '2024-01-02', 'SELECT $1 AS d, 1 AS n');
SELECT * FROM tree('a23456789_123456789_123456789_123456789_123456789_123456789_123');
CREATE TABLE taken (d date, n int) PARTITION BY RANGE (d);
CREATE VIEW taken_20240101 AS SELECT 1;
SELECT method, rows FROM replace_partition('taken', '2024-01-01', 'SELECT $1 AS d, 1 AS n');
SELECT method, rows FROM replace_partition('taken', '2024-01-02', 'SELECT $1 AS d, 1 AS n');
SELECT * FROM tree('taken');

-- names tell the date in many ways
CREATE TABLE names (d date, n int) PARTITION BY RANGE (d);
DO $$
DECLARE
	sibling text;
	made text;
BEGIN
	FOREACH sibling IN ARRAY '{p2024_01_01,p20240101,p2024-01-01,p_0101,p_01_01,first,"Day 20240101"}'::text[] LOOP
		EXECUTE format('CREATE TABLE %I PARTITION OF names FOR VALUES FROM (''2024-01-01'') TO (''2024-01-02'')', sibling);
		PERFORM replace_partition('names', '2024-12-31', 'SELECT $1 AS d, 1 AS n');
		SELECT relname INTO made FROM names AS t JOIN pg_class c ON c.oid = t.tableoid;
		RAISE NOTICE '% -> %', sibling, made;
		EXECUTE format('DROP TABLE %I, %I', sibling, made);
	END LOOP;
	FOREACH sibling IN ARRAY '{p2024_01,p2024m01,p202401,p2024-01,p_y2024,p_1}'::text[] LOOP
		EXECUTE format('CREATE TABLE %I PARTITION OF names FOR VALUES FROM (''2024-01-01'') TO (''2024-02-01'')', sibling);
		PERFORM replace_partition('names', '2024-12-31', 'SELECT $1 AS d, 1 AS n');
		SELECT relname INTO made FROM names AS t JOIN pg_class c ON c.oid = t.tableoid;
		RAISE NOTICE '% -> %', sibling, made;
		EXECUTE format('DROP TABLE %I, %I', sibling, made);
	END LOOP;
	FOREACH sibling IN ARRAY '{p2024w01}'::text[] LOOP
		EXECUTE format('CREATE TABLE %I PARTITION OF names FOR VALUES FROM (''2024-01-01'') TO (''2024-01-08'')', sibling);
		PERFORM replace_partition('names', '2024-01-31', 'SELECT $1 AS d, 1 AS n');
		SELECT relname INTO made FROM names AS t JOIN pg_class c ON c.oid = t.tableoid;
		RAISE NOTICE '% -> %', sibling, made;
	END LOOP;
END
$$;
SELECT * FROM tree('names');
-- a week is of the year that most of its days are of
CREATE TABLE b (d date, n int) PARTITION BY RANGE (d);
CREATE TABLE b_2024w51 PARTITION OF b FOR VALUES FROM ('2024-12-16') TO ('2024-12-23');
SELECT method, rows FROM replace_partition('b', '2024-12-31', 'SELECT $1 AS d, 1 AS n');
SELECT method, rows FROM replace_partition('b', '2027-01-03', 'SELECT $1 AS d, 1 AS n');
SELECT method, rows FROM replace_partition('b', '2024-01-01', 'SELECT $1 AS d, 1 AS n');
SELECT * FROM tree('b');

-- a load of a leaf by its own name, and of one that is not the day's
SELECT method, rows FROM replace_partition('fresh_20240101', '2024-01-01', 'SELECT $1 AS d, 5 AS n');
SELECT replace_partition('fresh_20240101', '2024-01-02', 'SELECT $1 AS d, 5 AS n');
SELECT * FROM fresh ORDER BY d;

-- days of a zone that differ in length are still days, and hours are hours
SET TimeZone = 'Atlantic/Azores';
CREATE TABLE az (at timestamptz, n int) PARTITION BY RANGE (at);
CREATE TABLE az_20241026 PARTITION OF az FOR VALUES FROM ('2024-10-26 00:00+00') TO ('2024-10-27 00:00+00');
SELECT method, rows FROM replace_partition('az', '2024-10-27', 'SELECT $1 AS at, 1 AS n');
SELECT method, rows FROM replace_partition('az', '2024-10-28', 'SELECT $1 AS at, 1 AS n');
SET TimeZone = 'America/Sao_Paulo';
CREATE TABLE sp (at timestamptz, n int) PARTITION BY RANGE (at);
CREATE TABLE sp_20181103 PARTITION OF sp FOR VALUES FROM ('2018-11-03 00:00-03') TO ('2018-11-04 00:00-03');
SELECT method, rows FROM replace_partition('sp', '2018-11-04', $$SELECT $1 + interval '3 hours' AS at, 1 AS n$$);
SELECT method, rows FROM replace_partition('sp', '2018-11-05', $$SELECT $1 + interval '3 hours' AS at, 1 AS n$$);
SET TimeZone = 'America/New_York';
CREATE TABLE ny (at timestamptz, n int) PARTITION BY RANGE (at);
CREATE TABLE ny_20240310_00 PARTITION OF ny FOR VALUES FROM ('2024-03-10 00:00-05') TO ('2024-03-10 01:00-05');
SELECT method, rows FROM replace_slice('ny', '2024-03-10 00:00', '2024-03-10 05:00', $$SELECT t AS at, 1 AS n FROM generate_series($1, $2 - interval '1 hour', '1 hour') t$$);
-- leaves of UTC days, loaded from New York after the clock change
CREATE TABLE ut (at timestamptz, n int) PARTITION BY RANGE (at);
CREATE TABLE ut_0309 PARTITION OF ut FOR VALUES FROM ('2024-03-09 00:00+00') TO ('2024-03-10 00:00+00');
SELECT method, rows FROM replace_partition('ut', '2024-03-12', 'SELECT $1 AS at, 1 AS n');
SET TimeZone = 'UTC';
SELECT * FROM tree('az');
SELECT * FROM tree('sp');
SELECT * FROM tree('ny');
SELECT * FROM tree('ut');

-- the replica identity of a new partition is its sibling's
CREATE TABLE ri (d date, n int) PARTITION BY RANGE (d);
CREATE TABLE ri_20240101 PARTITION OF ri FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
ALTER TABLE ri_20240101 REPLICA IDENTITY FULL;
SELECT method, rows FROM replace_partition('ri', '2024-01-02', 'SELECT $1 AS d, 1 AS n');
SELECT relname, relreplident FROM pg_class WHERE relname ~ '^ri_' ORDER BY 1;

-- with a second key column the default partition may hold rows of the day too
CREATE TABLE twocol (d date, x int) PARTITION BY RANGE (d, x);
CREATE TABLE twocol_1 PARTITION OF twocol FOR VALUES FROM ('2026-08-25', 0) TO ('2026-08-26', MINVALUE);
CREATE TABLE twocol_rest PARTITION OF twocol DEFAULT;
SELECT method, rows, rows_before, inserted FROM replace_partition('twocol', '2026-08-25', 'SELECT $1 AS d, x FROM unnest(ARRAY[1, -5, NULL]) x', date_column => 'd');
SELECT method, rows, rows_before, inserted FROM replace_partition('twocol', '2026-08-25', 'SELECT $1 AS d, x FROM unnest(ARRAY[1, -5, NULL]) x', date_column => 'd');

-- days as numbers whose partitions end after the day, not with the next one
CREATE TABLE dk (dk int, n int) PARTITION BY RANGE (dk);
CREATE TABLE dk_20260131 PARTITION OF dk FOR VALUES FROM (20260131) TO (20260132);
CREATE TABLE dk_20260201 PARTITION OF dk FOR VALUES FROM (20260201) TO (20260202);
SELECT method, rows FROM replace_partition('dk', '2026-01-31', 'SELECT 20260131 AS dk, 1 AS n');
SELECT method, rows FROM replace_partition('dk', '2026-02-01', 'SELECT 20260201 AS dk, 1 AS n');
SELECT * FROM tree('dk');
-- what is no day lies in the month all the same
CREATE TABLE dk_rest PARTITION OF dk DEFAULT;
INSERT INTO dk VALUES (20260150, 0);
SELECT method, rows, rows_before, inserted, deleted FROM replace_partition('dk', '2026-01-01', 'SELECT 20260131 AS dk, 2 AS n', period => '1 month');
SELECT * FROM dk ORDER BY dk;
CREATE TABLE tk (k text, n int) PARTITION BY LIST (k);
CREATE TABLE tk_20260825 PARTITION OF tk FOR VALUES IN ('2026-08-25');
CREATE TABLE tk_rest PARTITION OF tk DEFAULT;
INSERT INTO tk VALUES ('2026-08-25', 0), ('2026-08-25 12:00', 0);
SELECT method, rows, rows_before, inserted, deleted FROM replace_partition('tk', '2026-08-25', $$SELECT '2026-08-25' AS k, 1 AS n$$);
SELECT * FROM tk ORDER BY k;

-- char(n) days beside a default partition that holds the month
CREATE TABLE ck (k char(10), n int) PARTITION BY RANGE (k);
CREATE TABLE ck_202607 PARTITION OF ck FOR VALUES FROM ('2026-07-01') TO ('2026-08-01');
CREATE TABLE ck_rest PARTITION OF ck DEFAULT;
INSERT INTO ck VALUES ('2026-08-20', 0);
SELECT method, rows FROM replace_partition('ck', '2026-08-05', $$SELECT '2026-08-05' AS k, 1 AS n$$);
SELECT method, rows FROM replace_partition('ck', '2026-09-05', $$SELECT '2026-09-05' AS k, 1 AS n$$);
SELECT * FROM tree('ck');

-- partitions are made only for rows: a week of which one day is new
CREATE TABLE wk (d date, n int) PARTITION BY RANGE (d);
CREATE TABLE wk_20240101 PARTITION OF wk FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
CREATE TABLE wk_20240103 PARTITION OF wk FOR VALUES FROM ('2024-01-03') TO ('2024-01-04');
SELECT method, rows FROM replace_partition('wk', '2024-01-01', $$SELECT $1 + i AS d, 1 AS n FROM unnest('{0,2}'::int[]) i$$, period => '1 week');
SELECT method, rows FROM replace_partition('wk', '2024-01-01', $$SELECT $1 + i AS d, 1 AS n FROM unnest('{0,1,2}'::int[]) i$$, period => '1 week');
SELECT * FROM tree('wk');

-- bounds of floats are written in full
SET extra_float_digits = 0;
CREATE TABLE fl (k float8, n int) PARTITION BY RANGE (k);
SELECT method, rows FROM replace_slice('fl', '0.3', '0.30000000000000004', 'SELECT $1 AS k, 1 AS n');
RESET extra_float_digits;

-- no load makes partitions without end
CREATE TABLE endless (k bigint, n int) PARTITION BY RANGE (k);
CREATE TABLE endless_0 PARTITION OF endless FOR VALUES FROM (0) TO (10);
SELECT replace_slice('endless', '10', '1000000000', 'SELECT 10 AS k, 1 AS n');
SELECT method, rows FROM replace_slice('endless', '9223372036854775800', '9223372036854775807', 'SELECT $1 AS k, 1 AS n');
SELECT * FROM tree('endless');

SET client_min_messages = warning;
DROP SCHEMA iload_partition CASCADE;
