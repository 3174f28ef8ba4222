-- What revenue_backfill can run. The queries are those of the daily loads.

SELECT create_job('revenue', 'revenue', $query${% include 'sql/revenue.sql' %}$query$, or_replace => true);
SELECT create_job('report', 'report', $query${% include 'sql/report.sql' %}$query$, or_replace => true);
