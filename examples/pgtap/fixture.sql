-- A small warehouse with fixed rows, and its jobs. In your tests: the tables and jobs as
-- your migrations make them, and a few rows of one day for each source.

CREATE TABLE sales (
	sale_id bigint PRIMARY KEY,
	sale_date date NOT NULL,
	shop text NOT NULL,
	price_eur numeric(10,2) NOT NULL
);

INSERT INTO sales
SELECT i, date '2026-08-24' + i % 3, 'shop ' || i % 7, 10 + i
FROM generate_series(1, 60) AS i;

CREATE TABLE payouts (
	sale_id bigint NOT NULL,
	sale_date date NOT NULL,
	amount_eur numeric(10,2) NOT NULL,
	loaded_at timestamptz NOT NULL DEFAULT now()
) PARTITION BY RANGE (sale_date);

CREATE TABLE revenue (
	sale_date date,
	shop text,
	amount_eur numeric NOT NULL,
	PRIMARY KEY (sale_date, shop)
);

CREATE TABLE top_sales (LIKE sales);

-- loaded_at tells when a row was written, so it may differ
SELECT create_job('payouts', 'payouts', $$
	SELECT sale_id, sale_date, round(price_eur * 0.60, 2) AS amount_eur
	FROM sales WHERE sale_date = $1
$$, ignore_columns => '{loaded_at}');

SELECT create_job('revenue', command => $$
	INSERT INTO revenue
	SELECT sale_date, shop, sum(price_eur) FROM sales WHERE sale_date = $1 GROUP BY 1, 2
	ON CONFLICT (sale_date, shop) DO UPDATE SET amount_eur = EXCLUDED.amount_eur
$$);

SELECT create_job('top_sales', command => $$
	DELETE FROM top_sales WHERE sale_date = $1;
	INSERT INTO top_sales
	SELECT * FROM sales WHERE sale_date = $1 ORDER BY price_eur DESC, sale_id LIMIT 10
$$);
