"""Options of a model, what dbt offers beside them, and what is refused."""

import pytest
from conftest import last_load, loads

DAY = """
{{{{ config(date_column='order_date', date='2026-10-07', {config}) }}}}
SELECT order_id, order_date, amount_eur {more} FROM {{{{ source('raw', 'orders') }}}}
WHERE order_date = '2026-10-07'
"""


def day(config="", more=""):
    return DAY.format(config=config, more=more)


def test_refused(project, shop):
    """Each error names the model and says what to do; nothing is written."""
    shop.run("""CREATE SCHEMA mart;
           CREATE TABLE mart.known AS SELECT * FROM raw.orders WHERE false""")
    cases = {
        "no_column": ("{{ config(period='day') }}", "it needs a date_column"),
        "other_column": (
            "{{ config(date_column='sale_date') }}",
            'does not return its date_column, "sale_date"',
        ),
        "no_days": (
            "{{ config(date_column='amount_eur') }}",
            "is of type numeric, which does not hold days",
        ),
        "null_day": (
            "{{ config(date_column='order_date') }}"
            " SELECT 0 AS order_id, NULL::date AS order_date, 0 AS amount_eur UNION ALL",
            'rows whose "order_date" is null',
        ),
        "keyed": (
            "{{ config(date_column='order_date', unique_key='order_id') }}",
            "unique_key has no meaning",
        ),
        "hours": (
            "{{ config(date_column='order_date', period='6 hours') }}",
            'period "6 hours" is not supported',
        ),
        "five_months": (
            "{{ config(date_column='order_date', period='5 months') }}",
            "it must divide a year",
        ),
        "today": (
            "{{ config(date_column='order_date', date='today') }}",
            'date must be a date like 2026-08-25, not "today"',
        ),
        "logged": (
            "{{ config(date_column='order_date', partitioned=true, unlogged=true) }}",
            "a partitioned table cannot be unlogged",
        ),
        "kept": (
            "{{ config(date_column='order_date', keep_previous='no') }}",
            "keep_previous must be true or false",
        ),
        "method": (
            "{{ config(date_column='order_date', method='upsert') }}",
            'invalid value for option "method"',
        ),
        "empty": (
            "{{ config(date_column='order_date', on_empty='ignore') }}",
            'invalid value for option "on_empty"',
        ),
        "known": (
            "{{ config(date_column='order_date', incremental_predicates=['true']) }}",
            "incremental_predicates have no meaning",
        ),
        "by_batch_zone": (
            "{{ config(incremental_strategy='microbatch', event_time='order_date',"
            " begin='2026-10-06', batch_size='day', timezone='Europe/Berlin') }}",
            "",
        ),
        "by_batch_period": (
            "{{ config(incremental_strategy='microbatch', event_time='order_date',"
            " begin='2026-10-06', batch_size='day', period='week') }}",
            "",
        ),
    }
    for name, (config, _) in cases.items():
        project.model(name, config + " SELECT * FROM {{ source('raw', 'orders') }}")
    results = project.invoke(
        "run", "--event-time-start", "2026-10-06", "--event-time-end", "2026-10-07"
    )
    assert results.keys() == cases.keys()
    for name, (_, message) in cases.items():
        assert results[name].status == "error", name
        assert message in results[name].message, name
        if "invalid value" not in message and message:
            assert f'model "{name}", strategy replace_partition: ' in results[name].message
    # of batches dbt tells in its log only
    log = (project.folder / "logs" / "dbt.log").read_text()
    assert (
        'model "by_batch_zone", strategy microbatch: batches of microbatch begin and end in UTC'
        in log
    )
    assert (
        'model "by_batch_period", strategy microbatch: the period of a microbatch model is its'
        in log
    )
    assert shop.value("SELECT count(*) FROM load_history") == 0
    assert shop.rows(
        "SELECT relname::text FROM pg_class WHERE relnamespace = 'mart'::regnamespace"
    ) == [("known",)]


@pytest.mark.parametrize("order", ["shop, dbt", "shop, dbt, idempotent_load"])
def test_dispatch_is_missing(project, shop, order):
    project.model("payouts", day())
    written = (project.folder / "dbt_project.yml").read_text()
    project.write("dbt_project.yml", written.replace("shop, idempotent_load, dbt", order))
    try:
        shop.run(
            "CREATE SCHEMA mart; CREATE TABLE mart.payouts AS SELECT * FROM raw.orders WHERE false"
        )
        message = project.invoke("run")["payouts"].message
    finally:
        project.write("dbt_project.yml", written)
    assert "search_order: [shop, idempotent_load, dbt]" in message


def test_options_reach_the_load(project, shop):
    project.model("audited", day("audit='SELECT sum(amount_eur) < 2000 FROM staged'"))
    project.model("dollars", day("audit=\"SELECT '$query$' <> '' FROM staged LIMIT 1\""))
    project.model("half_dollars", day("audit='SELECT true -- $query'"))
    project.model("kept", day("keep_previous=true"))
    project.model("by_delete", day("method='delete'"))
    project.model(
        "by_meta",
        DAY.replace(
            "date_column='order_date', date='2026-10-07', {config}",
            "meta={{'date_column': 'order_date', 'date': '2026-10-07', 'method': 'delete'}}",
        ).format(more=""),
    )
    project.model(
        "ignoring", day("ignore_columns=['loaded_by']", ", '{{ invocation_id }}' AS loaded_by")
    )
    project.model(
        "ignoring_one", day("ignore_columns='loaded_by'", ", '{{ invocation_id }}' AS loaded_by")
    )
    project.model(
        "strict", day("pre_hook='SET LOCAL idempotent_load.lint = error'", ", now() AS loaded_at")
    )
    project.model("no_partition", day("partitioned=true, create_partition=false"))
    results = project.invoke("run")
    failed = {name for name, result in results.items() if result.status == "error"}
    assert failed == {"audited", "no_partition"}
    assert (
        'audit of slice [2026-10-07, 2026-10-08) of table "audited" failed'
        in results["audited"].message
    )
    assert "has no partition for slice" in results["no_partition"].message

    shop.run("UPDATE raw.orders SET amount_eur = 0 WHERE order_id = 7")
    last = last_load(shop)
    results = project.invoke("run")
    assert loads(shop, "mart.by_delete", last) == [("2026-10-07", "delete", 8, 8, 8)]
    assert loads(shop, "mart.by_meta", last) == [("2026-10-07", "delete", 8, 8, 8)]
    assert loads(shop, "mart.ignoring", last) == [("2026-10-07", "diff", 8, 1, 1)]
    assert loads(shop, "mart.ignoring_one", last) == [("2026-10-07", "diff", 8, 1, 1)]
    assert (
        "query may give another result when it is repeated: now() reads the clock"
        in results["strict"].message
    )
    shop.run("SELECT undo_load('mart.kept', '2026-10-07')")
    assert shop.value("SELECT sum(amount_eur)::text FROM mart.kept") == "2050.00"


def test_run_id_is_the_invocation(project, shop):
    project.model("revenue", day())
    project.run()
    (run_id,) = shop.row("SELECT run_id FROM load_history")
    assert run_id in (project.folder / "target" / "run_results.json").read_text()


def test_extension_in_another_schema(project, shop):
    shop.run("""DROP EXTENSION idempotent_load;
           CREATE SCHEMA "Ext";
           CREATE EXTENSION idempotent_load SCHEMA "Ext" """)
    project.model("revenue", day())
    project.run("--vars", "idempotent_load_schema: Ext")
    assert shop.value('SELECT count(*) FROM "Ext".load_history') == 1


CONTRACT = """
models:
  - name: revenue
    config:
      contract: {{enforced: true}}
      on_schema_change: fail
    constraints:
      - {{type: unique, columns: [order_id]}}
    columns:
      - {{name: order_id, data_type: bigint}}
      - {{name: order_date, data_type: date, constraints: [{{type: not_null}}]}}
      - {{name: amount_eur, data_type: "{type}"}}
"""


def test_contract(project, shop):
    """The columns and constraints of the contract are those of the table, and are checked."""
    project.model("revenue", day())
    project.write("models/revenue.yml", CONTRACT.format(type="numeric(10,2)"))
    project.run()
    project.run()
    assert [load[1] for load in loads(shop, "mart.revenue")] == ["diff", "none"]
    assert shop.value("""SELECT count(*) FROM pg_constraint
                WHERE conrelid = 'mart.revenue'::regclass AND contype = 'u'""") == 1
    assert shop.value("""SELECT attnotnull FROM pg_attribute
            WHERE attrelid = 'mart.revenue'::regclass AND attname = 'order_date'""")
    shop.run("UPDATE raw.orders SET order_id = 7 WHERE order_id = 8")
    assert (
        "duplicate key value violates unique constraint" in project.invoke("run")["revenue"].message
    )
    project.write("models/revenue.yml", CONTRACT.format(type="text"))
    assert (
        "This model has an enforced contract that failed"
        in project.invoke("run")["revenue"].message
    )
    assert shop.value("SELECT sum(amount_eur)::text FROM mart.revenue") == "2050.00"


@pytest.mark.parametrize("date", ["date='2026-10-07'", "period='day'"], ids=["date", "rows"])
def test_on_schema_change(project, shop, date):
    """ignore, fail, append_new_columns and sync_all_columns, with a date and without."""
    names = ["ignore", "fail", "append_new_columns", "sync_all_columns"]

    def write(columns):
        for name in names:
            project.model(
                name,
                f"""{{{{ config(date_column='order_date', {date}, on_schema_change='{name}') }}}}
                SELECT order_id, order_date, {columns} FROM {{{{ source('raw', 'orders') }}}}
                WHERE order_date = '2026-10-07'""",
            )

    def columns(name):
        return shop.value(
            """SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute
                WHERE attrelid = %s::text::regclass AND attnum > 0 AND NOT attisdropped""",
            f"mart.{name}",
        )

    write("amount_eur")
    project.run()
    # a column more
    write("amount_eur, 'web' AS channel")
    results = project.invoke("run")
    assert {name for name in names if results[name].status == "error"} == {"fail"}
    assert "schemas on this incremental model are out of sync" in results["fail"].message
    assert columns("ignore") == columns("fail") == "order_id order_date amount_eur"
    for name in ("append_new_columns", "sync_all_columns"):
        assert columns(name) == "order_id order_date amount_eur channel"
        assert shop.value(f"SELECT count(*) FROM mart.{name} WHERE channel = 'web'") == 8
    # and one less
    write("'web' AS channel")
    results = project.invoke("run")
    assert {name for name in names if results[name].status == "error"} == {"ignore", "fail"}
    assert (
        'model "ignore", strategy replace_partition: the query no longer returns amount_eur'
        in results["ignore"].message
    )
    assert columns("append_new_columns") == "order_id order_date amount_eur channel"
    assert columns("sync_all_columns") == "order_id order_date channel"
    assert shop.row("SELECT count(*), count(amount_eur) FROM mart.append_new_columns") == (8, 0)


def test_build_show_and_compile(project, shop):
    """dbt build with tests of data and missing_dates; show and compile run no load."""
    project.model(
        "revenue",
        day(
            "grants={'select': ['reader']}, post_hook=\"INSERT INTO raw.log VALUES ('{{ this }}')\""
        ),
    )
    shop.run("CREATE ROLE reader; CREATE TABLE raw.log (line text)")
    try:
        project.invoke("compile")
        shown = project.command("show", "--select", "revenue", "--output", "json")
        assert '"order_id": 7' in shown
        assert shop.value("SELECT count(*) FROM load_history") == 0
        project.write(
            "models/revenue.yml",
            """
            models:
              - name: revenue
                description: What was ordered.
                config:
                  persist_docs: {relation: true}
                columns:
                  - name: order_id
                    data_tests: [unique, not_null]
                data_tests:
                  - idempotent_load.no_missing_dates:
                      name: the_day
                      arguments: {from_date: 2026-10-07, to_date: 2026-10-07}
                  - idempotent_load.no_missing_dates:
                      name: three_days
                      arguments: {from_date: 2026-10-06, to_date: 2026-10-08, thin: null}
            """,
        )
        results = project.invoke("build")
        statuses = {name: result.status for name, result in results.items()}
        assert statuses == {
            "revenue": "success",
            "unique_revenue_order_id": "pass",
            "not_null_revenue_order_id": "pass",
            "the_day": "pass",
            "three_days": "fail",
        }
        assert results["three_days"].failures == 2
        assert shop.value("SELECT has_table_privilege('reader', 'mart.revenue', 'SELECT')")
        assert shop.value("SELECT obj_description('mart.revenue'::regclass)") == "What was ordered."
        assert shop.value("SELECT count(*) FROM raw.log") == 1
    finally:
        shop.run("DROP OWNED BY reader; DROP ROLE reader")


def test_empty_flag(project, shop):
    """dbt run --empty makes a table without rows, and leaves one that has some as it is."""
    project.model("revenue", day("on_empty='replace', audit='SELECT count(*) > 0 FROM staged'"))
    project.run("--empty")
    assert shop.value("SELECT count(*) FROM mart.revenue") == 0
    project.run()
    project.run("--empty")
    assert shop.value("SELECT count(*) FROM mart.revenue") == 8


def test_other_models_are_left_alone(project, shop):
    """Models of dbt's own strategies are written as without the package."""
    project.model(
        "merged",
        "{{ config(incremental_strategy='merge', unique_key='order_id') }}"
        " SELECT * FROM raw.orders",
    )
    project.model("plain", "{{ config(materialized='table') }} SELECT * FROM raw.orders")
    project.model(
        "batches",
        """{{ config(incremental_strategy='microbatch', unique_key='order_id',
                     event_time='order_date',
                     begin='2026-10-06', batch_size='day') }}
        SELECT * FROM raw.orders""",
    )
    for _ in range(2):
        project.run("--event-time-start", "2026-10-06", "--event-time-end", "2026-10-08")
    for name in ("merged", "plain", "batches"):
        assert shop.value(f"SELECT count(*) FROM mart.{name}") == 14
    assert shop.value("SELECT count(*) FROM load_history") == 0
