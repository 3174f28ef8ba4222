{# The key column of staged rows: its name, the date of a row, and the bounds of a slice, $1
   and $2, in its own type, so that an index serves. #}
{% macro key(staged, options) %}
  {% set columns = adapter.get_columns_in_relation(staged) %}
  {% set column = columns | selectattr('name', 'equalto', options.date_column) | first %}
  {% if not column %}
    {% do idempotent_load.refuse('the query does not return its date_column, "' ~ options.date_column ~ '".') %}
  {% endif %}
  {% set name = adapter.quote(column.name) %}
  {% set zone = idempotent_load.literal(options.timezone) if options.timezone else "current_setting('TimeZone')" %}
  {% set type = column.dtype %}
  {% if type == 'date' %}
    {% set key = {'date': name, 'lower': '$1', 'upper': '$2'} %}
  {% elif type == 'timestamp without time zone' %}
    {% set key = {'date': name ~ '::date', 'lower': '$1', 'upper': '$2'} %}
  {% elif type == 'timestamp with time zone' %}
    {% set key = {'date': '(' ~ name ~ ' AT TIME ZONE ' ~ zone ~ ')::date', 'lower': '$1', 'upper': '$2'} %}
  {% elif type in ['integer', 'bigint'] %}
    {% set key = {'date': 'to_date(' ~ name ~ "::text, 'YYYYMMDD')",
                  'lower': "to_char($1, 'YYYYMMDD')::" ~ type, 'upper': "to_char($2, 'YYYYMMDD')::" ~ type} %}
  {% elif type in ['text', 'character varying', 'character'] %}
    {% set key = {'date': name ~ '::date',
                  'lower': "to_char($1, 'YYYY-MM-DD')", 'upper': "to_char($2, 'YYYY-MM-DD')"} %}
  {% else %}
    {% do idempotent_load.refuse(
         'date_column "' ~ column.name ~ '" is of type ' ~ type ~ ', which does not hold days.') %}
  {% endif %}
  {% do key.update({'name': column.name}) %}
  {{ return(key) }}
{% endmacro %}


{# The first days of the periods that staged rows are of. #}
{% macro periods(staged, key, options) %}
  {% set day = 'day' %}
  {% if options.period.unit == 'week' %}
    {% set day = "date_trunc('week', day)" %}
  {% elif options.period.months %}
    {% set day = "date_trunc('year', day) + (extract(month FROM day)::int - 1) / "
                 ~ options.period.months ~ " * interval '" ~ options.period.text ~ "'" %}
  {% elif options.period.unit == 'year' %}
    {% set day = "date_trunc('year', day)" %}
  {% endif %}
  {% set found = run_query(
       "SELECT DISTINCT to_char(" ~ day ~ ", 'YYYY-MM-DD') FROM (SELECT DISTINCT " ~ key.date ~ " AS day FROM "
       ~ staged ~ ") AS days ORDER BY 1") %}
  {% set dates = found.columns[0].values() | list %}
  {% if none in dates %}
    {% do idempotent_load.refuse(
         'the query returned rows whose "' ~ key.name ~ '" is null. Such a row belongs to no period.') %}
  {% endif %}
  {{ return(dates) }}
{% endmacro %}
