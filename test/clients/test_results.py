"""What a result looks like: named columns with types of Python, JSON, and no need for notices."""

import asyncio
import datetime
import json
import os
import subprocess

import asyncpg
import psycopg
import psycopg2
import psycopg2.extras
import pytest
from psycopg.types.composite import CompositeInfo, register_composite

import story
from clients import DRIVERS
from story import BACKFILL, DAY, FIRST, LAST, LOAD, QUERY

# Those that give values of Python; psql gives text.
typed_drivers = pytest.mark.parametrize("name", [name for name in DRIVERS if name != "psql"])


@pytest.fixture
def way():
    """A pooler does not change what a result looks like."""
    return os.environ["PGHOST"], os.environ["PGPORT"]


@pytest.fixture
def fingerprint(warehouse):
    """The fingerprint of the day as it should be, by the aggregate on the query's rows."""
    return warehouse.value(
        """SELECT fingerprint(s) FROM (
             SELECT sale_id, sale_date, round(price_eur * 0.60, 2)::numeric(10,2) AS amount_eur
             FROM sales WHERE sale_date = %s) s""",
        DAY,
    )


def loaded(fingerprint):
    """What the load of the day returns, but elapsed."""
    return {
        "target": "payouts",
        "lower_bound": "2026-08-25",
        "upper_bound": "2026-08-26",
        "method": "diff",
        "rows": 2000,
        "rows_before": 1247,
        "inserted": 753,
        "deleted": 0,
        "updated": 0,
        "changed": True,
        "fingerprint": fingerprint,
    }


def split_elapsed(row):
    """The row without elapsed, and elapsed."""
    row = dict(row)
    return row, row.pop("elapsed")


@typed_drivers
def test_load(warehouse, connect, name, fingerprint):
    row, elapsed = split_elapsed(connect(name).row(LOAD, "payouts", DAY, QUERY))
    assert row == loaded(fingerprint)
    assert isinstance(elapsed, datetime.timedelta) and elapsed > datetime.timedelta(0)


def test_load_by_psql(warehouse, connect, fingerprint):
    row, elapsed = split_elapsed(connect("psql").row(LOAD, "payouts", DAY, QUERY))
    assert ",".join(row.values()) == (
        f"payouts,2026-08-25,2026-08-26,diff,2000,1247,753,0,0,t,{fingerprint}"
    )
    assert elapsed.startswith("00:00:")


@pytest.mark.parametrize("name", DRIVERS)
def test_json(warehouse, connect, name, fingerprint):
    """psycopg and psycopg2 make a dict of it; from asyncpg and psql comes the text."""
    row = connect(name).row(f"SELECT to_jsonb(r) FROM ({LOAD}) AS r", "payouts", DAY, QUERY)
    value = row["to_jsonb"]
    assert isinstance(value, dict if "psycopg" in name else str)
    result, elapsed = split_elapsed(value if isinstance(value, dict) else json.loads(value))
    assert result == loaded(fingerprint)
    assert elapsed.startswith("00:00:")


class TestComposite:
    """SELECT replace_partition(...) returns one column of a composite type."""

    STATEMENT = f"""
        SELECT replace_partition('payouts', '2026-08-25', $query${QUERY}$query$) AS result"""
    TEXT = "(payouts,2026-08-25,2026-08-26,diff,2000,1247,753,0,0,t,"

    @pytest.mark.parametrize("name", ["psql", "psycopg", "psycopg2"])
    def test_text(self, warehouse, connect, name):
        assert connect(name).row(self.STATEMENT.replace("%", "%%" if name != "psql" else "%"))[
            "result"
        ].startswith(self.TEXT)

    def test_psycopg_registered(self, warehouse):
        with psycopg.connect(dbname=warehouse.database, autocommit=True) as connection:
            register_composite(CompositeInfo.fetch(connection, "load_result"), connection)
            (result,) = connection.execute(self.STATEMENT).fetchone()
        assert (result.method, result.rows, result.changed) == ("diff", 2000, True)

    def test_psycopg2_registered(self, warehouse):
        connection = psycopg2.connect(dbname=warehouse.database)
        psycopg2.extras.register_composite("load_result", connection)
        with connection.cursor() as cursor:
            cursor.execute(self.STATEMENT)
            (result,) = cursor.fetchone()
        connection.close()
        assert (result.method, result.rows, result.changed) == ("diff", 2000, True)

    def test_asyncpg(self, warehouse):
        """It cannot read a composite that has a regclass in it, and says so before the load."""

        async def load():
            connection = await asyncpg.connect(database=warehouse.database)
            try:
                await connection.fetchrow(self.STATEMENT)
            finally:
                await connection.close()

        with pytest.raises(asyncpg.UnsupportedClientFeatureError, match="load_result"):
            asyncio.run(load())
        assert story.day(warehouse) == story.OLD


@typed_drivers
def test_run_job(warehouse, connect, name):
    client = connect(name)
    row = client.row("SELECT * FROM run_job({}, {}, {})", "payouts_daily", DAY, "nightly")
    assert (row["target"], row["method"], row["rows"]) == ("payouts", "diff", 2000)
    assert warehouse.value("SELECT run_id FROM load_history") == "nightly"


@typed_drivers
def test_run_job_of_command(warehouse, connect, name):
    """Of a command only the method and the time are known."""
    warehouse.run("SELECT create_job('make_log', command => 'CREATE TABLE log (day date)')")
    client = connect(name)
    row, elapsed = split_elapsed(client.row("SELECT * FROM run_job({}, {})", "make_log", DAY))
    assert row.pop("method") == "command"
    assert set(row.values()) == {None}
    assert isinstance(elapsed, datetime.timedelta)


@typed_drivers
def test_check_idempotent(warehouse, connect, name):
    warehouse.run(
        """SELECT create_job('append', command => '
             INSERT INTO payouts SELECT 60000 + nextval(''ids''), $1, 1');
           CREATE SEQUENCE ids"""
    )
    client = connect(name)
    row = client.row(
        "SELECT * FROM check_idempotent({}, {}, {})", "append", DAY, ["same"]
    )
    assert (row["rerun"], row["passed"], row["runs"]) == ("same", False, 1)
    assert (row["relation"], row["cause"]) == ("public.payouts", "append")
    assert (row["added"], row["missing"], row["columns"]) == (1, 0, [])
    assert row["added_rows"] == ["(60002, 2026-08-25, 1.00)"]


@typed_drivers
def test_backfill(warehouse, connect, name):
    """A CALL returns no row; tables have the result, one for all and one for each day."""
    client = connect(name)
    client.run(BACKFILL, FIRST, DAY)
    row = client.row("SELECT * FROM backfill_progress")
    known = {
        "job": "payouts_daily",
        "from_date": FIRST,
        "to_date": DAY,
        "workers": 1,
        "state": "done",
        "total": 25,
        "done": 25,
        "skipped": 0,
        "failed": 0,
        "left": 0,
        "run_by": "postgres",
        "time_left": None,
    }
    assert {column: row[column] for column in known} == known
    assert row["finished_at"].tzinfo is not None
    row = client.row("SELECT * FROM load_history WHERE logical_date = {}", DAY)
    assert (row["method"], row["rows"], row["inserted"]) == ("diff", 2000, 753)
    assert row["period"] == datetime.timedelta(days=1)
    assert row["started_at"].tzinfo is not None


class TestWithoutNotices:
    """client_min_messages = error: rows say what notices would have said."""

    @pytest.fixture
    def client(self, warehouse, connect, name):
        client = connect(name)
        client.run("SET client_min_messages = error")
        return client

    @typed_drivers
    def test_skipped(self, warehouse, client, name):
        """Another load of the day is running."""
        with psycopg.connect(dbname=warehouse.database) as other:
            other.execute("SELECT * FROM run_job('payouts_daily', %s)", [DAY])
            row = client.row(LOAD[:-1] + ", if_running => 'skip')", "payouts", DAY, QUERY)
            assert row["method"] == "skipped"
            assert row["changed"] is False
            assert (row["rows"], row["rows_before"], row["fingerprint"]) == (None, None, None)

    @typed_drivers
    def test_failed_backfill(self, warehouse, client, name):
        """The error, backfill_progress and load_failures tell which days have failed, and why."""
        warehouse.run("DELETE FROM sales WHERE sale_date = '2026-08-25'")
        with pytest.raises(client.Error) as raised:
            client.run(BACKFILL[:-1] + ", on_error => 'continue')", FIRST, LAST)
        fields = client.fields(raised.value)
        assert fields["sqlstate"] == "IL002"
        assert "2026-08-25" in fields["message"]
        row = client.row("SELECT state, done, failed FROM backfill_progress")
        assert tuple(row.values()) == ("failed", 29, 1)
        row = client.row("SELECT logical_date, sqlstate, message FROM load_failures")
        assert (row["logical_date"], row["sqlstate"]) == (DAY, "IL002")
        assert row["message"].startswith("query returned no rows, but slice [2026-08-25,")

    @typed_drivers
    def test_notes_of_a_check(self, warehouse, client, name):
        """assert_idempotent tells its notes as notices; check_idempotent returns them."""
        client.row("SELECT * FROM run_job({}, {})", "payouts_daily", DAY)
        row = client.row(
            "SELECT * FROM check_idempotent({}, {}) WHERE rerun IS NULL", "payouts_daily", DAY
        )
        assert row["message"] == "The first run wrote nothing, so the reruns prove little."

    @typed_drivers
    def test_preview_of_a_backfill(self, warehouse, client, name):
        """dry_run tells by notices; the same comes as rows from preview_partition."""
        row = client.row(
            """SELECT day::date, p.*
               FROM jobs AS j, generate_series({}::date, {}::date, '1 day') AS day,
                 preview_partition(j.target, day::date, j.query, j.date_column, j.period,
                                   j.timezone, j.ignore_columns) AS p
               WHERE j.name = 'payouts_daily' AND measure = 'rows' AND day = {}::date""",
            FIRST, DAY, DAY,
        )
        assert tuple(row.values()) == (DAY, "rows", 1247, 2000, 753, row["share"])


class TestNotices:
    """Where each client has those of a backfill that is run dry."""

    CALL = "CALL backfill('payouts_daily', '2026-08-25', '2026-08-25', dry_run => true)"
    TOLD = "2026-08-25: rows 1247 -> 2000"

    def test_psql(self, warehouse):
        done = subprocess.run(
            ["psql", "-X", "-d", warehouse.database, "-c", self.CALL],
            text=True,
            capture_output=True,
        )
        assert self.TOLD in done.stderr

    def test_psycopg(self, warehouse):
        notices = []
        with psycopg.connect(dbname=warehouse.database, autocommit=True) as connection:
            # what the handler is given is only good until it returns
            connection.add_notice_handler(lambda notice: notices.append(notice.message_primary))
            connection.execute(self.CALL)
        (notice,) = notices
        assert notice.startswith(self.TOLD)

    def test_psycopg2(self, warehouse):
        connection = psycopg2.connect(dbname=warehouse.database)
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(self.CALL)
        (notice,) = connection.notices
        connection.close()
        assert self.TOLD in notice

    def test_asyncpg(self, warehouse):
        notices = []

        async def call():
            connection = await asyncpg.connect(database=warehouse.database)
            connection.add_log_listener(lambda _, notice: notices.append(notice))
            await connection.execute(self.CALL)
            await connection.close()

        asyncio.run(call())
        (notice,) = notices
        assert notice.message.startswith(self.TOLD)
