import os

import pytest

import clients
import story
from pooler import Pooler
from warehouse import Warehouse


@pytest.fixture(scope="session")
def pooler():
    """A pooler for all tests; each test has a database, and so a pool, of its own."""
    pooler = Pooler()
    yield pooler
    pooler.close()


@pytest.fixture(scope="session")
def template(template):
    """Each test's database has the tables of the story."""
    database = Warehouse(template)
    story.set_up(database)
    database.close()
    return template


@pytest.fixture(params=["direct", "pooled"])
def way(request):
    """How a client comes to the server: where it connects to."""
    if request.param == "direct":
        return os.environ["PGHOST"], os.environ["PGPORT"]
    pooler = request.getfixturevalue("pooler")
    return pooler.host, pooler.port


@pytest.fixture
def connect(warehouse, way):
    """A function that opens a client of a name, by the test's way, until the test ends."""
    opened = []

    def open_client(name):
        client = clients.CLIENTS[name](warehouse.database, *way)
        opened.append(client)
        return client

    yield open_client
    for client in opened:
        client.close()
