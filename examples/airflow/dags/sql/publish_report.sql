SELECT * FROM replace_partition('report', '{{ ds }}',
  $query${% include 'sql/report.sql' %}$query$,
  run_id => '{{ run_id }}')
