--
-- on_empty_audit: an empty result, and the audit before a load is published
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotent_load;
CREATE SCHEMA iload_on_empty_audit;
RESET client_min_messages;
SET search_path = iload_on_empty_audit, public;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
\set SHOW_CONTEXT never

CREATE TABLE t (d date, n int) PARTITION BY RANGE (d);
CREATE TABLE t_20240101 PARTITION OF t FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
CREATE TABLE t_20240102 PARTITION OF t FOR VALUES FROM ('2024-01-02') TO ('2024-01-03');
INSERT INTO t VALUES ('2024-01-01', 1), ('2024-01-01', 2), ('2024-01-02', 3);
CREATE TABLE plain AS SELECT * FROM t;

-- by default an empty result does not empty a slice
SELECT replace_partition('t', '2024-01-01', 'SELECT * FROM t WHERE false');
SELECT replace_partition('plain', '2024-01-01', 'SELECT * FROM t WHERE false', on_empty => 'error');
SELECT replace_partition('t', '2024-01-01', 'SELECT * FROM t WHERE false', method => 'delete');
SELECT count(*) FROM t;
DO $$
BEGIN
	PERFORM replace_partition('t', '2024-01-01', 'SELECT * FROM t WHERE false');
EXCEPTION WHEN others THEN
	RAISE NOTICE '%', SQLSTATE;
END
$$;

-- keep: the slice stays, and the load says what it holds
SELECT method, rows, rows_before, inserted, deleted, changed
FROM replace_partition('t', '2024-01-01', 'SELECT * FROM t WHERE false', on_empty => 'keep');
SELECT method, rows, rows_before, inserted, deleted, changed
FROM replace_partition('plain', '2024-01-01', 'SELECT * FROM t WHERE false', on_empty => 'keep', method => 'delete');
SELECT (SELECT fingerprint FROM replace_partition('t', '2024-01-01', 'SELECT * FROM t WHERE false', on_empty => 'keep')) =
       (SELECT fingerprint(t) FROM t WHERE d = '2024-01-01') AS same;
-- rows come in with all three
SELECT method, rows, inserted, deleted FROM replace_partition('t', '2024-01-01', 'SELECT $1 AS d, n FROM generate_series(2, 3) n', on_empty => 'keep');

-- replace: the slice is emptied, its neighbour is not
SELECT method, rows, rows_before, inserted, deleted, changed
FROM replace_partition('t', '2024-01-01', 'SELECT * FROM t WHERE false', on_empty => 'replace');
SELECT method, rows, rows_before, inserted, deleted, changed
FROM replace_partition('plain', '2024-01-01', 'SELECT * FROM t WHERE false', on_empty => 'replace', method => 'delete');
SELECT * FROM t;
SELECT * FROM plain;

-- nothing over nothing is a load of zero rows, with all three
SELECT o AS on_empty, r.method, r.rows, r.rows_before, r.changed, r.fingerprint
FROM unnest('{error,replace,keep}'::text[]) o, LATERAL replace_partition('t', '2024-01-01', 'SELECT * FROM t WHERE false', on_empty => o) r;
-- also where there is no partition; none is made
SELECT method, rows, rows_before FROM replace_partition('t', '2024-01-03', 'SELECT * FROM t WHERE false');
SELECT count(*) FROM pg_inherits WHERE inhparent = 't'::regclass;
SELECT logical_date, method, rows, rows_before, deleted FROM load_history WHERE target = 't'::regclass ORDER BY id;

-- an audit that holds
SELECT method, rows FROM replace_partition('t', '2024-01-01', 'SELECT $1 AS d, n FROM generate_series(1, 3) n', audit => 'SELECT count(*) = 3 FROM staged');
-- it reads the staged rows, all their columns, and the slice as it still is
SELECT method, rows FROM replace_partition('t', '2024-01-01', 'SELECT $1 AS d, n FROM generate_series(2, 5) n',
	audit => 'SELECT (SELECT sum(n) FROM staged) = 14 AND (SELECT sum(n) FROM live) = 6 AND (SELECT count(*) FROM live) = 3 AND (SELECT bool_and(d = $1 AND d < $2) FROM staged)');
SELECT method, rows FROM replace_partition('t', '2024-01-01', 'SELECT n, $1 AS d FROM generate_series(2, 5) n',
	audit => 'SELECT NOT EXISTS (SELECT d, n FROM staged EXCEPT ALL SELECT d, n FROM live) AND NOT EXISTS (SELECT * FROM live EXCEPT ALL SELECT * FROM staged)');
-- for a table without partitions live is the slice too
SELECT method, rows FROM replace_partition('plain', '2024-01-01', 'SELECT $1 AS d, 1 AS n', audit => 'SELECT count(*) = 0 FROM live');
SELECT method, rows FROM replace_partition('plain', '2024-01-01', 'SELECT $1 AS d, 1 AS n', audit => 'SELECT count(*) = 1 FROM live');
SELECT method, rows FROM replace_slice('plain', '2024-01-01', NULL, 'SELECT $1 AS d, 1 AS n', audit => 'SELECT count(*) = 1 FROM live');
-- not much fewer rows than before
\set VERBOSITY terse
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d, 1 AS n', audit => 'SELECT (SELECT count(*) FROM staged) > 0.5 * (SELECT count(*) FROM live)');
\set VERBOSITY default

-- false, null, no row, two rows
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d, 9 AS n', audit => 'SELECT count(*) > 1 FROM staged');
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d, 9 AS n', audit => 'SELECT sum(n) > 1 FROM staged WHERE false');
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d, 9 AS n', audit => 'SELECT true FROM staged WHERE false');
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d, n FROM generate_series(1, 2) n', audit => 'SELECT true FROM staged');
-- an audit is not passed over where nothing would change
SELECT replace_partition('t', '2024-01-01', 'SELECT * FROM t WHERE d = $1', audit => 'SELECT false');
SELECT replace_partition('t', '2024-01-01', 'SELECT * FROM t WHERE false', audit => 'SELECT count(*) > 0 FROM staged', on_empty => 'keep');
-- not a boolean, not one column, not a SELECT that only reads
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d, 9 AS n', audit => 'SELECT count(*) FROM staged');
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d, 9 AS n', audit => 'SELECT true, true');
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d, 9 AS n', audit => 'SELECT');
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d, 9 AS n', audit => 'WITH x AS (DELETE FROM t RETURNING true) SELECT true FROM x');
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d, 9 AS n', audit => 'DELETE FROM plain');
-- an error in it
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d, 9 AS n', audit => 'SELECT 1 / (n - 9) > 0 FROM staged');
-- nothing has changed
SELECT d, n FROM t ORDER BY d, n;

-- other forms of audits
SELECT method FROM replace_partition('t', '2024-01-01', 'SELECT $1 AS d, n FROM generate_series(2, 5) n', audit => 'VALUES (true)');
SELECT method FROM replace_partition('t', '2024-01-01', 'SELECT $1 AS d, n FROM generate_series(2, 5) n', audit => 'SELECT bool_and(n > 0) FROM staged; -- really');
SELECT method FROM replace_partition('t', '2024-01-01', 'SELECT $1 AS d, n FROM generate_series(2, 5) n',
	audit => 'WITH a AS (SELECT count(*) AS c FROM live), b AS (SELECT count(*) AS c FROM staged) SELECT a.c = b.c FROM a, b');
SELECT method FROM replace_partition('t', '2024-01-01', 'SELECT $1 AS d, n FROM generate_series(2, 5) n',
	audit => 'WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 4) SELECT max(i) = (SELECT count(*) FROM live) FROM r');
-- a WITH query of the user's own named live, or staged, comes first
SELECT method FROM replace_partition('t', '2024-01-01', 'SELECT $1 AS d, n FROM generate_series(2, 5) n', audit => 'WITH live AS (SELECT 77 AS x) SELECT max(x) = 77 FROM live');
SELECT method FROM replace_partition('t', '2024-01-01', 'SELECT $1 AS d, n FROM generate_series(2, 5) n', audit => 'WITH staged AS (SELECT 77 AS x) SELECT max(x) = 77 FROM staged');
-- tables of those names are reached by their schema
CREATE TABLE live (x int);
CREATE TABLE staged (x int);
SELECT method FROM replace_partition('t', '2024-01-01', 'SELECT $1 AS d, n FROM generate_series(2, 5) n',
	audit => 'SELECT (SELECT count(*) FROM live) = 4 AND (SELECT count(*) FROM staged) = 4 AND (SELECT count(x) FROM iload_on_empty_audit.live) = 0');
-- the query itself cannot read them
DROP TABLE live, staged;
SELECT replace_partition('t', '2024-01-01', 'SELECT * FROM staged');
-- staged may be read twice, and joined with the target
SELECT method FROM replace_partition('t', '2024-01-01', 'SELECT $1 AS d, n FROM generate_series(2, 5) n',
	audit => 'SELECT count(*) = 5 FROM staged a JOIN staged b USING (n) JOIN t USING (n)');
-- generated columns are not staged, defaults and casts are
CREATE TABLE gen (d date, n numeric(5,1), twice numeric GENERATED ALWAYS AS (n * 2) STORED, x int DEFAULT 7);
SELECT method, rows FROM replace_partition('gen', '2024-01-01', 'SELECT $1 AS d, 1.26 AS n', audit => 'SELECT n = 1.3 AND x = 7 FROM staged');
SELECT replace_partition('gen', '2024-01-01', 'SELECT $1 AS d, 1.26 AS n', audit => 'SELECT twice = 2.6 FROM staged');
SELECT method, rows FROM replace_partition('gen', '2024-01-01', 'SELECT $1 AS d, 1.26 AS n', audit => 'SELECT twice = 2.6 FROM live');

SET client_min_messages = warning;
DROP SCHEMA iload_on_empty_audit CASCADE;
