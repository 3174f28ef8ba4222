SELECT order_id, order_date, amount_eur
FROM orders
WHERE order_date >= $1 AND order_date < $2
