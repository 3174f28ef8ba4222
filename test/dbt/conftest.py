"""A dbt project with the package of examples/dbt, and a fresh database, for each test."""

import os
import pathlib
import shutil
import subprocess
import textwrap

import pytest
import warehouse
from dbt.cli.main import dbtRunner

PACKAGE = pathlib.Path(__file__).parents[2] / "examples" / "dbt"
DATABASE = "shop"

PROJECT = """
name: shop
profile: shop
config-version: 2
dispatch:
  - macro_namespace: dbt
    search_order: [shop, idempotent_load, dbt]
models:
  +materialized: incremental
  +incremental_strategy: replace_partition
"""

PROFILE = """
shop:
  target: test
  outputs:
    test:
      type: postgres
      host: "{{ env_var('PGHOST') }}"
      port: "{{ env_var('PGPORT') | int }}"
      user: "{{ env_var('PGUSER') }}"
      password: ""
      dbname: shop
      schema: mart
      threads: 4
"""

# what the package's README tells a project to have
STRATEGY = """
{% macro get_incremental_replace_partition_sql(arg_dict) %}
  {{ return(idempotent_load.get_incremental_replace_partition_sql(arg_dict)) }}
{% endmacro %}
"""

SOURCES = """
sources:
  - name: raw
    schema: raw
    tables:
      - name: sales
        config: {event_time: sale_date}
      - name: orders
      - name: events
        config: {event_time: happened_at}
"""

# stories.md, A and B
RAW = """
CREATE SCHEMA raw;
CREATE TABLE raw.sales (sale_id bigint, sale_date date, price_eur numeric(10,2));
INSERT INTO raw.sales
  SELECT i, date '2026-08-01' + (i - 1) / 2000, round(25 + ((i * 37) % 900) * 0.5, 2)
  FROM generate_series(1, 60000) AS i;
CREATE TABLE raw.orders (order_id bigint, order_date date, amount_eur numeric(10,2));
INSERT INTO raw.orders VALUES
  (1, '2026-10-06', 310.00), (2, '2026-10-06', 275.50), (3, '2026-10-06', 180.00),
  (4, '2026-10-06', 420.00), (5, '2026-10-06', 299.50), (6, '2026-10-06', 245.00),
  (7, '2026-10-07', 150.00), (8, '2026-10-07', 320.00), (9, '2026-10-07', 199.90),
  (10, '2026-10-07', 410.10), (11, '2026-10-07', 260.00), (12, '2026-10-07', 275.00),
  (13, '2026-10-07', 185.00), (14, '2026-10-07', 250.00);
CREATE TABLE raw.events (event_id bigint, happened_at timestamptz, n int);
"""


class Project:
    """A dbt project in a folder. dbt keeps there what it has parsed, so it is one for all tests."""

    def __init__(self, folder):
        self.folder = folder
        self.write("dbt_project.yml", PROJECT)
        self.write("profiles.yml", PROFILE)
        self.write("packages.yml", f"packages:\n  - local: {PACKAGE}\n")
        self.write("macros/replace_partition.sql", STRATEGY)
        self.command("deps")

    def write(self, path, text):
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))

    def model(self, name, text):
        self.write(f"models/{name}.sql", text)

    def clear(self):
        shutil.rmtree(self.folder / "models", ignore_errors=True)
        self.write("models/sources.yml", SOURCES)

    def start(self, *arguments):
        """dbt as a process of its own."""
        return subprocess.Popen(
            ["dbt", *arguments],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def command(self, *arguments):
        """The output of dbt as a process of its own, which must not fail."""
        process = self.start(*arguments)
        output, _ = process.communicate()
        assert process.returncode == 0, output
        return output

    def invoke(self, *arguments):
        """The results of a command by the name of the node: status and message."""
        folder = str(self.folder)
        outcome = dbtRunner().invoke(
            [*arguments, "--project-dir", folder, "--profiles-dir", folder]
        )
        if outcome.exception:
            raise outcome.exception
        return {result.node.name: result for result in outcome.result.results}

    def run(self, *arguments):
        """dbt run; every model must succeed."""
        results = self.invoke("run", *arguments)
        failed = {
            name: result.message for name, result in results.items() if result.status != "success"
        }
        assert results and not failed, failed
        return results


@pytest.fixture(scope="session", autouse=True)
def no_network():
    """dbt does not report its use."""
    os.environ["DBT_SEND_ANONYMOUS_USAGE_STATS"] = "false"


@pytest.fixture(scope="session")
def made_project(tmp_path_factory, no_network):
    return Project(tmp_path_factory.mktemp("shop"))


@pytest.fixture
def project(made_project):
    """The project without models."""
    made_project.clear()
    return made_project


@pytest.fixture
def shop(template):
    """A fresh database with the sources."""
    with warehouse.fresh(template, DATABASE) as database:
        database.run(RAW)
        yield database


def loads(database, table, since=0):
    """Loads of a table: the first key of the slice, the method, rows inserted and deleted."""
    return database.rows(
        """SELECT lower_bound, method, rows, inserted, deleted FROM load_history
            WHERE target = %s::text::regclass AND id > %s ORDER BY id""",
        table,
        since,
    )


def last_load(database):
    return database.value("SELECT coalesce(max(id), 0) FROM load_history")
