"""doc/clients.md does what it says, directly and through PgBouncer."""

import os
import pathlib

import pytest

import walk
from warehouse import connect

DOCUMENT = pathlib.Path(__file__).parents[2] / "doc" / "clients.md"


@pytest.fixture
def shop():
    """The database that the document uses."""
    with connect("postgres") as server:
        server.execute("CREATE DATABASE shop")
        with connect("shop") as database:
            database.execute("CREATE EXTENSION idempotent_load")
        yield "shop"
        server.execute("DROP DATABASE shop WITH (FORCE)")


def test_document(shop, way, tmp_path):
    host, port = way
    environment = {**os.environ, "PGDATABASE": shop, "PGHOST": host, "PGPORT": port}
    assert walk.Walk(tmp_path, environment).walk(DOCUMENT) > 10
