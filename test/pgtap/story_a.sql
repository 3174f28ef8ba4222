-- The payout that ran twice: the figures of the story, by each write pattern.
-- The crash of the 25th is what it left behind: 1,247 rows, committed.

BEGIN;
SELECT plan(36);

SET LOCAL client_min_messages = warning;

CREATE TABLE sales AS
SELECT n AS sale_id, date '2026-08-01' + (n - 1) / 2000 AS sale_date,
	round(25 + ((n * 37) % 900) * 0.5, 2) AS price_eur
FROM generate_series(1, 60000) n;
SELECT results_eq('SELECT count(*), sum(price_eur), min(sale_date), max(sale_date) FROM sales',
	$$VALUES (60000::bigint, 14983500.00, date '2026-08-01', date '2026-08-30')$$, 'sales');

-- The contract: 0.60 of the price; as mended, 0.55 from a price of 400.
CREATE FUNCTION payout(day date, mended bool) RETURNS TABLE (sale_id int, sale_date date, amount_eur numeric)
LANGUAGE sql STABLE AS
$$
SELECT s.sale_id, s.sale_date,
	round(s.price_eur * CASE WHEN $2 AND s.price_eur >= 400 THEN 0.55 ELSE 0.60 END, 2)
FROM sales s WHERE s.sale_date = $1
$$;

CREATE TABLE payouts_append (sale_id int, sale_date date, amount_eur numeric);
CREATE TABLE payouts_merge (sale_id int PRIMARY KEY, sale_date date, amount_eur numeric);
CREATE TABLE payouts (sale_id int, sale_date date, amount_eur numeric);
CREATE TABLE payouts_part (sale_id int, sale_date date, amount_eur numeric) PARTITION BY RANGE (sale_date);
CREATE TABLE payouts_part_20260824 PARTITION OF payouts_part FOR VALUES FROM ('2026-08-24') TO ('2026-08-25');

-- the crash
INSERT INTO payouts_append SELECT * FROM payout('2026-08-25', false) ORDER BY sale_id LIMIT 1247;
INSERT INTO payouts_merge TABLE payouts_append;
INSERT INTO payouts TABLE payouts_append;
CREATE TABLE payouts_part_20260825 PARTITION OF payouts_part FOR VALUES FROM ('2026-08-25') TO ('2026-08-26');
INSERT INTO payouts_part TABLE payouts_append;

CREATE FUNCTION totals(target regclass) RETURNS TABLE (count bigint, sum numeric) LANGUAGE plpgsql AS
$$ BEGIN RETURN QUERY EXECUTE format('SELECT count(*), sum(amount_eur) FROM %s', target); END $$;

SELECT results_eq(format('SELECT * FROM totals(%L)', t), $$VALUES (1247::bigint, 187015.80)$$, t || ' after the crash')
FROM unnest(ARRAY['payouts_append', 'payouts_merge', 'payouts', 'payouts_part']) t;

-- retry 1
INSERT INTO payouts_append SELECT * FROM payout('2026-08-25', false);
INSERT INTO payouts_merge SELECT * FROM payout('2026-08-25', false)
ON CONFLICT (sale_id) DO UPDATE SET sale_date = excluded.sale_date, amount_eur = excluded.amount_eur;
SELECT results_eq(format($$SELECT method, rows, rows_before, inserted, deleted
		FROM replace_partition(%L, '2026-08-25', 'SELECT * FROM payout($1, false)')$$, t),
	$$VALUES ('diff', 2000::bigint, 1247::bigint, 753::bigint, 0::bigint)$$, t || ' by replace_partition, retry 1')
FROM unnest(ARRAY['payouts', 'payouts_part']) t;
SELECT results_eq('SELECT * FROM totals(''payouts_append'')', $$VALUES (3247::bigint, 486745.80)$$, 'payouts_append after retry 1');
SELECT results_eq(format('SELECT * FROM totals(%L)', t), $$VALUES (2000::bigint, 299730.00)$$, t || ' after retry 1')
FROM unnest(ARRAY['payouts_merge', 'payouts', 'payouts_part']) t;

-- retry 2
INSERT INTO payouts_append SELECT * FROM payout('2026-08-25', false);
INSERT INTO payouts_merge SELECT * FROM payout('2026-08-25', false)
ON CONFLICT (sale_id) DO UPDATE SET sale_date = excluded.sale_date, amount_eur = excluded.amount_eur;
SELECT results_eq(format($$SELECT method, rows, rows_before, inserted, deleted, changed
		FROM replace_partition(%L, '2026-08-25', 'SELECT * FROM payout($1, false)')$$, t),
	$$VALUES ('none', 2000::bigint, 2000::bigint, 0::bigint, 0::bigint, false)$$, t || ' by replace_partition, retry 2 writes nothing')
FROM unnest(ARRAY['payouts', 'payouts_part']) t;
SELECT results_eq('SELECT * FROM totals(''payouts_append'')', $$VALUES (5247::bigint, 786475.80)$$, 'payouts_append after retry 2');
SELECT results_eq(format('SELECT * FROM totals(%L)', t), $$VALUES (2000::bigint, 299730.00)$$, t || ' after retry 2')
FROM unnest(ARRAY['payouts_merge', 'payouts', 'payouts_part']) t;

-- The month, paid at 0.60, then by the mended contract: once, twice, three times.
CREATE FUNCTION load_month(target regclass, mended bool) RETURNS bigint LANGUAGE sql AS
$$
SELECT sum((replace_partition(target, d::date, format('SELECT * FROM payout($1, %L)', mended))).inserted)::bigint
FROM generate_series(timestamp '2026-08-01', '2026-08-30', '1 day') d
$$;
SELECT is(load_month(t, false), 58000::bigint, t || ': the rest of the month at 0.60')
FROM unnest(ARRAY['payouts', 'payouts_part']) t;
SELECT results_eq(format('SELECT * FROM totals(%L)', t), $$VALUES (60000::bigint, 8990100.00)$$, t || ': month at 0.60')
FROM unnest(ARRAY['payouts', 'payouts_part']) t;

SELECT is(load_month(t, true), (SELECT count(*) FROM sales WHERE price_eur >= 400),
	t || ': by the mended contract only what is 400 or more changes')
FROM unnest(ARRAY['payouts', 'payouts_part']) t;
SELECT results_eq(format('SELECT * FROM totals(%L)', t), $$VALUES (60000::bigint, 8771588.64)$$, t || ': mended month')
FROM unnest(ARRAY['payouts', 'payouts_part']) t;
SELECT is(load_month(t, true), 0::bigint, format('%s: mended again, time %s', t, n))
FROM unnest(ARRAY['payouts', 'payouts_part']) t, generate_series(2, 3) n;
SELECT results_eq(format('SELECT * FROM totals(%L)', t), $$VALUES (60000::bigint, 8771588.64)$$, t || ': mended three times')
FROM unnest(ARRAY['payouts', 'payouts_part']) t;

-- The same without the delete, over the month already paid.
TRUNCATE payouts_append;
INSERT INTO payouts_append SELECT p.* FROM generate_series(timestamp '2026-08-01', '2026-08-30', '1 day') d, payout(d::date, false) p;
INSERT INTO payouts_append SELECT p.* FROM generate_series(timestamp '2026-08-01', '2026-08-30', '1 day') d, payout(d::date, true) p;
SELECT results_eq('SELECT * FROM totals(''payouts_append'')', $$VALUES (120000::bigint, 17761688.64)$$, 'payouts_append: paid twice');

-- The quiet version: the run of the 25th, repeated on the 27th, loads the 26th.
DELETE FROM payouts WHERE sale_date = '2026-08-25';
SELECT is((replace_partition('payouts', '2026-08-26', 'SELECT * FROM payout(date ''2026-08-27'' - 1, true)')).method,
	'none', 'the wrong day is there already, so nothing says that one is missing');
SELECT results_eq('SELECT count(*), sum(p.amount_eur) FROM payout(''2026-08-25'', true) p WHERE NOT EXISTS (SELECT FROM payouts q WHERE q.sale_id = p.sale_id)',
	$$VALUES (2000::bigint, 292470.58)$$, 'what is missing');
SELECT throws_ok($$SELECT replace_partition('payouts', '2026-08-25', 'SELECT * FROM payout(date ''2026-08-27'' - 1, true)')$$,
	'IL001', NULL, 'a query that reads the clock is caught when the date is a parameter');
SELECT results_eq('SELECT * FROM totals(''payouts'')', $$VALUES (58000::bigint, 8771588.64 - 292470.58)$$, 'and nothing was written');

SELECT * FROM finish();
ROLLBACK;
