--
-- stray: a row that is not of the slice fails the load, and nothing changes
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotent_load;
CREATE SCHEMA iload_stray;
RESET client_min_messages;
SET search_path = iload_stray, public;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';

CREATE TABLE t (d date, n int) PARTITION BY RANGE (d);
CREATE TABLE t_20240101 PARTITION OF t FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
CREATE TABLE t_20240102 PARTITION OF t FOR VALUES FROM ('2024-01-02') TO ('2024-01-03');
CREATE TABLE t_rest PARTITION OF t DEFAULT;
INSERT INTO t VALUES ('2024-01-01', 1), ('2024-01-02', 2);
CREATE TABLE log_of_runs (n int);

-- a row of yesterday, of tomorrow, of no day
SELECT replace_partition('t', '2024-01-02', $$VALUES (date '2024-01-02', 3), ('2024-01-01', 4)$$);
\set SHOW_CONTEXT never
SELECT replace_partition('t', '2024-01-02', $$VALUES (date '2024-01-02', 3), ('2024-01-03', 4)$$);
SELECT replace_partition('t', '2024-01-02', $$VALUES (date '2024-01-02', 3), (NULL, 4)$$);
SELECT replace_partition('t', '2024-01-02', 'SELECT NULL AS d, 4 AS n');
SELECT replace_partition('t', '2024-01-02', $$SELECT 'infinity' AS d, 4 AS n$$);
SELECT replace_partition('t', '2024-01-02', $$SELECT '0044-03-15 BC' AS d, 4 AS n$$);
-- today, where the day asked for was meant
DO $$
BEGIN
	PERFORM replace_partition('t', '2024-01-02', 'SELECT current_date AS d, 4 AS n');
EXCEPTION WHEN SQLSTATE 'IL001' THEN
	RAISE NOTICE 'refused';
END
$$;
-- by each method
SELECT replace_partition('t', '2024-01-02', $$SELECT date '2024-01-03' AS d$$, method => 'delete');
SELECT replace_partition('t', '2024-01-02', $$SELECT date '2024-01-03' AS d$$, method => 'diff');
SELECT replace_partition('t', '2024-01-02', $$SELECT date '2024-01-03' AS d$$, on_empty => 'replace', audit => 'SELECT true');
-- nothing has changed
SELECT tableoid::regclass, * FROM t ORDER BY d;

-- the next midnight belongs to the next day
CREATE TABLE by_timestamp (at timestamp, n int);
SELECT rows FROM replace_partition('by_timestamp', '2024-01-01', $$VALUES (timestamp '2024-01-01 00:00'), ('2024-01-01 23:59:59.999999')$$);
SELECT replace_partition('by_timestamp', '2024-01-01', $$VALUES (timestamp '2024-01-01 00:00'), ('2024-01-02 00:00')$$);
SELECT replace_partition('by_timestamp', '2024-01-01', $$VALUES (timestamp '2023-12-31 23:59:59.999999')$$);
SELECT replace_partition('by_timestamp', '2024-01-01', $$VALUES (timestamp '2024-01-01 01:00')$$, period => '1 hour');

-- a timestamptz is judged in the zone of the load, and shown in it
CREATE TABLE by_timestamptz (at timestamptz, n int);
SELECT replace_partition('by_timestamptz', '2024-01-01', $$SELECT timestamptz '2024-01-01 00:00Z' AS at$$, timezone => 'America/New_York');
SELECT replace_partition('by_timestamptz', '2024-01-01', $$SELECT timestamptz '2024-01-01 15:00Z' AS at$$, timezone => 'Asia/Tokyo');
SELECT rows FROM replace_partition('by_timestamptz', '2024-01-01', $$SELECT timestamptz '2024-01-02 04:59:59Z' AS at$$, timezone => 'America/New_York');

-- numbers and texts that are not days, though they lie between the bounds
CREATE TABLE by_int (day int, n int);
SELECT replace_partition('by_int', '2024-01-01', 'VALUES (20240131), (20240132)', date_column => 'day', period => '1 month');
SELECT replace_partition('by_int', '2024-02-01', 'VALUES (20240229), (20240230)', date_column => 'day', period => '1 month');
SELECT replace_partition('by_int', '2024-01-01', 'VALUES (20241301)', date_column => 'day', period => '1 year');
SELECT replace_partition('by_int', '2024-01-31', 'VALUES (20240131), (20240199)', date_column => 'day');
SELECT replace_partition('by_int', '2024-01-01', 'VALUES (20240201)', date_column => 'day', period => '1 month');
SELECT replace_partition('by_int', '2024-01-01', 'VALUES (-20240101)', date_column => 'day');
SELECT replace_partition('by_int', '2024-01-01', 'VALUES (2024001)', date_column => 'day');
CREATE TABLE by_text (day text, n int);
\set VERBOSITY terse
SELECT replace_partition('by_text', '2024-01-01', $$VALUES ('2024-01-01 '::text)$$, date_column => 'day');
\set VERBOSITY default
SELECT replace_partition('by_text', '2024-01-01', $$VALUES ('2024-01-01T00:00:00'::text)$$, date_column => 'day');
SELECT replace_partition('by_text', '2024-01-01', $$VALUES ('2024-1-15'::text)$$, date_column => 'day', period => '1 month');
SELECT replace_partition('by_text', '2024-01-01', $$VALUES ('2024-01-32'::text)$$, date_column => 'day', period => '1 month');
SELECT replace_partition('by_text', '2024-01-01', $$VALUES ('20240101'::text)$$, date_column => 'day');
SELECT count(*) FROM by_int;
SELECT count(*) FROM by_text;

-- a trigger of the target may move a row, but not out of its partition; the
-- query is what is checked
CREATE FUNCTION move() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN new.d := new.d + 1; RETURN new; END$$;
CREATE TRIGGER move BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION move();
\set VERBOSITY terse
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d, 5 AS n');
\set VERBOSITY default
DROP TRIGGER move ON t;

-- what a program can read from the error
CREATE FUNCTION fields(target regclass, date date, query text, date_column text DEFAULT NULL)
RETURNS TABLE (field text, value text) LANGUAGE plpgsql AS $$
DECLARE
	tab text; col text; sch text; det text; msg text;
BEGIN
	PERFORM replace_partition(target, date, query, date_column);
EXCEPTION WHEN others THEN
	GET STACKED DIAGNOSTICS tab = TABLE_NAME, col = COLUMN_NAME, sch = SCHEMA_NAME,
		msg = MESSAGE_TEXT, det = PG_EXCEPTION_DETAIL;
	RETURN QUERY VALUES ('sqlstate', SQLSTATE), ('message', msg), ('detail', det), ('schema', sch), ('table', tab), ('column', col);
END
$$;
SELECT * FROM fields('t', '2024-01-01', $$SELECT date '2024-01-02' AS d$$);
SELECT * FROM fields('t', '2024-01-01', $$SELECT NULL AS d$$);
SELECT * FROM fields('by_int', '2024-01-01', 'SELECT 7 AS day', 'day');

-- the first stray row ends the query: later ones are not computed
CREATE SEQUENCE calls;
CREATE FUNCTION call() RETURNS int LANGUAGE sql VOLATILE AS $$SELECT nextval('calls')::int$$;
\set VERBOSITY terse
SELECT replace_partition('t', '2024-01-01', $$SELECT date '2023-12-31' + i AS d, call() AS n FROM generate_series(1, 100) AS i$$);
SELECT last_value FROM calls;
SELECT tableoid::regclass, * FROM t ORDER BY d;
SELECT count(*) FROM load_history WHERE target = 't'::regclass;

SET client_min_messages = warning;
DROP SCHEMA iload_stray CASCADE;
