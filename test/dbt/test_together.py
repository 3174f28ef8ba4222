"""Several threads, several runs, and what is left after a failure."""

from conftest import last_load, loads

PAYOUTS = """
{{ config(date_column='sale_date', date='2026-08-25') }}
SELECT sale_id, sale_date, round(price_eur * 0.60, 2) AS amount_eur
FROM {{ source('raw', 'sales') }} WHERE sale_date = '2026-08-25'
"""

# of the same day, by another session
OTHER_LOAD = """
SELECT replace_partition('mart.payouts', '2026-08-25',
  'SELECT * FROM mart.payouts WHERE sale_date = $1')
"""


def test_threads(project, shop):
    """Twelve models in four threads, by date and by the rows' dates."""
    for number in range(12):
        project.model(
            f"payouts_{number}",
            PAYOUTS if number % 2 else PAYOUTS.replace(", date='2026-08-25'", ""),
        )
    for _ in range(2):
        project.run("--threads", "4")
    for number in range(12):
        assert loads(shop, f"mart.payouts_{number}") == [
            ("2026-08-25", "diff", 2000, 2000, 0),
            ("2026-08-25", "none", 2000, 0, 0),
        ]


def test_two_runs_of_one_day(project, shop):
    """The later one waits, reads its sources after that, and so does not bring back old rows."""
    project.model("payouts", PAYOUTS)
    project.run()
    last = last_load(shop)
    with shop.connection.transaction():
        shop.run(OTHER_LOAD)
        runs = [
            project.start("run", "--target-path", f"target_{name}", "--log-path", f"logs_{name}")
            for name in "ab"
        ]
        shop.wait_until("""SELECT count(*) = 2 FROM pg_locks l JOIN pg_stat_activity a USING (pid)
                WHERE a.datname = current_database() AND NOT l.granted
                  AND a.query LIKE '%replace_partition%'""", seconds=180)
        # seen when this transaction ends, which is before the loads read
        shop.run("UPDATE raw.sales SET price_eur = 20 WHERE sale_id = 48001")
    for run in runs:
        output, _ = run.communicate()
        assert run.returncode == 0, output
    assert loads(shop, "mart.payouts", last)[1:] == [
        ("2026-08-25", "diff", 2000, 1, 1),
        ("2026-08-25", "none", 2000, 0, 0),
    ]
    shop.wait_until_unlocked()


def test_running_load(project, shop):
    """if_running tells what to do instead of waiting."""
    project.model("payouts", PAYOUTS.replace("config(", "config(if_running='fail', "))
    project.run()
    with shop.connection.transaction():
        shop.run(OTHER_LOAD)
        message = project.invoke("run")["payouts"].message
    assert "another load of slice [2026-08-25, 2026-08-26)" in message


def test_retry_of_models(project, shop):
    """One of three models fails, the one after it is skipped; dbt retry runs these two."""
    project.model("first", PAYOUTS)
    project.model(
        "second", PAYOUTS.replace("sale_id,", "sale_id / (SELECT n FROM raw.switch) AS sale_id,")
    )
    project.model(
        "third",
        PAYOUTS.replace("source('raw', 'sales')", "ref('second')").replace(
            "price_eur", "amount_eur"
        ),
    )
    shop.run("CREATE TABLE raw.switch AS SELECT 0 AS n")
    results = project.invoke("run")
    assert [results[name].status for name in ("first", "second", "third")] == [
        "success",
        "error",
        "skipped",
    ]
    assert shop.value("SELECT to_regclass('mart.second') IS NULL")
    shop.run("UPDATE raw.switch SET n = 1")
    last = last_load(shop)
    results = project.invoke("retry")
    assert {name: result.status for name, result in results.items()} == {
        "second": "success",
        "third": "success",
    }
    assert loads(shop, "mart.first", last) == []
    assert loads(shop, "mart.third") == [("2026-08-25", "diff", 2000, 2000, 0)]


def test_one_transaction(project, shop):
    """What fails after the load undoes the load."""
    project.model("payouts", PAYOUTS)
    project.run()
    shop.run("UPDATE raw.sales SET price_eur = 20 WHERE sale_id = 48001")
    last = last_load(shop)
    project.model("payouts", PAYOUTS.replace("config(", "config(post_hook='SELECT 1 / 0', "))
    assert "division by zero" in project.invoke("run")["payouts"].message
    assert loads(shop, "mart.payouts", last) == []
    assert shop.value("SELECT sum(amount_eur)::text FROM mart.payouts") == "299730.00"


def test_killed_run(project, shop):
    """dbt is killed in its load: the day is as before, no lock is left, and a rerun loads it."""
    project.model("payouts", PAYOUTS)
    project.run()
    shop.run("UPDATE raw.sales SET price_eur = 20 WHERE sale_id = 48001")
    last = last_load(shop)
    shop.run("SELECT pg_advisory_lock(1)")
    project.model(
        "payouts",
        PAYOUTS.replace(
            "config(", "config(audit='SELECT pg_advisory_xact_lock_shared(1) IS NOT NULL', "
        ),
    )
    run = project.start("run")
    shop.wait_until("""SELECT EXISTS (SELECT FROM pg_locks JOIN pg_stat_activity USING (pid)
            WHERE locktype = 'advisory' AND objid = 1 AND NOT granted
              AND query LIKE '%replace_partition%')""")
    run.kill()
    run.communicate()
    shop.run("SELECT pg_advisory_unlock(1)")
    shop.wait_until_unlocked()
    assert loads(shop, "mart.payouts", last) == []
    assert shop.value("SELECT sum(amount_eur)::text FROM mart.payouts") == "299730.00"
    project.run()
    assert loads(shop, "mart.payouts", last) == [("2026-08-25", "diff", 2000, 1, 1)]
