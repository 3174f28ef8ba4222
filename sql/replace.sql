--
-- replace: the life of a day: first load, retry, change, rollback
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotent_load;
CREATE SCHEMA iload_replace;
RESET client_min_messages;
SET search_path = iload_replace, public;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
SET IntervalStyle = 'postgres';

CREATE TABLE src (d date, id int, v text);
INSERT INTO src
SELECT '2024-01-01'::date + day, id, 'v' || id
FROM generate_series(0, 2) AS day, generate_series(1, 3) AS id;

CREATE TABLE part (d date NOT NULL, id int, v text) PARTITION BY RANGE (d);
CREATE TABLE part_20240101 PARTITION OF part FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
CREATE TABLE part_20240102 PARTITION OF part FOR VALUES FROM ('2024-01-02') TO ('2024-01-03');
CREATE TABLE plain (d date NOT NULL, id int, v text);

-- the first load, and what a load returns
\x
SELECT target, lower_bound, upper_bound, method, rows, rows_before, inserted, deleted, changed,
       fingerprint LIKE '1:3:%' AS fingerprint, elapsed >= '0' AS elapsed
FROM replace_partition('part', '2024-01-01', 'SELECT * FROM src WHERE d = $1');
-- a retry
SELECT target, lower_bound, upper_bound, method, rows, rows_before, inserted, deleted, changed,
       fingerprint LIKE '1:3:%' AS fingerprint, elapsed >= '0' AS elapsed
FROM replace_partition('part', '2024-01-01', 'SELECT * FROM src WHERE d = $1');
\x
SELECT method, rows, rows_before, inserted, deleted, changed
FROM replace_partition('plain', '2024-01-01', 'SELECT * FROM src WHERE d = $1');
SELECT method, rows, rows_before, inserted, deleted, changed
FROM replace_partition('plain', '2024-01-01', 'SELECT * FROM src WHERE d = $1');

-- other days come beside it and leave it alone
SELECT method, rows, inserted, deleted FROM replace_partition('part', '2024-01-02', 'SELECT * FROM src WHERE d = $1');
SELECT method, rows, inserted, deleted FROM replace_partition('plain', '2024-01-02', 'SELECT * FROM src WHERE d = $1');
SELECT tableoid::regclass, * FROM part ORDER BY d, id;
SELECT * FROM plain ORDER BY d, id;

-- a retry writes no tuple and locks none; nor does a load of another day
CREATE VIEW rows_now AS
SELECT tableoid AS leaf, ctid AS place, xmin::text AS inserted, xmax::text AS deleted, id FROM part WHERE d = '2024-01-01'
UNION ALL
SELECT tableoid, ctid, xmin::text, xmax::text, id FROM plain WHERE d = '2024-01-01';
CREATE TABLE rows_then AS SELECT * FROM rows_now;
CREATE VIEW moved AS
SELECT count(*) AS rows, count(*) FILTER (WHERE t.id IS NULL) AS written
FROM rows_now AS n LEFT JOIN rows_then AS t ON t.* = n.*;
SELECT method FROM replace_partition('part', '2024-01-01', 'SELECT * FROM src WHERE d = $1');
SELECT method FROM replace_partition('plain', '2024-01-01', 'SELECT * FROM src WHERE d = $1');
SELECT method, inserted, deleted FROM replace_partition('part', '2024-01-02', 'SELECT d, id, ''w'' AS v FROM src WHERE d = $1');
SELECT method, inserted, deleted FROM replace_partition('plain', '2024-01-02', 'SELECT d, id, ''w'' AS v FROM src WHERE d = $1');
SELECT * FROM moved;

-- one row changed, one gone, two new: what does not differ is left where it is
UPDATE src SET v = 'changed' WHERE d = '2024-01-01' AND id = 1;
DELETE FROM src WHERE d = '2024-01-01' AND id = 2;
INSERT INTO src VALUES ('2024-01-01', 4, 'new'), ('2024-01-01', 5, NULL);
SELECT method, rows, rows_before, inserted, deleted, changed
FROM replace_partition('part', '2024-01-01', 'SELECT * FROM src WHERE d = $1');
SELECT method, rows, rows_before, inserted, deleted, changed
FROM replace_partition('plain', '2024-01-01', 'SELECT * FROM src WHERE d = $1');
SELECT * FROM part WHERE d = '2024-01-01' ORDER BY id;
SELECT * FROM plain WHERE d = '2024-01-01' ORDER BY id;
SELECT * FROM moved;

-- the query may read the day that it replaces, and sees it as it was
SELECT method, rows, inserted, deleted
FROM replace_partition('part', '2024-01-01', 'SELECT d, id + 10 AS id, v FROM part WHERE d = $1 UNION ALL SELECT d, id, v FROM part WHERE d = $1');
SELECT id, v FROM part WHERE d = '2024-01-01' ORDER BY id;
SELECT method, rows, inserted, deleted
FROM replace_partition('part', '2024-01-01', 'SELECT * FROM src WHERE d = $1');

-- a function in the query may write to the slice, or load it: afterwards the
-- slice is what the query returned, and nothing else
CREATE TABLE own_plain (d date, id int, v text);
CREATE TABLE own_part (d date, id int, v text) PARTITION BY RANGE (d);
CREATE TABLE own_part_20240101 PARTITION OF own_part FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
CREATE FUNCTION write_beside(target regclass, day date, id int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('INSERT INTO %s VALUES ($1, $2, ''beside'')', target) USING day, 100 + id;
	RETURN id;
END
$$;
CREATE FUNCTION load_inside(target regclass, day date, id int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	PERFORM replace_partition(target, day, 'SELECT $1 AS d, i AS id, ''inside'' AS v FROM generate_series(1, 3) i');
	RETURN id;
END
$$;
INSERT INTO own_plain VALUES ('2024-01-01', 1, 'old'), ('2024-01-02', 1, 'other');
INSERT INTO own_part VALUES ('2024-01-01', 1, 'old');
SELECT x.function, x.target, x.wanted, r.method, r.rows, r.rows_before, r.inserted, r.deleted
FROM (SELECT *
      FROM unnest('{write_beside,load_inside}'::text[]) WITH ORDINALITY AS f(function, i),
           unnest('{own_plain,own_part}'::text[]) WITH ORDINALITY AS t(target, j),
           unnest('{diff,delete,auto}'::text[]) WITH ORDINALITY AS m(wanted, k)
      ORDER BY i, j, k) AS x,
     LATERAL replace_partition(x.target, '2024-01-01', format('SELECT $1 AS d, %I(%L, $1, i) AS id, %L AS v FROM generate_series(1, 2) i', x.function, x.target, x.wanted), method => x.wanted) AS r
ORDER BY i, j, k;
SELECT * FROM own_plain ORDER BY d, id;
SELECT * FROM own_part ORDER BY d, id;
-- also where what it wrote is just what the query returns
SELECT method, rows, rows_before, inserted, deleted
FROM replace_partition('own_part', '2024-01-01', $$SELECT $1 AS d, load_inside('own_part', $1, i) AS id, 'inside' AS v FROM generate_series(1, 3) i$$);
SELECT * FROM own_part ORDER BY d, id;

-- the result may be used as a whole, and a load may be called for its effect
SELECT (replace_partition('part', '2024-01-01', 'SELECT * FROM src WHERE d = $1')).method;
DO $$
BEGIN
	PERFORM replace_partition('part', '2024-01-03', 'SELECT * FROM src WHERE d = $1');
END
$$;
SELECT tableoid::regclass, * FROM part WHERE d = '2024-01-03' ORDER BY id;
DROP TABLE part_20240103;

-- it commits and rolls back with its transaction
BEGIN;
INSERT INTO src VALUES ('2024-01-01', 6, 'mine');
SELECT method, rows, inserted, deleted
FROM replace_partition('part', '2024-01-01', 'SELECT * FROM src WHERE d = $1');
SELECT id, v FROM part WHERE d = '2024-01-01' ORDER BY id;
SELECT method, rows, inserted FROM replace_partition('part', '2024-01-03', 'SELECT * FROM src WHERE d = $1');
SELECT to_regclass('part_20240103');
ROLLBACK;
SELECT id, v FROM part WHERE d = '2024-01-01' ORDER BY id;
SELECT to_regclass('part_20240103');
SELECT method FROM replace_partition('part', '2024-01-01', 'SELECT * FROM src WHERE d = $1');

-- savepoints
BEGIN;
SAVEPOINT a;
SELECT method, rows, inserted, deleted
FROM replace_partition('part', '2024-01-01', 'SELECT * FROM src WHERE d = $1 AND id = 3');
ROLLBACK TO a;
SELECT count(*) FROM part WHERE d = '2024-01-01';
SELECT method, rows, inserted, deleted
FROM replace_partition('part', '2024-01-01', 'SELECT * FROM src WHERE d = $1 AND id >= 4');
RELEASE a;
SAVEPOINT b;
SELECT method FROM replace_partition('part', '2024-01-01', 'SELECT $1 + id AS d, id, v FROM src WHERE d = $1');
ROLLBACK TO b;
COMMIT;
SELECT id, v FROM part WHERE d = '2024-01-01' ORDER BY id;

-- twice in one transaction, the second time with other rows and then the same
BEGIN;
SELECT method, rows, rows_before, inserted, deleted
FROM replace_partition('part', '2024-01-01', 'SELECT * FROM src WHERE d = $1');
SELECT method, rows, rows_before, inserted, deleted
FROM replace_partition('part', '2024-01-01', 'SELECT * FROM src WHERE d = $1 AND id < 4');
SELECT method, rows, rows_before, inserted, deleted
FROM replace_partition('part', '2024-01-01', 'SELECT * FROM src WHERE d = $1 AND id < 4');
COMMIT;
SELECT id, v FROM part WHERE d = '2024-01-01' ORDER BY id;

-- a transaction sees what it has written to the target itself
BEGIN;
INSERT INTO plain VALUES ('2024-01-01', 7, 'by hand');
UPDATE plain SET v = 'by hand' WHERE d = '2024-01-01' AND id = 3;
SELECT method, rows, rows_before, inserted, deleted
FROM replace_partition('plain', '2024-01-01', 'SELECT * FROM src WHERE d = $1');
COMMIT;
SELECT id, v FROM plain WHERE d = '2024-01-01' ORDER BY id;

-- the stricter isolation levels
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT method, rows, inserted, deleted FROM replace_partition('plain', '2024-01-01', 'SELECT * FROM src WHERE d = $1 AND id = 3');
SELECT method, rows, inserted, deleted FROM replace_partition('plain', '2024-01-01', 'SELECT * FROM src WHERE d = $1');
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT method, rows, inserted, deleted FROM replace_partition('plain', '2024-01-01', 'SELECT * FROM src WHERE d = $1 AND id = 3');
SELECT method, rows, inserted, deleted FROM replace_partition('plain', '2024-01-01', 'SELECT * FROM src WHERE d = $1');
COMMIT;

-- inside a function: a failed load is caught, and the others stay
CREATE FUNCTION load_all(days date[]) RETURNS TABLE (day date, outcome text)
LANGUAGE plpgsql AS $$
DECLARE
	result load_result;
BEGIN
	FOREACH day IN ARRAY days LOOP
		BEGIN
			result := replace_partition('part', day, 'SELECT d, 6 / (id - 3) AS id, v FROM src WHERE d = $1');
			outcome := format('%s rows by %s', result.rows, result.method);
		EXCEPTION WHEN division_by_zero THEN
			outcome := SQLERRM;
		END;
		RETURN NEXT;
	END LOOP;
END
$$;
DELETE FROM src WHERE d = '2024-01-02' AND id = 3;
SELECT * FROM load_all('{2024-01-01,2024-01-02,2024-01-03}');
SELECT d, id, v FROM part ORDER BY d, id, v;

-- many days in one statement, with partitions made on the way
SELECT g.day::date, r.method, r.rows, r.inserted, r.deleted
FROM generate_series('2024-01-01'::timestamp, '2024-01-04', '1 day') AS g(day),
     LATERAL replace_partition('part', g.day::date, 'SELECT $1 AS d, id, v FROM src WHERE d = ''2024-01-03''') AS r
ORDER BY 1;
SELECT tableoid::regclass, d, count(*) FROM part GROUP BY 1, 2 ORDER BY 2;
SELECT count(*), sum((r).rows) FROM (
	SELECT replace_partition('plain', day, 'SELECT * FROM src WHERE d = $1') AS r
	FROM unnest('{2024-01-01,2024-01-02,2024-01-03}'::date[]) AS day OFFSET 0) AS s;

-- from a trigger: a row that arrives reloads its day
CREATE FUNCTION reload() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM replace_partition('plain', new.d, 'SELECT * FROM src WHERE d = $1');
	RETURN NULL;
END
$$;
CREATE TRIGGER reload AFTER INSERT ON src FOR EACH ROW EXECUTE FUNCTION reload();
INSERT INTO src VALUES ('2024-01-02', 8, 'late');
DROP TRIGGER reload ON src;
SELECT * FROM plain WHERE d = '2024-01-02' ORDER BY id;

-- a cursor that was open keeps what it saw
BEGIN;
DECLARE c CURSOR FOR SELECT d, id, v FROM plain WHERE d = '2024-01-02' ORDER BY id;
FETCH 1 FROM c;
SELECT method, rows, inserted, deleted FROM replace_partition('plain', '2024-01-02', 'SELECT d, id + 100 AS id, v FROM src WHERE d = $1');
FETCH ALL FROM c;
COMMIT;

-- prepared, with all its parameters given at run time
PREPARE load (regclass, date, text) AS SELECT method, rows FROM replace_partition($1, $2, $3);
EXECUTE load('plain', '2024-01-02', 'SELECT * FROM src WHERE d = $1');
EXECUTE load('part', '2024-01-02', 'SELECT * FROM src WHERE d = $1');
EXECUTE load('part', '2024-01-02', 'SELECT * FROM src WHERE d = $1');
DEALLOCATE load;

-- a temporary table, and an unlogged one
CREATE TEMP TABLE temporary (d date, id int);
SELECT method, rows FROM replace_partition('temporary', '2024-01-01', 'SELECT d, id FROM src WHERE d = $1');
SELECT method, rows FROM replace_partition('temporary', '2024-01-01', 'SELECT d, id FROM src WHERE d = $1');
CREATE UNLOGGED TABLE unlogged (d date, id int);
SELECT method, rows FROM replace_partition('unlogged', '2024-01-01', 'SELECT d, id FROM src WHERE d = $1');

-- a name that needs quotes, in every place where one can
CREATE SCHEMA "iload Replace";
CREATE TABLE "iload Replace"."The ""Fact""" ("Day, $1" date, "select" int, "ä" text);
SELECT target, method, rows
FROM replace_partition('"iload Replace"."The ""Fact"""', '2024-01-01',
                       'SELECT d AS "Day, $1", id AS "select", v AS "ä" FROM src WHERE d = $1');
SELECT method, inserted, deleted
FROM replace_partition('"iload Replace"."The ""Fact"""', '2024-01-01',
                       'SELECT d AS "Day, $1", id + 1 AS "select", v AS "ä" FROM src WHERE d = $1 AND id < 5',
                       date_column => 'Day, $1', ignore_columns => '{ä}');
SELECT * FROM "iload Replace"."The ""Fact""" ORDER BY "select";

-- a run id is kept with the load, and does not make it another one
SELECT method FROM replace_partition('plain', '2024-01-03', 'SELECT * FROM src WHERE d = $1', run_id => 'scheduled__2024-01-03');
SELECT method FROM replace_partition('plain', '2024-01-03', 'SELECT * FROM src WHERE d = $1', run_id => 'manual');
SELECT run_id, method FROM load_history
WHERE target = 'plain'::regclass AND logical_date = '2024-01-03' AND run_id IS NOT NULL ORDER BY id;

SET client_min_messages = warning;
DROP SCHEMA iload_replace, "iload Replace" CASCADE;
