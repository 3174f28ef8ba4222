"""What each driver does with %, $1, dates, several statements, and transactions.

The table of doc/clients.md says what is shown here.
"""

import asyncio
import subprocess

import asyncpg
import psycopg
import psycopg2
import pytest

import story
from story import DAY, NEW, OLD, QUERY

# The query within the statement, where % is a % for the server.
INLINE = f"SELECT method FROM replace_partition('payouts', {{}}, $query${QUERY}$query$)"


class Stop(Exception):
    """What goes wrong after a load, in the client."""


@pytest.fixture
def psycopg3(warehouse):
    with psycopg.connect(dbname=warehouse.database, autocommit=True) as connection:
        yield connection


@pytest.fixture
def psycopg_2(warehouse):
    connection = psycopg2.connect(dbname=warehouse.database)
    connection.autocommit = True
    yield connection
    connection.close()


def with_asyncpg(warehouse, function):
    """Run a coroutine function with a connection."""

    async def run():
        connection = await asyncpg.connect(database=warehouse.database)
        try:
            return await function(connection)
        finally:
            await connection.close()

    return asyncio.run(run())


def psql(warehouse, *arguments, script=None):
    return subprocess.run(
        ["psql", "-X", "-At", "-v", "ON_ERROR_STOP=1", "-d", warehouse.database, *arguments],
        input=script,
        text=True,
        capture_output=True,
    )


def method2(connection, statement, *parameters):
    """The one value that a statement returns, by psycopg2."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters or None)
        return cursor.fetchone()[0]


class TestPercent:
    def test_psql(self, warehouse):
        done = psql(warehouse, script=INLINE.format("'2026-08-25'"))
        assert done.stdout == "diff\n", done.stderr

    def test_psycopg(self, warehouse, psycopg3):
        # without parameters the text is sent as it is
        assert psycopg3.execute(INLINE.format("'2026-08-25'")).fetchone() == ("diff",)
        with pytest.raises(psycopg.ProgrammingError, match="incomplete placeholder"):
            psycopg3.execute(INLINE.format("%s"), [DAY])
        doubled = INLINE.replace("%", "%%").format("%s")
        assert psycopg3.execute(doubled, [DAY]).fetchone() == ("none",)

    def test_psycopg2(self, warehouse, psycopg_2):
        assert method2(psycopg_2, INLINE.format("'2026-08-25'")) == "diff"
        with pytest.raises((IndexError, ValueError)):
            method2(psycopg_2, INLINE.format("%s"), DAY)
        assert method2(psycopg_2, INLINE.replace("%", "%%").format("%s"), DAY) == "none"

    def test_asyncpg(self, warehouse):
        async def load(connection):
            return await connection.fetchval(INLINE.format("$1"), DAY)

        assert with_asyncpg(warehouse, load) == "diff"


class TestDate:
    """A datetime.date, or its text, as a parameter; both are the day that they name."""

    def test_psql(self, warehouse):
        done = psql(warehouse, "-v", "date=2026-08-25", script=INLINE.format(":'date'"))
        assert done.stdout == "diff\n", done.stderr
        assert story.day(warehouse) == NEW

    @pytest.mark.parametrize("date", [DAY, "2026-08-25"], ids=["date", "text"])
    @pytest.mark.parametrize("cursor", [psycopg.Cursor, psycopg.ClientCursor])
    def test_psycopg(self, warehouse, psycopg3, cursor, date):
        statement = INLINE.replace("%", "%%").format("%s")
        assert cursor(psycopg3).execute(statement, [date]).fetchone() == ("diff",)
        assert story.day(warehouse) == NEW

    @pytest.mark.parametrize("date", [DAY, "2026-08-25"], ids=["date", "text"])
    def test_psycopg2(self, warehouse, psycopg_2, date):
        assert method2(psycopg_2, INLINE.replace("%", "%%").format("%s"), date) == "diff"
        assert story.day(warehouse) == NEW

    def test_asyncpg(self, warehouse):
        async def load(connection):
            with pytest.raises(asyncpg.DataError, match="invalid input for query argument"):
                await connection.fetchval(INLINE.format("$1"), "2026-08-25")
            assert await connection.fetchval(INLINE.format("$1"), DAY) == "diff"
            return await connection.fetchval(INLINE.format("$1::text::date"), "2026-08-25")

        assert with_asyncpg(warehouse, load) == "none"
        assert story.day(warehouse) == NEW


class TestSeveralStatements:
    """In one call: the first sets what the second, a load, records."""

    TEXT = "SET TimeZone = 'Asia/Tokyo'; " + INLINE

    def check(self, warehouse):
        assert warehouse.value("SELECT timezone FROM load_history") == "Asia/Tokyo"

    def test_psql(self, warehouse):
        done = psql(warehouse, script=self.TEXT.format("'2026-08-25'"))
        assert done.stdout == "SET\ndiff\n", done.stderr
        self.check(warehouse)

    def test_psycopg(self, warehouse, psycopg3):
        with pytest.raises(psycopg.errors.SyntaxError, match="multiple commands"):
            psycopg3.execute(self.TEXT.replace("%", "%%").format("%s"), [DAY])
        cursor = psycopg3.execute(self.TEXT.format("'2026-08-25'"))
        # the first result is that of SET
        assert cursor.statusmessage == "SET"
        assert cursor.nextset()
        assert cursor.fetchone() == ("diff",)
        self.check(warehouse)

    def test_psycopg_client(self, warehouse, psycopg3):
        cursor = psycopg.ClientCursor(psycopg3)
        cursor.execute(self.TEXT.replace("%", "%%").format("%s"), [DAY])
        assert cursor.nextset()
        assert cursor.fetchone() == ("diff",)
        self.check(warehouse)

    def test_psycopg2(self, warehouse, psycopg_2):
        # the last result
        assert method2(psycopg_2, self.TEXT.replace("%", "%%").format("%s"), DAY) == "diff"
        self.check(warehouse)

    def test_asyncpg(self, warehouse):
        async def load(connection):
            with pytest.raises(asyncpg.PostgresSyntaxError, match="multiple commands"):
                await connection.execute(self.TEXT.format("$1"), DAY)
            return await connection.execute(self.TEXT.format("'2026-08-25'"))

        # only the status of the last one
        assert with_asyncpg(warehouse, load) == "SELECT 1"
        self.check(warehouse)


class TestTransaction:
    """A load is part of the client's transaction; a backfill is refused there, before any work."""

    CALL = "CALL backfill('payouts_daily', '2026-08-25', '2026-08-26')"

    def check_refused(self, warehouse, hint):
        assert "Use autocommit" in hint
        assert warehouse.value("SELECT count(*) FROM backfills") == 0
        assert story.day(warehouse) == OLD

    def test_psql(self, warehouse):
        done = psql(warehouse, "-c", f"BEGIN; {INLINE.format(repr('2026-08-25'))}; ROLLBACK")
        assert done.returncode == 0, done.stderr
        assert story.day(warehouse) == OLD
        for arguments in (["-1", "-c", self.CALL], ["-c", f"SELECT 1; {self.CALL}"]):
            done = psql(warehouse, *arguments)
            assert "backfill cannot run inside a transaction block" in done.stderr
            self.check_refused(warehouse, done.stderr)
        done = psql(warehouse, "-c", "SELECT 1", "-c", self.CALL)
        assert done.returncode == 0, done.stderr
        assert story.day(warehouse) == NEW

    def test_psycopg(self, warehouse):
        with pytest.raises(Stop):
            # commits at its end, unless an exception leaves it
            with psycopg.connect(dbname=warehouse.database) as connection:
                connection.execute(INLINE.format("'2026-08-25'"))
                raise Stop
        assert story.day(warehouse) == OLD
        with psycopg.connect(dbname=warehouse.database) as connection:
            with pytest.raises(psycopg.errors.ActiveSqlTransaction) as raised:
                connection.execute(self.CALL)
            self.check_refused(warehouse, raised.value.diag.message_hint)
            connection.rollback()
            connection.autocommit = True
            with pytest.raises(psycopg.errors.ActiveSqlTransaction):
                with connection.transaction():
                    connection.execute(self.CALL)
            with pytest.raises(psycopg.errors.ActiveSqlTransaction):
                connection.execute(f"SELECT 1; {self.CALL}")
            connection.execute(self.CALL)
        assert story.day(warehouse) == NEW

    def test_psycopg_pipeline(self, warehouse, psycopg3):
        """It would commit what came before it in a pipeline."""
        with pytest.raises(psycopg.errors.ActiveSqlTransaction) as raised:
            with psycopg3.pipeline():
                psycopg3.execute(INLINE.format("'2026-08-25'"))
                psycopg3.execute(self.CALL)
        self.check_refused(warehouse, raised.value.diag.message_hint)

    def test_psycopg2(self, warehouse):
        connection = psycopg2.connect(dbname=warehouse.database)
        with pytest.raises(Stop):
            with connection:
                method2(connection, INLINE.format("'2026-08-25'"))
                raise Stop
        assert story.day(warehouse) == OLD
        with pytest.raises(psycopg2.errors.ActiveSqlTransaction) as raised:
            method2(connection, self.CALL)
        self.check_refused(warehouse, raised.value.diag.message_hint)
        connection.rollback()
        connection.autocommit = True
        # psycopg2 begins a transaction in a with block, autocommit or not
        with pytest.raises(psycopg2.errors.ActiveSqlTransaction):
            with connection:
                method2(connection, self.CALL)
        with connection.cursor() as cursor:
            cursor.execute(self.CALL)
        connection.close()
        assert story.day(warehouse) == NEW

    def test_asyncpg(self, warehouse):
        async def call(connection):
            with pytest.raises(Stop):
                async with connection.transaction():
                    await connection.execute(INLINE.format("'2026-08-25'"))
                    raise Stop
            assert story.day(warehouse) == OLD
            with pytest.raises(asyncpg.ActiveSQLTransactionError) as raised:
                async with connection.transaction():
                    await connection.execute(self.CALL)
            self.check_refused(warehouse, raised.value.hint)
            await connection.execute(self.CALL)

        with_asyncpg(warehouse, call)
        assert story.day(warehouse) == NEW


def test_variables_of_psql(warehouse):
    """psql puts no variable into a literal, so a query may have : in it, as in ::date."""
    done = psql(
        warehouse,
        "-v",
        "date=2026-08-25",
        "-v",
        "query=" + QUERY.replace("$1", "$1::date"),
        script="SELECT method FROM replace_partition('payouts', :'date', :'query')",
    )
    assert done.stdout == "diff\n", done.stderr
