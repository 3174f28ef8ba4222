-- Story B: the orders of two days, and a target for each write pattern. The
-- first day is loaded.

CREATE TABLE orders (
	order_id bigint PRIMARY KEY,
	order_date date NOT NULL,
	amount_eur numeric(10,2) NOT NULL
);

INSERT INTO orders VALUES
	(1, '2026-10-06', 310.00),
	(2, '2026-10-06', 275.50),
	(3, '2026-10-06', 180.00),
	(4, '2026-10-06', 420.00),
	(5, '2026-10-06', 299.50),
	(6, '2026-10-06', 245.00),
	(7, '2026-10-07', 150.00),
	(8, '2026-10-07', 320.00),
	(9, '2026-10-07', 199.90),
	(10, '2026-10-07', 410.10),
	(11, '2026-10-07', 260.00),
	(12, '2026-10-07', 275.00),
	(13, '2026-10-07', 185.00),
	(14, '2026-10-07', 250.00);

CREATE TABLE revenue_append (LIKE orders);
INSERT INTO revenue_append SELECT * FROM orders WHERE order_date = '2026-10-06';

CREATE TABLE revenue (LIKE orders);
INSERT INTO revenue SELECT * FROM orders WHERE order_date = '2026-10-06';
