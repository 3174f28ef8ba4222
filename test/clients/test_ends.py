"""A load that is cancelled, times out, or whose client is gone: the day is old or new, as a whole."""

import asyncio

import asyncpg
import pytest

import story as stories
from clients import DRIVERS
from hold import Hold
from story import BACKFILL, DAY, FIRST, LAST, LOAD, NEW, OLD, QUERY

drivers = pytest.mark.parametrize("name", DRIVERS)
# Nothing has been written yet; all has been.
steps = pytest.mark.parametrize("step", ["query", "inserted"])


@pytest.fixture
def hold(story, step):
    hold = Hold(story, step)
    yield hold
    hold.release()


def check_old(story, connect, name, hold):
    """The day is old, no lock is left, and a retry by a new client makes it new."""
    assert stories.day(story) == OLD
    assert stories.loads(story) == []
    hold.release()
    story.wait_until_unlocked()
    assert connect(name).row(LOAD, "payouts", DAY, QUERY)["method"] == "diff"
    assert stories.day(story) == NEW
    assert stories.loads(story) == ["diff"]


def check_new(story, connect, name):
    """The day is new, no lock is left, and a retry by a new client writes nothing."""
    story.wait_until_unlocked()
    assert stories.day(story) == NEW
    assert connect(name).row(LOAD, "payouts", DAY, QUERY)["method"] == "none"
    assert stories.loads(story) == ["diff", "none"]


@drivers
@steps
def test_cancel(story, hold, connect, name, step):
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
    check_old(story, connect, name, hold)


@drivers
@pytest.mark.parametrize("step", ["inserted"])
def test_statement_timeout(story, hold, connect, name, step):
    story.run(f"ALTER DATABASE {story.database} SET statement_timeout = '2s'")
    client = connect(name)
    future = client.start(LOAD, "payouts", DAY, QUERY)
    hold.wait()
    with pytest.raises(client.Error) as raised:
        future.result()
    fields = client.fields(raised.value)
    assert fields["sqlstate"] == "57014"
    assert fields["message"] == "canceling statement due to statement timeout"
    check_old(story, connect, name, hold)


@drivers
@steps
def test_lost_connection(story, hold, connect, name, step):
    """The server works on, and commits: it looks for its client when it has the result."""
    client = connect(name)
    future = client.start(LOAD, "payouts", DAY, QUERY)
    hold.wait()
    client.drop()
    with pytest.raises(client.Error):
        future.result()
    assert stories.day(story) == OLD
    hold.release()
    check_new(story, connect, name)


@drivers
@steps
def test_lost_connection_checked(story, hold, connect, name, step):
    """With client_connection_check_interval the server sees it while the load waits."""
    story.run(f"ALTER DATABASE {story.database} SET client_connection_check_interval = '100ms'")
    client = connect(name)
    future = client.start(LOAD, "payouts", DAY, QUERY)
    hold.wait()
    client.drop()
    with pytest.raises(client.Error):
        future.result()
    hold.wait_until_left()
    check_old(story, connect, name, hold)


@pytest.mark.parametrize("name", [name for name in DRIVERS if name != "psql"])
def test_lost_connection_in_transaction(story, connect, name):
    """The load was done, the COMMIT was not: nothing has happened."""
    client = connect(name)
    client.run("BEGIN")
    assert client.row(LOAD, "payouts", DAY, QUERY)["method"] == "diff"
    client.drop()
    story.wait_until_unlocked()
    assert stories.day(story) == OLD
    assert stories.loads(story) == []


@pytest.mark.parametrize("workers", [1, 2])
@drivers
@pytest.mark.parametrize("step", ["inserted"])
def test_cancel_backfill(story, hold, connect, name, step, workers):
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
    story.wait_until_unlocked()
    story.wait_until("SELECT state = 'interrupted' FROM backfill_progress")
    assert stories.month(story) == OLD
    connect(name).run(call, FIRST, LAST)
    assert stories.month(story) == stories.MONTH


@pytest.mark.parametrize("step", ["inserted"])
def test_asyncpg_timeout(story, hold, way, step):
    """asyncpg's timeout cancels the statement on the server."""
    host, port = way

    async def load():
        connection = await asyncpg.connect(database=story.database, host=host, port=int(port))
        try:
            await connection.fetchrow(
                "SELECT * FROM replace_partition('payouts', $1, $2)", DAY, QUERY, timeout=1
            )
        finally:
            await connection.close()

    with pytest.raises(TimeoutError):
        asyncio.run(load())
    hold.wait_until_left()
    assert stories.day(story) == OLD
