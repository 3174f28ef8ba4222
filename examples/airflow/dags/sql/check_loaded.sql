SELECT assert_loaded('revenue', '{{ ds }}', '{{ ds }}'),
       assert_loaded('order_status', '{{ ds }}', '{{ ds }}')
