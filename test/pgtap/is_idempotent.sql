-- The TAP of is_idempotent: description, diagnostics, options; pgTAP in another
-- schema, and none.

BEGIN;
SELECT plan(40);

SET LOCAL client_min_messages = warning;
SET LOCAL timezone = 'UTC';
SET LOCAL datestyle = 'ISO, MDY';

CREATE TABLE day (d date, n int, at timestamptz DEFAULT now());
CREATE FUNCTION replaces(d date) RETURNS void LANGUAGE sql AS
'DELETE FROM day WHERE day.d = $1; INSERT INTO day VALUES ($1, 1, $1), ($1, 2, $1)';
CREATE FUNCTION appends(d date) RETURNS void LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO day SELECT $1, n, '2024-01-01' FROM generate_series(1, 7) n; END $$;
CREATE FUNCTION stamps(d date) RETURNS void LANGUAGE plpgsql AS
$$ BEGIN
	DELETE FROM day WHERE day.d = $1;
	INSERT INTO day VALUES ($1, 1);
END $$;
CREATE FUNCTION dates(d date) RETURNS void LANGUAGE plpgsql AS
$$ BEGIN DELETE FROM day WHERE day.d = $1; INSERT INTO day VALUES ($1, 1, current_date); END $$;
CREATE FUNCTION skips(d date) RETURNS void LANGUAGE sql AS
'INSERT INTO day SELECT $1, n, ''2024-01-01'' FROM generate_series(1, 2) n WHERE NOT EXISTS (SELECT FROM day)';
CREATE FUNCTION fails(d date) RETURNS void LANGUAGE plpgsql AS
$$ BEGIN
	IF EXISTS (SELECT FROM day) THEN
		RAISE EXCEPTION USING MESSAGE = 'day is loaded', DETAIL = 'It has rows.', ERRCODE = 'UE001';
	END IF;
	INSERT INTO day VALUES ($1, 1, '2024-01-01');
END $$;
CREATE FUNCTION breaks(d date) RETURNS void LANGUAGE sql AS 'SELECT 1 / ($1 - $1)';
CREATE FUNCTION notifies(d date) RETURNS void LANGUAGE sql AS 'NOTIFY done; DELETE FROM day; INSERT INTO day VALUES ($1, 1, $1)';
SELECT is(create_job('a "named" job', command => 'DELETE FROM day WHERE d = $1; INSERT INTO day VALUES ($1, 1, $1)')::text, '', 'job');

-- passed
SELECT * FROM check_test(is_idempotent('replaces(date)', '2024-01-02', 'a day can be retried'),
	true, 'passed', 'a day can be retried', '');
SELECT * FROM check_test(is_idempotent('replaces(date)', '2024-01-02'),
	true, 'passed, without a description', 'job "public.replaces(date)" is idempotent', '');
SELECT * FROM check_test(is_idempotent('a "named" job', '2024-01-02'),
	true, 'passed, a job with a name', 'job "a "named" job" is idempotent', '');

-- failed: what, which rows, why, and what to do
SELECT * FROM check_test(is_idempotent('appends(date)', '2024-01-02', 'a day can be retried'),
	false, 'append', 'a day can be retried', $$job "public.appends(date)" is not idempotent for 2024-01-02: rerun "same" changed table public.day
Rows added: 7, missing: 0.
Added: (2024-01-02, 1, 2024-01-01 00:00:00+00), (2024-01-02, 2, 2024-01-01 00:00:00+00), (2024-01-02, 3, 2024-01-01 00:00:00+00), (2024-01-02, 4, 2024-01-01 00:00:00+00), (2024-01-02, 5, 2024-01-01 00:00:00+00), and 2 more
Cause: append. INSERT, in PL/pgSQL function appends(date) line 1 at SQL statement: INSERT INTO day SELECT $1, n, '2024-01-01' FROM generate_series(1, 7) n
Hint: Replace the rows of the date instead of adding to them: use replace_partition, or delete them in the same transaction, or merge on a key.$$);
SELECT * FROM check_test(is_idempotent('stamps(date)', '2024-01-02'),
	false, 'clock', 'job "public.stamps(date)" is idempotent', format($$job "public.stamps(date)" is not idempotent for 2024-01-02: rerun "same" changed table public.day
Rows added: 1, missing: 1.
Columns that differ: "at".
Added: (2024-01-02, 1, %s)
Missing: (2024-01-02, 1, %s)
Cause: clock. Column "at": now(), through a view, default or function, in PL/pgSQL function stamps(date) line 3 at SQL statement: INSERT INTO day VALUES ($1, 1)
Hint: Take the date from the parameter $1, not from the clock. If the column only tells when the row was written, name it in ignore_columns.$$,
	now() + interval '61 s', now()));
SELECT * FROM check_test(is_idempotent('skips(date)', '2024-01-02', 'crash'),
	false, 'crash', 'crash', $$job "public.skips(date)" is not idempotent for 2024-01-02: rerun "crash" changed table public.day
Rows added: 0, missing: 1.
World: some of the rows that the first run inserted are gone.
Missing: (2024-01-02, 2, 2024-01-01 00:00:00+00)
Cause: skip_if_present.
Hint: Rows that are there do not mean that all are: do not skip the date, replace it, as replace_partition does.$$);
SELECT * FROM check_test(is_idempotent('fails(date)', '2024-01-02', 'error'),
	false, 'error', 'error', $$job "public.fails(date)" is not idempotent for 2024-01-02: rerun "same" failed: day is loaded
SQLSTATE UE001. It has rows.
Cause: error.
Hint: A job must be able to run again after it has succeeded, and after it has failed half-way.$$);

-- options
SELECT * FROM check_test(is_idempotent('stamps(date)', '2024-01-02', 'columns', ignore_columns => '{day.at}'),
	true, 'ignore_columns', 'columns', '');
SELECT * FROM check_test(is_idempotent('skips(date)', '2024-01-02', 'reruns', reruns => '{same}'),
	true, 'reruns', 'reruns', '');
SELECT * FROM check_test(is_idempotent('dates(date)', '2024-01-02', 'shift', reruns => '{clock}', clock_shift => '1 day'),
	false, 'clock_shift', 'shift', format($$job "public.dates(date)" is not idempotent for 2024-01-02: rerun "clock" changed table public.day
Rows added: 1, missing: 1.
World: clock moved by 1 day.
Columns that differ: "at".
Added: (2024-01-02, 1, %s)
Missing: (2024-01-02, 1, %s)
Cause: clock. Column "at": CURRENT_DATE, line 1, in PL/pgSQL function dates(date) line 1 at SQL statement: INSERT INTO day VALUES ($1, 1, current_date)
Hint: Take the date from the parameter $1, not from the clock. If the column only tells when the row was written, name it in ignore_columns.$$,
	(current_date + 1)::timestamptz, current_date::timestamptz));

-- The job itself fails: no test has been made.
SELECT throws_ok($$SELECT is_idempotent('breaks(date)', '2024-01-02')$$, '22012');
SELECT throws_ok($$SELECT is_idempotent('no such job', '2024-01-02')$$, '42704');
SELECT throws_ok($$SELECT is_idempotent('appends(date)', '2024-01-02', reruns => '{twice}')$$, '22023');

SELECT is_empty('SELECT * FROM day', 'nothing is written');

-- no pgTAP
CREATE FUNCTION try_it(OUT state text, OUT message text) LANGUAGE plpgsql AS
$$ BEGIN
	PERFORM is_idempotent('replaces(date)', '2024-01-02');
EXCEPTION WHEN OTHERS THEN
	state := SQLSTATE;
	message := SQLERRM;
END $$;
SAVEPOINT installed;
DROP EXTENSION pgtap;
SELECT * FROM try_it() \gset
ROLLBACK TO installed;
SELECT is(:'state'::text, '42883', 'without pgTAP: state');
SELECT is(:'message'::text, 'pgTAP is not installed in this database', 'without pgTAP: message');

-- pgTAP in another schema
CREATE SCHEMA "a Tap";
ALTER EXTENSION pgtap SET SCHEMA "a Tap";
SET LOCAL search_path = public, "a Tap";
SELECT * FROM check_test(is_idempotent('replaces(date)', '2024-01-02', 'elsewhere'),
	true, 'pgTAP in another schema', 'elsewhere', '');

SELECT * FROM finish();
ROLLBACK;
