"""The clients that call the extension, each behind the same few methods.

A statement is written with {} where a parameter is; each client puts there what it writes
for one. Names tell how parameters and plans travel:

    psql              literals, made by psql from its variables
    psql-prepare      PREPARE and EXECUTE
    psycopg           parameters apart from the text (extended protocol)
    psycopg-prepared  the same with a named prepared statement
    psycopg-client    ClientCursor: literals, made by the client
    psycopg2          literals, made by the client
    psycopg2-prepare  PREPARE and EXECUTE
    asyncpg           a named prepared statement, kept for the next call
    asyncpg-uncached  statement_cache_size=0: an unnamed one
"""

import asyncio
import concurrent.futures
import csv
import io
import itertools
import os
import re
import signal
import socket
import subprocess
import threading

import asyncpg
import psycopg
import psycopg2
import psycopg2.extras

# The fields of an error that a program may want.
FIELDS = (
    "sqlstate message detail hint schema_name table_name column_name constraint_name".split()
)

# Of prepared statements.
_numbers = itertools.count(1)


def _numbered(statement):
    """The statement with $1, $2, ... for its parameters."""
    count = statement.count("{}")
    return statement.format(*(f"${n}" for n in range(1, count + 1))), count


def _shut(descriptor):
    """Cut a connection: the other side sees that it is closed, nothing more is sent."""
    with socket.socket(fileno=os.dup(descriptor)) as connection:
        connection.shutdown(socket.SHUT_RDWR)


class _Threaded:
    """A client whose calls block: start() makes them in a thread."""

    def __init__(self):
        self._executor = concurrent.futures.ThreadPoolExecutor(1)

    def start(self, statement, *parameters):
        """Begin what row() does. Returns a future."""
        return self._executor.submit(self.row, statement, *parameters)

    def close(self):
        self._executor.shutdown()


class PsqlError(Exception):
    """What psql said on standard error, with VERBOSITY = verbose."""


class Psql(_Threaded):
    """Each call is a psql of its own."""

    Error = PsqlError
    prepares_call = True

    def __init__(self, database, host, port):
        super().__init__()
        self._arguments = ["-d", database, "-h", host, "-p", port]
        self._process = None

    def script(self, statement, count):
        return statement.format(*(f":'p{n}'" for n in range(1, count + 1)))

    def run(self, statement, *parameters):
        script = self.script(statement, len(parameters)) + "\n;\n"
        variables = [f"-vp{n}={value}" for n, value in enumerate(parameters, 1)]
        self._process = subprocess.Popen(
            ["psql", "-X", "-q", "--csv", "-vON_ERROR_STOP=1", "-vVERBOSITY=verbose"]
            + variables
            + self._arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        output, errors = self._process.communicate(script)
        if self._process.returncode != 0:
            raise PsqlError(errors)
        return output

    def row(self, statement, *parameters):
        (row,) = csv.DictReader(io.StringIO(self.run(statement, *parameters)))
        return row

    def cancel(self):
        self._process.send_signal(signal.SIGINT)

    def drop(self):
        self._process.kill()

    @staticmethod
    def fields(error):
        labels = dict.fromkeys(FIELDS)
        head = re.search(r"^(?:psql:.*?: )?(?:ERROR|FATAL):  (\w{5}): (.*)$", str(error), re.M)
        labels["sqlstate"], labels["message"] = head.groups()
        for name in FIELDS[2:]:
            label = name.replace("_", " ").upper()
            line = re.search(rf"^{label}:  (.*)$", str(error)[head.end() :], re.M)
            labels[name] = line and line.group(1)
        return labels


class PsqlPrepare(Psql):
    prepares_call = False

    def script(self, statement, count):
        text, _ = _numbered(statement)
        values = super().script(", ".join(["{}"] * count), count)
        # a name of its own, since a pooler keeps the session, and the next psql may get it
        prepared = f"load_{next(_numbers)}"
        return f"PREPARE {prepared} AS {text};\nEXECUTE {prepared} ({values})"


class _Diagnosed(_Threaded):
    """What psycopg 3 and psycopg2 have in common."""

    def close(self):
        self.connection.close()
        super().close()

    def cancel(self):
        self.connection.cancel()

    @staticmethod
    def fields(error):
        names = {"message": "message_primary", "detail": "message_detail", "hint": "message_hint"}
        return {name: getattr(error.diag, names.get(name, name)) for name in FIELDS}


class Psycopg(_Diagnosed):
    Error = psycopg.Error
    prepares_call = True
    prepare = False
    cursor_factory = psycopg.Cursor

    def __init__(self, database, host, port):
        super().__init__()
        self.connection = psycopg.connect(
            dbname=database,
            host=host,
            port=port,
            autocommit=True,
            row_factory=psycopg.rows.dict_row,
            cursor_factory=self.cursor_factory,
        )

    def run(self, statement, *parameters):
        text = statement.format(*["%s"] * len(parameters))
        return self.connection.execute(text, parameters, prepare=self.prepare)

    def row(self, statement, *parameters):
        return self.run(statement, *parameters).fetchone()

    def drop(self):
        _shut(self.connection.fileno())


class PsycopgPrepared(Psycopg):
    prepare = True


class PsycopgClient(Psycopg):
    cursor_factory = psycopg.ClientCursor
    prepare = None


class Psycopg2(_Diagnosed):
    Error = psycopg2.Error
    prepares_call = True

    def __init__(self, database, host, port):
        super().__init__()
        self.connection = psycopg2.connect(
            dbname=database,
            host=host,
            port=port,
            cursor_factory=psycopg2.extras.RealDictCursor,
        )
        self.connection.autocommit = True

    @staticmethod
    def fields(error):
        return {**_Diagnosed.fields(error), "sqlstate": error.pgcode}

    def run(self, statement, *parameters):
        cursor = self.connection.cursor()
        cursor.execute(statement.format(*["%s"] * len(parameters)), parameters)
        return cursor

    def row(self, statement, *parameters):
        return dict(self.run(statement, *parameters).fetchone())

    def drop(self):
        _shut(self.connection.fileno())


class Psycopg2Prepare(Psycopg2):
    prepares_call = False

    def __init__(self, database, host, port):
        super().__init__(database, host, port)
        self._prepared = {}

    def run(self, statement, *parameters):
        text, count = _numbered(statement)
        if text not in self._prepared:
            self._prepared[text] = f"load_{next(_numbers)}"
            super().run(f"PREPARE {self._prepared[text]} AS {text}")
        values = ", ".join(["{}"] * count)
        return super().run(f"EXECUTE {self._prepared[text]} ({values})", *parameters)


class Asyncpg:
    """Its event loop runs in a thread, so that it can be called like the others."""

    Error = (
        asyncpg.PostgresError,
        asyncpg.InterfaceError,
        OSError,
        concurrent.futures.CancelledError,
    )
    prepares_call = True
    options = {}

    def __init__(self, database, host, port):
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.connection = self._submit(
            asyncpg.connect(database=database, host=host, port=int(port), **self.options)
        ).result()
        self._future = None

    def _submit(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def close(self):
        self._loop.call_soon_threadsafe(self.connection.terminate)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, statement, *parameters):
        text, _ = _numbered(statement)
        return self._submit(self.connection.execute(text, *parameters)).result()

    async def _row(self, statement, parameters):
        text, _ = _numbered(statement)
        return dict(await self.connection.fetchrow(text, *parameters))

    def row(self, statement, *parameters):
        return self.start(statement, *parameters).result()

    def start(self, statement, *parameters):
        self._future = self._submit(self._row(statement, parameters))
        return self._future

    def cancel(self):
        self._future.cancel()

    def drop(self):
        self._loop.call_soon_threadsafe(self.connection.terminate)

    @staticmethod
    def fields(error):
        return {name: getattr(error, name) for name in FIELDS}


class AsyncpgUncached(Asyncpg):
    options = {"statement_cache_size": 0}


CLIENTS = {
    "psql": Psql,
    "psql-prepare": PsqlPrepare,
    "psycopg": Psycopg,
    "psycopg-prepared": PsycopgPrepared,
    "psycopg-client": PsycopgClient,
    "psycopg2": Psycopg2,
    "psycopg2-prepare": Psycopg2Prepare,
    "asyncpg": Asyncpg,
    "asyncpg-uncached": AsyncpgUncached,
}
# One of each driver, where it does not matter how parameters travel.
DRIVERS = ["psql", "psycopg", "psycopg2", "asyncpg"]
