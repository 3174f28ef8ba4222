"""Keeps a load at a step, so that it can be ended there for certain."""

import warehouse as warehouses

# Somebody waits for a lock in this database.
_WAITING = """
    SELECT EXISTS (
      SELECT FROM pg_locks
      WHERE NOT granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"""


class Hold:
    """Holds loads of sessions that begin from now on.

    step: "query", while the load's query wants to read the table sales, or a step of
    idempotent_load.wait_point, such as "inserted", when the target has been written.
    """

    def __init__(self, warehouse, step):
        self._warehouse = warehouse
        self._connection = warehouses.connect(warehouse.database)
        if step == "query":
            self._connection.execute("BEGIN; LOCK TABLE sales")
        else:
            self._connection.execute(
                "SELECT pg_advisory_lock(hashtext('idempotent_load'), hashtext(%s))", [step]
            )
            # for clients of a pooler too, which may not set anything when they connect
            warehouse.run(
                f"ALTER DATABASE {warehouse.database} SET idempotent_load.wait_point = '{step}'"
            )

    def wait(self):
        """Wait until a load has come to the step."""
        self._warehouse.wait_until(_WAITING)

    def wait_until_left(self):
        """Wait until no load is at the step."""
        self._warehouse.wait_until(f"SELECT NOT ({_WAITING})")

    def release(self):
        """Let loads go on."""
        self._connection.close()
        self._warehouse.run(
            f"ALTER DATABASE {self._warehouse.database} RESET idempotent_load.wait_point"
        )
