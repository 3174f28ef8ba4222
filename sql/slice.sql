--
-- slice: key types, periods, time zones
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotent_load;
CREATE SCHEMA iload_slice;
RESET client_min_messages;
SET search_path = iload_slice, public;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
SET IntervalStyle = 'postgres';
\set SHOW_CONTEXT never

-- A row each half hour of the first days of the year; seq counts them.
CREATE TABLE src AS
SELECT ts, row_number() OVER (ORDER BY ts)::int AS seq
FROM generate_series('2024-01-01 00:00'::timestamptz, '2024-01-16 23:30', '30 minutes') AS ts;

-- date, and the neighbours of the day
CREATE TABLE by_date (d date, n int);
INSERT INTO by_date VALUES ('2024-01-01', 1), ('2024-01-02', 2), ('2024-01-02', 3), ('2024-01-03', 4);
SELECT lower_bound, upper_bound, rows, rows_before
FROM replace_partition('by_date', '2024-01-02', 'SELECT $1 AS d, count(*) AS n FROM src WHERE ts >= $1 AND ts < $2');
SELECT * FROM by_date ORDER BY d, n;

-- timestamp: midnight belongs to the day that it starts
CREATE TABLE by_timestamp (at timestamp(6), n int);
INSERT INTO by_timestamp VALUES
  ('2024-01-01 23:59:59.999999', 1), ('2024-01-02 00:00', 2), ('2024-01-02 23:59:59.999999', 3), ('2024-01-03 00:00', 4);
SELECT lower_bound, upper_bound, rows, rows_before
FROM replace_partition('by_timestamp', '2024-01-02', 'SELECT ts AS at, 0 AS n FROM src WHERE ts >= $1 AND ts < $2');
SELECT at, n FROM by_timestamp WHERE n > 0 ORDER BY at;
SELECT count(*), min(at), max(at) FROM by_timestamp WHERE n = 0;

-- timestamptz, in the session's zone and in others
CREATE TABLE by_timestamptz (at timestamptz, zone text);
SELECT lower_bound, upper_bound, rows
FROM replace_partition('by_timestamptz', '2024-01-02', $$SELECT ts AS at, current_setting('TimeZone') AS zone FROM src WHERE ts >= $1 AND ts < $2$$);
SET TimeZone = 'Asia/Tokyo';
SELECT lower_bound, upper_bound, rows, rows_before
FROM replace_partition('by_timestamptz', '2024-01-02', $$SELECT ts AS at, current_setting('TimeZone') AS zone FROM src WHERE ts >= $1 AND ts < $2$$);
SET TimeZone = 'UTC';
SELECT lower_bound, upper_bound, rows, rows_before
FROM replace_partition('by_timestamptz', '2024-01-02', $$SELECT ts AS at, current_setting('TimeZone') AS zone FROM src WHERE ts >= $1 AND ts < $2$$,
                       timezone => 'America/New_York');
SHOW TimeZone;
-- of Tokyo's day 14 hours are left, of UTC's day none, and no instant is twice
SELECT zone, count(*), min(at), max(at), count(DISTINCT at) FROM by_timestamptz GROUP BY zone ORDER BY min(at);

-- days of 23, 25, 23.5 and 24.5 hours, and one without a midnight
CREATE TABLE dst (at timestamptz, zone text);
SELECT zone, day, r.lower_bound, r.upper_bound, round(r.rows / 2.0, 1) AS hours
FROM (VALUES ('America/New_York', '2024-03-10'::date), ('America/New_York', '2024-11-03'),
             ('America/Sao_Paulo', '2018-11-04'), ('Australia/Lord_Howe', '2024-10-06'),
             ('Australia/Lord_Howe', '2024-04-07'), ('Asia/Kolkata', '2024-06-10')) AS v(zone, day),
     LATERAL replace_partition('dst', day, $$
	SELECT ts AS at, current_setting('TimeZone') AS zone
	FROM generate_series($1::timestamptz - interval '2 days', $1::timestamptz + interval '3 days', '30 minutes') AS ts
	WHERE ts::date = $1$$, timezone => zone) AS r;
-- all instants of that day and no other
SELECT zone, min(at AT TIME ZONE zone), max(at AT TIME ZONE zone) FROM dst GROUP BY zone, (at AT TIME ZONE zone)::date ORDER BY 1, 2;
SHOW TimeZone;

-- a midnight that comes twice: the day begins with the first one, has 25 hours,
-- and the days around it lie side by side
CREATE TABLE twice (at timestamptz, zone text);
SELECT zone, r.logical_date, lower_bound, upper_bound, round(rows / 2.0, 1) AS hours
FROM (VALUES ('Atlantic/Azores', '2024-10-27'::date), ('America/Havana', '2024-11-03')) AS v(zone, middle),
     generate_series(-1, 1) AS i,
     LATERAL (SELECT middle + i AS logical_date, * FROM replace_partition('twice', middle + i, $$
	SELECT ts AS at, current_setting('TimeZone') AS zone
	FROM generate_series($1::timestamptz - interval '2 days', $1::timestamptz + interval '3 days', '30 minutes') AS ts
	WHERE ts::date = $1$$, timezone => zone)) AS r
ORDER BY 1, 2;
SELECT zone, count(*), count(DISTINCT at), max(at) - min(at) + interval '30 minutes' AS length,
       count(*) FILTER (WHERE (at AT TIME ZONE zone)::time = '00:00') AS midnights
FROM twice GROUP BY zone ORDER BY zone;
-- the hour between the two midnights, which is the day's, and the one before
SELECT replace_partition('twice', '2024-10-27', $$SELECT timestamptz '2024-10-26 23:59:59Z' AS at$$, timezone => 'Atlantic/Azores');
SELECT rows FROM replace_partition('twice', '2024-10-27', $$SELECT timestamptz '2024-10-27 00:59:59Z' AS at$$, timezone => 'Atlantic/Azores');
SELECT replace_partition('twice', '2024-10-26', $$SELECT timestamptz '2024-10-27 00:00Z' AS at$$, timezone => 'Atlantic/Azores');

-- after an error the zone is what it was, also when set in the transaction
SELECT replace_partition('dst', '2024-01-01', $$SELECT 1 / 0 AS zone, now() AS at$$, timezone => 'Asia/Tokyo');
SHOW TimeZone;
BEGIN;
SET LOCAL TimeZone = 'Asia/Kolkata';
SAVEPOINT a;
SELECT replace_partition('dst', '2024-01-01', $$SELECT 1 / 0 AS zone, now() AS at$$, timezone => 'Asia/Tokyo');
ROLLBACK TO a;
SHOW TimeZone;
SELECT lower_bound, upper_bound FROM replace_partition('dst', '2024-01-01', 'SELECT $1 AS at', timezone => 'Asia/Tokyo');
SHOW TimeZone;
DO $$
BEGIN
	PERFORM replace_partition('dst', '2024-01-01', 'SELECT 1 AS at', timezone => 'Asia/Tokyo');
EXCEPTION WHEN others THEN
	RAISE NOTICE '%, and the zone is %', SQLERRM, current_setting('TimeZone');
END
$$;
COMMIT;
SHOW TimeZone;
SELECT replace_partition('dst', '2024-01-01', 'SELECT $1 AS at', timezone => 'Mars/Olympus');
SELECT DISTINCT timezone FROM load_history WHERE target = 'dst'::regclass ORDER BY 1;

-- integer and bigint yyyymmdd, by name, for a table of other ints has no days
CREATE TABLE by_int (day int, n int);
CREATE TABLE by_bigint (day bigint, n int);
INSERT INTO by_int VALUES (20240131, 1), (20240201, 2), (20240229, 3), (20240301, 4);
SELECT lower_bound, upper_bound, rows, rows_before
FROM replace_partition('by_int', '2024-02-29', $$SELECT to_char($1, 'yyyymmdd')::int AS day, 5 AS n$$, date_column => 'day');
SELECT lower_bound, upper_bound, rows, rows_before
FROM replace_partition('by_int', '2024-02-01', $$SELECT to_char(d, 'yyyymmdd')::int AS day, 6 AS n FROM generate_series($1, $2 - 1, '1 day') AS d$$,
                       date_column => 'day', period => '1 month');
SELECT day, n FROM by_int WHERE day NOT BETWEEN 20240202 AND 20240228 ORDER BY day;
SELECT lower_bound, upper_bound, rows
FROM replace_partition('by_bigint', '9999-12-30', 'SELECT 99991230 AS day', date_column => 'day');
SELECT lower_bound, upper_bound, rows
FROM replace_partition('by_bigint', '0001-01-01', 'SELECT 10101 AS day', date_column => 'day');
-- the last day that there is
SELECT lower_bound, upper_bound, rows
FROM replace_partition('by_bigint', '9999-12-31', 'SELECT 99991231 AS day', date_column => 'day');
SELECT lower_bound, upper_bound, rows
FROM replace_partition('by_int', '9999-12-01', 'SELECT 99991231 AS day', date_column => 'day', period => '1 month');
SELECT replace_partition('by_bigint', '0044-03-15 BC', 'SELECT 1 AS day', date_column => 'day');
SELECT replace_partition('by_int', '2024-02-29', 'SELECT 1 AS day');

-- text, varchar and char yyyy-mm-dd
CREATE TABLE by_text (day text, n int);
CREATE TABLE by_varchar (day varchar(10) COLLATE "C", n int);
CREATE TABLE by_char (day char(10), n int);
INSERT INTO by_varchar VALUES ('2024-02-28', 1), ('2024-02-29', 2), ('2024-03-01', 3);
SELECT lower_bound, upper_bound, rows, rows_before
FROM replace_partition('by_text', '2024-02-29', 'SELECT $1 AS day, 5 AS n', date_column => 'day');
SELECT lower_bound, upper_bound, rows, rows_before
FROM replace_partition('by_varchar', '2024-02-29', 'SELECT $1::text AS day, 5 AS n', date_column => 'day');
SELECT lower_bound, upper_bound, rows, rows_before
FROM replace_partition('by_varchar', '2024-02-01', $$SELECT '2024-02-29' AS day, 6 AS n$$, date_column => 'day', period => '1 month');
SELECT * FROM by_text;
SELECT * FROM by_varchar ORDER BY day;
SELECT lower_bound, upper_bound, rows
FROM replace_partition('by_char', '2024-02-29', $$SELECT '2024-02-29' AS day, 5 AS n$$, date_column => 'day');
SELECT method, rows
FROM replace_partition('by_char', '2024-02-29', $$SELECT '2024-02-29' AS day, 5 AS n$$, date_column => 'day');
SELECT lower_bound, upper_bound, rows
FROM replace_partition('by_text', '9999-12-30', 'SELECT $1 AS day', date_column => 'day');
SELECT replace_partition('by_text', '9999-12-31', 'SELECT $1 AS day', date_column => 'day');

-- a domain over date is a date
CREATE DOMAIN business_day AS date CHECK (extract(isodow FROM value) < 6);
CREATE TABLE by_domain (d business_day, n int);
SELECT lower_bound, upper_bound, rows FROM replace_partition('by_domain', '2024-01-05', 'SELECT $1 AS d, 1 AS n');
SELECT method, rows FROM replace_partition('by_domain', '2024-01-05', 'SELECT $1 AS d, 1 AS n');
SELECT replace_partition('by_domain', '2024-01-06', 'SELECT $1 AS d, 1 AS n');

-- periods; the week begins on Monday
CREATE TABLE periods (at timestamp, n int);
SELECT p AS period, day, r.lower_bound, r.upper_bound, r.rows
FROM (VALUES ('1 day'::interval, '2024-01-03'::date), ('1 week', '2024-01-01'), ('7 days', '2024-01-08'),
             ('1 month', '2024-02-01'), ('2 months', '2024-11-01'), ('3 months', '2024-10-01'), ('6 months', '2024-07-01'),
             ('1 year', '2024-01-01'), ('12 months', '2025-01-01'), (NULL, '2024-01-01')) AS v(p, day),
     LATERAL replace_partition('periods', day, $$SELECT d AS at, 1 AS n FROM generate_series($1, $2 - 1, '1 day') AS d$$, period => p) AS r;
-- they overlap: the year has taken the place of all before it, but for the last
SELECT date_trunc('year', at) AS year, count(*), count(DISTINCT at) FROM periods GROUP BY 1 ORDER BY 1;

-- the first hours of a day
SELECT p AS period, r.lower_bound, r.upper_bound, r.rows
FROM (VALUES ('1 hour'::interval), ('2 hours'), ('12 hours')) AS v(p),
     LATERAL replace_partition('periods', '2026-01-01', $$SELECT $1 + interval '59 minutes' AS at$$, period => p) AS r;
SELECT lower_bound, upper_bound
FROM replace_partition('by_timestamptz', '2018-11-04', 'SELECT $1 AS at', period => '1 hour', timezone => 'America/Sao_Paulo');
-- $1 and $2 are then the bounds, in the type of the key, and not dates
SELECT lower_bound, upper_bound, rows
FROM replace_partition('periods', '2026-01-02', $$
	SELECT at, CASE WHEN pg_typeof($1) = 'timestamp'::regtype AND pg_typeof($2) = 'timestamp'::regtype THEN 1 END AS n
	FROM unnest(ARRAY[$1, $2 - interval '1 microsecond']) AS at$$, period => '1 hour');
SELECT at, n FROM periods WHERE at >= '2026-01-02' ORDER BY at;
CREATE TABLE zone_hours (at timestamptz, one text, two text);
SELECT lower_bound, upper_bound, rows
FROM replace_partition('zone_hours', '2024-01-02', $$
	SELECT $2 - interval '1 microsecond' AS at, concat_ws(' ', pg_typeof($1), $1) AS one, concat_ws(' ', pg_typeof($2), $2) AS two$$,
                       period => '1 hour', timezone => 'Asia/Tokyo');
SELECT * FROM zone_hours;
SELECT replace_partition('zone_hours', '2024-01-02', 'SELECT $2 AS at', period => '1 hour', timezone => 'Asia/Tokyo');
SELECT rows FROM replace_partition('zone_hours', '2024-01-02', 'SELECT $1 AS at', period => '1 hour', timezone => 'Asia/Tokyo',
                                   audit => 'SELECT min(at) = $1 AND $2 - $1 = interval ''1 hour'' FROM staged');

-- a date that does not start its period
SELECT replace_partition('periods', '2024-01-02', 'SELECT $1 AS at', period => '1 week');
SELECT replace_partition('periods', '2023-12-31', 'SELECT $1 AS at', period => '1 week');
SELECT replace_partition('periods', '1999-12-31', 'SELECT $1 AS at', period => '1 week');
SELECT replace_partition('periods', '2024-02-02', 'SELECT $1 AS at', period => '1 month');
SELECT replace_partition('periods', '2024-06-01', 'SELECT $1 AS at', period => '3 months');
SELECT replace_partition('periods', '2024-07-01', 'SELECT $1 AS at', period => '1 year');

-- periods that no calendar has
SELECT replace_partition('periods', '2024-01-01', 'SELECT $1 AS at', period => '2 days');
SELECT replace_partition('periods', '2024-01-01', 'SELECT $1 AS at', period => '5 months');
SELECT replace_partition('periods', '2024-01-01', 'SELECT $1 AS at', period => '2 years');
SELECT replace_partition('periods', '2024-01-01', 'SELECT $1 AS at', period => '5 hours');
SELECT replace_partition('periods', '2024-01-01', 'SELECT $1 AS at', period => '24 hours');
SELECT replace_partition('periods', '2024-01-01', 'SELECT $1 AS at', period => '30 minutes');
SELECT replace_partition('periods', '2024-01-01', 'SELECT $1 AS at', period => '1 day 1 hour');
SELECT replace_partition('periods', '2024-01-01', 'SELECT $1 AS at', period => '0');
SELECT replace_partition('periods', '2024-01-01', 'SELECT $1 AS at', period => '-1 day');

-- hours of a key that holds days
SELECT replace_partition('by_date', '2024-01-01', 'SELECT $1 AS d', period => '1 hour');
SELECT replace_partition('by_int', '2024-01-01', 'SELECT 20240101 AS day', date_column => 'day', period => '6 hours');

-- no day at all, and one long ago
SELECT replace_partition('by_date', 'infinity', 'SELECT $1 AS d');
SELECT replace_partition('by_date', '-infinity', 'SELECT $1 AS d');
SELECT lower_bound, upper_bound, rows FROM replace_partition('by_date', '0044-03-15 BC', 'SELECT $1 AS d');

-- bounds are recorded in ISO style whatever the session's style
SET DateStyle = 'SQL, DMY';
SELECT lower_bound, upper_bound FROM replace_partition('by_timestamptz', '2024-01-02', 'SELECT $1 AS at', timezone => 'America/New_York');
SELECT lower_bound, upper_bound FROM replace_partition('by_date', '2024-01-02', 'SELECT $1 AS d');
-- and so are dates in messages
SELECT replace_partition('by_date', '2024-01-02', 'SELECT $1 AS d', period => '1 week');
SELECT replace_partition('by_date', '2024-01-02', 'SELECT $1 + 1 AS d');

-- the last day that can be written, and the first that cannot
CREATE TABLE last_days (dk int, n int);
SELECT lower_bound, upper_bound, rows FROM replace_partition('last_days', '9999-12-31', 'SELECT 99991231 AS dk, 1 AS n', date_column => 'dk');
SELECT replace_partition('last_days', '10000-01-01', 'SELECT 1 AS dk, 1 AS n WHERE false', date_column => 'dk');

SET client_min_messages = warning;
DROP SCHEMA iload_slice CASCADE;
