--
-- preview: measures of a slice as it is, and as a query would make it
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotent_load;
CREATE SCHEMA iload_preview;
CREATE ROLE regress_iload_viewer;
GRANT USAGE ON SCHEMA iload_preview TO regress_iload_viewer;
RESET client_min_messages;
SET search_path = iload_preview, public;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
SET IntervalStyle = 'postgres';
\set SHOW_CONTEXT never

-- Story A: 2,000 payouts of 60 % make 299,730.00; by the new contract, 55 % from a
-- price of 400 on, it is less.
CREATE TABLE sales (sale_id bigint, sale_date date, price_eur numeric(10,2));
INSERT INTO sales SELECT i, date '2026-08-01' + (i - 1) / 2000, round(25 + ((i * 37) % 900) * 0.5, 2) FROM generate_series(48001, 50000) i;
CREATE TABLE payouts (sale_id bigint, sale_date date NOT NULL, amount_eur numeric(10,2)) PARTITION BY RANGE (sale_date);
CREATE TABLE payouts_25 PARTITION OF payouts FOR VALUES FROM ('2026-08-25') TO ('2026-08-26');
SELECT method, rows FROM replace_partition('payouts', '2026-08-25', 'SELECT sale_id, sale_date, round(price_eur * 0.60, 2) AS amount_eur FROM sales WHERE sale_date = $1');
SELECT * FROM preview_partition('payouts', '2026-08-25', 'SELECT sale_id, sale_date, round(price_eur * 0.60, 2) AS amount_eur FROM sales WHERE sale_date = $1');
SELECT * FROM preview_partition('payouts', '2026-08-25',
	'SELECT sale_id, sale_date, round(price_eur * CASE WHEN price_eur >= 400 THEN 0.55 ELSE 0.60 END, 2) AS amount_eur FROM sales WHERE sale_date = $1');
SELECT sum(round(price_eur * CASE WHEN price_eur >= 400 THEN 0.55 ELSE 0.60 END, 2)) FROM sales;
-- nothing was written
SELECT count(*), sum(amount_eur) FROM payouts;
SELECT count(*) FROM load_history WHERE target = 'payouts'::regclass;
-- of a day without rows, or without a partition, all shares are null; none is made
SELECT * FROM preview_partition('payouts', '2026-08-26', 'SELECT 1 AS sale_id, $1 AS sale_date, 5 AS amount_eur');
SELECT count(*) FROM pg_inherits WHERE inhparent = 'payouts'::regclass;
SELECT * FROM preview_partition('payouts', '2026-08-25', 'SELECT $1 AS sale_date WHERE false');

-- every numeric type; not the key, nor what is generated, ignored or no number
CREATE DOMAIN cents AS bigint;
CREATE TABLE kinds (day int, i2 smallint, i4 int, i8 bigint, c cents, n numeric, f4 real, f8 double precision, "Quoted'Name" int,
                    t text, at timestamptz, b boolean, twice bigint GENERATED ALWAYS AS (i4::bigint * 2) STORED, note int);
INSERT INTO kinds VALUES
	(20240101, 1, 2147483647, 9223372036854775807, 100, 1.10, 0.1, 0.1, 1, 'a', now(), true, DEFAULT, 1),
	(20240101, 2, 2147483647, 9223372036854775807, 200, 2.20, 0.2, 0.2, 2, 'b', now(), true, DEFAULT, 2),
	(20240101, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT, NULL),
	(20240102, 9, 9, 9, 9, 9, 9, 9, 9, 'c', now(), true, DEFAULT, 9);
SELECT * FROM preview_partition('kinds', '2024-01-01', $$
	SELECT 20240101 AS day, 6 AS i2, 2147483647 AS i4, -1 AS i8, 450 AS c, 'NaN'::numeric AS n, 0.3::real AS f4, 0.6 AS f8, -3 AS "Quoted'Name"$$,
	date_column => 'day', ignore_columns => '{note}');
-- a table without measures
CREATE TABLE bare (d date);
SELECT * FROM preview_partition('bare', '2024-01-01', 'SELECT $1 AS d FROM generate_series(1, 3)');

-- periods and zones, as for a load
CREATE TABLE events (at timestamptz, n int);
INSERT INTO events VALUES ('2024-03-10 04:59+00', 1), ('2024-03-10 05:00+00', 2), ('2024-03-11 03:59+00', 4), ('2024-03-11 04:00+00', 8);
SELECT live, staged FROM preview_partition('events', '2024-03-10', 'SELECT at, n FROM events WHERE at >= $1 AND at < $2', timezone => 'America/New_York');
SELECT live, staged FROM preview_partition('events', '2024-03-01', 'SELECT at, n FROM events', period => '1 month');
SELECT current_setting('TimeZone');
-- the query may read the slice as it is
SELECT measure, live, staged, share FROM preview_partition('events', '2024-03-10', 'SELECT at, n * 2 AS n FROM events WHERE at >= $1 AND at < $2');

-- what would fail a load fails its preview
SELECT preview_partition('events', '2024-03-10', 'SELECT at, n FROM events');
\set SHOW_CONTEXT errors
SELECT preview_partition('events', '2024-03-10', 'SELECT at, n / 0 AS n FROM events');
\set SHOW_CONTEXT never
\set VERBOSITY sqlstate
SELECT preview_partition('events', '2024-03-10', 'DELETE FROM events');
SELECT preview_partition('events', '2024-03-10', 'SELECT 1 AS n');
SELECT preview_partition('events', '2024-03-10', 'SELECT $1 AS at, 1 AS m');
SELECT preview_partition('events', '2024-03-10', 'SELECT $1 AS at', date_column => 'n');
SELECT preview_partition('events', '2024-03-10', 'SELECT $1 AS at', timezone => 'Mars/Olympus');
SELECT preview_partition('events', '2024-03-10', 'SELECT $1 AS at', ignore_columns => '{at}');
SELECT preview_partition('events', '2024-03-10', 'SELECT $1 AS at', period => '1 month');
SELECT preview_partition(NULL, '2024-03-10', 'SELECT $1 AS at');
SELECT preview_partition('events', NULL, 'SELECT $1 AS at');
SELECT preview_partition('events', '2024-03-10', NULL);
SET ROLE regress_iload_viewer;
SELECT preview_partition('events', '2024-03-10', 'SELECT $1 AS at');
RESET ROLE;
\set VERBOSITY default
-- to read is enough, also in a transaction that may not write
GRANT SELECT ON events TO regress_iload_viewer;
SET ROLE regress_iload_viewer;
BEGIN READ ONLY;
SELECT * FROM preview_partition('events', '2024-03-10', 'SELECT $1 AS at, 14 AS n');
COMMIT;
RESET ROLE;
-- row security hides from it what it hides
ALTER TABLE events ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON events USING (n < 4);
SET ROLE regress_iload_viewer;
SELECT measure, live FROM preview_partition('events', '2024-03-10', 'SELECT $1 AS at');
RESET ROLE;
-- nothing depends on the caller's search_path
SET search_path = '';
SELECT * FROM public.preview_partition('iload_preview.events', '2024-03-10', 'SELECT $1 AS at, 14 AS n');
SET search_path = iload_preview, public;

DELETE FROM load_history WHERE target_name LIKE 'iload\_preview.%';
SET client_min_messages = warning;
DROP SCHEMA iload_preview CASCADE;
DROP ROLE regress_iload_viewer;
