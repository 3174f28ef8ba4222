--
-- query_shape: what is not one SELECT that reads, and arguments that are wrong
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotent_load;
CREATE SCHEMA iload_query_shape;
RESET client_min_messages;
SET search_path = iload_query_shape, public;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';

CREATE TABLE t (d date, n int);
CREATE TABLE src (d date, n int);
INSERT INTO t VALUES ('2024-01-01', 1);
INSERT INTO src VALUES ('2024-01-01', 2);

-- not one statement
SELECT replace_partition('t', '2024-01-01', '');
SELECT replace_partition('t', '2024-01-01', E' -- nothing\n ; ');
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d; SELECT $1 AS d');
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d; DROP TABLE src');

-- not a SELECT
\set SHOW_CONTEXT never
SELECT replace_partition('t', '2024-01-01', $$INSERT INTO src VALUES ('2024-01-01', 3) RETURNING d, n$$);
SELECT replace_partition('t', '2024-01-01', 'UPDATE src SET n = 3 RETURNING d, n');
SELECT replace_partition('t', '2024-01-01', 'DELETE FROM src RETURNING d, n');
SELECT replace_partition('t', '2024-01-01', 'EXPLAIN SELECT $1 AS d');
SELECT replace_partition('t', '2024-01-01', 'COPY src TO STDOUT');
SELECT replace_partition('t', '2024-01-01', 'CALL nothing()');
SELECT replace_partition('t', '2024-01-01', 'COMMIT');
SELECT replace_partition('t', '2024-01-01', 'PREPARE p AS SELECT 1');
SELECT replace_partition('t', '2024-01-01', 'CREATE TABLE new AS SELECT 1');

-- not only reading
SELECT replace_partition('t', '2024-01-01', 'WITH x AS (DELETE FROM src RETURNING *) SELECT * FROM x');
SELECT replace_partition('t', '2024-01-01', 'WITH x AS (INSERT INTO src VALUES ($1, 3) RETURNING *) SELECT $1 AS d');
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d INTO new');
SELECT replace_partition('t', '2024-01-01', 'SELECT d INTO TEMP new FROM src UNION SELECT $1');
SELECT replace_partition('t', '2024-01-01', 'WITH x AS (SELECT 1) (SELECT d INTO new FROM src UNION SELECT $1) EXCEPT SELECT $1 ORDER BY d');
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d', audit => 'SELECT true INTO new UNION SELECT true');
SELECT replace_partition('t', '2024-01-01', 'SELECT * FROM src FOR UPDATE');
SELECT replace_partition('t', '2024-01-01', 'SELECT * FROM (SELECT * FROM src FOR KEY SHARE) s');
SELECT replace_partition('t', '2024-01-01', 'SELECT d FROM src WHERE n IN (SELECT n FROM src FOR SHARE)');
SELECT * FROM src;
SELECT to_regclass('new') AS new;

-- mistakes in the text are shown at their place, also in an audit
\set SHOW_CONTEXT errors
SELECT replace_partition('t', '2024-01-01', 'SELEC $1 AS d');
SELECT replace_partition('t', '2024-01-01', E'SELECT $1 AS d,\n       nn AS n\nFROM src');
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d, $3 AS n');
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d, ''unfinished AS n');
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d', audit => 'SELECT count(*) > 0 FROM stagedd');
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d', audit => 'SELECT true; SELECT true');
-- and an error of a running query tells which load it was
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d, 1 / (n - 2) AS n FROM src');
DO $$
DECLARE
	context text;
BEGIN
	PERFORM replace_partition('t', '2024-01-01', 'SELECT $1 AS d, 1 / (n - 2) AS n FROM src');
EXCEPTION WHEN division_by_zero THEN
	GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT;
	RAISE NOTICE '%', split_part(context, E'\n', 1);
END
$$;
\set SHOW_CONTEXT never

-- the code is the same for all of the query's shapes
CREATE FUNCTION code_of(query text, audit text DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM replace_partition('t', '2024-01-01', query, audit => audit);
	RETURN 'none';
EXCEPTION WHEN others THEN
	RETURN SQLSTATE;
END
$$;
SELECT query, code_of(query) FROM (VALUES
	(1, ''), (2, 'SELECT 1; SELECT 2'), (3, 'DELETE FROM src RETURNING *'), (4, 'SELECT $1 AS d INTO new'),
	(5, 'SELECT * FROM src FOR UPDATE'), (6, 'WITH x AS (DELETE FROM src RETURNING *) SELECT * FROM x'),
	(7, 'SELECT $1 AS d, 1 AS x'), (8, 'SELECT $1 AS d, 1'), (9, 'SELECT $1 AS d, 1 AS n, 2 AS n'), (10, 'SELECT 1 AS n'),
	(11, 'SELEC'), (12, 'SELECT $1 AS d, $3 AS n'), (13, 'VALUES ($1, 1, 1)')) AS v(i, query) ORDER BY i;

-- option values
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d', method => 'fast');
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d', method => 'none');
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d', method => 'Diff');
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d', on_empty => 'ignore');
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d', if_running => '');
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d', timezone => 'Nowhere');
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d', timezone => '');
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d', ignore_columns => '{n,m}');
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d', ignore_columns => '{n,NULL}');
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d', date_column => 'x');
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d', date_column => 'D');
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d', date_column => 'ctid');
SELECT replace_slice('t', '1', '2', 'SELECT 1 AS n', date_column => 'n', method => 'merge');

-- null where a value is needed; elsewhere it is the default
SELECT replace_partition(NULL, '2024-01-01', 'SELECT $1 AS d');
SELECT replace_partition('t', NULL, 'SELECT $1 AS d');
SELECT replace_partition('t', '2024-01-01', NULL);
SELECT replace_slice(NULL, '1', '2', 'SELECT $1 AS d');
SELECT replace_slice('t', '2024-01-01', NULL, NULL);
SELECT method, rows FROM replace_partition('t', '2024-01-02', 'SELECT $1 AS d', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);

-- targets that are no tables
CREATE VIEW v AS SELECT * FROM t;
CREATE MATERIALIZED VIEW m AS SELECT * FROM t;
CREATE INDEX i ON t (d);
CREATE SEQUENCE s;
CREATE TYPE c AS (d date);
SELECT replace_partition('v', '2024-01-01', 'SELECT $1 AS d');
SELECT replace_partition('m', '2024-01-01', 'SELECT $1 AS d');
SELECT replace_partition('i', '2024-01-01', 'SELECT $1 AS d');
SELECT replace_partition('s', '2024-01-01', 'SELECT $1 AS d');
SELECT replace_partition('c', '2024-01-01', 'SELECT $1 AS d');
SELECT replace_partition('pg_catalog.pg_class', '2024-01-01', 'SELECT $1 AS d');
SELECT replace_partition('nowhere', '2024-01-01', 'SELECT $1 AS d');
SELECT replace_partition(0, '2024-01-01', 'SELECT $1 AS d');

-- no key column, or several
CREATE TABLE no_date (n int, v text);
CREATE TABLE two_dates (n int, d date, at timestamptz, "Other" timestamp);
CREATE TABLE int_part (batch int) PARTITION BY RANGE (batch);
CREATE TABLE int_part_1 PARTITION OF int_part FOR VALUES FROM (0) TO (100);
SELECT replace_partition('no_date', '2024-01-01', 'SELECT 1 AS n');
SELECT replace_partition('no_date', '2024-01-01', 'SELECT 1 AS n', date_column => 'd');
SELECT replace_partition('two_dates', '2024-01-01', 'SELECT $1 AS d');
SELECT replace_partition('two_dates', '2024-01-01', 'SELECT $1 AS d', date_column => 'x');
SELECT method FROM replace_partition('two_dates', '2024-01-01', 'SELECT $1 AS "Other"', date_column => 'Other');
SELECT replace_partition('two_dates', '2024-01-01', 'SELECT $1 AS d', date_column => 'd; DROP TABLE t');
SELECT replace_partition('int_part', '2024-01-01', 'SELECT 1 AS batch');
CREATE TABLE no_days (d date, amount numeric, data jsonb, p point);
SELECT replace_partition('no_days', '2024-01-01', 'SELECT 1 AS amount', date_column => 'amount');
SELECT replace_partition('no_days', '2024-01-01', 'SELECT 1 AS p', date_column => 'p');
CREATE TABLE no_columns ();
SELECT replace_partition('no_columns', '2024-01-01', 'SELECT $1 AS d');

-- nothing of all this has changed anything
SELECT * FROM t ORDER BY d;
SELECT * FROM src;
SELECT count(*) FROM load_history h JOIN pg_class c ON c.oid = h.target WHERE c.relnamespace = 'iload_query_shape'::regnamespace;

SET client_min_messages = warning;
DROP SCHEMA iload_query_shape CASCADE;
