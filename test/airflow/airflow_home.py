"""A home for Airflow in tests: AIRFLOW_HOME, and a metadata database in the throwaway server.

Airflow is set up by environment variables alone. Commands get them from here; whoever
wants to have Airflow in the process of the tests sets them before the first import.
"""

import contextlib
import json
import os
import pathlib
import secrets
import shutil
import subprocess

from warehouse import connect

TOP = pathlib.Path(__file__).parents[2]
EXAMPLE = TOP / "examples" / "airflow"
TEMPLATE = "airflow_template"


class AirflowHome:
    """A folder with the DAGs of the example, and the environment that makes Airflow use it."""

    def __init__(self, folder, metadata):
        self.folder = pathlib.Path(folder)
        self.dags = self.folder / "dags"
        self.metadata = metadata
        self.environment = {
            **os.environ,
            "HOME": str(self.folder),
            "AIRFLOW_HOME": str(self.folder),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": (
                f"postgresql+psycopg2://{os.environ['PGUSER']}@/{metadata}"
                f"?host={os.environ['PGHOST']}&port={os.environ['PGPORT']}"
            ),
            "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_urlsafe(48),
            # nothing is sent to anybody
            "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        }

    def copy_dags(self, source):
        """Put the DAGs of a folder beside those that are there."""
        shutil.copytree(source, self.dags, dirs_exist_ok=True)

    def use(self, warehouse, **extra):
        """Let the connection `warehouse` be one to this database. Returns its variable."""
        value = json.dumps(
            {
                "conn_type": "postgres",
                "host": warehouse.host,
                "port": int(warehouse.port),
                "login": warehouse.user,
                "schema": warehouse.database,
                "extra": extra,
            }
        )
        self.environment["AIRFLOW_CONN_WAREHOUSE"] = value
        return {"AIRFLOW_CONN_WAREHOUSE": value}

    def run(self, *command):
        """Run a command to its end, and return what it printed. It must not fail."""
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert done.returncode == 0, f"{command}: status {done.returncode}\n{done.stdout}"
        return done.stdout


@contextlib.contextmanager
def migrated_template(folder):
    """A metadata database as `airflow db migrate` makes it, to be copied."""
    with connect("postgres") as server:
        server.execute(f"CREATE DATABASE {TEMPLATE}")
        AirflowHome(folder, TEMPLATE).run("airflow", "db", "migrate")
        yield TEMPLATE
        server.execute(f"DROP DATABASE {TEMPLATE} WITH (FORCE)")


@contextlib.contextmanager
def home(folder, template, name):
    """An AirflowHome with the DAGs of the example and the metadata database `name`."""
    with connect("postgres") as server:
        server.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        made = AirflowHome(folder, name)
        made.copy_dags(EXAMPLE / "dags")
        yield made
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")
