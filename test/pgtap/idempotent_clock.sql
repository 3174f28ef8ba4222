-- The moved clock: every way to read the clock gives the moved time, with its
-- type and precision, wherever a query may hold it; and afterwards the true time.

SELECT plan(61);

SET client_min_messages = error;
SET timezone = 'UTC';
SET datestyle = 'ISO, MDY';
LOAD 'idempotent_load';

-- Expressions, and what they are at the time "t", in a statement begun at "s".
CREATE TABLE readings (expression text PRIMARY KEY, wanted text NOT NULL);
INSERT INTO readings VALUES
('now()', 't'),
('transaction_timestamp()', 't'),
('statement_timestamp()', 's'),
('CURRENT_TIMESTAMP', 't'),
('CURRENT_TIMESTAMP(0)', 't::timestamptz(0)'),
('CURRENT_TIMESTAMP(2)', 't::timestamptz(2)'),
('CURRENT_DATE', 't::date'),
('CURRENT_TIME', 't::timetz'),
('CURRENT_TIME(0)', 't::timestamptz(0)::timetz'),
('CURRENT_TIME(3)', 't::timestamptz(3)::timetz'),
('LOCALTIME', 't::time'),
('LOCALTIME(0)', 't::timestamptz(0)::time'),
('LOCALTIME(1)', 't::timestamptz(1)::time'),
('LOCALTIMESTAMP', 't::timestamp'),
('LOCALTIMESTAMP(0)', 't::timestamptz(0)::timestamp'),
('LOCALTIMESTAMP(4)', 't::timestamptz(4)::timestamp'),
('age(timestamp ''2020-02-29'')', 'age(t::date::timestamp, timestamp ''2020-02-29'')'),
('age(timestamptz ''2020-02-29'')', 'age(t::date::timestamptz, timestamptz ''2020-02-29'')'),
('date ''today''', 't::date'),
('date ''tomorrow''', 't::date + 1'),
('''yesterday''::timestamptz', '(t::date - 1)::timestamptz'),
('timestamp ''today 13:00''', 't::date + interval ''13 hours'''),
('timestamptz ''now''', 't'),
('date_trunc(''month'', now())', 'date_trunc(''month'', t)'),
('extract(epoch FROM now())', 'extract(epoch FROM t)'),
('to_char(now(), ''YYYY-MM-DD HH24:MI:SS.US'')', 'to_char(t, ''YYYY-MM-DD HH24:MI:SS.US'')'),
('(SELECT max(z) FROM (VALUES (now()), (now() - interval ''1 h'')) v (z))', 't'),
('(WITH w AS (SELECT now() AS z) SELECT z FROM w)', 't'),
('(WITH w AS MATERIALIZED (SELECT now() AS z) SELECT w.z FROM w, w AS w2)', 't'),
('(SELECT count(*) FILTER (WHERE g < now()) FROM generate_series(timestamptz ''2020-01-01'', ''2040-01-01'', ''1 d'') g)',
	'(SELECT count(*) FILTER (WHERE g < t) FROM generate_series(timestamptz ''2020-01-01'', ''2040-01-01'', ''1 d'') g)'),
('(SELECT count(*) FROM generate_series(date ''2020-01-01'', current_date, ''1 d''))', 't::date - date ''2019-12-31'''),
('(SELECT z FROM (SELECT now() AS z UNION ALL SELECT now() UNION SELECT now()) u)', 't'),
('(SELECT l.z FROM (VALUES (1)) v (i), LATERAL (SELECT now() AS z WHERE i = 1) l)', 't'),
('(SELECT max(now()) OVER () FROM (VALUES (1)) v GROUP BY now() HAVING now() > ''2000-01-01'' ORDER BY now() LIMIT 1)', 't'),
('CASE WHEN now() > ''2000-01-01'' THEN ARRAY[now()] END', 'ARRAY[t]'),
('ROW(now(), current_date)::text', 'ROW(t, t::date)::text'),
('coalesce(NULL, greatest(now(), NULL))', 't');

-- Places that a query may be held in, each with a way to read it as text.
CREATE TABLE places (place text PRIMARY KEY, make text NOT NULL, reading text NOT NULL);
INSERT INTO places VALUES
('query', '', 'SELECT (%1$s)::text'),
('SQL function', 'CREATE OR REPLACE FUNCTION f() RETURNS text LANGUAGE sql VOLATILE AS $f$SELECT (%1$s)::text$f$', 'SELECT f()'),
('SQL function that is inlined', 'CREATE OR REPLACE FUNCTION f() RETURNS text LANGUAGE sql STABLE AS $f$SELECT (%1$s)::text$f$', 'SELECT f()'),
('SQL function with a parsed body', 'CREATE OR REPLACE FUNCTION f() RETURNS text LANGUAGE sql STABLE RETURN (%1$s)::text', 'SELECT f()'),
('set-returning SQL function', 'CREATE OR REPLACE FUNCTION g() RETURNS TABLE (x text) LANGUAGE sql STABLE AS $f$SELECT (%1$s)::text$f$', 'SELECT x FROM g()'),
('set-returning SQL function, WITH ORDINALITY', 'CREATE OR REPLACE FUNCTION g() RETURNS TABLE (x text) LANGUAGE sql STABLE AS $f$SELECT (%1$s)::text$f$',
	'SELECT x FROM g() WITH ORDINALITY'),
('PL/pgSQL expression', 'CREATE OR REPLACE FUNCTION f() RETURNS text LANGUAGE plpgsql AS $f$ BEGIN RETURN (%1$s)::text; END $f$', 'SELECT f()'),
('PL/pgSQL query', 'CREATE OR REPLACE FUNCTION f() RETURNS text LANGUAGE plpgsql AS $f$ DECLARE x text; BEGIN SELECT (%1$s)::text INTO x FROM (VALUES (1)) v; RETURN x; END $f$', 'SELECT f()'),
('PL/pgSQL loop', 'CREATE OR REPLACE FUNCTION f() RETURNS text LANGUAGE plpgsql AS $f$ DECLARE x text; BEGIN FOR x IN SELECT %1$s LOOP RETURN x; END LOOP; END $f$', 'SELECT f()'),
('dynamic SQL', 'CREATE OR REPLACE FUNCTION f() RETURNS text LANGUAGE plpgsql AS $f$ DECLARE x text; BEGIN EXECUTE $q$SELECT (%1$s)::text$q$ INTO x; RETURN x; END $f$', 'SELECT f()'),
('default of an argument', 'CREATE FUNCTION h(text DEFAULT (%1$s)::text) RETURNS text LANGUAGE plpgsql AS $f$ BEGIN RETURN $1; END $f$', 'SELECT h()'),
('view of a view', 'CREATE VIEW v1 AS SELECT (%1$s)::text AS x; CREATE VIEW v2 AS SELECT x FROM v1', 'SELECT x FROM v2'),
('default of a column', 'CREATE TABLE c (x text DEFAULT (%1$s)::text, i int)', 'INSERT INTO c (i) VALUES (1) RETURNING x'),
('default of a domain', 'CREATE DOMAIN s AS text DEFAULT (%1$s)::text; CREATE TABLE c (x s, i int)', 'INSERT INTO c (i) VALUES (1) RETURNING x'),
('default in UPDATE', 'CREATE TABLE c (x text DEFAULT (%1$s)::text); INSERT INTO c VALUES (0)', 'UPDATE c SET x = DEFAULT RETURNING x'),
('ON CONFLICT', 'CREATE TABLE c (i int PRIMARY KEY, x text); INSERT INTO c VALUES (1)', 'INSERT INTO c VALUES (1) ON CONFLICT (i) DO UPDATE SET x = (%1$s)::text RETURNING x'),
('trigger', 'CREATE TABLE c (i int, x text); CREATE OR REPLACE FUNCTION t() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN NEW.x := (%1$s)::text; RETURN NEW; END $f$;
	CREATE TRIGGER t BEFORE INSERT ON c FOR EACH ROW EXECUTE FUNCTION t()', 'INSERT INTO c VALUES (1) RETURNING x'),
('prepared statement', 'PREPARE p AS SELECT (%1$s)::text', 'EXECUTE p'),
('generic plan', 'PREPARE p(int) AS SELECT (%1$s)::text WHERE $1 = 1; SET plan_cache_mode = force_generic_plan', 'EXECUTE p(1)');


-- What is written by a word is a constant once it is stored, as the server has it;
-- and a default has no subquery.
CREATE FUNCTION fits(place text, expression text) RETURNS bool LANGUAGE sql AS
$$
SELECT NOT (expression ~ '''(today|tomorrow|yesterday|now)' AND place ~ 'default|view|parsed') AND
	NOT (expression ~ 'SELECT' AND place ~ 'default')
$$;

CREATE FUNCTION make_place(place places, expression text) RETURNS text LANGUAGE plpgsql AS
$$
BEGIN
	DEALLOCATE ALL;
	RESET plan_cache_mode;
	DROP TABLE IF EXISTS c;
	DROP DOMAIN IF EXISTS s;
	DROP VIEW IF EXISTS v1 CASCADE;
	DROP FUNCTION IF EXISTS f;
	DROP FUNCTION IF EXISTS g;
	DROP FUNCTION IF EXISTS h;
	EXECUTE format(place.make, expression);
	RETURN format(place.reading, expression);
END
$$;

CREATE FUNCTION read(reading text) RETURNS text LANGUAGE plpgsql AS
$$ DECLARE x text; BEGIN EXECUTE reading INTO x; RETURN x; END $$;

-- Move the clock by hand.  Plans that are there keep the clock that they were made with.
CREATE FUNCTION move_clock(days int) RETURNS void LANGUAGE plpgsql AS
$$
BEGIN
	PERFORM set_config('idempotent_load.clock_shift', days * 86400 || 's', false);
	DISCARD PLANS;
END
$$;

-- A place where an expression is read twice, so that plans are there, then with a
-- moved clock, and then with the true one.  Returns what is wrong.
CREATE FUNCTION misread(place places, reading readings) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	query text := make_place(place, reading.expression);
	wanted text := format('SELECT (%s)::text FROM (SELECT now() + $1 AS t, statement_timestamp() + $1 AS s) AS x', reading.wanted);
	wanted_before text;
	wanted_moved text;
	before text := read(query);
	moved text;
	again text;
BEGIN
	before := read(query);
	EXECUTE wanted INTO wanted_before USING interval '0';
	EXECUTE wanted INTO wanted_moved USING interval '31 d';
	PERFORM move_clock(31);
	moved := read(query);
	again := read(query);
	PERFORM move_clock(0);
	IF (before, moved, again, read(query)) IS DISTINCT FROM (wanted_before, wanted_moved, wanted_moved, wanted_before) THEN
		RETURN concat_ws(' ', reading.expression, 'is', before, 'moved', moved, again, 'then', read(query), 'wanted', wanted_before, wanted_moved);
	END IF;
	RETURN NULL;
END
$$;

-- One that goes on is to be later than another one, by the shift and no more.
CREATE FUNCTION misread(place places, expression text) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	query text := make_place(place, expression);
	start timestamptz := clock_timestamp();
	moved timestamptz;
	after timestamptz;
BEGIN
	after := read(query);
	PERFORM move_clock(31);
	moved := read(query);
	PERFORM move_clock(0);
	IF after BETWEEN start AND clock_timestamp() AND moved - interval '31 d' BETWEEN after AND clock_timestamp() THEN
		after := read(query);
		IF after BETWEEN moved - interval '31 d' AND clock_timestamp() THEN
			RETURN NULL;
		END IF;
	END IF;
	RETURN concat_ws(' ', expression, 'is', start, 'moved', moved, 'then', after);
END
$$;

-- by hand
SELECT is((SELECT string_agg(CASE WHEN fits(place, expression) THEN misread(p, r) END, E'\n') FROM readings r), NULL, place)
FROM places p ORDER BY place;
SELECT is(concat(misread(p, 'clock_timestamp()'), misread(p, 'timeofday()'), misread(p, 'timeofday()::timestamptz')), '', place || ', times that go on')
FROM places p ORDER BY place;

SET idempotent_load.clock_shift = '31d';
SELECT is(pg_typeof(x)::text, 'timestamp with time zone') FROM (SELECT now() AS x) q;
SELECT results_eq('SELECT pg_typeof(CURRENT_DATE)::text, pg_typeof(CURRENT_TIME(0))::text, pg_typeof(LOCALTIME)::text, pg_typeof(LOCALTIMESTAMP(1))::text,
		pg_typeof(statement_timestamp())::text, pg_typeof(timeofday())::text, pg_typeof(age(timestamp ''2020-01-01''))::text',
	$$VALUES ('date', 'time with time zone', 'time without time zone', 'timestamp without time zone', 'timestamp with time zone', 'text', 'interval')$$, 'types');
SELECT matches(timeofday(), '^(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d\.\d{6} \d{4} UTC$', 'timeofday()');
SET timezone = 'America/New_York';
SELECT matches(timeofday(), ' \d{4} E[SD]T$', 'timeofday() in another zone');
SET timezone = 'UTC';
RESET idempotent_load.clock_shift;
SELECT is(current_setting('idempotent_load.clock_shift'), '0', 'setting');

-- Backwards, and by seconds.
SET idempotent_load.clock_shift = '-90s';
SELECT now() AS moved \gset
RESET idempotent_load.clock_shift;
SELECT cmp_ok(:'moved'::timestamptz, '<', now() - interval '80 s', 'back by 90 s');

-- After a check: a job that reads the clock in all these places.
CREATE TABLE seen (d date, place text, x text);
CREATE TABLE target (d date);
CREATE FUNCTION read_f() RETURNS text LANGUAGE plpgsql AS 'BEGIN RETURN now(); END';
CREATE FUNCTION read_g() RETURNS text LANGUAGE sql VOLATILE AS 'SELECT now()::text';
CREATE FUNCTION read_h() RETURNS TABLE (x text) LANGUAGE sql STABLE AS 'SELECT now()::text';
CREATE VIEW read_v AS SELECT now()::text AS x;
CREATE FUNCTION read_t() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.x := now(); RETURN NEW; END';
CREATE TABLE stamped (i int, x text, at text DEFAULT now());
CREATE TRIGGER t BEFORE INSERT ON stamped FOR EACH ROW EXECUTE FUNCTION read_t();
CREATE FUNCTION stamp() RETURNS text LANGUAGE plpgsql AS
$$ DECLARE x text; BEGIN INSERT INTO stamped VALUES (1) RETURNING concat_ws('|', stamped.x, at) INTO x; DELETE FROM stamped; RETURN x; END $$;
DEALLOCATE ALL;
PREPARE p AS SELECT now()::text;
PREPARE q(int) AS SELECT now()::text WHERE $1 = 1;
SET plan_cache_mode = force_generic_plan;
-- all readings, as they are now
CREATE FUNCTION all_readings() RETURNS text LANGUAGE plpgsql AS
$$
BEGIN
	RETURN concat_ws('|', now(), read_f(), read_g(), (SELECT x FROM read_h()), (SELECT x FROM read_v), stamp(), read('EXECUTE p'), read('EXECUTE q(1)'));
END
$$;
CREATE FUNCTION true_readings() RETURNS text LANGUAGE sql AS $$ SELECT concat_ws('|', n, n, n, n, n, n, n, n, n)
	FROM (SELECT xact_start AS n FROM pg_stat_activity WHERE pid = pg_backend_pid()) a $$;
CREATE FUNCTION passing(d date) RETURNS void LANGUAGE plpgsql AS
$$ BEGIN IF all_readings() <> '' THEN DELETE FROM target; INSERT INTO target VALUES (d); END IF; END $$;
CREATE FUNCTION failing(d date) RETURNS void LANGUAGE plpgsql AS
$$ BEGIN DELETE FROM seen; INSERT INTO seen VALUES (d, '', all_readings()); END $$;
CREATE FUNCTION raising(d date) RETURNS void LANGUAGE plpgsql AS
$$ BEGIN PERFORM all_readings(); RAISE 'always'; END $$;
CREATE FUNCTION raising_later(d date) RETURNS void LANGUAGE plpgsql AS
$$ BEGIN PERFORM all_readings(); IF EXISTS (SELECT FROM target) THEN PERFORM 1 / 0; END IF; INSERT INTO target VALUES (d); END $$;
-- only where the clock is moved far
CREATE FUNCTION raising_when_moved(d date) RETURNS void LANGUAGE plpgsql AS
$$ BEGIN PERFORM all_readings(); IF now() > (SELECT xact_start + interval '1 h' FROM pg_stat_activity WHERE pid = pg_backend_pid()) THEN PERFORM 1 / 0; END IF; DELETE FROM target; INSERT INTO target VALUES (d); END $$;

CREATE FUNCTION check_it(job text) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	found text;
	before text := all_readings();
BEGIN
	BEGIN
		SELECT string_agg(DISTINCT coalesce(cause, 'passed'), ' ') INTO found FROM check_idempotent(job, '2024-01-02', '{same,crash,clock,timezone,plan}') WHERE rerun IS NOT NULL;
	EXCEPTION WHEN OTHERS THEN
		found := SQLERRM;
	END;
	-- in the same function, and statement
	IF all_readings() <> before OR now() <> (SELECT xact_start FROM pg_stat_activity WHERE pid = pg_backend_pid()) THEN
		RETURN 'misread after ' || found;
	END IF;
	RETURN found;
END
$$;
SELECT is(all_readings(), true_readings(), 'before');
SELECT is(check_it(job), found, job) FROM (VALUES ('passing(date)', 'passed'), ('failing(date)', 'clock'), ('raising(date)', 'always'),
	('raising_later(date)', 'error passed'), ('raising_when_moved(date)', 'clock passed')) v (job, found);
SELECT is(all_readings(), true_readings(), 'after');
BEGIN;
SELECT lives_ok($$SELECT assert_idempotent('passing(date)', '2024-01-02')$$, 'passed');
SELECT is(all_readings(), true_readings(), 'passed, in the same transaction');
SAVEPOINT a;
SELECT throws_ok($$SELECT assert_idempotent('failing(date)', '2024-01-02')$$, 'IL006');
SELECT is(all_readings(), true_readings(), 'failed, in the same transaction');
SAVEPOINT b;
SELECT throws_ok($$SELECT assert_idempotent('raising(date)', '2024-01-02')$$, 'P0001');
ROLLBACK TO a;
SELECT is(all_readings(), true_readings(), 'error, in the same transaction');
COMMIT;
SELECT is(all_readings(), true_readings(), 'in another transaction');

-- A clock that is moved by hand stays so.
SET idempotent_load.clock_shift = '5d';
SELECT check_it('passing(date)') IS NOT NULL AS ok, assert_idempotent('passing(date)', '2024-01-02') AS passed \gset
SELECT is(current_setting('idempotent_load.clock_shift'), '5d', 'moved by hand: the setting stays');
SELECT now() AS moved, xact_start AS truth FROM pg_stat_activity WHERE pid = pg_backend_pid() \gset
SELECT is(:'moved'::timestamptz, :'truth'::timestamptz + interval '5 d', 'moved by hand: the clock stays');
RESET idempotent_load.clock_shift;

-- Only a superuser moves it.
CREATE ROLE regress_iload_clock;
SET ROLE regress_iload_clock;
SELECT throws_ok($$SET idempotent_load.clock_shift = '1d'$$, '42501');
RESET ROLE;
DROP ROLE regress_iload_clock;

SELECT * FROM finish();
