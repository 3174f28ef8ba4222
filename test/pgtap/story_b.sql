-- One rerun doubled the revenue: the figures of the story.

BEGIN;
SELECT plan(15);

SET LOCAL client_min_messages = warning;

CREATE TABLE orders (order_id int, order_date date, amount numeric(10,2));
INSERT INTO orders VALUES
	(1, '2026-10-06', 100.00), (2, '2026-10-06', 250.00), (3, '2026-10-06', 380.00),
	(4, '2026-10-06', 300.00), (5, '2026-10-06', 500.00), (6, '2026-10-06', 200.00),
	(7, '2026-10-07', 150.00), (8, '2026-10-07', 300.00), (9, '2026-10-07', 250.00), (10, '2026-10-07', 400.00),
	(11, '2026-10-07', 100.00), (12, '2026-10-07', 350.00), (13, '2026-10-07', 300.00), (14, '2026-10-07', 200.00);

CREATE TABLE revenue_append (LIKE orders);
CREATE TABLE revenue_plain (LIKE orders);
CREATE TABLE revenue (LIKE orders) PARTITION BY RANGE (order_date);
CREATE TABLE revenue_20261006 PARTITION OF revenue FOR VALUES FROM ('2026-10-06') TO ('2026-10-07');
INSERT INTO revenue_append SELECT * FROM orders WHERE order_date = '2026-10-06';
INSERT INTO revenue_plain TABLE revenue_append;
INSERT INTO revenue TABLE revenue_append;

CREATE FUNCTION by_day(target regclass) RETURNS TABLE (day date, count bigint, sum numeric) LANGUAGE plpgsql AS
$$ BEGIN RETURN QUERY EXECUTE format('SELECT order_date, count(*), sum(amount) FROM %s GROUP BY 1 ORDER BY 1', target); END $$;

SELECT results_eq(format('SELECT * FROM by_day(%L)', t), $$VALUES (date '2026-10-06', 6::bigint, 1730.00)$$, t || ': before')
FROM unnest(ARRAY['revenue_append', 'revenue_plain', 'revenue']) t;

-- the day before as it is stored, to see that it is not touched
CREATE TABLE places AS
SELECT 'revenue'::regclass AS target, ctid::text AS place, xmin::text AS writer FROM revenue
UNION ALL SELECT 'revenue_plain', ctid::text, xmin::text FROM revenue_plain;

-- tonight's load
INSERT INTO revenue_append SELECT * FROM orders WHERE order_date = '2026-10-07';
SELECT results_eq(format($$SELECT method, inserted, deleted
		FROM replace_partition(%L, '2026-10-07', 'SELECT * FROM orders WHERE order_date = $1')$$, t),
	$$VALUES ('diff', 8::bigint, 0::bigint)$$, t || ': first load')
FROM unnest(ARRAY['revenue_plain', 'revenue']) t;

-- the report crashes; the scheduler runs it all again
INSERT INTO revenue_append SELECT * FROM orders WHERE order_date = '2026-10-07';
SELECT results_eq(format($$SELECT method, inserted, deleted
		FROM replace_partition(%L, '2026-10-07', 'SELECT * FROM orders WHERE order_date = $1')$$, t),
	$$VALUES ('none', 0::bigint, 0::bigint)$$, t || ': rerun')
FROM unnest(ARRAY['revenue_plain', 'revenue']) t;

SELECT results_eq('SELECT * FROM by_day(''revenue_append'')',
	$$VALUES (date '2026-10-06', 6::bigint, 1730.00), ('2026-10-07', 16, 4100.00)$$, 'append, crash, rerun: doubled');
SELECT results_eq(format('SELECT * FROM by_day(%L)', t),
	$$VALUES (date '2026-10-06', 6::bigint, 1730.00), ('2026-10-07', 8, 2050.00)$$, t || ': replace_partition, crash, rerun')
FROM unnest(ARRAY['revenue_plain', 'revenue']) t;
SELECT bag_eq(
	format('SELECT ctid::text AS place, xmin::text AS writer FROM %s WHERE order_date = %L', t, '2026-10-06'),
	format('SELECT place, writer FROM places WHERE target = %L::regclass', t), t || ': the day before is untouched')
FROM unnest(ARRAY['revenue_plain', 'revenue']) t;

-- a load that fails after its delete leaves the old day, whole
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'out of disk'; END $$;
CREATE TRIGGER refuse BEFORE INSERT ON revenue_plain FOR EACH ROW EXECUTE FUNCTION refuse();
SELECT throws_ok(format($$SELECT replace_partition('revenue_plain', '2026-10-07',
		'SELECT order_id, order_date, amount + 1 AS amount FROM orders WHERE order_date = $1', method => %L)$$, m),
	'P0001', 'out of disk', 'a load by ' || m || ' fails between delete and insert')
FROM unnest(ARRAY['diff', 'delete']) m;
SELECT results_eq('SELECT * FROM by_day(''revenue_plain'')',
	$$VALUES (date '2026-10-06', 6::bigint, 1730.00), ('2026-10-07', 8, 2050.00)$$, 'the old day is there, whole');

SELECT * FROM finish();
ROLLBACK;
