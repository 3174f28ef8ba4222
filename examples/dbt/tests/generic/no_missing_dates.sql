{# Fails with a row for each date of the range that was never loaded, has failed, or is thin. #}
{% test no_missing_dates(model, from_date, to_date, thin=0.5, period='1 day') %}
  SELECT * FROM {{ idempotent_load.extension_schema() }}missing_dates(
    target => {{ idempotent_load.regclass(model) }},
    from_date => {{ idempotent_load.literal(from_date) }},
    to_date => {{ idempotent_load.literal(to_date) }},
    thin => {{ 'NULL' if thin is none else thin }},
    period => {{ idempotent_load.literal(period) }})
{% endtest %}
