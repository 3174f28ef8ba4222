"""A pytest plugin: a fresh database with the extension for each test.

The server is the one of PGHOST and PGUSER (test/run-python starts it); the user is a
superuser.
"""

import contextlib
import itertools
import os

import psycopg
import pytest

TEMPLATE = "warehouse_template"
_numbers = itertools.count(1)


def connect(database, **options):
    """An autocommit connection to a database of the server of PGHOST."""
    return psycopg.connect(dbname=database, autocommit=True, **options)


class Warehouse:
    """A database, and one autocommit connection to it."""

    def __init__(self, database):
        self.database = database
        self.host = os.environ["PGHOST"]
        self.port = os.environ["PGPORT"]
        self.user = os.environ["PGUSER"]
        self.connection = connect(database)

    def close(self):
        self.connection.close()

    def run(self, script):
        """Run statements; the text goes to the server as it is."""
        self.connection.execute(script)

    def rows(self, query, *parameters):
        """The rows of a query, as tuples. Parameters are %s."""
        return self.connection.execute(query, parameters or None).fetchall()

    def row(self, query, *parameters):
        """The only row of a query."""
        (row,) = self.rows(query, *parameters)
        return row

    def value(self, query, *parameters):
        """The only value of a query."""
        (value,) = self.row(query, *parameters)
        return value

    def wait_until(self, query, *parameters, seconds=60):
        """Wait until a query returns true. The server polls, this session is busy meanwhile."""
        self.connection.execute(
            """DO $do$
               DECLARE
                 good boolean;
               BEGIN
                 FOR i IN 1 .. %d LOOP
                   EXECUTE %s INTO good;
                   EXIT WHEN good;
                   PERFORM pg_sleep(0.02), pg_stat_clear_snapshot();
                 END LOOP;
                 IF good IS NOT TRUE THEN
                   RAISE 'not true after %d s';
                 END IF;
               END $do$"""
            % (
                seconds * 50,
                psycopg.sql.Literal(
                    psycopg.ClientCursor(self.connection).mogrify(query, parameters or None)
                ).as_string(self.connection),
                seconds,
            )
        )

    def wait_until_unlocked(self):
        """Wait until no other session holds a lock here."""
        self.wait_until(
            """SELECT NOT EXISTS (
                 SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid)
                 WHERE a.datname = current_database() AND l.pid <> pg_backend_pid()
                   AND l.locktype <> 'virtualxid')"""
        )


@pytest.fixture(scope="session")
def template():
    """The database that all others are copies of: it has the extension."""
    with connect("postgres") as server:
        server.execute(f"CREATE DATABASE {TEMPLATE}")
        with connect(TEMPLATE) as database:
            database.execute("CREATE EXTENSION idempotent_load")
        yield TEMPLATE
        server.execute(f"DROP DATABASE {TEMPLATE} WITH (FORCE)")


@contextlib.contextmanager
def fresh(template, name):
    """A database of this name, as a copy of the template; dropped at the end."""
    with connect("postgres") as server:
        server.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        database = Warehouse(name)
        try:
            yield database
        finally:
            database.close()
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def warehouse(template):
    """A fresh database for one test, dropped after it."""
    with fresh(template, f"warehouse_{next(_numbers)}") as database:
        yield database
