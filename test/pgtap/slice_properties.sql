-- The slices of consecutive days tile the axis of each key type, in zones with
-- all kinds of clock changes: the upper bound of one is the lower bound of the
-- next, and each holds its own local day and nothing else.
--
-- A load of no rows into an empty table tells the bounds and does nothing.

BEGIN;
SELECT plan(67);

SET LOCAL client_min_messages = warning;
SET LOCAL timezone = 'UTC';

CREATE TABLE by_date (k date);
CREATE TABLE by_timestamp (k timestamp);
CREATE TABLE by_timestamptz (k timestamptz);
CREATE TABLE by_int (k int);
CREATE TABLE by_bigint (k bigint);
CREATE TABLE by_text (k text COLLATE "C");

CREATE TYPE bounds AS (day date, lower text, upper text);

-- The bounds of the slices from one day to another.  What the loads have
-- written and locked is given back, else the locks would be too many.
CREATE FUNCTION slices(target regclass, first date, last date, zone text, step interval DEFAULT '1 day')
RETURNS SETOF bounds LANGUAGE plpgsql AS
$$
DECLARE
	found bounds[];
	r load_result;
	day date := first;
BEGIN
	BEGIN
		WHILE day <= last LOOP
			r := replace_partition(target, day, format('SELECT * FROM %s WHERE false', target),
				date_column => 'k', timezone => zone, period => step);
			found := found || ROW(day, r.lower_bound, r.upper_bound)::bounds;
			day := day + step;
		END LOOP;
		RAISE 'undo' USING ERRCODE = 'UNDO1';
	EXCEPTION WHEN SQLSTATE 'UNDO1' THEN
		NULL;
	END;
	RETURN QUERY SELECT * FROM unnest(found);
END
$$;

-- What is wrong with the slices of a timestamptz key in a zone: one that does
-- not follow on the one before, one that is empty though the day exists, and
-- one whose first or last instant, or any of each quarter of an hour around,
-- is on the wrong side.
CREATE FUNCTION wrong_slices(first date, last date, zone text) RETURNS SETOF text LANGUAGE plpgsql AS
$$
BEGIN
	RETURN QUERY
	WITH s AS (
		SELECT b.day, b.lower::timestamptz AS lo, b.upper::timestamptz AS up,
			lag(b.upper::timestamptz) OVER (ORDER BY b.day) AS last_up
		FROM slices('by_timestamptz', first, last, zone) b)
	SELECT format('%s starts at %s, the day before ends at %s', day, lo, last_up) FROM s WHERE lo <> last_up
	UNION ALL
	SELECT format('%s: %s is in [%s, %s)', day, i, lo, up)
	FROM s, LATERAL (
		SELECT i FROM generate_series(lo, up, '15 min') i
		UNION SELECT up - interval '1 us') q
	WHERE i >= lo AND i < up AND (i AT TIME ZONE zone)::date <> day
	UNION ALL
	SELECT format('%s: %s is not in [%s, %s)', day, i, lo, up)
	FROM s, LATERAL (
		SELECT i FROM generate_series(lo - interval '3 h', lo, '15 min') i
		UNION SELECT i FROM generate_series(up, up + interval '3 h', '15 min') i
		UNION SELECT lo - interval '1 us') q
	WHERE NOT (i >= lo AND i < up) AND (i AT TIME ZONE zone)::date = day
	LIMIT 5;
END
$$;

-- Zones without clock changes, with such at night, with such that leave out
-- midnight (Sao Paulo, Cairo, Asuncion, Tokyo), by half an hour (Lord Howe), far east and
-- far west, and one that left out a day (Apia, 2011-12-30).
SELECT is_empty(format('SELECT * FROM wrong_slices(%L, %L, %L)', first, last, zone),
	format('%s, %s to %s: slices tile the axis', zone, first, last))
FROM (VALUES
	(1, 'UTC', date '2023-12-25', date '2024-03-05'),
	(2, 'Europe/Berlin', '2024-03-01', '2024-11-05'),
	(3, 'America/New_York', '2024-03-01', '2024-11-05'),
	(4, 'Australia/Lord_Howe', '2024-03-25', '2024-10-15'),
	(5, 'America/Sao_Paulo', '2018-01-01', '2019-03-01'),
	(6, 'Africa/Cairo', '2024-04-01', '2024-11-05'),
	(7, 'America/Asuncion', '2023-09-25', '2024-04-05'),
	(8, 'Asia/Kathmandu', '1985-12-25', '1986-01-05'),
	(9, 'Pacific/Kiritimati', '2024-02-20', '2024-03-05'),
	(10, 'Pacific/Pago_Pago', '2024-02-20', '2024-03-05'),
	(11, 'Asia/Tokyo', '1950-04-25', '1950-05-20'),
	(12, 'Europe/Berlin', '1893-03-25', '1893-04-05'),
	(13, 'Europe/Berlin', '0001-01-01', '0001-01-10'),
	(14, 'Europe/Berlin', '0010-12-25 BC', '0010-12-31 BC'),
	(15, 'Pacific/Apia', '2011-12-20', '2012-01-10'),
	(16, '<+05:30>-05:30', '2024-02-20', '2024-03-05')) z (n, zone, first, last)
ORDER BY n;

-- The clock goes back over midnight: the first hour of a day comes twice, or
-- the last one of the day before.
SELECT is_empty(format('SELECT * FROM wrong_slices(%L, %L, %L)', first, last, zone),
	format('%s, %s to %s: slices tile the axis', zone, first, last))
FROM (VALUES
	(1, 'America/Havana', date '2024-10-25', date '2024-11-10'),
	(2, 'Atlantic/Azores', '2024-10-20', '2024-11-05')) z (n, zone, first, last)
ORDER BY n;
SELECT is_empty($$SELECT * FROM wrong_slices('2022-10-20', '2022-11-05', 'Asia/Beirut')$$,
	'Asia/Beirut, 2022-10-20 to 2022-11-05: slices tile the axis');

-- Lengths of days.
SELECT is((SELECT b.upper::timestamptz - b.lower::timestamptz FROM slices('by_timestamptz', day::date, day::date, zone) b),
	length::interval, format('%s in %s has %s', day, zone, length))
FROM (VALUES
	(1, '2026-03-29', 'Europe/Berlin', '23:00:00'),
	(2, '2026-10-25', 'Europe/Berlin', '25:00:00'),
	(3, '2026-03-28', 'Europe/Berlin', '24:00:00'),
	(4, '2018-11-04', 'America/Sao_Paulo', '23:00:00'),
	(5, '2024-10-06', 'Australia/Lord_Howe', '23:30:00'),
	(6, '2024-04-07', 'Australia/Lord_Howe', '24:30:00')) d (n, day, zone, length)
ORDER BY n;

-- Keys without a zone: the same bounds whatever the zone.
CREATE FUNCTION expected(target regclass, day date) RETURNS text LANGUAGE sql AS
$$
SELECT CASE target
	WHEN 'by_date'::regclass THEN to_char(day, 'YYYY-MM-DD')
	WHEN 'by_text'::regclass THEN to_char(day, 'YYYY-MM-DD')
	WHEN 'by_timestamp'::regclass THEN to_char(day, 'YYYY-MM-DD') || ' 00:00:00'
	ELSE ltrim(to_char(day, 'YYYYMMDD'), '0')
END
$$;
SELECT is_empty(format($$SELECT * FROM slices(%L, %L, %L, %L)
		WHERE (lower, upper) IS DISTINCT FROM (expected(%1$L, day), expected(%1$L, day + 1)) LIMIT 5$$, t, first, last, zone),
	format('%s, %s to %s in %s', t, first, last, zone))
FROM unnest(ARRAY['by_date', 'by_timestamp', 'by_int', 'by_bigint', 'by_text']) WITH ORDINALITY t (t, n), (VALUES
	(1, date '2023-12-01', date '2025-01-31', 'UTC'),
	(2, '1899-12-25', '1900-03-05', 'America/Sao_Paulo'),
	(3, '1999-12-25', '2000-03-05', 'Pacific/Apia'),
	(4, '0001-01-01', '0004-03-05', 'Europe/Berlin'),
	(5, '9999-11-01', '9999-12-30', 'Asia/Tokyo')) d (m, first, last, zone)
ORDER BY n, m;

-- Weeks, months, quarters and years tile too.
SELECT is_empty(format($$SELECT * FROM (
		SELECT day, b.lower::date AS lo, b.upper::date AS up, lag(b.upper::date) OVER (ORDER BY day) AS last_up
		FROM slices('by_date', %L, %L, 'UTC', %L) b) s
		WHERE lo <> day OR up <> day + %3$L::interval OR lo <> last_up$$, first, last, step),
	format('periods of %s from %s', step, first))
FROM (VALUES
	(1, '2023-12-25', '2026-01-31', '1 week'),
	(2, '2023-01-01', '2028-12-31', '1 month'),
	(3, '2023-01-01', '2028-12-31', '3 months'),
	(4, '1990-01-01', '2030-12-31', '1 year')) p (n, first, last, step)
ORDER BY n;

-- The edges of the axis.
SELECT results_eq($$SELECT lower, upper FROM slices('by_int', '0001-01-01', '0001-01-01', 'UTC')$$,
	$$VALUES ('10101', '10102')$$, 'first day of an integer key');
SELECT results_eq($$SELECT lower, upper FROM slices('by_int', '9999-12-31', '9999-12-31', 'UTC')$$,
	$$VALUES ('99991231', '100000101')$$, 'last day of an integer key');
SELECT results_eq($$SELECT lower, upper FROM slices('by_date', '294276-12-29', '294276-12-29', 'UTC')$$,
	$$VALUES ('294276-12-29', '294276-12-30')$$, 'a day far away');
SELECT throws_ok(format('SELECT replace_partition(%L, %L, ''SELECT * FROM %1$s'', date_column => ''k'')', t, day), '22008', NULL,
	format('%s: %s is out of range', t, day))
FROM (VALUES (1, 'by_int', '0001-01-01 BC'), (2, 'by_text', '10000-01-01'), (3, 'by_timestamptz', '294277-01-01'),
	(4, 'by_timestamp', '300000-01-01'), (5, 'by_date', '5874897-12-31'), (6, 'by_bigint', '10001-01-01'),
	(7, 'by_text', '9999-12-31')) e (n, t, day)
ORDER BY n;
SELECT throws_ok(format('SELECT replace_partition(%L, %L, ''SELECT * FROM %1$s'', date_column => ''k'')', t, 'infinity'), '22023', NULL,
	t || ': infinity is not a day')
FROM unnest(ARRAY['by_date', 'by_timestamptz', 'by_int']) t;

SELECT * FROM finish();
ROLLBACK;
