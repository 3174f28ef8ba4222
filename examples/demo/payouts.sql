-- Story A: sales, what is owed for them, and a target for each write pattern.

CREATE EXTENSION idempotent_load;

CREATE TABLE sales (
	sale_id bigint PRIMARY KEY,
	sale_date date NOT NULL,
	price_eur numeric(10,2) NOT NULL
);

INSERT INTO sales
SELECT i, date '2026-08-01' + (i - 1) / 2000, round(25 + ((i * 37) % 900) * 0.5, 2)
FROM generate_series(1, 60000) AS i;

CREATE INDEX ON sales (sale_date);

-- by the contract as it was read at first
CREATE VIEW owed AS
SELECT sale_id, sale_date, round(price_eur * 0.60, 2) AS amount_eur
FROM sales;

-- by the contract as it is
CREATE VIEW owed_fixed AS
SELECT sale_id, sale_date,
	round(price_eur * CASE WHEN price_eur >= 400 THEN 0.55 ELSE 0.60 END, 2) AS amount_eur
FROM sales;

CREATE TABLE payouts_append (
	sale_id bigint NOT NULL,
	sale_date date NOT NULL,
	amount_eur numeric(10,2) NOT NULL
);

CREATE TABLE payouts_merge (
	LIKE payouts_append,
	PRIMARY KEY (sale_id)
);

CREATE TABLE payouts (
	LIKE payouts_append
) PARTITION BY RANGE (sale_date);

-- the first attempt of the job is not ours and needs its partition
CREATE TABLE payouts_20260825 PARTITION OF payouts
	FOR VALUES FROM ('2026-08-25') TO ('2026-08-26');

-- the payouts of a month are a backfill of this job
SELECT create_job('payouts_daily', 'payouts', 'SELECT * FROM owed WHERE sale_date = $1');

-- for the job that asks the clock, and for a month of its runs
CREATE TABLE payouts_by_clock (LIKE payouts_append);
CREATE TABLE payouts_nightly (LIKE payouts_append);

-- What is owed, moved so that today is 2026-08-26, when the job that asks the clock runs
-- for the 25th.
CREATE TABLE owed_lately AS
SELECT sale_id, sale_date + (current_date - '2026-08-26') AS sale_date, amount_eur
FROM owed_fixed;

SELECT create_job('current_date - 1', command => $$
	DELETE FROM payouts_by_clock WHERE sale_date = current_date - 1;
	INSERT INTO payouts_by_clock
	SELECT * FROM owed_lately WHERE sale_date = current_date - 1
$$);
