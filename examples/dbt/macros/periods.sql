{# The key column of staged rows: its name, the date of a row, whether the bounds of that date
   hold the row (not so for '2026-8-25', 202608 or 44 BC), and these bounds, $1 and $2, in the
   column's own type, so that an index serves. #}
{% macro key(staged, options) %}
  {% set columns = adapter.get_columns_in_relation(staged) %}
  {% set column = columns | selectattr('name', 'equalto', options.date_column) | first %}
  {% if not column %}
    {% do idempotent_load.refuse('the query does not return its date_column, "' ~ options.date_column ~ '".') %}
  {% endif %}
  {% set name = adapter.quote(column.name) %}
  {% set zone = idempotent_load.literal(options.timezone) if options.timezone else "current_setting('TimeZone')" %}
  {% set type = column.dtype %}
  {% set plain = 'isfinite(' ~ name ~ ') AND ' ~ name ~ " >= '0001-01-01'" %}
  {% if type == 'date' %}
    {% set key = {'date': name, 'is_held': plain, 'lower': '$1', 'upper': '$2'} %}
  {% elif type == 'timestamp without time zone' %}
    {% set key = {'date': name ~ '::date', 'is_held': plain, 'lower': '$1', 'upper': '$2'} %}
  {% elif type == 'timestamp with time zone' %}
    {% set key = {'date': '(' ~ name ~ ' AT TIME ZONE ' ~ zone ~ ')::date', 'is_held': plain,
                  'lower': '$1', 'upper': '$2'} %}
  {% elif type in ['integer', 'bigint'] %}
    {% set date = 'to_date(' ~ name ~ "::text, 'YYYYMMDD')" %}
    {% set key = {'date': date, 'is_held': name ~ '::text = to_char(' ~ date ~ ", 'YYYYMMDD')",
                  'lower': "to_char($1, 'YYYYMMDD')::" ~ type, 'upper': "to_char($2, 'YYYYMMDD')::" ~ type} %}
  {% elif type in ['text', 'character varying', 'character'] %}
    {% set date = name ~ '::date' %}
    {% set key = {'date': date, 'is_held': name ~ '::text = to_char(' ~ date ~ ", 'YYYY-MM-DD')",
                  'lower': "to_char($1, 'YYYY-MM-DD')", 'upper': "to_char($2, 'YYYY-MM-DD')"} %}
  {% else %}
    {% do idempotent_load.refuse(
         'date_column "' ~ column.name ~ '" is of type ' ~ type ~ ', which does not hold days.') %}
  {% endif %}
  {% do key.update({'name': column.name}) %}
  {{ return(key) }}
{% endmacro %}


{# The first days of the periods that staged rows are of. A row that its period would not hold
   is refused: it would be lost without a word. #}
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
       "SELECT to_char(" ~ day ~ ", 'YYYY-MM-DD'), min(stray) FROM (SELECT " ~ key.date ~ " AS day,"
       ~ " min(" ~ adapter.quote(key.name) ~ "::text) FILTER (WHERE NOT (" ~ key.is_held ~ ")) AS stray FROM "
       ~ staged ~ " GROUP BY 1) AS days GROUP BY 1 ORDER BY 1") %}
  {% set strays = found.columns[1].values() | reject('none') | list %}
  {% if strays %}
    {% do idempotent_load.refuse(
         'the query returned a row whose "' ~ key.name ~ '" is "' ~ strays[0] ~ '", which is not a day as '
         ~ 'replace_partition takes it: a date from the year 1 on, a number like 20260825 or a text like 2026-08-25.') %}
  {% endif %}
  {% set dates = found.columns[0].values() | list %}
  {% if none in dates %}
    {% do idempotent_load.refuse(
         'the query returned rows whose "' ~ key.name ~ '" is null. Such a row belongs to no period.') %}
  {% endif %}
  {{ return(dates) }}
{% endmacro %}
