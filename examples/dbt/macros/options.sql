{# The options of the model, checked: those of replace_partition by the same names, as SQL in
   `arguments`; what this package needs itself by name; and `slice`, the one that this run
   loads, which is none where the rows tell. #}
{% macro options() %}
  {% do idempotent_load.require_dispatch() %}
  {% set batch = model.batch %}
  {% set period = idempotent_load.period() %}
  {% set options = {
       'date_column': idempotent_load.option('date_column') or config.get('event_time'),
       'period': period,
       'timezone': 'UTC' if batch else idempotent_load.option('timezone'),
       'partitioned': idempotent_load.option('partitioned'),
       'slice': idempotent_load.batch_slice(period) if batch else idempotent_load.date_slice(),
       'arguments': {},
     } %}
  {% if not options.date_column %}
    {% do idempotent_load.refuse('it needs a date_column: the column that says to which day a row belongs.') %}
  {% endif %}
  {% if config.get('unique_key') %}
    {% do idempotent_load.refuse(
         'unique_key has no meaning for this strategy, which replaces periods and not keys. Remove it. To have keys'
         ~ ' checked, use a unique index (indexes), or dbt\'s test unique.') %}
  {% endif %}
  {% if options.partitioned and config.get('unlogged') %}
    {% do idempotent_load.refuse('a partitioned table cannot be unlogged. Remove one of the two.') %}
  {% endif %}
  {% if batch and idempotent_load.option('date') is not none %}
    {% do idempotent_load.refuse('the batches of microbatch are its dates. Remove date.') %}
  {% endif %}
  {% if batch and idempotent_load.option('timezone') not in [none, 'UTC'] %}
    {% do idempotent_load.refuse('batches of microbatch begin and end in UTC. Remove timezone.') %}
  {% endif %}
  {% set arguments = options.arguments %}
  {% do arguments.update({'date_column': idempotent_load.literal(options.date_column)}) %}
  {% if options.timezone %}
    {% do arguments.update({'timezone': idempotent_load.literal(options.timezone)}) %}
  {% endif %}
  {% for name in ['method', 'on_empty', 'if_running'] %}
    {% if idempotent_load.option(name) is not none %}
      {% do arguments.update({name: idempotent_load.literal(idempotent_load.option(name))}) %}
    {% endif %}
  {% endfor %}
  {% for name in ['create_partition', 'keep_previous'] %}
    {% if idempotent_load.option(name) is not none %}
      {% if idempotent_load.option(name) is not boolean %}
        {% do idempotent_load.refuse(name ~ ' must be true or false, not "' ~ idempotent_load.option(name) ~ '".') %}
      {% endif %}
      {% do arguments.update({name: idempotent_load.option(name) | string | lower}) %}
    {% endif %}
  {% endfor %}
  {# dbt run --empty asks for no rows; what is there is to stay. #}
  {% if flags.EMPTY %}
    {% do arguments.update({'on_empty': idempotent_load.literal('keep')}) %}
  {% elif idempotent_load.option('audit') is not none %}
    {% do arguments.update({'audit': idempotent_load.dollar_quoted(idempotent_load.option('audit'))}) %}
  {% endif %}
  {% set ignored = idempotent_load.option('ignore_columns') %}
  {% if ignored is not none %}
    {% if ignored is string %}
      {% set ignored = [ignored] %}
    {% endif %}
    {% set names = [] %}
    {% for name in ignored %}
      {% do names.append(idempotent_load.literal(name)) %}
    {% endfor %}
    {% do arguments.update({'ignore_columns': 'ARRAY[' ~ names | join(', ') ~ ']::text[]'}) %}
  {% endif %}
  {{ return(options) }}
{% endmacro %}


{# A config of the model, or of its meta. #}
{% macro option(name) %}
  {% set value = config.get(name) %}
  {{ return(value if value is not none else (config.get('meta') or {}).get(name)) }}
{% endmacro %}


{# Raises an error that names the model. #}
{% macro refuse(reason) %}
  {% do exceptions.raise_compiler_error(
       'model "' ~ model.name ~ '", strategy ' ~ config.get('incremental_strategy') ~ ': ' ~ reason) %}
{% endmacro %}


{# Without it dbt would make the first table, and run the query before the load, by itself. #}
{% macro require_dispatch() %}
  {% set order = adapter.config.get_macro_search_order('dbt') or [] %}
  {% if 'idempotent_load' not in order or 'dbt' in order[:order.index('idempotent_load')] %}
    {% do idempotent_load.refuse(
         'the package must come before dbt in the order of macros. Add to dbt_project.yml: dispatch: [{macro_namespace:'
         ~ ' dbt, search_order: [' ~ project_name ~ ', idempotent_load, dbt]}]') %}
  {% endif %}
{% endmacro %}


{# The period as replace_partition takes it, and as months or days to find its start by. #}
{% macro period() %}
  {% set batch_size = config.get('batch_size') if model.batch else none %}
  {% set given = idempotent_load.option('period') %}
  {% if batch_size and given is not none %}
    {% do idempotent_load.refuse('the period of a microbatch model is its batch_size. Remove period.') %}
  {% endif %}
  {% set text = batch_size or given or 'day' %}
  {% set match = modules.re.match('^(?:(\\d+) )?(hour|day|week|month|quarter|year)s?$', (text | string).lower()) %}
  {% if not match or (match.group(2) == 'hour' and not batch_size) %}
    {% do idempotent_load.refuse(
         'period "' ~ text ~ '" is not supported. Use day, week, month, quarter, year or a number of months that'
         ~ ' divides a year, as in "3 months". For hours use microbatch.') %}
  {% endif %}
  {% set number = (match.group(1) or 1) | int %}
  {% set unit = match.group(2) %}
  {% if unit == 'quarter' %}
    {% set number = number * 3 %}
    {% set unit = 'month' %}
  {% endif %}
  {% if unit == 'day' and number == 7 %}
    {% set number = 1 %}
    {% set unit = 'week' %}
  {% endif %}
  {% if number < 1 or (unit != 'month' and number != 1) or (unit == 'month' and 12 % number != 0) %}
    {% do idempotent_load.refuse('period "' ~ text ~ '" is not supported: it must divide a year.') %}
  {% endif %}
  {{ return({'text': number ~ ' ' ~ unit, 'unit': unit, 'months': number if unit == 'month' else none}) }}
{% endmacro %}


{# The slice of the model's `date`, or none. #}
{% macro date_slice() %}
  {% set date = idempotent_load.option('date') %}
  {% if date is none %}
    {{ return(none) }}
  {% endif %}
  {# Not all that PostgreSQL takes for a date: "today" is the clock's. #}
  {% if not modules.re.match('^\\d{4}-\\d{2}-\\d{2}$', date | string) %}
    {% do idempotent_load.refuse('date must be a date like 2026-08-25, not "' ~ date ~ '".') %}
  {% endif %}
  {{ return({'date': date | string}) }}
{% endmacro %}


{# The slice of the batch at hand. dbt's batches begin and end in UTC. #}
{% macro batch_slice(period) %}
  {% set start = model.batch.event_time_start %}
  {% if period.unit == 'hour' %}
    {{ return({'lower': start.strftime('%Y-%m-%d %H:%M:%S'),
               'upper': model.batch.event_time_end.strftime('%Y-%m-%d %H:%M:%S')}) }}
  {% endif %}
  {{ return({'date': start.strftime('%Y-%m-%d')}) }}
{% endmacro %}


{# The schema of the extension, with a dot, where the variable names one; else search_path finds it. #}
{% macro extension_schema() %}
  {% set schema = var('idempotent_load_schema', none) %}
  {{ return(adapter.quote(schema) ~ '.' if schema else '') }}
{% endmacro %}


{% macro regclass(relation) %}
  {{ return(idempotent_load.literal(relation.include(database=false)) ~ '::regclass') }}
{% endmacro %}


{% macro literal(text) %}
  {{ return("'" ~ (text | string).replace("'", "''") ~ "'") }}
{% endmacro %}


{# So that the text of a query in target/run can be read, and run by hand. #}
{% macro dollar_quoted(text) %}
  {% set tag = '$query$' if '$query$' not in text ~ '$' else '$query_' ~ local_md5(text) ~ '$' %}
  {{ return(tag ~ text ~ tag) }}
{% endmacro %}
