SELECT * FROM replace_partition('revenue', '{{ ds }}',
  $query${% include 'sql/revenue.sql' %}$query$,
  run_id => '{{ run_id }}')
