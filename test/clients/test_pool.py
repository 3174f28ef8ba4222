"""PgBouncer in transaction mode: what belongs to a session does not follow the client."""

import psycopg
import pytest

import story
from clients import CLIENTS
from story import DAY, LOAD, NEW, OLD, QUERY

SETTING = "current_setting('idempotent_load.delete_threshold', true)"


@pytest.fixture
def way(pooler):
    return pooler.host, pooler.port


@pytest.fixture
def pooled(warehouse, pooler):
    """A function that opens a psycopg connection through the pooler."""
    opened = []

    def connect(**options):
        connection = psycopg.connect(
            dbname=warehouse.database,
            host=pooler.host,
            port=pooler.port,
            autocommit=True,
            **options,
        )
        opened.append(connection)
        return connection

    yield connect
    for connection in opened:
        connection.close()


@pytest.fixture
def occupy(pooled):
    """A function that takes the only server connection that is free, so that the next
    transaction gets another one."""

    def occupy():
        other = pooled()
        other.execute("BEGIN; SELECT 1")
        return other

    return occupy


def test_set_stays_with_the_server_connection(pooled, occupy):
    client = pooled()
    client.execute("SET idempotent_load.delete_threshold = 0.5")
    other = occupy()
    assert other.execute(f"SELECT {SETTING}").fetchone() == ("0.5",)
    assert client.execute(f"SELECT {SETTING}").fetchone() == (None,)


def test_set_local_holds_for_the_transaction(warehouse, pooled):
    client = pooled()
    with pytest.raises(psycopg.Error) as raised:
        with client.transaction():
            client.execute("SET LOCAL idempotent_load.lint = error")
            client.execute(
                LOAD.format("%s", "%s", "%s"), ["payouts", DAY, QUERY + " AND now() > $1"]
            )
    assert raised.value.sqlstate == "IL007"
    assert client.execute("SHOW idempotent_load.lint").fetchone() == ("warning",)


def test_time_zone_follows_the_client(pooled, occupy):
    client = pooled()
    client.execute("SET TimeZone = 'Asia/Tokyo'")
    occupy()
    assert client.execute("SHOW TimeZone").fetchone() == ("Asia/Tokyo",)


def test_options_are_refused(warehouse, pooled):
    with pytest.raises(psycopg.OperationalError, match="unsupported startup parameter: options"):
        pooled(options="-c idempotent_load.lint=error")


@pytest.mark.parametrize("name", ["psycopg-prepared", "psycopg2-prepare", "asyncpg"])
def test_prepared_statement_stays_with_the_server_connection(warehouse, connect, occupy, name):
    client = connect(name)
    client.row(LOAD, "payouts", DAY, QUERY)
    occupy()
    with pytest.raises(client.Error) as raised:
        client.row(LOAD, "payouts", DAY, QUERY)
    assert client.fields(raised.value)["sqlstate"] == "26000"
    assert story.loads(warehouse) == ["diff"]


@pytest.mark.parametrize("name", [n for n in CLIENTS if "prepare" not in n and n != "asyncpg"])
def test_unprepared_statement_follows_the_client(warehouse, connect, occupy, name):
    client = connect(name)
    client.row(LOAD, "payouts", DAY, QUERY)
    occupy()
    assert client.row(LOAD, "payouts", DAY, QUERY)["method"] == "none"


def test_psycopg_prepares_by_itself(warehouse, pooled, occupy):
    """From the sixth call of a statement on, unless prepare_threshold is None."""
    statement = LOAD.format("%s", "%s", "%s")
    client, unprepared = pooled(), pooled(prepare_threshold=None)
    for _ in range(6):
        client.execute(statement, ["payouts", DAY, QUERY])
        unprepared.execute(statement, ["payouts", DAY, QUERY])
    occupy()
    with pytest.raises(psycopg.errors.InvalidSqlStatementName):
        client.execute(statement, ["payouts", DAY, QUERY])
    assert unprepared.execute(statement, ["payouts", DAY, QUERY]).fetchone()[3] == "none"


def test_listen_stays_with_the_server_connection(pooled, occupy):
    client = pooled()
    client.execute("LISTEN idempotent_load")
    occupy()
    assert client.execute("SELECT count(*) FROM pg_listening_channels()").fetchone() == (0,)


@pytest.mark.parametrize("name", ["psql", "psycopg", "psycopg2", "asyncpg-uncached"])
def test_merge(warehouse, connect, name):
    """753 payouts are missing, and those that are there are right."""
    row = connect(name).row(
        "SELECT method, inserted, updated FROM merge_rows({}, {}, {}, {})",
        "payouts", DAY, QUERY, "{sale_id}" if name == "psql" else ["sale_id"],
    )
    assert [str(value) for value in row.values()] == ["merge", "753", "0"]
    assert story.day(warehouse) == NEW


def test_loads_of_a_day_exclude_each_other(warehouse, connect):
    """Locks of a load belong to its transaction, so they are good through a pooler."""
    first, second = connect("psycopg"), connect("psycopg")
    first.run("BEGIN")
    assert first.row(LOAD, "payouts", DAY, QUERY)["method"] == "diff"
    future = second.start(LOAD, "payouts", DAY, QUERY)
    warehouse.wait_until("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
    assert story.day(warehouse) == OLD
    first.run("COMMIT")
    assert future.result()["method"] == "none"
    assert story.day(warehouse) == NEW
