"""Time and WAL of the strategies, for one day of a table.

Prints a table. The day has FIGURES_ROWS rows (100,000); the table has two more days, a unique
index and one on the date. For figures of a larger day:

    FIGURES_ROWS=1000000 test/run-python dbt -k figures
"""

import os

import pytest
from warehouse import connect

ROWS = int(os.environ.get("FIGURES_ROWS", 100_000))

WAYS = {
    "append": "incremental_strategy='append'",
    "delete_insert": "incremental_strategy='delete+insert', unique_key='sale_id'",
    "merge": "incremental_strategy='merge', unique_key='sale_id'",
    "by_rows": "date_column='sale_date'",
    "by_date": "date_column='sale_date', date='2026-10-07'",
    "partitioned": "date_column='sale_date', date='2026-10-07'",
}


# Where the WAL ends before and after a model, so that one run of dbt measures all of them.
MARK = "INSERT INTO raw.marks VALUES ('{{ this.name }}', pg_current_wal_insert_lsn() - '0/0')"
HOOKS = f"""{{{{ config(pre_hook={{'sql': "{MARK}", 'transaction': false}},
  post_hook={{'sql': "{MARK}", 'transaction': false}}) }}}}"""


def make_table(shop, way):
    """Two days of rows, and indexes but for append, which could not append with a unique one."""
    partition_by = "PARTITION BY RANGE (sale_date)" if way == "partitioned" else ""
    shop.run(f"""CREATE TABLE mart.{way} (LIKE raw.big) {partition_by};
            CREATE {"" if way == "append" else "UNIQUE"} INDEX ON mart.{way} (sale_id, sale_date);
            CREATE INDEX ON mart.{way} (sale_date)""")
    if way == "partitioned":
        shop.run("""CREATE TABLE mart.partitioned_20261005 PARTITION OF mart.partitioned
                 FOR VALUES FROM ('2026-10-05') TO ('2026-10-06');
               CREATE TABLE mart.partitioned_20261006 PARTITION OF mart.partitioned
                 FOR VALUES FROM ('2026-10-06') TO ('2026-10-07')""")
    shop.run(f"""INSERT INTO mart.{way} SELECT * FROM raw.big WHERE sale_date < '2026-10-07';
            ANALYZE mart.{way}""")
    shop.run(f"VACUUM mart.{way}")


@pytest.fixture
def no_autovacuum():
    """The WAL is that of the whole server."""
    with connect("postgres") as server:
        server.execute("ALTER SYSTEM SET autovacuum = off")
        server.execute("SELECT pg_reload_conf()")
        yield
        server.execute("ALTER SYSTEM RESET autovacuum")
        server.execute("SELECT pg_reload_conf()")


def test_figures(project, shop, no_autovacuum, capsys):
    shop.run(f"""CREATE SCHEMA mart;
            CREATE TABLE raw.big AS
              SELECT i AS sale_id, date '2026-10-05' + (i - 1) / {ROWS} AS sale_date,
                i % 500 AS shop_id, round(25 + ((i::bigint * 37) % 900) * 0.5, 2) AS price_eur,
                md5(i::text) AS note
              FROM generate_series(1, {ROWS} * 3) AS i;
            CREATE INDEX ON raw.big (sale_date);
            ANALYZE raw.big;
            CREATE TABLE raw.marks (way text, at numeric)""")
    for way, config in WAYS.items():
        project.model(
            way,
            HOOKS
            + f"{{{{ config({config}) }}}} SELECT * FROM raw.big WHERE sale_date = '2026-10-07'",
        )
        make_table(shop, way)
    # one for all: after a checkpoint the first write to a page costs a page of WAL
    shop.run("CHECKPOINT")
    steps = ("first", "unchanged", "1 % changed")
    seconds, wal = {}, {}
    for step in steps:
        if step == "1 % changed":
            shop.run("""UPDATE raw.big SET price_eur = price_eur + 1
                    WHERE sale_date = '2026-10-07' AND sale_id % 100 = 0""")
        shop.run("TRUNCATE raw.marks")
        results = project.run("--threads", "1")
        for way, size in shop.rows(
            "SELECT way, (max(at) - min(at))::bigint FROM raw.marks GROUP BY way"
        ):
            seconds[step, way], wal[step, way] = results[way].execution_time, size

    with capsys.disabled():
        print(
            f"\n{'one day of ' + format(ROWS, ',') + ' rows':28}"
            + "".join(f"{step:>24}" for step in steps)
        )
        for way in WAYS:
            print(
                f"{way:28}"
                + "".join(
                    f"{seconds[step, way]:>12.2f} s {wal[step, way] / 1e6:>7.3f} MB"
                    for step in steps
                )
            )

    day = "SELECT count(*) FROM mart.{} WHERE sale_date = '2026-10-07'"
    for way in WAYS:
        assert shop.value(day.format(way)) == (3 * ROWS if way == "append" else ROWS)
    methods = dict(shop.rows("""SELECT target::text, array_agg(method ORDER BY id) FROM load_history
                WHERE target::text LIKE 'mart.%' GROUP BY 1"""))
    for way in ("by_rows", "by_date", "partitioned"):
        assert methods[f"mart.{way}"][1:] == ["none", "diff"], way
        for other in ("delete_insert", "merge"):
            assert wal["unchanged", way] * 50 < wal["unchanged", other]
            # a checkpoint in between makes it ten times as much: a page for each changed row
            assert wal["1 % changed", way] * 2 < wal["1 % changed", other]
