"""Fixtures of all tests with Airflow."""

import airflow_home
import pytest


@pytest.fixture(scope="session")
def metadata_template(tmp_path_factory):
    """The name of a migrated metadata database that nobody is connected to."""
    with airflow_home.migrated_template(tmp_path_factory.mktemp("migrate")) as name:
        yield name


@pytest.fixture
def shop(warehouse):
    """A warehouse with the example's tables and two days: story B.

    2026-10-06 has 6 orders, 1,730.00, and 2026-10-07 has 8 orders, 2,050.00.
    """
    warehouse.run((airflow_home.EXAMPLE / "schema.sql").read_text())
    warehouse.run((airflow_home.EXAMPLE / "sample.sql").read_text())
    return warehouse
