SELECT order_date, count(*) AS orders, sum(amount_eur) AS amount_eur
FROM revenue
WHERE order_date >= $1 AND order_date < $2
GROUP BY order_date
