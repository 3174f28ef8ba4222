"""doc/airflow.md is what happens: its blocks are done, from top to bottom."""

import os

import airflow_home
import pytest
import walk
import warehouse

DATABASES = ["airflow", "shop"]  # the document makes them


@pytest.fixture
def databases(template):
    yield
    with warehouse.connect("postgres") as server:
        for name in DATABASES:
            server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@pytest.mark.timeout(900)
def test_doc(databases, tmp_path):
    (tmp_path / "idempotent_load").symlink_to(airflow_home.TOP)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")},
        "PGDATABASE": "shop",
        # a reader has these in the shell after the first step; here each block has its own
        "BASH_ENV": str(tmp_path / "settings.sh"),
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "PYTHONPATH": "",
    }
    assert walk.Walk(tmp_path, environment).walk(airflow_home.TOP / "doc" / "airflow.md") > 10
