-- What revenue_backfill can run. The queries are those of the daily loads.

SELECT drop_job('revenue', if_exists => true);
SELECT create_job('revenue', 'revenue', $query${% include 'sql/revenue.sql' %}$query$);

SELECT drop_job('report', if_exists => true);
SELECT create_job('report', 'report', $query${% include 'sql/report.sql' %}$query$);
