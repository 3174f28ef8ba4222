"""One day of revenue: load it, merge what has changed, check that both are there, publish."""

from datetime import timedelta

import pendulum
from airflow.providers.common.sql.operators.sql import SQLExecuteQueryOperator
from airflow.sdk import DAG, CronDataIntervalTimetable

with DAG(
    dag_id="revenue",
    # The run that starts at midnight is about the day that is over: that is its {{ ds }}.
    # With schedule="@daily" it would be about the day that begins.
    schedule=CronDataIntervalTimetable("@daily", timezone="UTC"),
    start_date=pendulum.datetime(2026, 10, 6, tz="UTC"),
    catchup=True,
    max_active_runs=4,
    default_args={
        "conn_id": "warehouse",
        "retries": 3,
        "retry_delay": timedelta(minutes=1),
        "execution_timeout": timedelta(hours=1),
        # the result row, with method and counts, in the task's log
        "show_return_value_in_logs": True,
    },
):
    load = SQLExecuteQueryOperator(task_id="load_revenue", sql="sql/load_revenue.sql")
    merge = SQLExecuteQueryOperator(task_id="merge_order_status", sql="sql/merge_order_status.sql")
    # a retry brings no rows
    check = SQLExecuteQueryOperator(task_id="check_loaded", sql="sql/check_loaded.sql", retries=0)
    publish = SQLExecuteQueryOperator(task_id="publish_report", sql="sql/publish_report.sql")

    [load, merge] >> check >> publish
