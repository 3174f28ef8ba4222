"""Every load can be run again: at once, after a crash half-way, at another time.

The tests need a database that has none of the tables yet, by PGHOST, PGDATABASE and so on.
What they do there is one transaction that is rolled back.
"""

import pathlib

import psycopg
import pytest
from airflow.dag_processing.dagbag import DagBag

EXAMPLE = pathlib.Path(__file__).parents[1]
DATE = "2026-10-07"  # a day with rows in every source, and with nothing loaded


@pytest.fixture(scope="module")
def dags():
    bag = DagBag(EXAMPLE / "dags")
    assert not bag.import_errors
    return bag.dags


@pytest.fixture
def warehouse():
    with psycopg.connect() as connection:
        connection.execute((EXAMPLE / "schema.sql").read_text())
        connection.execute((EXAMPLE / "sample.sql").read_text())
        yield connection
        connection.rollback()


def statement(task):
    """The SQL of a task, as Airflow would send it."""
    task.render_template_fields({"ds": DATE, "run_id": "test"})
    return task.sql


def test_daily_tasks(dags, warehouse):
    """Each task as it is, in the order of the DAG: a task that appends fails here."""
    for task in dags["revenue"].topological_sort():
        sql = statement(task)
        warehouse.execute("SELECT create_job(%s, command => %s)", (task.task_id, sql))
        warehouse.execute("SELECT assert_idempotent(%s, %s)", (task.task_id, DATE))
        warehouse.execute(sql)


def test_jobs(dags, warehouse):
    """Each row of the table jobs. A note would say that little was proved."""
    warehouse.execute(statement(dags["revenue_backfill"].get_task("register_jobs")))
    notes = []
    warehouse.add_notice_handler(lambda notice: notes.append(notice.message_detail))
    jobs = warehouse.execute("SELECT name, ignore_columns FROM jobs ORDER BY created_at")
    for name, ignored in jobs.fetchall():
        warehouse.execute(
            "SELECT assert_idempotent(%s, %s, ignore_columns => %s)", (name, DATE, ignored)
        )
        warehouse.execute("SELECT run_job(%s, %s)", (name, DATE))
    assert notes == []
