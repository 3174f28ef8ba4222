"""The DAGs of the example, run by Airflow's own dag.test.

Task instances, templates, hooks and the metadata database are real; what is left out is
the scheduler. Airflow is in this process, since it takes seconds to start.
"""

import os

import airflow_home
import pendulum
import pytest

STORY_B = {"2026-10-06": (6, "1730.00"), "2026-10-07": (8, "2050.00")}


@pytest.fixture(scope="module")
def airflow(metadata_template, tmp_path_factory):
    """Airflow, in this process, for the tests of this file."""
    folder = tmp_path_factory.mktemp("airflow")
    with airflow_home.home(folder, metadata_template, "airflow_dags") as home:
        before = dict(os.environ)
        os.environ.update(home.environment)
        yield Airflow(home)
        os.environ.clear()
        os.environ.update(before)


class Airflow:
    """Runs DAGs of a home."""

    def __init__(self, home):
        self.home = home

    def dag(self, dag_id):
        from airflow.dag_processing.dagbag import DagBag

        bag = DagBag(self.home.dags)
        assert not bag.import_errors
        return bag.dags[dag_id]

    def run(self, dag_id, date, **options):
        """One run of a DAG, to its end. Returns the states of its tasks."""
        run = self.dag(dag_id).test(
            logical_date=date and pendulum.parse(date, tz="UTC"), **options
        )
        return {ti.task_id: str(ti.state) for ti in run.get_task_instances()}


@pytest.fixture
def connected(airflow, shop, monkeypatch):
    """Airflow with a connection to the shop."""
    for name, value in airflow.home.use(shop).items():
        monkeypatch.setenv(name, value)
    return airflow


def revenue(shop):
    """Rows and sum of each day."""
    return {
        str(day): (rows, str(eur))
        for day, rows, eur in shop.rows(
            "SELECT order_date, count(*), sum(amount_eur) FROM revenue GROUP BY 1 ORDER BY 1"
        )
    }


def test_two_runs(connected, shop):
    for date in STORY_B:
        assert set(connected.run("revenue", date).values()) == {"success"}
    assert revenue(shop) == STORY_B
    assert set(connected.run("revenue", "2026-10-07").values()) == {"success"}
    assert revenue(shop) == STORY_B
    assert shop.rows(
        "SELECT method, rows, inserted FROM load_history"
        " WHERE target = 'revenue'::regclass ORDER BY id"
    ) == [("diff", 6, 6), ("diff", 8, 8), ("none", 8, 0)]
