-- Every job can be retried: run again, after a crash, or at another time, it leaves the
-- same rows. A job that is made later is tested too.

BEGIN;
\ir ../fixture.sql

SELECT plan(1 + count(*)::integer) FROM jobs;

SELECT isnt_empty('SELECT name FROM jobs', 'there are jobs');

SELECT is_idempotent(name, '2026-08-25', format('job "%s" can be retried', name),
	ignore_columns => ignore_columns)
FROM jobs
ORDER BY name;

SELECT * FROM finish();
ROLLBACK;
