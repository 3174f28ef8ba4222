{# dbt makes each table of a model by this macro. Those of other models are made as ever. #}
{% macro postgres__get_create_table_as_sql(temporary, relation, sql) %}
  {% if not idempotent_load.is_replaced() %}
    {{ return(dbt.default__get_create_table_as_sql(temporary, relation, sql)) }}
  {% endif %}
  {% set options = idempotent_load.options() %}
  {% if not temporary %}
    {{ return(idempotent_load.first_load_sql(relation, sql, options)) }}
  {% endif %}
  {# dbt looks here for the columns of the model. Where the slice is known, the load runs the
     query itself, and no row is needed. #}
  {{ return(dbt.default__get_create_table_as_sql(
       true, relation, get_empty_subquery_sql(sql) if options.slice else sql)) }}
{% endmacro %}


{# The table is made without rows, and then filled by loads, so that it has a history, and
   partitions where these are wanted. All in the one transaction of the model. #}
{% macro first_load_sql(relation, sql, options) %}
  {% do idempotent_load.refuse_partitioned(relation, options) %}
  {# A batch is one slice; another model's first run returns whatever it likes. #}
  {% set whole = not model.batch %}
  {% set staged = make_temp_relation(this) %}
  {% call statement('stage') %}
    {{ dbt.default__get_create_table_as_sql(true, staged, sql if whole else get_empty_subquery_sql(sql)) }}
  {% endcall %}
  {% set columns = adapter.get_columns_in_relation(staged) | map(attribute='name') | list %}
  {% call statement('create_table') %}
    CREATE {{ 'UNLOGGED' if config.get('unlogged') }} TABLE {{ relation }}
    {% if config.get('contract').enforced %}
      {{ get_table_columns_and_constraints() }}
    {% else %}
      (LIKE {{ staged }})
    {% endif %}
    {% if options.partitioned %}
      PARTITION BY RANGE ({{ adapter.quote(options.date_column) }})
    {% endif %}
  {% endcall %}
  {% if not whole %}
    {{ return(idempotent_load.load_sql(relation, options.slice, options, idempotent_load.model_query(columns))) }}
  {% endif %}
  {% set loads = idempotent_load.period_loads(relation, staged, columns, options) %}
  {% if not options.partitioned %}
    {# Without an index each load would read all that the loads before it have written. #}
    {% set index = 'idempotent_load_' ~ local_md5(relation | string) %}
    {% do loads.insert(0, 'CREATE INDEX ' ~ index ~ ' ON ' ~ relation
                          ~ ' (' ~ adapter.quote(options.date_column) ~ ')') %}
    {% do loads.insert(-1, 'DROP INDEX ' ~ adapter.quote(relation.schema) ~ '.' ~ index) %}
  {% endif %}
  {{ return(loads | join(';\n')) }}
{% endmacro %}


{# dbt builds a table anew beside the old one, or beside the view that it was. Its partitions
   could not have their names, nor what was set on them by hand. #}
{% macro refuse_partitioned(relation, options) %}
  {% if relation.identifier != this.identifier %}
    {% set kind = run_query("SELECT relkind FROM pg_class WHERE oid = " ~ idempotent_load.regclass(this)) %}
    {% if kind.rows and kind.rows[0][0] == 'p' %}
      {% do idempotent_load.refuse(
           'the table is partitioned, and a full refresh would not keep its partitions as they are. A run without'
           ~ ' --full-refresh replaces each period that the query returns. To build the table anew, drop it and run.'
           ~ ' To let --full-refresh pass by this model, set full_refresh: false.') %}
    {% elif options.partitioned %}
      {% do idempotent_load.refuse(
           'partitions that are made beside what is there now could not be named after the table. To have it'
           ~ ' partitioned, drop what is there and run.') %}
    {% endif %}
  {% endif %}
{% endmacro %}
