SELECT * FROM replace_partition('report', '{{ ds }}', $query$
    SELECT order_date, count(*) AS orders, sum(amount_eur) AS amount_eur
    FROM revenue
    WHERE order_date >= $1 AND order_date < $2
    GROUP BY order_date
  $query$, run_id => '{{ run_id }}')
