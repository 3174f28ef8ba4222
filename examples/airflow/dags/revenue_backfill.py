"""Load a range of days again, with a commit for each: for whoever has changed a query.

It is triggered by hand. It registers the jobs first, so that they are what the files beside
it say.
"""

from datetime import timedelta

from airflow.providers.common.sql.operators.sql import SQLExecuteQueryOperator
from airflow.sdk import DAG, Param

with DAG(
    dag_id="revenue_backfill",
    schedule=None,
    max_active_runs=1,
    params={
        "job": Param("revenue", enum=["revenue", "report"]),
        "from_date": Param("2026-10-06", type="string", format="date"),
        "to_date": Param("2026-10-07", type="string", format="date"),
    },
    default_args={"conn_id": "warehouse", "retries": 1, "retry_delay": timedelta(minutes=1)},
):
    register = SQLExecuteQueryOperator(task_id="register_jobs", sql="sql/jobs.sql")
    backfill = SQLExecuteQueryOperator(
        task_id="backfill",
        sql="CALL backfill(%(job)s, %(from_date)s, %(to_date)s, run_id => %(run_id)s)",
        parameters={
            "job": "{{ params.job }}",
            "from_date": "{{ params.from_date }}",
            "to_date": "{{ params.to_date }}",
            "run_id": "{{ run_id }}",
        },
        # the CALL commits, so it must not be inside a transaction
        autocommit=True,
        # a NOTICE for each day, in the task's log
        hook_params={"enable_log_db_messages": True},
    )

    register >> backfill
