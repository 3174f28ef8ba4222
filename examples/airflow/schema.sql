-- The warehouse of the example: sources, targets, and a few rows of two days.

CREATE EXTENSION IF NOT EXISTS idempotent_load;

CREATE TABLE orders (
	order_id bigint PRIMARY KEY,
	order_date date NOT NULL,
	amount_eur numeric(10,2) NOT NULL
);

-- one row for each change; a source that gives the changes only
CREATE TABLE order_changes (
	order_id bigint NOT NULL,
	order_date date NOT NULL,
	status text NOT NULL,
	revision integer NOT NULL
);

CREATE TABLE revenue (
	order_id bigint NOT NULL,
	order_date date NOT NULL,
	amount_eur numeric(10,2) NOT NULL
) PARTITION BY RANGE (order_date);

CREATE TABLE order_status (
	order_id bigint NOT NULL,
	order_date date NOT NULL,
	status text NOT NULL,
	revision integer NOT NULL
) PARTITION BY RANGE (order_date);

CREATE TABLE report (
	order_date date PRIMARY KEY,
	orders bigint NOT NULL,
	amount_eur numeric NOT NULL
);
