SELECT assert_loaded('revenue', '{{ ds }}', '{{ ds }}', allow_empty => false),
       assert_loaded('order_status', '{{ ds }}', '{{ ds }}')
