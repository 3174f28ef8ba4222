"""What the strategy replace_partition does to a table: first run, reruns, full refresh."""

import datetime

from conftest import last_load, loads

PAYOUTS = """
{{ config(date_column='sale_date', date=var('date', none)) }}
SELECT sale_id, sale_date,
  {% if var('fixed', false) %}
  round(price_eur * CASE WHEN price_eur >= 400 THEN 0.55 ELSE 0.60 END, 2) AS amount_eur
  {% else %}
  round(price_eur * 0.60, 2) AS amount_eur
  {% endif %}
FROM {{ source('raw', 'sales') }}
{% if var('date', none) %}
WHERE sale_date = '{{ var("date") }}'
{% endif %}
"""


def payouts(date=None, config=""):
    """The model with options more, and with the date in its text: --vars costs a parse."""
    text = PAYOUTS.replace("config(", f"config({config}, ") if config else PAYOUTS
    return f"{{% set day = {repr(date) if date else 'none'} %}}" + text.replace(
        "var('date', none)", "day"
    ).replace('var("date")', "day")


TOTAL = "SELECT count(*), sum(amount_eur)::text FROM mart.payouts"
DAY = TOTAL + " WHERE sale_date = '2026-08-25'"


def test_story_a(project, shop):
    """A month of payouts: whole, again, by the mended contract, and one day of it."""
    project.model("payouts", PAYOUTS)
    results = project.run()
    assert results["payouts"].message == "SELECT 30"
    assert shop.row(TOTAL) == (60000, "8990100.00")
    assert shop.row(DAY) == (2000, "299730.00")
    assert [load[1:] for load in loads(shop, "mart.payouts")] == [("diff", 2000, 2000, 0)] * 30
    # the first run leaves no index of its own behind
    assert shop.value("SELECT count(*) FROM pg_indexes WHERE schemaname = 'mart'") == 0

    first = last_load(shop)
    project.run()
    assert [load[1:] for load in loads(shop, "mart.payouts", first)] == [("none", 2000, 0, 0)] * 30
    # by the same text as before, of which the load makes use
    assert shop.value("SELECT count(DISTINCT query_hash) FROM load_history") == 1

    # a price of 400 or more pays 0.55
    project.run("--vars", "fixed: true")
    assert shop.row(TOTAL) == (60000, "8771588.64")

    # one day, by name; the others keep the contract that they have
    first = last_load(shop)
    project.run("--vars", "date: 2026-08-25")
    ((day, method, rows, inserted, deleted),) = loads(shop, "mart.payouts", first)
    assert (day, method, rows) == ("2026-08-25", "diff", 2000)
    changed = shop.value(
        "SELECT count(*) FROM raw.sales WHERE sale_date = '2026-08-25' AND price_eur >= 400"
    )
    assert inserted == deleted == changed > 0
    assert shop.row(DAY) == (2000, "299730.00")
    # 299,730.00 instead of 292,470.58 for that day
    assert shop.row(TOTAL) == (60000, "8778848.06")


def test_half_loaded_day(project, shop):
    """Story A: a job died after 1,247 committed rows. Both retries end at 2,000 rows."""
    project.model("payouts", payouts(date="2026-08-25"))
    shop.run("""CREATE SCHEMA mart;
           CREATE TABLE mart.payouts AS
             SELECT sale_id, sale_date, round(price_eur * 0.60, 2) AS amount_eur
             FROM raw.sales WHERE sale_date = '2026-08-25' ORDER BY sale_id LIMIT 1247""")
    assert shop.row(DAY) == (1247, "187015.80")
    for inserted, method in ((753, "diff"), (0, "none")):
        first = last_load(shop)
        project.run()
        assert loads(shop, "mart.payouts", first) == [("2026-08-25", method, 2000, inserted, 0)]
        assert shop.row(DAY) == (2000, "299730.00")


def test_story_b(project, shop):
    """The load finishes, the report after it crashes, and all of it is run again."""
    load = """
    {{{{ config({}) }}}}
    SELECT order_id, order_date, amount_eur FROM {{{{ source('raw', 'orders') }}}}
    WHERE order_date = '{{{{ "2026-10-07" if is_incremental() else "2026-10-06" }}}}'
    """
    project.model("revenue", load.format("date_column='order_date'"))
    project.model("revenue_append", load.format("incremental_strategy='append'"))
    project.model(
        "report",
        """
        {{ config(materialized='table') }}
        -- depends_on: {{ ref('revenue') }} {{ ref('revenue_append') }}
        SELECT 1 / (SELECT n FROM raw.printer) AS page
        """,
    )
    shop.run("CREATE TABLE raw.printer AS SELECT 1 AS n")
    project.run()
    shop.run("UPDATE raw.printer SET n = 0")
    results = project.invoke("run")
    assert {name: result.status for name, result in results.items()} == {
        "revenue": "success",
        "revenue_append": "success",
        "report": "error",
    }
    shop.run("UPDATE raw.printer SET n = 1")
    project.run()

    def days(table):
        return shop.rows(f"""SELECT order_date, count(*), sum(amount_eur)::text FROM mart.{table}
                GROUP BY 1 ORDER BY 1""")

    before = (datetime.date(2026, 10, 6), 6, "1730.00")
    assert days("revenue") == [before, (datetime.date(2026, 10, 7), 8, "2050.00")]
    assert days("revenue_append") == [before, (datetime.date(2026, 10, 7), 16, "4100.00")]
    assert loads(shop, "mart.revenue")[1:] == [
        ("2026-10-07", "diff", 8, 8, 0),
        ("2026-10-07", "none", 8, 0, 0),
    ]


def test_rerun_writes_nothing(project, shop):
    """No WAL record of the second run is about the table, by date and by the rows' dates."""
    project.model("payouts", payouts())
    project.run()
    shop.run("CREATE EXTENSION pg_walinspect")

    def records(**options):
        """WAL records of a run about the table's files, after it was vacuumed."""
        project.model("payouts", payouts(**options))
        shop.run("VACUUM mart.payouts")
        file = shop.value("SELECT pg_relation_filepath('mart.payouts')")
        start = shop.value("SELECT pg_current_wal_insert_lsn()::text")
        project.run()
        return shop.value(
            """SELECT count(*) FROM pg_get_wal_records_info(%s, pg_current_wal_flush_lsn())
                WHERE block_ref ~ ('rel [0-9]+/[0-9]+/' || %s || ' ')""",
            start,
            file.split("/")[-1],
        )

    assert records(date="2026-08-25") == 0
    assert records() == 0
    # and it is seen when there is one
    shop.run("UPDATE raw.sales SET price_eur = 20 WHERE sale_id = 48001")
    assert records(date="2026-08-25") > 0


def test_full_refresh(project, shop):
    """The table is built anew, as dbt does it, and its loads are on record."""
    project.model(
        "payouts",
        payouts(config="indexes=[{'columns': ['sale_id'], 'unique': true}]"),
    )
    project.run()
    shop.run("UPDATE mart.payouts SET amount_eur = 0")
    oid = shop.value("SELECT 'mart.payouts'::regclass::oid")
    project.run("--full-refresh")
    assert shop.value("SELECT 'mart.payouts'::regclass::oid") != oid
    assert shop.row(TOTAL) == (60000, "8990100.00")
    assert shop.rows(
        "SELECT indexdef LIKE '%(sale_id)' FROM pg_indexes WHERE schemaname = 'mart'"
    ) == [(True,)]
    assert (
        shop.rows("SELECT * FROM missing_dates('mart.payouts', '2026-08-01', '2026-08-30')") == []
    )
    # a failure leaves the old table
    project.model("payouts", payouts().replace("sale_id,", "1 / 0 AS sale_id,"))
    results = project.invoke("run", "--full-refresh")
    assert "division by zero" in results["payouts"].message
    assert shop.row(TOTAL) == (60000, "8990100.00")


def test_view_becomes_table(project, shop):
    project.model("payouts", payouts(config="materialized='view'"))
    project.run()
    project.model("payouts", payouts())
    project.run()
    assert shop.row(TOTAL) == (60000, "8990100.00")
    assert len(loads(shop, "mart.payouts")) == 30


def test_becomes_partitioned(project, shop):
    """Partitions made beside the old table or view would be named payouts__dbt_tmp_20260801."""
    for materialized in ("view", "incremental"):
        project.model("payouts", payouts(config=f"materialized='{materialized}'"))
        project.run()
        project.model("payouts", payouts(config="partitioned=true"))
        message = project.invoke("run", "--full-refresh")["payouts"].message
        assert "could not be named after the table" in message
        assert shop.row(TOTAL) == (60000, "8990100.00")
    shop.run("DROP TABLE mart.payouts")
    project.run("--full-refresh")
    assert shop.value("SELECT 'mart.payouts_20260801'::regclass IS NOT NULL")


def test_partitioned(project, shop):
    """Loads make the partitions. A full refresh would lose what was set on them: refused."""
    for date in ("2026-08-25", "2026-08-26"):
        project.model("payouts", payouts(date, "partitioned=true"))
        project.run()
    assert shop.rows("""SELECT relid::regclass::text FROM pg_partition_tree('mart.payouts')
            WHERE isleaf ORDER BY 1""") == [("mart.payouts_20260825",), ("mart.payouts_20260826",)]
    assert shop.row(DAY) == (2000, "299730.00")

    message = project.invoke("run", "--full-refresh")["payouts"].message
    assert 'model "payouts", strategy replace_partition: the table is partitioned' in message
    assert shop.row(TOTAL)[0] == 4000
    # as the message says
    project.model("payouts", payouts(config="partitioned=true, full_refresh=false"))
    project.run("--full-refresh")
    assert shop.row(TOTAL) == (60000, "8990100.00")


def test_partitioned_by_hand(project, shop):
    """A table of monthly partitions, made before the first run, stays as it is."""
    shop.run("""CREATE SCHEMA mart;
           CREATE TABLE mart.payouts (
             sale_id bigint, sale_date date NOT NULL, amount_eur numeric(10,2)
           ) PARTITION BY RANGE (sale_date);
           CREATE TABLE mart.payouts_2026_08 PARTITION OF mart.payouts
             FOR VALUES FROM ('2026-08-01') TO ('2026-09-01')""")
    project.model("payouts", payouts())
    project.run()
    project.run()
    assert shop.row(TOTAL) == (60000, "8990100.00")
    assert shop.value("SELECT count(*) FROM pg_partition_tree('mart.payouts') WHERE isleaf") == 1
    assert "the table is partitioned" in project.invoke("run", "--full-refresh")["payouts"].message


def test_day_without_rows(project, shop):
    """Only a date that is named can be emptied; and not by accident."""
    project.model("payouts", payouts())
    project.run()
    shop.run("DELETE FROM raw.sales WHERE sale_date = '2026-08-25'")
    project.run()
    assert shop.row(DAY)[0] == 2000
    project.model("payouts", payouts("2026-08-25"))
    message = project.invoke("run")["payouts"].message
    assert "query returned no rows, but slice [2026-08-25, 2026-08-26)" in message
    project.model("payouts", payouts("2026-08-25", "on_empty='replace'"))
    project.run()
    assert shop.row(DAY)[0] == 0
    assert loads(shop, "mart.payouts")[-1] == ("2026-08-25", "diff", 0, 0, 2000)


def test_rows_of_another_day(project, shop):
    """A query that returns more than the day that is named changes nothing."""
    project.model("payouts", payouts())
    project.run()
    project.model("payouts", payouts("2026-08-25").replace("sale_date = '", "sale_date >= '"))
    message = project.invoke("run")["payouts"].message
    assert "query returned a row that is not in slice [2026-08-25, 2026-08-26)" in message
    assert shop.row(TOTAL) == (60000, "8990100.00")


def test_keys_and_periods(project, shop):
    """Every type of key, and every period, where the rows tell which periods are loaded."""
    source = """FROM (VALUES ('2026-03-28 23:30+00'), ('2026-05-04 22:30+00'),
        ('2026-05-04 21:30+00')) AS v(at)"""
    models = {
        "by_date": ("day", "at::timestamp::date"),
        "by_week": ("week", "at::timestamp::date"),
        "by_7_days": ("7 days", "at::timestamp::date"),
        "by_month": ("month", "at::timestamp::date"),
        "by_quarter": ("quarter", "at::timestamp::date"),
        "by_half": ("6 months", "at::timestamp"),
        "by_year": ("1 year", "at::timestamp"),
        "by_timestamp": ("day", "at::timestamp"),
        "by_timestamptz": ("day", "at::timestamptz"),
        "by_integer": ("day", "to_char(at::timestamp, 'YYYYMMDD')::int"),
        "by_text": ("day", "to_char(at::timestamp, 'YYYY-MM-DD')"),
        "by_text_of_months": ("month", "to_char(at::timestamp, 'YYYY-MM-DD')"),
    }
    for name, (period, key) in models.items():
        project.model(
            name,
            f"{{{{ config(date_column='k', period='{period}', timezone='Europe/Berlin') }}}}"
            f"SELECT {key} AS k, 1 AS n {source}",
        )
    project.run()
    project.run()
    days = ["2026-03-28", "2026-05-04"]
    expected = {
        "by_date": days,
        "by_week": ["2026-03-23", "2026-05-04"],
        "by_7_days": ["2026-03-23", "2026-05-04"],
        "by_month": ["2026-03-01", "2026-05-01"],
        "by_quarter": ["2026-01-01", "2026-04-01"],
        "by_half": ["2026-01-01 00:00:00"],
        "by_year": ["2026-01-01 00:00:00"],
        "by_timestamp": [day + " 00:00:00" for day in days],
        # midnight in Berlin
        "by_timestamptz": [
            "2026-03-29 00:00:00+01",
            "2026-05-04 00:00:00+02",
            "2026-05-05 00:00:00+02",
        ],
        "by_integer": ["20260328", "20260504"],
        "by_text": days,
        "by_text_of_months": ["2026-03-01", "2026-05-01"],
    }
    for name, lower in expected.items():
        assert shop.value(f"SELECT count(*) FROM mart.{name}") == 3, name
        assert [(load[0], load[1]) for load in loads(shop, f"mart.{name}")] == [
            *((bound, "diff") for bound in lower),
            *((bound, "none") for bound in lower),
        ], name


def test_keys_of_no_day(project, shop):
    """A row whose key the bounds of its day do not hold is refused, not left out."""
    shop.run("""CREATE SCHEMA mart;
           CREATE TABLE mart.by_text AS
             SELECT '2026-08-05' AS k, n FROM generate_series(1, 3) AS n""")
    models = {
        "by_text": ("'2026-08-05'::text", "'2026-8-5'"),
        "by_integer": ("20260805", "202608"),
        "by_date": ("date '2026-08-05'", "'0044-03-15 BC'"),
        "by_timestamp": ("timestamp '2026-08-05'", "'infinity'"),
    }
    for name, (good, bad) in models.items():
        project.model(
            name,
            "{{ config(date_column='k') }}"
            f" SELECT * FROM (VALUES ({good}, 1), ({bad}, 2)) AS v (k, n)",
        )
    results = project.invoke("run")
    for name, (_, bad) in models.items():
        value = bad.strip("'")
        assert f'whose "k" is "{value}", which is not a day' in results[name].message, name
    assert shop.value("SELECT count(*) FROM mart.by_text") == 3
    assert shop.value("SELECT count(*) FROM load_history") == 0
