"""How much WAL a load and its retry write, as EXPLAIN counts it in their session."""

import json
import os

import pytest

from clients import CLIENTS
from story import DAY, LOAD, QUERY


@pytest.fixture
def way():
    """A pooler does not change what the server writes."""
    return os.environ["PGHOST"], os.environ["PGPORT"]


def wal(client):
    """Records and bytes of a load of the day."""
    row = client.row(
        f"EXPLAIN (ANALYZE, WAL, FORMAT JSON) {LOAD}", "payouts", DAY, QUERY
    )
    (plan,) = row.values()
    (plan,) = json.loads(plan) if isinstance(plan, str) else plan
    return plan["Plan"]["WAL Records"], plan["Plan"]["WAL Bytes"]


# PREPARE takes no EXPLAIN.
@pytest.mark.parametrize("name", [name for name in CLIENTS if not name.endswith("prepare")])
def test_retry(warehouse, connect, name):
    """A retry writes one row of load_history: less than a record for each row of the day."""
    client = connect(name)
    records, size = wal(client)
    print(f"load: {records} records, {size} bytes")
    assert records > 753
    records, size = wal(client)
    print(f"retry: {records} records, {size} bytes")
    assert records < 20
