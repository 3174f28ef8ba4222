{# The incremental strategy. dbt looks for a strategy only in the project itself, so the
   project has a macro of this name that calls this one; README.md shows it. #}
{% macro get_incremental_replace_partition_sql(arg_dict) %}
  {{ return(idempotent_load.incremental_sql(arg_dict)) }}
{% endmacro %}


{# dbt-postgres refuses microbatch models without a unique_key, and merges those that have
   one. So these are replaced, and those stay as they are. #}
{% macro postgres__get_incremental_microbatch_sql(arg_dict) %}
  {% if idempotent_load.is_replaced() %}
    {{ return(idempotent_load.incremental_sql(arg_dict)) }}
  {% endif %}
  {{ return(dbt.postgres__get_incremental_microbatch_sql(arg_dict)) }}
{% endmacro %}


{# Is the model at hand written by this package? #}
{% macro is_replaced() %}
  {% set strategy = config.get('incremental_strategy') %}
  {{ return(config.get('materialized') == 'incremental'
            and (strategy == 'replace_partition'
                 or (strategy == 'microbatch' and not config.get('unique_key')))) }}
{% endmacro %}


{# What brings an existing table up to date. #}
{% macro incremental_sql(arg_dict) %}
  {% set options = idempotent_load.options() %}
  {% if arg_dict['incremental_predicates'] %}
    {% do idempotent_load.refuse(
         'incremental_predicates have no meaning for this strategy, which compares the rows of a period only.'
         ~ ' Remove them.') %}
  {% endif %}
  {% set staged = arg_dict['temp_relation'] %}
  {% set columns = idempotent_load.loaded_columns(staged, arg_dict['dest_columns']) %}
  {% if options.slice %}
    {{ return(idempotent_load.load_sql(arg_dict['target_relation'], options.slice, options,
                                       idempotent_load.model_query(columns))) }}
  {% endif %}
  {% set loads = idempotent_load.period_loads(arg_dict['target_relation'], staged, columns, options) %}
  {{ return(loads | join(';\n')) }}
{% endmacro %}


{# The columns that the query gives and the table has. dbt's other strategies let the server
   complain of a column that the model no longer has. #}
{% macro loaded_columns(staged, dest_columns) %}
  {% set given = adapter.get_columns_in_relation(staged) | map(attribute='name') | list %}
  {% set names = dest_columns | map(attribute='name') | list %}
  {% set lost = names | reject('in', given) | list %}
  {% if lost %}
    {% do idempotent_load.refuse(
         'the query no longer returns ' ~ lost | join(', ') ~ ', which the table has. Return it, or set on_schema_change'
         ~ ' to append_new_columns (the column stays, and is null in new rows) or sync_all_columns (it is dropped).') %}
  {% endif %}
  {{ return(names) }}
{% endmacro %}


{# The model's own text, by the table's columns. It is handed to the load, which runs it under
   the lock of the slice. The same text makes the next run cheaper. #}
{% macro model_query(columns) %}
  {% set text %}
SELECT {{ get_quoted_csv(columns) }} FROM (
{{ model['compiled_code'] }}
) AS model
  {%- endset %}
  {{ return(text) }}
{% endmacro %}


{# One load. The slice is that of options(). #}
{% macro load_sql(relation, slice, options, query) %}
  {% set function = 'replace_partition' if slice.date else 'replace_slice' %}
  {% set text %}
SELECT * FROM {{ idempotent_load.extension_schema() }}{{ function }}(
  target => {{ idempotent_load.regclass(relation) }},
  {%- if slice.date %}
  date => {{ idempotent_load.literal(slice.date) }},
  period => {{ idempotent_load.literal(options.period.text) }},
  {%- else %}
  lower => {{ idempotent_load.literal(slice.lower) }},
  upper => {{ idempotent_load.literal(slice.upper) }},
  {%- endif %}
  query => {{ idempotent_load.dollar_quoted(query) }},
  {%- for name, value in options.arguments.items() %}
  {{ name }} => {{ value }},
  {%- endfor %}
  run_id => {{ idempotent_load.literal(invocation_id) }})
  {%- endset %}
  {{ return(text) }}
{% endmacro %}


{# A load for each period that rows of the relation are of, in the order of dates, so that two
   runs at once wait in one direction, but where loads make partitions: the lock for that comes
   last, and with several loads in a transaction may end one of the runs with 40P01. After them
   comes a query of their records: dbt shows how many rows the last statement returned. #}
{% macro period_loads(relation, staged, columns, options) %}
  {% set key = idempotent_load.key(staged, options) %}
  {% set dates = idempotent_load.periods(staged, key, options) %}
  {% if options.slice and options.slice.date and options.slice.date not in dates %}
    {% set dates = (dates + [options.slice.date]) | sort %}
  {% endif %}
  {% set rows = idempotent_load.name_staged_rows(staged, key, dates) %}
  {% set query %}
/* {{ model.unique_id }} {{ local_md5(model['compiled_code']) }} */
SELECT {{ get_quoted_csv(columns) }} FROM {{ rows }}
WHERE {{ adapter.quote(key.name) }} >= {{ key.lower }} AND {{ adapter.quote(key.name) }} < {{ key.upper }}
  {%- endset %}
  {% set loads = [] %}
  {% for date in dates %}
    {% do loads.append(idempotent_load.load_sql(relation, {'date': date}, options, query)) %}
  {% endfor %}
  {% do loads.append(idempotent_load.records_sql(relation)) %}
  {{ return(loads) }}
{% endmacro %}


{# What load_history has of this invocation, or of one table in it. #}
{% macro records_sql(relation=none) %}
  {% set text %}
SELECT target::text, lower_bound, method, rows, inserted, deleted
FROM {{ idempotent_load.extension_schema() }}load_history
WHERE run_id = {{ idempotent_load.literal(invocation_id) }}
  {%- if relation %}
  AND target = {{ idempotent_load.regclass(relation) }}
  {%- endif %}
ORDER BY id
  {%- endset %}
  {{ return(text) }}
{% endmacro %}


{# Gives the temporary table, whose name has the time in it, a name that is the same in each
   run, and an index where it is read for many periods. #}
{% macro name_staged_rows(staged, key, dates) %}
  {% set name = 'replace_partition_rows' %}
  {% call statement('name_staged_rows') %}
    DROP TABLE IF EXISTS pg_temp.{{ name }};
    ALTER TABLE pg_temp.{{ adapter.quote(staged.identifier) }} RENAME TO {{ name }};
    {% if dates | length > 1 %}
    CREATE INDEX ON pg_temp.{{ name }} ({{ adapter.quote(key.name) }});
    ANALYZE pg_temp.{{ name }};
    {% endif %}
  {% endcall %}
  {{ return('pg_temp.' ~ name) }}
{% endmacro %}
