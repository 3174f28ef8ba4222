"""Loads under the real scheduler: what dag.test cannot show.

Each test has the load and, beside it, the append that people write first. The orders are
those of story B: 2026-10-06 has 6, 1,730.00 in all; 2026-10-07 has 8, 2,050.00. The first
five of these, about 60 %, are 1,340.00, the other three 710.00.
"""

import contextlib
import datetime
import pathlib

import airflow_home
import psutil
import pytest
import scheduler
from warehouse import connect

DAGS = pathlib.Path(__file__).parent / "dags"

SCHEMA = """
CREATE TABLE orders (
  order_id bigint PRIMARY KEY,
  order_date date NOT NULL,
  amount_eur numeric(10,2) NOT NULL
);
INSERT INTO orders VALUES
  (1, '2026-10-06', 310.00), (2, '2026-10-06', 275.50), (3, '2026-10-06', 180.00),
  (4, '2026-10-06', 420.00), (5, '2026-10-06', 299.50), (6, '2026-10-06', 245.00),
  (7, '2026-10-07', 150.00), (8, '2026-10-07', 320.00), (9, '2026-10-07', 199.90),
  (10, '2026-10-07', 410.10), (11, '2026-10-07', 260.00), (12, '2026-10-07', 275.00),
  (13, '2026-10-07', 185.00), (14, '2026-10-07', 250.00);
CREATE TABLE revenue (LIKE orders) PARTITION BY RANGE (order_date);
CREATE TABLE revenue_append (LIKE orders);
"""

NIGHT = "2026-10-07"
LOADED = {NIGHT: (8, "2050.00")}


@pytest.fixture(scope="session")
def components(metadata_template, tmp_path_factory):
    """Airflow, running, with the DAGs of these tests."""
    folder = tmp_path_factory.mktemp("scheduler")
    with airflow_home.home(folder, metadata_template, "airflow_scheduler") as home:
        airflow = scheduler.Airflow(folder, DAGS, home.environment)
        try:
            airflow.start()
            yield airflow
        finally:
            airflow.stop()


@pytest.fixture
def airflow(components, warehouse):
    """Airflow with a connection to a warehouse that has orders."""
    warehouse.run(SCHEMA)
    components.connect_to(warehouse)
    yield components
    components.end_runs()


@pytest.fixture
def gate(warehouse):
    """The step of the tasks that holds them; closed until it is opened."""
    gate = Gate(warehouse)
    yield gate
    gate.open()


class Gate:
    """Holds the advisory lock that tasks take at the step `inserted`."""

    def __init__(self, warehouse):
        self.warehouse = warehouse
        self.connection = connect(warehouse.database, application_name="gate")
        self.connection.execute(
            "SELECT pg_advisory_lock(hashtext('idempotent_load'), hashtext('inserted'))"
        )

    def open(self):
        self.connection.close()

    def wait_for(self, *sessions):
        """Wait until sessions of tasks, such as replace_1, stand before the gate."""
        for session in sessions:
            wait_until_blocked(self.warehouse, session, "gate")


def wait_until_blocked(warehouse, session, holder):
    """Wait until a session waits for a lock of another one. Both are named task_try."""
    warehouse.wait_until(
        """SELECT EXISTS (
             SELECT FROM pg_stat_activity w
             JOIN pg_stat_activity h ON h.pid = ANY (pg_blocking_pids(w.pid))
             WHERE w.datname = current_database() AND w.application_name = %s
               AND h.application_name = %s)""",
        session,
        holder,
    )


def wait_until_gone(warehouse, *sessions):
    """Wait until the server has ended sessions."""
    warehouse.wait_until(
        """SELECT NOT EXISTS (
             SELECT FROM pg_stat_activity
             WHERE datname = current_database() AND application_name = ANY (%s))""",
        list(sessions),
    )


def wait_for_end(*processes):
    """Wait until processes have ended."""
    _, alive = psutil.wait_procs(processes, 60)
    assert not alive


@contextlib.contextmanager
def frozen(run, task):
    """Stop the process of a task, and its supervisor: Airflow hears of them no more.

    Yields the process. Afterwards both go on, if they have not before.
    """
    process = run.process(task)
    supervisor = process.parent()
    supervisor.suspend()
    process.suspend()
    try:
        yield process
    finally:
        process.resume()
        supervisor.resume()


def totals(warehouse, table):
    """Rows and sum of each day."""
    return {
        str(day): (rows, str(eur))
        for day, rows, eur in warehouse.rows(
            f"SELECT order_date, count(*), sum(amount_eur) FROM {table} GROUP BY 1 ORDER BY 1"
        )
    }


def loads(warehouse, run):
    """The loads of a run on record: the try, and what it did."""
    return warehouse.rows(
        """SELECT substring(run_id FROM ', (try \\d+)$'), method, rows, inserted, deleted
           FROM load_history WHERE run_id LIKE %s ORDER BY id""",
        f"{run.run_id}, %",
    )


def test_killed(airflow, warehouse, gate):
    """SIGKILL for a load before its commit, and for an append that has committed 60 %."""
    run = airflow.trigger("night", NIGHT)
    gate.wait_for("replace_1", "append_1")
    assert totals(warehouse, "revenue") == {}
    assert totals(warehouse, "revenue_append") == {NIGHT: (5, "1340.00")}
    run.process("replace").kill()
    run.process("append").kill()

    # The server does not know yet that its client is dead, so the retry has to wait.
    wait_until_blocked(warehouse, "replace_2", "replace_1")
    gate.open()
    run.wait()
    assert run.states("replace") == run.states("append") == ["failed", "success"]
    assert totals(warehouse, "revenue") == LOADED
    assert loads(warehouse, run) == [("try 2", "diff", 8, 8, 0)]
    assert totals(warehouse, "revenue_append") == {NIGHT: (13, "3390.00")}
    warehouse.wait_until_unlocked()


def test_cleared(airflow, warehouse):
    """A task that was successful, and is cleared."""
    where = "SELECT tableoid::regclass::text, ctid::text, xmin::text FROM revenue ORDER BY 1, 2"
    run = airflow.trigger("night", NIGHT)
    run.wait()
    assert totals(warehouse, "revenue") == totals(warehouse, "revenue_append") == LOADED
    before = warehouse.rows(where)

    run.clear("replace", "append")
    run.wait()
    assert run.states("replace") == run.states("append") == ["success", "success"]
    assert totals(warehouse, "revenue") == LOADED
    assert warehouse.rows(where) == before
    assert loads(warehouse, run) == [("try 1", "diff", 8, 8, 0), ("try 2", "none", 8, 0, 0)]
    assert totals(warehouse, "revenue_append") == {NIGHT: (16, "4100.00")}


def test_cleared_while_it_runs(airflow, warehouse, gate):
    """A task that is cleared in its load: Airflow kills it, and starts it again."""
    run = airflow.trigger("night", NIGHT)
    gate.wait_for("replace_1", "append_1")
    processes = run.process("replace"), run.process("append")
    run.clear("replace", "append")
    wait_for_end(*processes)
    wait_until_blocked(warehouse, "replace_2", "replace_1")
    gate.open()
    run.wait()
    assert totals(warehouse, "revenue") == LOADED
    assert loads(warehouse, run) == [("try 2", "diff", 8, 8, 0)]
    assert totals(warehouse, "revenue_append") == {NIGHT: (13, "3390.00")}


def test_two_runs_of_a_date(airflow, warehouse, gate):
    """Two people start the DAG for the same day."""
    first = airflow.trigger("night", NIGHT)
    gate.wait_for("replace_1", "append_1")
    second = airflow.trigger("night", NIGHT)
    wait_until_blocked(warehouse, "replace_1", "replace_1")
    gate.open()
    first.wait()
    second.wait()
    assert totals(warehouse, "revenue") == LOADED
    assert loads(warehouse, first) == [("try 1", "diff", 8, 8, 0)]
    assert loads(warehouse, second) == [("try 1", "none", 8, 0, 0)]
    assert totals(warehouse, "revenue_append") == {NIGHT: (16, "4100.00")}


def test_past_dates(airflow, warehouse):
    """Catch-up over a week, several days at once; then a backfill of the same week.

    The day d of October, from 1 to 5, has d orders of 10.00.
    """
    warehouse.run(
        """INSERT INTO orders
           SELECT 100 * d + n, date '2026-09-30' + d, 10.00
           FROM generate_series(1, 5) AS d, generate_series(1, d) AS n"""
    )
    once = {
        "2026-10-01": (1, "10.00"),
        "2026-10-02": (2, "20.00"),
        "2026-10-03": (3, "30.00"),
        "2026-10-04": (4, "40.00"),
        "2026-10-05": (5, "50.00"),
        "2026-10-06": (6, "1730.00"),
        "2026-10-07": (8, "2050.00"),
    }
    airflow.unpause("night_daily")
    airflow.wait_for_runs("night_daily", 7)
    assert totals(warehouse, "revenue") == totals(warehouse, "revenue_append") == once
    missing = "SELECT * FROM missing_dates('revenue', '2026-10-01', '2026-10-07')"
    assert warehouse.rows(missing) == []
    # Airflow names a run after its start, at the end of the day that it loads.
    assert warehouse.rows(
        "SELECT logical_date, run_id, method, rows FROM load_history ORDER BY logical_date"
    ) == [
        (
            datetime.date(2026, 10, day),
            f"scheduled__2026-10-{day + 1:02}T00:00:00+00:00, try 1",
            "diff",
            day + (day == 7),
        )
        for day in range(1, 8)
    ]

    airflow.backfill("night_daily", "2026-10-01", "2026-10-07")
    airflow.wait_for_runs("night_daily", 7)
    assert totals(warehouse, "revenue") == once
    assert warehouse.rows(
        "SELECT method, count(*), sum(inserted) FROM load_history GROUP BY 1 ORDER BY 1"
    ) == [("diff", 7, 29), ("none", 7, 0)]
    assert totals(warehouse, "revenue_append") == {
        "2026-10-01": (2, "20.00"),
        "2026-10-02": (4, "40.00"),
        "2026-10-03": (6, "60.00"),
        "2026-10-04": (8, "80.00"),
        "2026-10-05": (10, "100.00"),
        "2026-10-06": (12, "3460.00"),
        "2026-10-07": (16, "4100.00"),
    }


def test_zombie_is_waited_for(airflow, warehouse, gate):
    """Airflow has given up a task that is in its load. The retry waits for it."""
    run = airflow.trigger("night", NIGHT)
    gate.wait_for("replace_1", "append_1")
    with frozen(run, "replace") as zombie, frozen(run, "append") as zombie_append:
        wait_until_blocked(warehouse, "replace_2", "replace_1")
        gate.wait_for("append_2")
        gate.open()
        # The load is done, but its client sleeps and has not committed.
        warehouse.wait_until(
            """SELECT EXISTS (
                 SELECT FROM pg_stat_activity WHERE datname = current_database()
                 AND application_name = 'replace_1' AND state = 'idle in transaction')"""
        )
        wait_until_blocked(warehouse, "replace_2", "replace_1")
        assert totals(warehouse, "revenue") == {}
        zombie.resume()
        zombie_append.resume()
        run.wait()
    wait_for_end(zombie, zombie_append)
    assert run.states("replace") == run.states("append") == ["failed", "success"]
    assert totals(warehouse, "revenue") == LOADED
    assert loads(warehouse, run) == [("try 1", "diff", 8, 8, 0), ("try 2", "none", 8, 0, 0)]
    assert totals(warehouse, "revenue_append") == {NIGHT: (16, "4100.00")}
    warehouse.wait_until_unlocked()


def test_zombie_is_cancelled(airflow, warehouse, gate):
    """The same, with a retry that does not wait but cancels the load."""
    run = airflow.trigger("night", NIGHT, if_running="cancel")
    gate.wait_for("replace_1", "append_1")
    with frozen(run, "replace") as zombie, frozen(run, "append") as zombie_append:
        # The zombie still sleeps, and the gate is closed: the retry is in its load all the same.
        gate.wait_for("replace_2", "append_2")
        gate.open()
        run.wait()
        assert totals(warehouse, "revenue") == LOADED
    wait_for_end(zombie, zombie_append)
    wait_until_gone(warehouse, "replace_1", "append_1")
    assert run.states("replace") == run.states("append") == ["failed", "success"]
    assert totals(warehouse, "revenue") == LOADED
    assert loads(warehouse, run) == [("try 2", "diff", 8, 8, 0)]


def test_zombie_is_skipped(airflow, warehouse, gate):
    """The same, with a retry that leaves the day to the zombie: it is green before the day is."""
    run = airflow.trigger("night", NIGHT, if_running="skip")
    gate.wait_for("replace_1", "append_1")
    with frozen(run, "replace") as zombie:
        run.wait_for("replace", "success", 2)
        assert totals(warehouse, "revenue") == {}
        assert loads(warehouse, run) == []
        assert warehouse.rows(f"SELECT is_loaded('revenue', '{NIGHT}')") == [(False,)]
        gate.open()
        zombie.resume()
        wait_until_gone(warehouse, "replace_1")
    wait_for_end(zombie)
    run.wait()
    assert totals(warehouse, "revenue") == LOADED
    assert loads(warehouse, run) == [("try 1", "diff", 8, 8, 0)]


def test_zombie_after_retry(airflow, warehouse, gate):
    """A zombie that comes to its load when the retry is done, and the source has changed.

    It reads the source as it is then, so the last load is of the newest source, whoever
    makes it.
    """
    run = airflow.trigger("night_late", NIGHT)
    gate.wait_for("replace_1", "append_1")
    with frozen(run, "replace") as zombie, frozen(run, "append") as zombie_append:
        gate.wait_for("replace_2", "append_2")
        gate.open()
        run.wait()
        assert totals(warehouse, "revenue") == LOADED
        assert totals(warehouse, "revenue_append") == {NIGHT: (13, "3390.00")}
        warehouse.run(f"INSERT INTO orders VALUES (15, '{NIGHT}', 60.00)")
        zombie.resume()
        zombie_append.resume()
        wait_until_gone(warehouse, "replace_1", "append_1")
    wait_for_end(zombie, zombie_append)
    assert run.states("replace") == run.states("append") == ["failed", "success"]
    assert totals(warehouse, "revenue") == {NIGHT: (9, "2110.00")}
    assert loads(warehouse, run) == [("try 2", "diff", 8, 8, 0), ("try 1", "diff", 9, 1, 0)]
    assert totals(warehouse, "revenue_append") == {NIGHT: (17, "4160.00")}


def test_zombie_with_old_snapshot(airflow, warehouse, gate):
    """The same in REPEATABLE READ: the zombie read the source before it changed, and fails."""
    run = airflow.trigger(
        "night_late", NIGHT, options=r"-c default_transaction_isolation=repeatable\ read"
    )
    gate.wait_for("replace_1", "append_1")
    with frozen(run, "replace") as zombie:
        warehouse.run(f"INSERT INTO orders VALUES (15, '{NIGHT}', 60.00)")
        gate.wait_for("replace_2")
        gate.open()
        run.wait()
        assert totals(warehouse, "revenue") == {NIGHT: (9, "2110.00")}
        zombie.resume()
        wait_until_gone(warehouse, "replace_1")
    wait_for_end(zombie)
    assert "could not serialize access due to concurrent update" in run.log("replace", 1)
    assert totals(warehouse, "revenue") == {NIGHT: (9, "2110.00")}
    assert loads(warehouse, run) == [("try 2", "diff", 9, 9, 0)]


@pytest.mark.parametrize(
    "conf, error",
    [
        ({"options": "-c client_connection_check_interval=500"}, "AirflowTaskTimeout"),
        ({"options": "-c statement_timeout=5s"}, "canceling statement due to statement timeout"),
        ({"if_running": "cancel"}, "AirflowTaskTimeout"),
    ],
    ids=["connection-check", "statement-timeout", "cancel"],
)
def test_timed_out(airflow, warehouse, gate, conf, error):
    """A task that is longer than its execution_timeout, and what ends its statement."""
    run = airflow.trigger("night_limited", NIGHT, **conf)
    gate.wait_for("replace_1", "append_1")
    # Nobody has opened the gate for it.
    wait_until_gone(warehouse, "replace_1")
    # Both: an append that had not timed out yet would be let through.
    gate.wait_for("replace_2", "append_2")
    gate.open()
    run.wait()
    assert error in run.log("replace", 1)
    assert run.states("replace") == run.states("append") == ["failed", "success"]
    assert totals(warehouse, "revenue") == LOADED
    assert loads(warehouse, run) == [("try 2", "diff", 8, 8, 0)]
    assert totals(warehouse, "revenue_append") == {NIGHT: (13, "3390.00")}
    warehouse.wait_until_unlocked()


@pytest.mark.parametrize(
    "dag, done",
    [
        ("night_limited", [("try 2", "diff", 8, 8, 0)]),
        ("night_limited_autocommit", [("try 1", "diff", 8, 8, 0), ("try 2", "none", 8, 0, 0)]),
    ],
    ids=["transaction", "autocommit"],
)
def test_timed_out_goes_on(airflow, warehouse, gate, dag, done):
    """Without such a setting the server goes on, and the retry waits for it.

    With autocommit it commits, too: what Airflow shows as failed is done.
    """
    run = airflow.trigger(dag, NIGHT)
    gate.wait_for("replace_1", "append_1")
    wait_until_blocked(warehouse, "replace_2", "replace_1")
    gate.wait_for("append_2")
    assert "AirflowTaskTimeout" in run.log("replace", 1)
    gate.open()
    run.wait()
    assert run.states("replace") == run.states("append") == ["failed", "success"]
    assert totals(warehouse, "revenue") == LOADED
    assert loads(warehouse, run) == done
    assert totals(warehouse, "revenue_append") == {NIGHT: (13, "3390.00")}
