SELECT * FROM merge_rows('order_status', '{{ ds }}', $query$
    SELECT order_id, order_date, status, revision
    FROM order_changes
    WHERE order_date >= $1 AND order_date < $2
  $query$, key => '{order_id}', version => 'revision', run_id => '{{ run_id }}')
