"""Batches of microbatch are slices."""

from conftest import last_load, loads

RANGE = ("--event-time-start", "2026-08-24", "--event-time-end", "2026-08-28")

PAYOUTS = """
{{ config(incremental_strategy='microbatch', event_time='sale_date', begin='2026-08-24',
          batch_size='day') }}
SELECT sale_id, sale_date, round(price_eur * 0.60, 2) AS amount_eur
FROM {{ source('raw', 'sales') }}
"""


def test_batches(project, shop):
    """A backfill of four days, again, and one day of it."""
    project.model("payouts", PAYOUTS)
    project.run(*RANGE)
    assert loads(shop, "mart.payouts") == [
        (f"2026-08-{day}", "diff", 2000, 2000, 0) for day in range(24, 28)
    ]
    assert shop.row(
        "SELECT count(*), sum(amount_eur)::text FROM mart.payouts WHERE sale_date = '2026-08-25'"
    ) == (2000, "299730.00")
    last = last_load(shop)
    project.run(*RANGE)
    assert loads(shop, "mart.payouts", last) == [
        (f"2026-08-{day}", "none", 2000, 0, 0) for day in range(24, 28)
    ]
    last = last_load(shop)
    shop.run("UPDATE raw.sales SET price_eur = 20 WHERE sale_id = 48001")
    project.run("--event-time-start", "2026-08-25", "--event-time-end", "2026-08-26")
    assert loads(shop, "mart.payouts", last) == [("2026-08-25", "diff", 2000, 1, 1)]
    # built anew, batch by batch
    project.run("--full-refresh", *RANGE)
    assert shop.value("SELECT count(*) FROM mart.payouts") == 8000
    assert [load[1] for load in loads(shop, "mart.payouts")] == ["diff"] * 4


def test_retry_of_batches(project, shop):
    """One of four batches fails; dbt retry loads that one."""
    project.model("payouts", PAYOUTS.replace("round(", "1 / (price_eur - 1)::int AS one, round("))
    shop.run("UPDATE raw.sales SET price_eur = 1 WHERE sale_id = 50001")
    results = project.invoke("run", *RANGE)
    assert results["payouts"].status == "partial success"
    assert [load[0] for load in loads(shop, "mart.payouts")] == [
        "2026-08-24",
        "2026-08-25",
        "2026-08-27",
    ]
    shop.run("UPDATE raw.sales SET price_eur = 10 WHERE sale_id = 50001")
    last = last_load(shop)
    results = project.invoke("retry")
    assert results["payouts"].status == "success"
    assert loads(shop, "mart.payouts", last) == [("2026-08-26", "diff", 2000, 2000, 0)]


def test_empty_batch(project, shop):
    """A batch without rows is its day without rows: on record, and refused where rows would go."""
    project.model("payouts", PAYOUTS)
    shop.run("DELETE FROM raw.sales WHERE sale_date = '2026-08-25'")
    project.run(*RANGE)
    assert loads(shop, "mart.payouts")[1] == ("2026-08-25", "none", 0, 0, 0)
    assert (
        shop.rows(
            "SELECT * FROM missing_dates('mart.payouts', '2026-08-24', '2026-08-27', thin => NULL)"
        )
        == []
    )

    shop.run("DELETE FROM raw.sales WHERE sale_date = '2026-08-26'")
    assert project.invoke("run", *RANGE)["payouts"].status == "partial success"
    log = (project.folder / "logs" / "dbt.log").read_text()
    assert "query returned no rows, but slice [2026-08-26, 2026-08-27)" in log
    assert shop.value("SELECT count(*) FROM mart.payouts WHERE sale_date = '2026-08-26'") == 2000
    project.model("payouts", PAYOUTS.replace("config(", "config(on_empty='replace', "))
    project.run(*RANGE)
    assert shop.value("SELECT count(*) FROM mart.payouts WHERE sale_date = '2026-08-26'") == 0


def test_sizes(project, shop):
    """Hours, months and years; partitions as wide as the batches; times in UTC."""
    shop.run("""INSERT INTO raw.events
             SELECT i, timestamptz '2026-08-25 00:00+00' + i * interval '20 minutes', i
           FROM generate_series(0, 5) AS i""")
    for size, partitioned in (("hour", "false"), ("month", "true"), ("year", "false")):
        project.model(
            f"by_{size}",
            f"""{{{{ config(incremental_strategy='microbatch', event_time='happened_at',
                            begin='2026-08-25', batch_size='{size}', partitioned={partitioned}) }}}}
            SELECT event_id, happened_at FROM {{{{ source('raw', 'events') }}}}""",
        )
    # a zone of the session is not that of the batches
    shop.run("ALTER DATABASE shop SET timezone = 'Asia/Tokyo'")
    for _ in range(2):
        project.run(
            "--event-time-start", "2026-08-25T00:00:00", "--event-time-end", "2026-08-25T03:00:00"
        )
    hours = ["2026-08-25 00:00:00+00", "2026-08-25 01:00:00+00", "2026-08-25 02:00:00+00"]
    assert loads(shop, "mart.by_hour") == [
        (hours[0], "diff", 3, 3, 0),
        (hours[1], "diff", 3, 3, 0),
        (hours[2], "none", 0, 0, 0),
        (hours[0], "none", 3, 0, 0),
        (hours[1], "none", 3, 0, 0),
        (hours[2], "none", 0, 0, 0),
    ]
    assert [load[:2] for load in loads(shop, "mart.by_month")] == [
        ("2026-08-01 00:00:00+00", "diff"),
        ("2026-08-01 00:00:00+00", "none"),
    ]
    assert [load[:2] for load in loads(shop, "mart.by_year")] == [
        ("2026-01-01 00:00:00+00", "diff"),
        ("2026-01-01 00:00:00+00", "none"),
    ]
    assert shop.rows(
        "SELECT DISTINCT period::text FROM load_history WHERE target = 'mart.by_month'::regclass"
    ) == [("1 mon",)]
    assert shop.value("SELECT count(*) FROM pg_partition_tree('mart.by_month') WHERE isleaf") == 1
