"""Errors carry SQLSTATE, detail and hint, and the names of what they are about.

As the server does it: a violated constraint is one of the leaf, in whose name the server reports
it. All other errors name the table that the caller named.
"""

import os

import psycopg
import pytest

from clients import DRIVERS, Psycopg

SET_UP = """
    CREATE SCHEMA mart;
    CREATE DOMAIN mart.amount AS numeric(10,2) CONSTRAINT amount_check CHECK (VALUE > 0);
    CREATE TABLE mart.items (item text PRIMARY KEY);
    INSERT INTO mart.items VALUES ('fig'), ('pear');

    CREATE TABLE mart.sales (
      day date NOT NULL,
      item text CONSTRAINT sales_item_fkey REFERENCES mart.items,
      eur numeric(10,2) NOT NULL CONSTRAINT sales_eur_check CHECK (eur > 0),
      twice numeric GENERATED ALWAYS AS (eur * 2) STORED,
      PRIMARY KEY (day, item)
    ) PARTITION BY RANGE (day);
    CREATE TABLE mart.sales_20260825 PARTITION OF mart.sales
      FOR VALUES FROM ('2026-08-25') TO ('2026-08-26');
    INSERT INTO mart.sales VALUES ('2026-08-25', 'fig', 1.00);

    CREATE TABLE mart.totals (
      day date NOT NULL,
      eur numeric(10,2) NOT NULL CONSTRAINT totals_eur_check CHECK (eur > 0),
      PRIMARY KEY (day, eur)
    ) PARTITION BY RANGE (day);
    CREATE TABLE mart.totals_20260825 PARTITION OF mart.totals
      FOR VALUES FROM ('2026-08-25') TO ('2026-08-26');
    INSERT INTO mart.totals VALUES ('2026-08-25', 1.00);

    -- plain, with two of each
    CREATE TABLE mart.notes (
      number int GENERATED ALWAYS AS IDENTITY,
      day date,
      seen date,
      price mart.amount,
      place point
    );
    INSERT INTO mart.notes (day, price) VALUES ('2026-08-25', 1), ('2026-08-25', 1);

    -- rows that refer to the target, and go with it
    CREATE TABLE mart.orders (day date, id int PRIMARY KEY, eur numeric);
    CREATE TABLE mart.lines (
      id int CONSTRAINT lines_id_fkey REFERENCES mart.orders ON DELETE CASCADE
    );
    INSERT INTO mart.orders VALUES ('2026-08-25', 1, 1);
    INSERT INTO mart.lines VALUES (1);

    CREATE TABLE mart.kept (day date, eur numeric);
    INSERT INTO mart.kept VALUES ('2026-08-25', 1);
    CREATE FUNCTION mart.keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
    CREATE TRIGGER keep BEFORE DELETE ON mart.kept FOR EACH ROW EXECUTE FUNCTION mart.keep();

    SELECT create_job('sales', 'mart.sales', 'SELECT $1 AS day, ''fig'' AS item, 0 AS eur');
    SELECT create_job('append', command => 'INSERT INTO mart.items SELECT gen_random_uuid()');

    CREATE ROLE {role};
    GRANT USAGE ON SCHEMA mart TO {role};
    GRANT SELECT, INSERT, DELETE ON mart.sales, mart.kept TO {role};
"""


def load(target, query, options=""):
    return (
        f"SELECT * FROM replace_partition('{target}', '2026-08-25', $query${query}$query${options})"
    )


def merge(query, key, options=""):
    return (
        "SELECT * FROM merge_rows('mart.notes', '2026-08-25', "
        f"$query${query}$query$, '{key}', date_column => 'day'{options})"
    )


SALES, TOTALS, NOTES = "mart.sales", "mart.totals", "mart.notes"
LEAF = "mart.sales_20260825"
GOOD = "VALUES ($1, 'fig', 2)"
BY_DAY = ", date_column => 'day'"
NOTE = "SELECT $1 AS day, 1 AS price"

# What is done; the SQLSTATE; table, column and constraint that the error names.
ERRORS = {
    # constraints of the target
    "not null": (load(SALES, "VALUES ($1, 'fig', NULL)"), "23502", LEAF, "eur", None),
    "check": (load(SALES, "VALUES ($1, 'fig', 0)"), "23514", LEAF, None, "sales_eur_check"),
    "unique": (
        load(SALES, "VALUES ($1, 'fig', 1), ($1, 'fig', 2)"),
        "23505", LEAF, None, "sales_20260825_pkey",
    ),
    "foreign key": (
        load(SALES, "VALUES ($1, 'kiwi', 1)"), "23503", LEAF, None, "sales_item_fkey",
    ),
    "check of a new partition": (
        load(SALES, "VALUES ($1, 'fig', 0)").replace("08-25", "08-26"),
        "23514", "mart.sales_20260826", None, "sales_eur_check",
    ),
    "cascade": (
        load("mart.orders", "VALUES ($1, 1, 2)"), "0A000", "mart.lines", None, "lines_id_fkey",
    ),
    # what the query returned
    "stray row": (load(SALES, "VALUES ($1 + 1, 'fig', 1)"), "IL001", SALES, "day", None),
    "null key": (load(SALES, "VALUES (NULL, 'fig', 1)"), "IL001", SALES, "day", None),
    "no rows": (load(SALES, "VALUES ($1, 'fig', 1) LIMIT 0"), "IL002", SALES, None, None),
    "audit": (load(SALES, GOOD, ", audit => 'SELECT false'"), "IL003", SALES, None, None),
    "unknown column": (
        load(SALES, "SELECT $1 AS day, 1 AS euro"), "IL005", SALES, None, None,
    ),
    "no key column": (load(SALES, "SELECT 'fig' AS item"), "IL005", SALES, "day", None),
    "generated column": (load(SALES, "SELECT $1 AS day, 1 AS twice"), "428C9", SALES, None, None),
    "identity column": (
        load(NOTES, "SELECT $1 AS day, 1 AS number", BY_DAY), "428C9", NOTES, "number", None,
    ),
    "type": (load(SALES, "SELECT $1 AS day, now() AS eur"), "42804", SALES, "eur", None),
    # the target
    "key column does not exist": (
        load(SALES, GOOD, ", date_column => 'date'"), "42703", SALES, None, None,
    ),
    "several key columns": (load(NOTES, NOTE), "42702", NOTES, None, None),
    "key column without days": (
        load(NOTES, NOTE, ", date_column => 'price'"), "42804", NOTES, "price", None,
    ),
    "key column without order": (
        load(NOTES, NOTE, ", date_column => 'place'"), "42804", NOTES, "place", None,
    ),
    "generated key column": (
        load(SALES, GOOD, ", date_column => 'twice'"), "0A000", SALES, "twice", None,
    ),
    "ignored column does not exist": (
        load(SALES, GOOD, ", ignore_columns => '{euro}'"), "42703", SALES, None, None,
    ),
    "ignored key column": (
        load(SALES, GOOD, ", ignore_columns => '{day}'"), "22023", SALES, "day", None,
    ),
    "no partition": (
        load(SALES, GOOD, ", create_partition => false").replace("08-25", "08-26"),
        "55000", SALES, None, None,
    ),
    "no right to make a partition": (
        "SET ROLE {role}; " + load(SALES, GOOD).replace("08-25", "08-26"),
        "42501", SALES, None, None,
    ),
    "too many partitions": (
        """CREATE TABLE mart.sales_past PARTITION OF mart.sales
             FOR VALUES FROM ('2019-01-01') TO ('2019-01-02');
           SELECT * FROM replace_slice('mart.sales', '2020-01-01', '2024-01-01',
             'SELECT $1 AS day, ''fig'' AS item, 1 AS eur')""",
        "54000", SALES, None, None,
    ),
    "method": (load(SALES, GOOD, ", method => 'swap'"), "0A000", SALES, None, None),
    "kept rows": (load("mart.kept", "VALUES ($1, 2)"), "27000", "mart.kept", None, None),
    "no right": ("SET ROLE {role}; " + load(TOTALS, GOOD), "42501", TOTALS, None, None),
    "view": (
        load("pg_stat_activity", GOOD), "42809", "pg_catalog.pg_stat_activity", None, None,
    ),
    "no version to undo": (
        "SELECT undo_load('mart.sales', '2026-08-25')", "55000", SALES, None, None,
    ),
    "no right to keep a version": (
        "SET ROLE {role}; " + load("mart.kept", "VALUES ($1, 2)", ", keep_previous => true"),
        "42501", "mart.kept", None, None,
    ),
    # merges
    "two rows for a key": (
        merge("VALUES ($1, NULL::date, 1), ($1, NULL, 2)".replace("VALUES", "SELECT * FROM (VALUES")
              + ") AS v (day, seen, price)", "{seen}"),
        "21000", NOTES, None, None,
    ),
    "two stored rows for a key": (
        merge("SELECT $1 AS day, NULL::date AS seen, 2 AS price", "{seen}"),
        "21000", NOTES, None, None,
    ),
    "no column of the key": (merge(NOTE, "{seen}"), "IL005", NOTES, "seen", None),
    "column of the key does not exist": (merge(NOTE, "{euro}"), "42703", NOTES, None, None),
    "ignored column of the key": (
        merge(NOTE, "{price}", ", ignore_columns => '{price}'"), "22023", NOTES, "price", None,
    ),
    "key without order": (
        merge("SELECT $1 AS day, point(1, 1) AS place", "{place}"), "42883", NOTES, "place", None,
    ),
    # other calls
    "not loaded": (
        "SELECT assert_loaded('mart.sales', '2026-08-25', '2026-08-26')",
        "IL009", SALES, None, None,
    ),
    "not idempotent": (
        "SELECT assert_idempotent('append', '2026-08-25')", "IL006", "mart.items", None, None,
    ),
    "backfill": (
        "CALL backfill('sales', '2026-08-25', '2026-08-25')",
        "23514", LEAF, None, "sales_eur_check",
    ),
    "backfill with workers": (
        "CALL backfill('sales', '2026-08-25', '2026-08-26', workers => 2, on_error => 'continue')",
        "23514", LEAF, None, "sales_eur_check",
    ),
}


@pytest.fixture
def mart(warehouse):
    """The tables of SET_UP, and a role that may load but owns nothing."""
    role = f"loader_of_{warehouse.database}"
    warehouse.run(SET_UP.replace("{role}", role))
    warehouse.role = role
    yield warehouse
    warehouse.run(f"RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}")


@pytest.fixture
def way():
    """A pooler passes errors on as they are."""
    return os.environ["PGHOST"], os.environ["PGPORT"]


def named(fields):
    """Table, column and constraint of an error."""
    table = fields["schema_name"] and f"{fields['schema_name']}.{fields['table_name']}"
    return table, fields["column_name"], fields["constraint_name"]


def check(mart, connect, name, key):
    statement, sqlstate, table, column, constraint = ERRORS[key]
    client = connect(name)
    with pytest.raises(client.Error) as raised:
        # braces would be parameters
        client.run(statement.replace("{role}", mart.role).replace("{", "{{").replace("}", "}}"))
    fields = client.fields(raised.value)
    assert (fields["sqlstate"], *named(fields)) == (sqlstate, table, column, constraint)
    return fields


@pytest.mark.parametrize("key", ERRORS)
def test_fields(mart, connect, key):
    fields = check(mart, connect, "psycopg-client", key)
    assert fields["message"]


@pytest.mark.parametrize("name", DRIVERS)
@pytest.mark.parametrize("key", ["not null", "check", "stray row", "not loaded", "backfill"])
def test_drivers(mart, connect, name, key):
    """Each driver's error has them, and the detail and the hint."""
    fields = check(mart, connect, name, key)
    assert fields["detail"]
    assert (fields["hint"] is None) == (key in ("not null", "check"))


@pytest.mark.parametrize("method", ["diff", "delete", "swap"])
@pytest.mark.parametrize(
    "values, sqlstate, column, constraint",
    [
        ("($1, NULL)", "23502", "eur", None),
        ("($1, 0)", "23514", None, "totals_eur_check"),
        ("($1, 1), ($1, 1)", "23505", None, "totals_20260825_pkey"),
    ],
    ids=["not null", "check", "unique"],
)
def test_methods(mart, connect, method, values, sqlstate, column, constraint):
    """A violated constraint is told in the same way, by whatever method the row is written."""
    with pytest.raises(psycopg.Error) as raised:
        mart.run(load(TOTALS, f"VALUES {values}", f", method => '{method}'"))
    fields = Psycopg.fields(raised.value)
    assert (fields["sqlstate"], *named(fields)) == (
        sqlstate, "mart.totals_20260825", column, constraint,
    )


def test_another_load(mart, connect):
    with psycopg.connect(dbname=mart.database) as other:
        other.execute(load(SALES, GOOD))
        with pytest.raises(psycopg.Error) as raised:
            mart.run(load(SALES, GOOD, ", if_running => 'fail'"))
    fields = Psycopg.fields(raised.value)
    assert (fields["sqlstate"], *named(fields)) == ("IL004", SALES, None, None)


def test_table_of_kept_rows(mart, connect):
    mart.run(
        load(SALES, GOOD, ", keep_previous => true")
        + f"; ALTER TABLE mart.sales_previous OWNER TO {mart.role}"
    )
    with pytest.raises(psycopg.Error) as raised:
        mart.run("SELECT undo_load('mart.sales', '2026-08-25')")
    fields = Psycopg.fields(raised.value)
    assert (fields["sqlstate"], *named(fields)) == ("55000", "mart.sales_previous", None, None)


def test_domain(mart, connect):
    """An error of a domain names the domain, as the server does it, and no table."""
    with pytest.raises(psycopg.errors.CheckViolation) as raised:
        mart.run(load(NOTES, "SELECT $1 AS day, 0 AS price", BY_DAY))
    diag = raised.value.diag
    assert (diag.schema_name, diag.datatype_name, diag.constraint_name, diag.table_name) == (
        "mart", "amount", "amount_check", None,
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_domain_of_backfill(mart, workers):
    mart.run("""SELECT create_job('notes', 'mart.notes', 'SELECT $1 AS day, 0 AS price',
                                   date_column => 'day')""")
    with pytest.raises(psycopg.errors.CheckViolation) as raised:
        mart.run(f"CALL backfill('notes', '2026-08-25', '2026-08-25', workers => {workers})")
    diag = raised.value.diag
    assert (diag.schema_name, diag.datatype_name, diag.constraint_name, diag.table_name) == (
        "mart", "amount", "amount_check", None,
    )


def test_long_name(mart):
    """RAISE takes any text for a name. It is cut as a name is, not within a character."""
    mart.run("""CREATE FUNCTION mart.shout(day date) RETURNS void LANGUAGE plpgsql AS
                'BEGIN RAISE ''no'' USING TABLE = repeat(''é'', 100); END'""")
    with pytest.raises(psycopg.errors.RaiseException) as raised:
        mart.run("CALL backfill('mart.shout(date)', '2026-08-25', '2026-08-25')")
    assert raised.value.diag.table_name == "é" * 31


@pytest.mark.parametrize(
    "statement, sqlstate",
    [
        (load("mart.nothing", GOOD), "42P01"),
        (load(SALES, "SELECT $1 AS day FROM mart.nothing"), "42P01"),
    ],
    ids=["no table", "no source"],
)
def test_without_fields(mart, connect, statement, sqlstate):
    """A table that does not exist is in the message only, as in the server's own errors."""
    with pytest.raises(psycopg.Error) as raised:
        mart.run(statement.replace("{role}", mart.role))
    fields = Psycopg.fields(raised.value)
    assert (fields["sqlstate"], *named(fields)) == (sqlstate, None, None, None)
