"""doc/clients.md does what it says, directly and through PgBouncer."""

import os
import pathlib

import pytest

import walk
from warehouse import connect

DOCUMENT = pathlib.Path(__file__).parents[2] / "doc" / "clients.md"


@pytest.fixture
def database():
    """The database that the document uses."""
    with connect("postgres") as server:
        server.execute("CREATE DATABASE clients")
        yield "clients"
        server.execute("DROP DATABASE clients WITH (FORCE)")


def test_document(database, way, tmp_path):
    host, port = way
    environment = {**os.environ, "PGDATABASE": database, "PGHOST": host, "PGPORT": port}
    assert walk.Walk(tmp_path, environment).walk(DOCUMENT) > 10
