"""The DAGs of the example, and what an operator does with statements, by Airflow's dag.test.

Task instances, templates, hooks and the metadata database are real; what is left out is
the scheduler. Airflow is in this process, since it takes seconds to start.
"""

import datetime
import os
import re
import shutil
import subprocess
import sys

import airflow_home
import pendulum
import pytest
import warehouse as server

STORY_B = {"2026-10-06": (6, "1730.00"), "2026-10-07": (8, "2050.00")}
QUERY = "SELECT * FROM orders WHERE order_date >= $1 AND order_date < $2"

# A DAG as people write it who have not been burnt yet: it appends, and then publishes.
APPEND = """\
from airflow.providers.common.sql.operators.sql import SQLExecuteQueryOperator
from airflow.sdk import DAG

with DAG("append", schedule=None, default_args={"conn_id": "warehouse"}):
    append = SQLExecuteQueryOperator(
        task_id="append",
        sql="INSERT INTO revenue SELECT * FROM orders WHERE order_date = '{{ ds }}'",
    )
    publish = SQLExecuteQueryOperator(task_id="publish_report", sql="sql/publish_report.sql")
    append >> publish
"""

# One operator in a DAG of its own
OPERATOR = """\
import datetime

from airflow.providers.common.sql.operators.sql import SQLExecuteQueryOperator
from airflow.sdk import DAG

with DAG("operator", schedule=None):
    SQLExecuteQueryOperator(task_id="operator", conn_id="warehouse", **{arguments!r})
"""


class Airflow:
    """Airflow in this process: runs DAGs of a home."""

    def __init__(self, home):
        self.home = home

    def write(self, name, text):
        self.home.dags.joinpath(name).write_text(text)

    def dags(self):
        from airflow.dag_processing.dagbag import DagBag

        bag = DagBag(self.home.dags)
        assert not bag.import_errors
        return bag.dags

    def run(self, dag_id, date, retries=0, **options):
        """One run of a DAG, to its end. Returns its task instances by name."""
        dag = self.dags()[dag_id]
        for task in dag.tasks:
            task.retries = retries
            task.retry_delay = datetime.timedelta(0)
        run = dag.test(logical_date=date and pendulum.parse(date, tz="UTC"), **options)
        return {ti.task_id: ti for ti in run.get_task_instances()}

    def operator(self, **arguments):
        """A run of one SQLExecuteQueryOperator with these arguments. Returns its task instance."""
        self.write("one_operator.py", OPERATOR.format(arguments=arguments))
        return self.run("operator", "2026-10-07")["operator"]

    def good(self, **arguments):
        """The same, with success. Returns what the operator pushed to XCom."""
        instance = self.operator(**arguments)
        assert instance.state == "success"
        return self.pushed(instance)

    def pushed(self, instance):
        """What a task pushed to XCom, as a task after it would get it."""
        from airflow.sdk.serde import deserialize

        with server.connect(self.home.metadata) as metadata:
            row = metadata.execute(
                "SELECT value FROM xcom WHERE dag_id = %s AND run_id = %s AND task_id = %s",
                (instance.dag_id, instance.run_id, instance.task_id),
            ).fetchone()
        return row and deserialize(row[0])


@pytest.fixture(scope="module")
def airflow_here(metadata_template, tmp_path_factory):
    """Airflow, in this process, for the tests of this file."""
    folder = tmp_path_factory.mktemp("airflow")
    with airflow_home.home(folder, metadata_template, "airflow_dags") as home:
        before = dict(os.environ)
        os.environ.update(home.environment)
        yield Airflow(home)
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture
def airflow(airflow_here, shop, monkeypatch):
    """Airflow with a connection to the shop."""
    for name, value in airflow_here.home.use(shop).items():
        monkeypatch.setenv(name, value)
    return airflow_here


def states(instances):
    return {name: str(instance.state) for name, instance in instances.items()}


def revenue(shop):
    """Rows and sum of each day."""
    return {
        str(day): (rows, str(eur))
        for day, rows, eur in shop.rows(
            "SELECT order_date, count(*), sum(amount_eur) FROM revenue GROUP BY 1 ORDER BY 1"
        )
    }


def loads(shop, target):
    """Date, method, rows and rows inserted of each load of a table."""
    return [
        (str(date), *counts)
        for date, *counts in shop.rows(
            "SELECT logical_date, method, rows, inserted FROM load_history"
            " WHERE target = %s::regclass ORDER BY id",
            target,
        )
    ]


ALL_GOOD = dict.fromkeys(
    ["load_revenue", "merge_order_status", "check_loaded", "publish_report"], "success"
)


# The daily DAG


def test_second_run_writes_nothing(airflow, shop):
    for date in STORY_B:
        assert states(airflow.run("revenue", date)) == ALL_GOOD
    assert revenue(shop) == STORY_B
    rows = shop.rows("SELECT ctid, xmin::text, * FROM revenue")

    assert states(airflow.run("revenue", "2026-10-07")) == ALL_GOOD
    assert shop.rows("SELECT ctid, xmin::text, * FROM revenue") == rows
    assert loads(shop, "revenue") == [
        ("2026-10-06", "diff", 6, 6),
        ("2026-10-07", "diff", 8, 8),
        ("2026-10-07", "none", 8, 0),
    ]
    query = "SELECT order_date::text, orders, amount_eur::text FROM report ORDER BY 1"
    assert shop.rows(query) == [
        ("2026-10-06", 6, "1730.00"),
        ("2026-10-07", 8, "2050.00"),
    ]


def test_run_id_in_the_history(airflow, shop):
    instances = airflow.run("revenue", "2026-10-07")
    (run_id,) = {instance.run_id for instance in instances.values()}
    assert shop.rows(
        "SELECT target_name FROM load_history WHERE run_id = %s ORDER BY 1", run_id
    ) == [("public.order_status",), ("public.report",), ("public.revenue",)]


def test_rerun_after_a_failed_report(airflow, shop):
    """Story B: the load is done, the report fails, and all is run again."""
    airflow.run("revenue", "2026-10-06")
    shop.run("ALTER TABLE report RENAME TO report_elsewhere")
    assert states(airflow.run("revenue", "2026-10-07")) == {
        **ALL_GOOD,
        "publish_report": "failed",
    }
    shop.run("ALTER TABLE report_elsewhere RENAME TO report")
    assert states(airflow.run("revenue", "2026-10-07")) == ALL_GOOD
    assert revenue(shop) == STORY_B


def test_rerun_of_append_after_a_failed_report(airflow, shop):
    """The same with a task that appends: 16 rows, 4,100.00."""
    airflow.run("revenue", "2026-10-06")
    shop.run(
        "CREATE TABLE revenue_20261007 PARTITION OF revenue"
        " FOR VALUES FROM ('2026-10-07') TO ('2026-10-08')"
    )
    airflow.write("append.py", APPEND)
    shop.run("ALTER TABLE report RENAME TO report_elsewhere")
    assert states(airflow.run("append", "2026-10-07")) == {
        "append": "success",
        "publish_report": "failed",
    }
    shop.run("ALTER TABLE report_elsewhere RENAME TO report")
    airflow.run("append", "2026-10-07")
    assert revenue(shop) == {"2026-10-06": (6, "1730.00"), "2026-10-07": (16, "4100.00")}


def test_merge_task_retried(airflow, shop):
    """It fails once, is retried by Airflow, and a run after that writes nothing."""
    shop.run(
        """CREATE SEQUENCE tries;
           CREATE FUNCTION fail_once() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
               IF nextval('tries') <= 2 THEN
                 RAISE 'cut off at order %', NEW.order_id;
               END IF;
               RETURN NEW;
             END $$;
           CREATE TRIGGER fail BEFORE INSERT ON order_status
             FOR EACH ROW EXECUTE FUNCTION fail_once()"""
    )
    wanted = [(107, "paid", 1), (108, "paid", 1), (109, "cancelled", 2), (111, "sent", 2)]
    query = "SELECT order_id, status, revision FROM order_status ORDER BY 1"
    instances = airflow.run("revenue", "2026-10-07", retries=2)
    assert states(instances) == ALL_GOOD
    assert instances["merge_order_status"].try_number == 3
    assert shop.rows(query) == wanted

    airflow.run("revenue", "2026-10-07")
    assert shop.rows(query) == wanted
    assert loads(shop, "order_status") == [
        ("2026-10-07", "merge", 6, 4),
        ("2026-10-07", "merge", 6, 0),
    ]


def test_merge_keeps_the_newest_version(airflow, shop):
    airflow.run("revenue", "2026-10-07")
    shop.run(
        """INSERT INTO order_changes VALUES (107, '2026-10-07', 'sent', 2);
           DELETE FROM order_changes WHERE order_id = 109 AND revision = 2"""
    )
    airflow.run("revenue", "2026-10-07")
    assert shop.rows("SELECT order_id, status FROM order_status ORDER BY 1") == [
        (107, "sent"),
        (108, "paid"),
        (109, "cancelled"),
        (111, "sent"),
    ]


def test_missing_day_fails_the_check(airflow, shop, capfd):
    """Somebody marks the load as done that never ran: the check tells."""
    instances = airflow.run("revenue", "2026-10-07", mark_success_pattern="load_revenue")
    assert states(instances) == {
        **ALL_GOOD,
        "check_loaded": "failed",
        "publish_report": "upstream_failed",
    }
    assert "Days that are missing: 2026-10-07 never loaded." in capfd.readouterr().out
    assert states(airflow.run("revenue", "2026-10-07")) == ALL_GOOD


def test_empty_source_fails_the_check(airflow, shop):
    """The rows of the day are not there yet. Loaded as empty, but not published."""
    shop.run("CREATE TABLE later AS TABLE orders; TRUNCATE orders")
    instances = airflow.run("revenue", "2026-10-07")
    assert states(instances) == {
        **ALL_GOOD,
        "check_loaded": "failed",
        "publish_report": "upstream_failed",
    }
    shop.run("INSERT INTO orders TABLE later")
    assert states(airflow.run("revenue", "2026-10-07")) == ALL_GOOD
    assert loads(shop, "revenue") == [("2026-10-07", "none", 0, 0), ("2026-10-07", "diff", 8, 8)]


def test_run_without_a_logical_date_loads_nothing(airflow, shop, capfd):
    instances = airflow.run("revenue", None)
    assert states(instances) == {
        "load_revenue": "failed",
        "merge_order_status": "failed",
        "check_loaded": "upstream_failed",
        "publish_report": "upstream_failed",
    }
    assert "'ds' is undefined" in capfd.readouterr().out
    assert shop.rows("SELECT * FROM load_history") == []


# Which day {{ ds }} is


def first_run(timetable):
    """When the scheduler starts the first run since 2026-10-06, and the {{ ds }} of it."""
    from airflow.sdk import DAG
    from airflow.serialization.encoders import coerce_to_core_timetable
    from airflow.timetables.base import TimeRestriction

    core = coerce_to_core_timetable(DAG("day", schedule=timetable).timetable)
    run = core.next_dagrun_info(
        last_automated_data_interval=None,
        restriction=TimeRestriction(pendulum.datetime(2026, 10, 6), None, True),
    )
    return run.run_after.isoformat(), run.logical_date.in_timezone("UTC").strftime("%Y-%m-%d")


def test_day_of_the_example(airflow):
    timetable = airflow.dags()["revenue"].timetable
    assert first_run(timetable) == ("2026-10-07T00:00:00+00:00", "2026-10-06")


def test_day_of_daily_is_the_one_that_begins(airflow):
    assert first_run("@daily") == ("2026-10-06T00:00:00+00:00", "2026-10-06")
    assert first_run("0 2 * * *") == ("2026-10-06T02:00:00+00:00", "2026-10-06")


def test_day_in_another_time_zone_is_the_one_before(airflow):
    from airflow.sdk import CronDataIntervalTimetable

    timetable = CronDataIntervalTimetable("@daily", timezone="Europe/Berlin")
    # The first whole day in Berlin since midnight UTC is 2026-10-07. It begins at 22:00 UTC of
    # the day before, and {{ ds }} is in UTC.
    assert first_run(timetable) == ("2026-10-07T22:00:00+00:00", "2026-10-06")


def test_day_of_daily_as_in_airflow_2(airflow, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SCHEDULER__CREATE_CRON_DATA_INTERVALS", "True")
    assert first_run("@daily") == ("2026-10-07T00:00:00+00:00", "2026-10-06")


def test_day_in_another_time_zone_can_be_had(airflow):
    there = '{{ logical_date.in_timezone("Europe/Berlin") | ds }}'
    arguments = {"sql": f"SELECT '{{{{ ds }}}}', '{there}'"}
    airflow.write("one_operator.py", OPERATOR.format(arguments=arguments))
    instance = airflow.run("operator", "2026-10-06T22:00:00")["operator"]
    assert airflow.pushed(instance) == [("2026-10-06", "2026-10-07")]


def test_run_by_hand_at_midnight_stops_the_schedule(airflow):
    """The scheduler finds that the run of its next date is there, and comes to that date again."""
    from airflow import settings
    from airflow.models.dag import DagModel
    from airflow.models.serialized_dag import SerializedDagModel

    run = airflow.run("revenue", "2026-10-07")["check_loaded"].get_dagrun()
    with settings.Session() as session:
        model = DagModel.get_dagmodel("revenue", session=session)
        model.calculate_dagrun_date_fields(
            dag=SerializedDagModel.get_dag("revenue"), reference_run=run
        )
        assert model.next_dagrun == run.logical_date
        session.rollback()


# The backfill DAG


def test_backfill(airflow, shop, capfd):
    conf = {"job": "revenue", "from_date": "2026-10-05", "to_date": "2026-10-07"}
    instances = airflow.run("revenue_backfill", None, run_conf=conf)
    assert states(instances) == {"register_jobs": "success", "backfill": "success"}
    assert revenue(shop) == STORY_B
    (run_id,) = {instance.run_id for instance in instances.values()}
    assert shop.rows("SELECT job, state, total, done, run_id FROM backfill_progress") == [
        ("revenue", "done", 3, 3, run_id)
    ]
    query = "SELECT count(DISTINCT xmin::text) FROM load_history WHERE run_id = %s"
    assert shop.value(query, run_id) == 3
    log = capfd.readouterr().out
    assert "2026-10-06: 6 rows, diff, inserted 6, deleted 0, updated 0 (2 of 3" in log
    assert "2026-10-07: 8 rows, diff, inserted 8, deleted 0, updated 0 (3 of 3" in log

    airflow.run("revenue_backfill", None, run_conf=conf)
    assert revenue(shop) == STORY_B
    assert [method for _, method, _, _ in loads(shop, "revenue")[3:]] == ["none"] * 3


def test_backfill_after_the_daily_runs_writes_nothing(airflow, shop):
    """The daily load and the job have one query, so resume can leave out what is done."""
    airflow.run("revenue", "2026-10-07")
    airflow.run("revenue_backfill", None)
    assert loads(shop, "revenue") == [
        ("2026-10-07", "diff", 8, 8),
        ("2026-10-06", "diff", 6, 6),
        ("2026-10-07", "none", 8, 0),
    ]
    shop.run("CALL backfill('revenue', '2026-10-06', '2026-10-07', resume => true)")
    query = "SELECT done, skipped FROM backfill_progress ORDER BY id DESC LIMIT 1"
    assert shop.row(query) == (0, 2)


def test_backfill_in_a_transaction_is_refused(airflow, shop, capfd):
    shop.run(f"SELECT create_job('revenue', 'revenue', '{QUERY}')")
    sql = "CALL backfill('revenue', '2026-10-06', '2026-10-07')"
    assert airflow.operator(sql=sql).state == "failed"
    log = capfd.readouterr().out
    assert "backfill cannot run inside a transaction block" in log
    assert "HINT:  Use autocommit, and CALL it as the only statement" in log
    assert shop.rows("SELECT * FROM load_history") == []
    assert shop.rows("SELECT * FROM backfill_progress") == []

    # two statements in one string are a transaction, autocommit or not; a list is not
    assert airflow.operator(sql=f"SELECT 1; {sql}", autocommit=True).state == "failed"
    assert shop.rows("SELECT * FROM load_history") == []
    assert airflow.operator(sql=["SELECT 1", sql], autocommit=True).state == "success"
    assert revenue(shop) == STORY_B


# What an operator does with a statement: psycopg 3, by PostgresHook


def load(query, date="'2026-10-07'"):
    return f"SELECT method, rows FROM replace_partition('revenue', {date}, $query${query}$query$)"


def test_percent_without_parameters(airflow, shop):
    """The text goes to the server as it is."""
    assert airflow.good(sql=load(QUERY + " AND order_id::text LIKE '11%'")) == [("diff", 5)]


def test_percent_with_parameters(airflow, shop, capfd):
    """A percent sign is the beginning of a placeholder, also in a literal."""
    date = {"date": "2026-10-07"}
    sql = load(QUERY + " AND order_id::text LIKE '11%'", "%(date)s")
    assert airflow.operator(sql=sql, parameters=date).state == "failed"
    assert "only '%s', '%b', '%t' are allowed as placeholders" in capfd.readouterr().out
    assert airflow.good(sql=sql.replace("11%", "11%%"), parameters=date) == [("diff", 5)]


def test_query_as_a_parameter(airflow, shop):
    """Then nothing in it needs to be doubled or quoted."""
    assert airflow.good(
        sql="SELECT method, rows FROM replace_partition(%(target)s, %(date)s, %(query)s)",
        parameters={
            "target": "revenue",
            "date": "{{ ds }}",
            "query": QUERY + " AND order_id::text LIKE '11%'",
        },
    ) == [("diff", 5)]


def test_array_as_a_parameter(airflow, shop):
    assert airflow.good(
        sql="SELECT method, inserted FROM merge_rows('order_status', %s, %s, %s, 'revision')",
        parameters=["{{ ds }}", QUERY.replace("orders", "order_changes"), ["order_id"]],
    ) == [("merge", 4)]


def test_dollar_one_in_the_query(airflow, shop):
    """It is text in a literal, and nobody's but the load's."""
    assert airflow.good(sql=load(QUERY)) == [("diff", 8)]
    assert airflow.good(sql=load(QUERY, "%s"), parameters=["2026-10-07"]) == [("none", 8)]


def test_dollar_one_outside_of_the_query(airflow, shop, capfd):
    """psycopg makes $1 of the first %s, so one that is written there is taken for it."""
    assert airflow.operator(sql="SELECT $1::date").state == "failed"
    assert "there is no parameter $1" in capfd.readouterr().out
    assert airflow.good(sql="SELECT $1::int + 1, %s::int", parameters=[41]) == [(42, 41)]


FAILS_LATE = ["INSERT INTO revenue TABLE orders", "SELECT 1/0"]


@pytest.mark.parametrize("first_kept, arguments", [
    (False, {"sql": FAILS_LATE}),
    (False, {"sql": ";".join(FAILS_LATE)}),
    (False, {"sql": ";".join(FAILS_LATE), "split_statements": True}),
    (True, {"sql": FAILS_LATE, "autocommit": True}),
    (False, {"sql": ";".join(FAILS_LATE), "autocommit": True}),
    (True, {"sql": ";".join(FAILS_LATE), "split_statements": True, "autocommit": True}),
])
def test_what_stays_when_the_second_statement_fails(airflow, shop, first_kept, arguments):
    shop.run(
        "CREATE TABLE revenue_20261006 PARTITION OF revenue"
        " FOR VALUES FROM ('2026-10-06') TO ('2026-10-08')"
    )
    assert airflow.operator(**arguments).state == "failed"
    assert shop.value("SELECT count(*) FROM revenue") == (14 if first_kept else 0)


def test_loads_of_one_operator_are_one_transaction(airflow, shop):
    """A list of loads, autocommit off: both days or none."""
    days = [load(QUERY, f"'{date}'") for date in STORY_B]
    assert airflow.operator(sql=[*days, "SELECT 1/0"]).state == "failed"
    assert revenue(shop) == {}
    assert airflow.good(sql=days) == [[("diff", 6)], [("diff", 8)]]
    assert shop.value("SELECT count(DISTINCT xmin::text) FROM load_history") == 1


def test_statements_with_parameters_need_a_list(airflow, shop, capfd):
    two = [load(QUERY, "%(date)s")] * 2
    date = {"date": "2026-10-07"}
    assert airflow.operator(sql=";".join(two), parameters=date).state == "failed"
    assert "cannot insert multiple commands into a prepared statement" in capfd.readouterr().out
    assert airflow.good(sql=two, parameters=date) == [[("diff", 8)], [("none", 8)]]


def test_splitting_knows_dollar_quotes(airflow, shop):
    query = "-- of the day; half-open\n" + QUERY + "; -- that is all\n"
    assert airflow.good(
        sql=f"{load(query)};\nSELECT 'report; day'", split_statements=True, return_last=False
    ) == [[("diff", 8)], [("report; day",)]]


# What an operator pushes to XCom


def test_which_result_is_pushed(airflow, shop):
    two = "SELECT 1; SELECT 2"
    assert airflow.good(sql=two) == [(1,)]
    assert airflow.good(sql=two, split_statements=True) == [(2,)]
    assert airflow.good(sql=two, split_statements=True, return_last=False) == [[(1,)], [(2,)]]
    assert airflow.good(sql=two.split(";")) == [[(1,)], [(2,)]]
    assert airflow.good(sql=two, do_xcom_push=False) is None


def test_row_of_a_load_is_pushed_whole(airflow, shop):
    ((*row, fingerprint, elapsed),) = airflow.good(sql=load(QUERY).replace("method, rows", "*"))
    assert row == ["revenue", "2026-10-07", "2026-10-08", "diff", 8, 0, 8, 0, 0, True]
    assert re.fullmatch("1:8:[0-9a-f]{32}", fingerprint)
    assert datetime.timedelta(0) < elapsed < datetime.timedelta(minutes=5)


def test_row_of_a_load_as_json_and_as_text(airflow, shop):
    ((row,),) = airflow.good(sql=load(QUERY).replace("method, rows", "to_jsonb(load)") + " AS load")
    assert (row["target"], row["method"], row["inserted"]) == ("revenue", "diff", 8)
    ((text,),) = airflow.good(sql=f"SELECT replace_partition('revenue', '2026-10-07', '{QUERY}')")
    assert text.startswith("(revenue,2026-10-07,2026-10-08,none,8,8,0,0,0,f,1:8:")


def test_row_of_the_history_is_pushed_whole(airflow, shop):
    """Dates, intervals and timestamps come back as what they were."""
    airflow.run("revenue", "2026-10-07")
    query = "SELECT * FROM load_history ORDER BY id"
    assert airflow.good(sql=query) == shop.rows(query)


def test_numeric_is_pushed_as_a_float_has_it(airflow):
    """Text keeps its digits."""
    value = "12345678901234567890.50"
    ((number, text),) = airflow.good(sql=f"SELECT {value}, {value}::text")
    assert (str(number), text) == ("12345678901234567000", value)


# What a task's log has


def test_result_row_in_the_log(airflow, shop, capfd):
    airflow.run("revenue", "2026-10-07")
    assert (
        "Operator output is: [[('revenue', '2026-10-07', '2026-10-08', 'diff', 8, 0, 8, 0, 0, True,"
        in capfd.readouterr().out
    )


def test_messages_in_the_log(airflow, shop, capfd):
    """A load that is skipped says so by a NOTICE. It is in the log where that is asked for."""
    skip = load(QUERY).replace("$query$)", "$query$, if_running => 'skip')")
    with server.connect(shop.database) as other:
        with other.transaction():
            other.execute(load(QUERY))
            assert airflow.good(sql=skip) == [("skipped", None)]
            assert "another load" not in capfd.readouterr().out
            airflow.good(sql=skip, hook_params={"enable_log_db_messages": True})
    assert "another load" in capfd.readouterr().out


# The connection


def reconnect(airflow, shop, monkeypatch, **extra):
    for name, value in airflow.home.use(shop, **extra).items():
        monkeypatch.setenv(name, value)


def test_settings_of_the_connection(airflow, shop, monkeypatch):
    show = "SELECT current_setting('lock_timeout')"
    hook_params = {"options": "-c lock_timeout=2min"}
    assert airflow.good(sql=show, hook_params=hook_params) == [("2min",)]
    reconnect(airflow, shop, monkeypatch, options="-c lock_timeout=1min")
    assert airflow.good(sql=show) == [("1min",)]
    assert airflow.good(sql=show, hook_params=hook_params) == [("1min",)]


def test_messages_cannot_be_asked_for_in_the_connection(airflow, shop, monkeypatch, capfd):
    reconnect(airflow, shop, monkeypatch, enable_log_db_messages=True)
    assert airflow.operator(sql="SELECT 1").state == "failed"
    assert 'invalid connection option "enable_log_db_messages"' in capfd.readouterr().out


def test_statement_timeout(airflow, shop, monkeypatch, capfd):
    """The server ends the load itself: the task fails at once, and nothing is left."""
    reconnect(airflow, shop, monkeypatch, options="-c statement_timeout=3s")
    with server.connect(shop.database) as other:
        with other.transaction():
            other.execute(load(QUERY))
            assert airflow.operator(sql=load(QUERY)).state == "failed"
            log = capfd.readouterr().out
            assert "canceling statement due to statement timeout" in log
            assert 'load of slice [2026-10-07, 2026-10-08) of table "revenue", step "lock"' in log
    shop.wait_until_unlocked()
    assert airflow.good(sql=load(QUERY)) == [("none", 8)]


# The tests that a team runs in CI


@pytest.fixture
def example(warehouse, tmp_path):
    """A copy of the example, and a function that runs its tests: status and output.

    As in CI there is no metadata database, and the warehouse has no tables yet.
    """
    folder = tmp_path / "example"
    shutil.copytree(airflow_home.EXAMPLE, folder)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AIRFLOW")}

    def run():
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests"],
            cwd=folder,
            env={
                **environment,
                "PGDATABASE": warehouse.database,
                "AIRFLOW_HOME": str(tmp_path),
                "PYTHONPATH": "",
            },
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert warehouse.rows("SELECT name FROM jobs") == []
        return done.returncode, done.stdout

    return folder, run


def test_example_tests_pass(example):
    _, run = example
    status, output = run()
    assert status == 0, output
    assert "2 passed" in output


def test_example_tests_find_a_task_that_appends(example):
    folder, run = example
    (folder / "dags" / "sql" / "publish_report.sql").write_text(
        "INSERT INTO report SELECT order_date, count(*), sum(amount_eur) FROM revenue"
        " WHERE order_date = '{{ ds }}' GROUP BY order_date"
    )
    status, output = run()
    assert "1 failed, 1 passed" in output
    assert 'job "publish_report" is not idempotent for 2026-10-07: rerun "same"' in output
    assert "Cause: append." in output


def test_example_tests_find_a_job_that_reads_the_clock(example):
    folder, run = example
    (folder / "dags" / "sql" / "revenue.sql").write_text(
        "SELECT order_id, order_date, current_date - order_date AS amount_eur FROM orders\n"
        "WHERE order_date >= $1 AND order_date < $2\n"
    )
    status, output = run()
    assert "2 failed" in output
    assert "Cause: clock." in output
