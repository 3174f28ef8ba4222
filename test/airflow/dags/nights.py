"""A day of revenue, loaded by replace_partition and, beside it, by what many write first.

The append commits the first five orders of the day by themselves, as a loop over batches
does. Both tasks pass the step "inserted", where a test can hold them: the load when it has
written all rows and committed none, the append between its two batches.
"""

import datetime

from airflow.providers.common.sql.operators.sql import SQLExecuteQueryOperator
from airflow.sdk import DAG, CronDataIntervalTimetable, Param

REPLACE = """
SELECT method, rows FROM replace_partition('revenue', '{{ ds }}', '
    SELECT order_id, order_date, amount_eur FROM orders WHERE order_date = $1',
    if_running => '{{ params.if_running }}',
    run_id => '{{ run_id }}, try {{ ti.try_number }}')
"""

# What a load does at its step, as a statement.
STEP = "SELECT pg_advisory_xact_lock_shared(hashtext('idempotent_load'), hashtext('inserted'))"

BATCH = """
INSERT INTO revenue_append
SELECT order_id, order_date, amount_eur FROM orders WHERE order_date = '{{ ds }}'
ORDER BY order_id
"""

# Tests know a session by its task and try, such as replace_1.
OPTIONS = (
    "-c idempotent_load.wait_point=inserted"
    " -c application_name={{ task.task_id }}_{{ ti.try_number }}"
    " {{ params.options }}"
)

PARAMS = {
    "if_running": Param("wait", type="string"),
    "options": Param("", type="string", description="more settings of the tasks' sessions"),
}


def night(dag_id, before=(), autocommit=False, execution_timeout=None, schedule=None, **options):
    """A DAG with the two tasks."""
    with DAG(
        dag_id,
        schedule=schedule,
        params=PARAMS,
        default_args={
            "conn_id": "warehouse",
            "hook_params": {"options": OPTIONS},
            "retries": 1,
            "retry_delay": datetime.timedelta(seconds=1),
            "execution_timeout": execution_timeout,
        },
        **options,
    ):
        SQLExecuteQueryOperator(task_id="replace", sql=[*before, REPLACE], autocommit=autocommit)
        SQLExecuteQueryOperator(
            task_id="append",
            sql=[BATCH + "LIMIT 5", STEP, BATCH + "OFFSET 5"],
            autocommit=True,
        )


# Tests start a run for a date.
night("night")

# The load is the second statement of its transaction: tests can hold the task before it.
night("night_late", before=[STEP])

LIMIT = datetime.timedelta(seconds=8)
night("night_limited", execution_timeout=LIMIT)
night("night_limited_autocommit", execution_timeout=LIMIT, autocommit=True)

# The logical date of a run is the day that it loads, not the one on which it runs.
night(
    "night_daily",
    schedule=CronDataIntervalTimetable("@daily", timezone="UTC"),
    start_date=datetime.datetime(2026, 10, 1, tzinfo=datetime.timezone.utc),
    end_date=datetime.datetime(2026, 10, 7, tzinfo=datetime.timezone.utc),
    catchup=True,
    max_active_runs=3,
    is_paused_upon_creation=True,
)
