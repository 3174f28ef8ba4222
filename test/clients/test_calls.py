"""A load, a retry, a failing load and a backfill, by each client, prepared or not."""

import pytest

import story
from clients import CLIENTS
from story import BACKFILL, DAY, FIRST, LAST, LOAD, MONTH, NEW, OLD, QUERY

pytestmark = pytest.mark.parametrize("name", CLIENTS)


def outcome(row):
    """Of a load's result: the method, and rows, rows before, inserted, deleted."""
    return (row["method"],) + tuple(
        int(row[column]) for column in ("rows", "rows_before", "inserted", "deleted")
    )


def test_load(warehouse, connect, name):
    row = connect(name).row(LOAD, "payouts", DAY, QUERY)
    assert outcome(row) == ("diff", 2000, 1247, 753, 0)
    assert story.day(warehouse) == NEW
    assert story.loads(warehouse) == ["diff"]


def test_retry(warehouse, connect, name):
    client = connect(name)
    client.row(LOAD, "payouts", DAY, QUERY)
    before = story.places(warehouse)
    row = client.row(LOAD, "payouts", DAY, QUERY)
    assert outcome(row) == ("none", 2000, 2000, 0, 0)
    assert story.places(warehouse) == before
    assert story.loads(warehouse) == ["diff", "none"]


def test_failing_load(warehouse, connect, name):
    client = connect(name)
    before = story.places(warehouse)
    with pytest.raises(client.Error) as raised:
        client.row(LOAD, "payouts", DAY, QUERY.replace("0.60", "-0.60"))
    assert client.fields(raised.value)["sqlstate"] == "23514"
    assert story.places(warehouse) == before
    assert story.day(warehouse) == OLD
    warehouse.wait_until_unlocked()
    # the connection is good for the next load
    assert outcome(client.row(LOAD, "payouts", DAY, QUERY)) == ("diff", 2000, 1247, 753, 0)


@pytest.mark.parametrize("workers", [1, 2])
def test_backfill(warehouse, connect, name, workers):
    client = connect(name)
    call = BACKFILL if workers == 1 else BACKFILL[:-1] + f", workers => {workers})"
    if not client.prepares_call:
        # PREPARE takes no CALL
        with pytest.raises(client.Error) as raised:
            client.run(call, FIRST, LAST)
        assert client.fields(raised.value)["sqlstate"] == "42601"
        return
    client.run(call, FIRST, LAST)
    assert story.month(warehouse) == MONTH
    row = client.row("SELECT state, total, done, failed FROM backfill_progress")
    assert [str(value) for value in row.values()] == ["done", "30", "30", "0"]
    # each day was a transaction of its own
    assert warehouse.value("SELECT count(DISTINCT xmin::text) FROM load_history") == 30
