{# Prints what the loads of this invocation did, from load_history; for on-run-end. Printed and
   not logged, so that dbt --quiet shows just this. #}
{% macro log_loads() %}
  {% if execute and flags.WHICH in ['run', 'build', 'retry'] %}
    {% for load in run_query(idempotent_load.records_sql()).rows %}
      {% do print(load[0] ~ ' ' ~ load[1] ~ ': ' ~ load[2] ~ ', ' ~ load[3] ~ ' rows, inserted ' ~ load[4]
                  ~ ', deleted ' ~ load[5]) %}
    {% endfor %}
  {% endif %}
{% endmacro %}
