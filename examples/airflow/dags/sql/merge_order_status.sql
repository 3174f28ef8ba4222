SELECT * FROM merge_rows('order_status', '{{ ds }}',
  $query${% include 'sql/order_status.sql' %}$query$,
  key => '{order_id}', version => 'revision', run_id => '{{ run_id }}')
