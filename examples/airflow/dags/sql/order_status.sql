SELECT order_id, order_date, status, revision
FROM order_changes
WHERE order_date >= $1 AND order_date < $2
