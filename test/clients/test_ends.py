"""A load that is cancelled, times out, or loses its client: the day is old or new, whole."""

import asyncio

import asyncpg
import pytest

import story
from clients import DRIVERS
from hold import Hold
from story import BACKFILL, DAY, FIRST, LAST, LOAD, MONTH, NEW, OLD, QUERY

drivers = pytest.mark.parametrize("name", DRIVERS)
# Nothing has been written yet; all has been.
steps = pytest.mark.parametrize("step", ["query", "inserted"])


@pytest.fixture
def hold(warehouse, step):
    hold = Hold(warehouse, step)
    yield hold
    hold.release()


def check_old(warehouse, connect, name, hold):
    """The day is old, no lock is left, and a retry by a new client makes it new."""
    assert story.day(warehouse) == OLD
    assert story.loads(warehouse) == []
    hold.release()
    warehouse.wait_until_unlocked()
    assert connect(name).row(LOAD, "payouts", DAY, QUERY)["method"] == "diff"
    assert story.day(warehouse) == NEW
    assert story.loads(warehouse) == ["diff"]


def check_new(warehouse, connect, name):
    """The day is new, no lock is left, and a retry by a new client writes nothing."""
    warehouse.wait_until_unlocked()
    assert story.day(warehouse) == NEW
    assert connect(name).row(LOAD, "payouts", DAY, QUERY)["method"] == "none"
    assert story.loads(warehouse) == ["diff", "none"]


@drivers
@steps
def test_cancel(warehouse, hold, connect, name, step):
    client = connect(name)
    future = client.start(LOAD, "payouts", DAY, QUERY)
    hold.wait()
    client.cancel()
    with pytest.raises(client.Error) as raised:
        future.result()
    # asyncpg raises CancelledError for a task that was cancelled
    if name != "asyncpg":
        assert client.fields(raised.value)["sqlstate"] == "57014"
    hold.wait_until_left()
    check_old(warehouse, connect, name, hold)


@drivers
@pytest.mark.parametrize("step", ["inserted"])
def test_statement_timeout(warehouse, hold, connect, name, step):
    warehouse.run(f"ALTER DATABASE {warehouse.database} SET statement_timeout = '3s'")
    client = connect(name)
    future = client.start(LOAD, "payouts", DAY, QUERY)
    hold.wait()
    with pytest.raises(client.Error) as raised:
        future.result()
    fields = client.fields(raised.value)
    assert fields["sqlstate"] == "57014"
    assert fields["message"] == "canceling statement due to statement timeout"
    check_old(warehouse, connect, name, hold)


@drivers
@steps
def test_lost_connection(warehouse, hold, connect, name, step):
    """The server works on, and commits: it looks for its client when it has the result."""
    client = connect(name)
    future = client.start(LOAD, "payouts", DAY, QUERY)
    hold.wait()
    client.drop()
    with pytest.raises(client.Error):
        future.result()
    assert story.day(warehouse) == OLD
    hold.release()
    check_new(warehouse, connect, name)


@drivers
@steps
def test_lost_connection_checked(warehouse, hold, connect, name, step):
    """With client_connection_check_interval the server sees it while the load waits."""
    warehouse.run(
        f"ALTER DATABASE {warehouse.database} SET client_connection_check_interval = '100ms'"
    )
    client = connect(name)
    future = client.start(LOAD, "payouts", DAY, QUERY)
    hold.wait()
    client.drop()
    with pytest.raises(client.Error):
        future.result()
    hold.wait_until_left()
    check_old(warehouse, connect, name, hold)


@pytest.mark.parametrize("name", [name for name in DRIVERS if name != "psql"])
@pytest.mark.parametrize("step", ["inserted"])
def test_lost_connection_in_transaction(warehouse, hold, connect, name, step):
    """The server works on, but there will be no COMMIT."""
    client = connect(name)
    client.run("BEGIN")
    future = client.start(LOAD, "payouts", DAY, QUERY)
    hold.wait()
    client.drop()
    with pytest.raises(client.Error):
        future.result()
    check_old(warehouse, connect, name, hold)


@pytest.mark.parametrize("name", [name for name in DRIVERS if name != "psql"])
def test_lost_connection_before_commit(warehouse, connect, name):
    """The load was done, the COMMIT was not: nothing has happened."""
    client = connect(name)
    client.run("BEGIN")
    assert client.row(LOAD, "payouts", DAY, QUERY)["method"] == "diff"
    client.drop()
    warehouse.wait_until_unlocked()
    assert story.day(warehouse) == OLD
    assert story.loads(warehouse) == []


@pytest.mark.parametrize("workers", [1, 2])
@drivers
@pytest.mark.parametrize("step", ["inserted"])
def test_cancel_backfill(warehouse, hold, connect, name, step, workers):
    """Slices are old or new, and a second call does the rest."""
    client = connect(name)
    call = BACKFILL[:-1] + f", workers => {workers}, resume => true)"
    future = client.start(call, FIRST, LAST)
    hold.wait()
    client.cancel()
    with pytest.raises(client.Error):
        future.result()
    hold.wait_until_left()
    hold.release()
    warehouse.wait_until_unlocked()
    warehouse.wait_until("SELECT state = 'interrupted' FROM backfill_progress")
    assert story.month(warehouse) == OLD
    connect(name).run(call, FIRST, LAST)
    assert story.month(warehouse) == MONTH


@pytest.mark.parametrize("step", ["inserted"])
def test_asyncpg_timeout(warehouse, hold, way, step):
    """asyncpg's timeout cancels the statement on the server."""
    host, port = way

    async def load():
        connection = await asyncpg.connect(database=warehouse.database, host=host, port=int(port))
        try:
            await connection.fetchrow(
                "SELECT * FROM replace_partition('payouts', $1, $2)", DAY, QUERY, timeout=1
            )
        finally:
            await connection.close()

    with pytest.raises(TimeoutError):
        asyncio.run(load())
    hold.wait_until_left()
    assert story.day(warehouse) == OLD


@drivers
def test_timeout_of_backfill(warehouse, connect, name):
    """statement_timeout counts for the CALL, all slices together."""
    warehouse.run(f"ALTER DATABASE {warehouse.database} SET statement_timeout = '1500ms'")
    client = connect(name)
    with pytest.raises(client.Error) as raised:
        client.run(BACKFILL[:-1] + ", pause => '1s')", FIRST, LAST)
    assert client.fields(raised.value)["sqlstate"] == "57014"
    warehouse.wait_until_unlocked()
    state, done = warehouse.row("SELECT state, done FROM backfill_progress")
    assert (state, done < 30) == ("interrupted", True)


@drivers
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("messages", ["notice", "warning"])
@pytest.mark.parametrize("step", ["inserted"])
def test_lost_connection_of_backfill(
    warehouse, hold, connect, name, step, workers, messages
):
    """The server sees it after the slice, whether it has a notice to send or not."""
    warehouse.run(f"ALTER DATABASE {warehouse.database} SET client_min_messages = {messages}")
    client = connect(name)
    call = BACKFILL[:-1] + f", workers => {workers}, pause => '1s')"
    future = client.start(call, FIRST, LAST)
    hold.wait()
    client.drop()
    with pytest.raises(client.Error):
        future.result()
    hold.release()
    warehouse.wait_until("SELECT state = 'interrupted' FROM backfill_progress")
    warehouse.wait_until_unlocked()
    rows, _ = story.month(warehouse)
    # whole days, long before the last; DAY is as it was
    days, rest = divmod(rows - OLD[0], 2000)
    assert days < 24 and rest == 0
    # with workers the slice that they are in is ended with them
    assert days >= 1 or workers > 1
