/* idempotent_load--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION idempotent_load" to load this file. \quit

--
-- History
--

CREATE TABLE load_history (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	target pg_catalog.regclass NOT NULL,
	target_name text NOT NULL,
	lower_bound text NOT NULL,
	upper_bound text,
	logical_date date,
	period interval,
	timezone text NOT NULL,
	run_id text,
	query_hash text,
	method text NOT NULL,
	rows bigint NOT NULL,
	rows_before bigint,
	inserted bigint NOT NULL,
	deleted bigint NOT NULL,
	updated bigint NOT NULL,
	fingerprint text NOT NULL,
	loaded_by text NOT NULL,
	started_at timestamptz NOT NULL,
	finished_at timestamptz NOT NULL
);

CREATE INDEX load_history_target_idx ON load_history (target, lower_bound, id);

COMMENT ON TABLE load_history IS
'one row for each load, written in the load''s own transaction';
COMMENT ON COLUMN load_history.id IS
'number of the load, in the order in which loads were recorded';
COMMENT ON COLUMN load_history.target IS
'table that was loaded; by OID, so a table dropped and made again has no loads';
COMMENT ON COLUMN load_history.target_name IS
'name of the table when it was loaded, schema-qualified and quoted';
COMMENT ON COLUMN load_history.lower_bound IS
'first key value of the slice, in the key''s type; timestamps in ISO style and in timezone';
COMMENT ON COLUMN load_history.upper_bound IS
'first key value after the slice; null where the slice is the one value lower_bound';
COMMENT ON COLUMN load_history.logical_date IS
'the date that replace_partition was called with; null for replace_slice';
COMMENT ON COLUMN load_history.period IS
'length of the slice for replace_partition; null for replace_slice';
COMMENT ON COLUMN load_history.timezone IS
'time zone in which the bounds were computed and the query was run';
COMMENT ON COLUMN load_history.run_id IS
'what the caller passed as run_id';
COMMENT ON COLUMN load_history.query_hash IS
'digest of the text of the query; null where rows were adopted';
COMMENT ON COLUMN load_history.method IS
'how the slice was brought to the result: none, swap, diff, delete or merge; adopt where its rows were there already';
COMMENT ON COLUMN load_history.rows IS
'rows that the query returned; where on_empty kept the slice, rows that it has';
COMMENT ON COLUMN load_history.rows_before IS
'rows of the slice before the load; null for merge, which does not count them';
COMMENT ON COLUMN load_history.inserted IS
'rows inserted into the target';
COMMENT ON COLUMN load_history.deleted IS
'rows deleted from the target';
COMMENT ON COLUMN load_history.updated IS
'rows of the target updated; by merge only';
COMMENT ON COLUMN load_history.fingerprint IS
'fingerprint of the rows counted in rows, without generated columns and ignore_columns';
COMMENT ON COLUMN load_history.loaded_by IS
'role that ran the load';
COMMENT ON COLUMN load_history.started_at IS
'when the load began, by the server''s clock';
COMMENT ON COLUMN load_history.finished_at IS
'when the load was done, by the server''s clock; it counts once its transaction commits';

REVOKE ALL ON load_history FROM PUBLIC;
GRANT SELECT ON load_history TO PUBLIC;

SELECT pg_catalog.pg_extension_config_dump('load_history', '');
SELECT pg_catalog.pg_extension_config_dump('load_history_id_seq', '');

--
-- Failures
--

CREATE TABLE load_failures (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	target pg_catalog.regclass,
	target_name text,
	job text,
	logical_date date NOT NULL,
	lower_bound text,
	run_id text,
	sqlstate text NOT NULL,
	message text NOT NULL,
	detail text,
	hint text,
	context text,
	failed_by text NOT NULL,
	failed_at timestamptz NOT NULL
);

CREATE INDEX load_failures_target_idx ON load_failures (target, logical_date);

COMMENT ON TABLE load_failures IS
'one row for each load that failed in a backfill, written after the failure';
COMMENT ON COLUMN load_failures.id IS
'number of the failure';
COMMENT ON COLUMN load_failures.target IS
'table that was to be loaded, by OID; null for a command';
COMMENT ON COLUMN load_failures.target_name IS
'name of the table, schema-qualified and quoted';
COMMENT ON COLUMN load_failures.job IS
'name of the job';
COMMENT ON COLUMN load_failures.logical_date IS
'date that was to be loaded';
COMMENT ON COLUMN load_failures.lower_bound IS
'first key value of the slice, as in load_history; null where it is not known';
COMMENT ON COLUMN load_failures.run_id IS
'what the caller passed as run_id';
COMMENT ON COLUMN load_failures.sqlstate IS
'SQLSTATE of the error';
COMMENT ON COLUMN load_failures.message IS
'message of the error';
COMMENT ON COLUMN load_failures.detail IS
'detail of the error';
COMMENT ON COLUMN load_failures.hint IS
'hint of the error';
COMMENT ON COLUMN load_failures.context IS
'context of the error';
COMMENT ON COLUMN load_failures.failed_by IS
'role that ran the load; its members may read the row';
COMMENT ON COLUMN load_failures.failed_at IS
'when the load failed, by the server''s clock';

REVOKE ALL ON load_failures FROM PUBLIC;
GRANT SELECT ON load_failures TO PUBLIC;

-- Errors quote values of rows, so they are shown to who has the rights of the role
-- that met them, and to who may read all data.
ALTER TABLE load_failures ENABLE ROW LEVEL SECURITY;
CREATE POLICY load_failures_own ON load_failures FOR SELECT
	USING (EXISTS (SELECT FROM pg_catalog.pg_roles AS r
		WHERE (r.rolname OPERATOR(pg_catalog.=) failed_by OR r.rolname OPERATOR(pg_catalog.=) 'pg_read_all_data')
		AND pg_catalog.pg_has_role(r.oid, 'USAGE')));

SELECT pg_catalog.pg_extension_config_dump('load_failures', '');
SELECT pg_catalog.pg_extension_config_dump('load_failures_id_seq', '');

--
-- Loads
--

CREATE TYPE load_result AS (
	target pg_catalog.regclass,
	lower_bound text,
	upper_bound text,
	method text,
	rows bigint,
	rows_before bigint,
	inserted bigint,
	deleted bigint,
	updated bigint,
	changed boolean,
	fingerprint text,
	elapsed interval
);

COMMENT ON TYPE load_result IS
'what a load did: slice, method, rows, and whether the target was changed';

CREATE FUNCTION replace_partition(
	target pg_catalog.regclass,
	date date,
	query text,
	date_column text DEFAULT NULL,
	period interval DEFAULT '1 day',
	timezone text DEFAULT NULL,
	method text DEFAULT 'auto',
	on_empty text DEFAULT 'error',
	audit text DEFAULT NULL,
	if_running text DEFAULT 'wait',
	create_partition boolean DEFAULT true,
	ignore_columns text[] DEFAULT NULL,
	run_id text DEFAULT NULL,
	keep_previous boolean DEFAULT false
) RETURNS load_result
AS 'MODULE_PATHNAME', 'iload_replace_partition'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION replace_partition(pg_catalog.regclass, date, text, text, interval, text, text, text, text, text, boolean, text[], text, boolean) IS
'make a day (or other period) of a table equal to the result of a query';

CREATE FUNCTION replace_slice(
	target pg_catalog.regclass,
	lower text,
	upper text,
	query text,
	date_column text DEFAULT NULL,
	timezone text DEFAULT NULL,
	method text DEFAULT 'auto',
	on_empty text DEFAULT 'error',
	audit text DEFAULT NULL,
	if_running text DEFAULT 'wait',
	create_partition boolean DEFAULT true,
	ignore_columns text[] DEFAULT NULL,
	run_id text DEFAULT NULL,
	keep_previous boolean DEFAULT false
) RETURNS load_result
AS 'MODULE_PATHNAME', 'iload_replace_slice'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION replace_slice(pg_catalog.regclass, text, text, text, text, text, text, text, text, text, boolean, text[], text, boolean) IS
'make the rows from lower up to, not including, upper equal to the result of a query';

CREATE FUNCTION merge_rows(
	target pg_catalog.regclass,
	date date,
	query text,
	key text[],
	version text DEFAULT NULL,
	date_column text DEFAULT NULL,
	period interval DEFAULT '1 day',
	timezone text DEFAULT NULL,
	audit text DEFAULT NULL,
	if_running text DEFAULT 'wait',
	create_partition boolean DEFAULT true,
	ignore_columns text[] DEFAULT NULL,
	run_id text DEFAULT NULL,
	keep_previous boolean DEFAULT false
) RETURNS load_result
AS 'MODULE_PATHNAME', 'iload_merge_rows'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION merge_rows(pg_catalog.regclass, date, text, text[], text, text, interval, text, text, text, boolean, text[], text, boolean) IS
'put the rows of a query into a day (or other period) of a table by key; other rows stay';

--
-- Jobs
--

CREATE TABLE jobs (
	name text PRIMARY KEY,
	target pg_catalog.regclass,
	query text,
	command text,
	date_column text,
	period interval,
	timezone text NOT NULL,
	datestyle text NOT NULL,
	search_path text NOT NULL,
	method text,
	on_empty text,
	audit text,
	if_running text,
	create_partition boolean,
	ignore_columns text[],
	key text[],
	version text,
	keep_previous boolean,
	created_by text NOT NULL,
	created_at timestamptz NOT NULL
);

COMMENT ON TABLE jobs IS
'one row for each job: a named load (target and query), or a named command';
COMMENT ON COLUMN jobs.name IS
'name of the job, for run_job and others';
COMMENT ON COLUMN jobs.target IS
'table that the job loads; null for a command, as are the options of a load';
COMMENT ON COLUMN jobs.query IS
'query whose result the slice is made equal to';
COMMENT ON COLUMN jobs.command IS
'SQL text of one or more statements, with $1 the date; null for a load';
COMMENT ON COLUMN jobs.date_column IS
'key column of the target; null where the target has one that is obvious';
COMMENT ON COLUMN jobs.period IS
'length of the slice';
COMMENT ON COLUMN jobs.timezone IS
'setting TimeZone of each run, as it was when the job was created, or as given';
COMMENT ON COLUMN jobs.datestyle IS
'setting DateStyle of each run, as it was when the job was created';
COMMENT ON COLUMN jobs.search_path IS
'setting search_path of each run, as it was when the job was created';
COMMENT ON COLUMN jobs.method IS
'how the slice is brought to the result: auto, swap, diff, delete or merge';
COMMENT ON COLUMN jobs.on_empty IS
'what is done where the result is empty and the slice is not: error, replace or keep';
COMMENT ON COLUMN jobs.audit IS
'query that must be true before a load is published';
COMMENT ON COLUMN jobs.if_running IS
'what is done where another load of the slice is running: wait, fail, skip or cancel';
COMMENT ON COLUMN jobs.create_partition IS
'whether a missing partition is made';
COMMENT ON COLUMN jobs.ignore_columns IS
'columns that do not count when rows are compared';
COMMENT ON COLUMN jobs.key IS
'columns by which method merge tells one row from another';
COMMENT ON COLUMN jobs.version IS
'column by which method merge tells which of two rows is newer';
COMMENT ON COLUMN jobs.keep_previous IS
'whether the rows that a load replaces are kept, so that it can be undone';
COMMENT ON COLUMN jobs.created_by IS
'role that created the job; its members may alter and drop it';
COMMENT ON COLUMN jobs.created_at IS
'when the job was created, by the server''s clock';

REVOKE ALL ON jobs FROM PUBLIC;
GRANT SELECT ON jobs TO PUBLIC;

SELECT pg_catalog.pg_extension_config_dump('jobs', '');

CREATE FUNCTION create_job(
	name text,
	target pg_catalog.regclass DEFAULT NULL,
	query text DEFAULT NULL,
	command text DEFAULT NULL,
	date_column text DEFAULT NULL,
	period interval DEFAULT '1 day',
	timezone text DEFAULT NULL,
	method text DEFAULT 'auto',
	on_empty text DEFAULT 'error',
	audit text DEFAULT NULL,
	if_running text DEFAULT 'wait',
	create_partition boolean DEFAULT true,
	ignore_columns text[] DEFAULT NULL,
	key text[] DEFAULT NULL,
	version text DEFAULT NULL,
	keep_previous boolean DEFAULT false,
	or_replace boolean DEFAULT false
) RETURNS void
AS 'MODULE_PATHNAME', 'iload_create_job'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION create_job(text, pg_catalog.regclass, text, text, text, interval, text, text, text, text, text, boolean, text[], text[], text, boolean, boolean) IS
'give a name to a load (target and query), or to a command';

CREATE FUNCTION alter_job(
	name text,
	target pg_catalog.regclass DEFAULT NULL,
	query text DEFAULT NULL,
	command text DEFAULT NULL,
	date_column text DEFAULT NULL,
	period interval DEFAULT NULL,
	timezone text DEFAULT NULL,
	method text DEFAULT NULL,
	on_empty text DEFAULT NULL,
	audit text DEFAULT NULL,
	if_running text DEFAULT NULL,
	create_partition boolean DEFAULT NULL,
	ignore_columns text[] DEFAULT NULL,
	key text[] DEFAULT NULL,
	version text DEFAULT NULL,
	keep_previous boolean DEFAULT NULL,
	reset text[] DEFAULT NULL
) RETURNS void
AS 'MODULE_PATHNAME', 'iload_alter_job'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION alter_job(text, pg_catalog.regclass, text, text, text, interval, text, text, text, text, text, boolean, text[], text[], text, boolean, text[]) IS
'change what is given of a job; what is named in reset is again as by default';

CREATE FUNCTION drop_job(
	name text,
	if_exists boolean DEFAULT false
) RETURNS void
AS 'MODULE_PATHNAME', 'iload_drop_job'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION drop_job(text, boolean) IS
'forget a job; what it has loaded stays';

CREATE FUNCTION run_job(
	name text,
	date date,
	run_id text DEFAULT NULL
) RETURNS load_result
AS 'MODULE_PATHNAME', 'iload_run_job'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION run_job(text, date, text) IS
'run a job, or a function by its signature, for a date';

--
-- Backfill
--

CREATE TABLE backfills (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	job text NOT NULL,
	from_date date NOT NULL,
	to_date date NOT NULL,
	workers integer NOT NULL,
	total integer NOT NULL,
	done integer NOT NULL DEFAULT 0,
	skipped integer NOT NULL DEFAULT 0,
	failed integer NOT NULL DEFAULT 0,
	state text NOT NULL DEFAULT 'running',
	pid integer NOT NULL,
	run_by text NOT NULL,
	run_id text,
	started_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
	updated_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
	finished_at timestamptz
);

COMMENT ON TABLE backfills IS
'one row for each call of the procedure backfill; whether it runs, the view backfill_progress tells';
COMMENT ON COLUMN backfills.id IS 'number of the backfill';
COMMENT ON COLUMN backfills.job IS 'name of the job, or signature of the function';
COMMENT ON COLUMN backfills.from_date IS 'first date of the range';
COMMENT ON COLUMN backfills.to_date IS 'last date of the range';
COMMENT ON COLUMN backfills.workers IS 'number of workers that were asked for; 1 is the session itself';
COMMENT ON COLUMN backfills.total IS 'number of slices';
COMMENT ON COLUMN backfills.done IS 'slices that were run and committed, up to a second ago';
COMMENT ON COLUMN backfills.skipped IS 'slices that had been done before, and were skipped on resume';
COMMENT ON COLUMN backfills.failed IS 'slices that failed; see load_failures';
COMMENT ON COLUMN backfills.state IS 'running, done or failed, as its session last wrote';
COMMENT ON COLUMN backfills.pid IS 'process ID of the session that called it';
COMMENT ON COLUMN backfills.run_by IS 'role that called it';
COMMENT ON COLUMN backfills.run_id IS 'what the caller passed as run_id';
COMMENT ON COLUMN backfills.started_at IS 'when it began';
COMMENT ON COLUMN backfills.updated_at IS 'when the row was last brought up to date';
COMMENT ON COLUMN backfills.finished_at IS 'when it ended; null where it runs, or was cut off';

REVOKE ALL ON backfills FROM PUBLIC;
GRANT SELECT ON backfills TO PUBLIC;

SELECT pg_catalog.pg_extension_config_dump('backfills', '');
SELECT pg_catalog.pg_extension_config_dump('backfills_id_seq', '');

-- The leader of a backfill holds a lock on its id, by a tag that only these have
-- (objsubid 18769), so a row whose leader was killed is not taken for running.
CREATE VIEW backfill_progress AS
SELECT b.id, b.job, b.from_date, b.to_date, b.workers,
	CASE WHEN b.finished_at IS NOT NULL THEN b.state
		WHEN l.pid IS NOT NULL THEN 'running'
		ELSE 'interrupted' END AS state,
	b.total, b.done, b.skipped, b.failed,
	b.total OPERATOR(pg_catalog.-) b.done OPERATOR(pg_catalog.-) b.skipped OPERATOR(pg_catalog.-) b.failed AS "left",
	b.pid, b.run_by, b.run_id, b.started_at, b.updated_at, b.finished_at,
	CASE WHEN l.pid IS NOT NULL AND b.done OPERATOR(pg_catalog.>) 0 THEN
		(b.updated_at OPERATOR(pg_catalog.-) b.started_at) OPERATOR(pg_catalog.*)
		((b.total OPERATOR(pg_catalog.-) b.done OPERATOR(pg_catalog.-) b.skipped OPERATOR(pg_catalog.-) b.failed)::double precision
			OPERATOR(pg_catalog./) b.done) END AS time_left
FROM backfills AS b
LEFT JOIN pg_catalog.pg_locks AS l
	ON l.locktype OPERATOR(pg_catalog.=) 'advisory' AND l.objsubid OPERATOR(pg_catalog.=) 18769
	AND l.database OPERATOR(pg_catalog.=) (SELECT d.oid FROM pg_catalog.pg_database AS d
		WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database())
	AND (l.classid::bigint OPERATOR(pg_catalog.<<) 32) OPERATOR(pg_catalog.|) l.objid::bigint OPERATOR(pg_catalog.=) b.id;

COMMENT ON VIEW backfill_progress IS
'one row for each backfill; state is interrupted where its session was cut off';
COMMENT ON COLUMN backfill_progress."left" IS 'slices that have not ended';
COMMENT ON COLUMN backfill_progress.time_left IS 'about how long a running backfill will take yet';

GRANT SELECT ON backfill_progress TO PUBLIC;

CREATE PROCEDURE backfill(
	job text,
	from_date date,
	to_date date,
	workers integer DEFAULT 1,
	pause interval DEFAULT '0',
	first text DEFAULT 'oldest',
	on_error text DEFAULT 'stop',
	dry_run boolean DEFAULT false,
	max_lag text DEFAULT NULL,
	resume boolean DEFAULT false,
	run_id text DEFAULT NULL
)
AS 'MODULE_PATHNAME', 'iload_backfill'
LANGUAGE C;

COMMENT ON PROCEDURE backfill(text, date, date, integer, interval, text, text, boolean, text, boolean, text) IS
'run a job for each date of a range, with a commit after each';

--
-- Undo
--

CREATE TABLE previous_versions (
	target pg_catalog.regclass NOT NULL,
	lower_bound text NOT NULL,
	upper_bound text,
	kept_in pg_catalog.regclass NOT NULL,
	kept_at timestamptz
);

CREATE INDEX previous_versions_target_idx ON previous_versions (target, lower_bound);

COMMENT ON TABLE previous_versions IS
'slices whose rows were kept, as they were before a load, for undo_load';
COMMENT ON COLUMN previous_versions.target IS
'table that was loaded';
COMMENT ON COLUMN previous_versions.lower_bound IS
'first key value of the slice, as in load_history';
COMMENT ON COLUMN previous_versions.upper_bound IS
'first key value after the slice, as in load_history';
COMMENT ON COLUMN previous_versions.kept_in IS
'table that holds the rows';
COMMENT ON COLUMN previous_versions.kept_at IS
'when the load began that kept them: started_at in load_history; null where they were used up by undo_load';

REVOKE ALL ON previous_versions FROM PUBLIC;
GRANT SELECT ON previous_versions TO PUBLIC;

SELECT pg_catalog.pg_extension_config_dump('previous_versions', '');

CREATE FUNCTION undo_load(
	target pg_catalog.regclass,
	date date,
	date_column text DEFAULT NULL,
	period interval DEFAULT '1 day',
	timezone text DEFAULT NULL,
	run_id text DEFAULT NULL
) RETURNS load_result
AS 'MODULE_PATHNAME', 'iload_undo_load'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION undo_load(pg_catalog.regclass, date, text, interval, text, text) IS
'make a day (or other period) of a table what it was before its last load, where that was kept';

--
-- Coverage
--

CREATE FUNCTION load_states(
	target pg_catalog.regclass,
	from_date date,
	to_date date,
	thin real DEFAULT 0.5,
	period interval DEFAULT '1 day',
	OUT date date,
	OUT state text,
	OUT rows bigint
) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'iload_load_states'
LANGUAGE C STABLE CALLED ON NULL INPUT PARALLEL RESTRICTED;

COMMENT ON FUNCTION load_states(pg_catalog.regclass, date, date, real, interval) IS
'state of each day (or other period) of a table, by its history: loaded, empty, thin, failed or never loaded';

-- The functions that are one query over load_states have bodies that are parsed here,
-- once: what they call and which operators they use is found now, whatever the
-- search_path of their callers.

CREATE FUNCTION missing_dates(
	target pg_catalog.regclass,
	from_date date,
	to_date date,
	thin real DEFAULT 0.5,
	period interval DEFAULT '1 day',
	OUT date date,
	OUT state text
) RETURNS SETOF record
LANGUAGE sql STABLE CALLED ON NULL INPUT PARALLEL RESTRICTED
BEGIN ATOMIC
	SELECT s.date, s.state
	FROM load_states(target, from_date, to_date, thin, period) AS s
	WHERE s.state OPERATOR(pg_catalog.=) ANY ('{never loaded,failed,thin}')
	ORDER BY s.date;
END;

COMMENT ON FUNCTION missing_dates(pg_catalog.regclass, date, date, real, interval) IS
'days (or other periods) of a table that were never loaded, whose last load failed, or that have few rows';

CREATE FUNCTION is_loaded(
	target pg_catalog.regclass,
	date date
) RETURNS boolean
LANGUAGE sql STABLE CALLED ON NULL INPUT PARALLEL RESTRICTED
BEGIN ATOMIC
	SELECT s.state OPERATOR(pg_catalog.=) ANY ('{loaded,empty}')
	FROM load_states(target, is_loaded.date, is_loaded.date, NULL) AS s;
END;

COMMENT ON FUNCTION is_loaded(pg_catalog.regclass, date) IS
'whether a day of a table has been loaded, and has not failed since';

CREATE FUNCTION assert_loaded(
	target pg_catalog.regclass,
	from_date date,
	to_date date,
	allow_empty boolean DEFAULT true,
	thin real DEFAULT NULL
) RETURNS boolean
AS 'MODULE_PATHNAME', 'iload_assert_loaded'
LANGUAGE C STABLE CALLED ON NULL INPUT PARALLEL RESTRICTED;

COMMENT ON FUNCTION assert_loaded(pg_catalog.regclass, date, date, boolean, real) IS
'true if all days of a table have been loaded, else an error that lists those that have not';

CREATE FUNCTION load_calendar(
	target pg_catalog.regclass,
	from_date date,
	to_date date,
	thin real DEFAULT 0.5,
	OUT week text,
	OUT mon text,
	OUT tue text,
	OUT wed text,
	OUT thu text,
	OUT fri text,
	OUT sat text,
	OUT sun text,
	OUT legend text
) RETURNS SETOF record
LANGUAGE sql STABLE CALLED ON NULL INPUT PARALLEL RESTRICTED
BEGIN ATOMIC
	WITH days AS (
		SELECT pg_catalog.date_trunc('week', s.date::timestamp) AS monday,
			pg_catalog.date_part('isodow', s.date)::integer AS weekday,
			pg_catalog.concat(pg_catalog.to_char(s.date::timestamp, 'FMDD '), pg_catalog.substr('+o~!?',
				pg_catalog.array_position('{loaded,empty,thin,failed,never loaded}', s.state), 1)) AS cell
		FROM load_states(target, from_date, to_date, thin) AS s
	), weeks AS (
		SELECT pg_catalog.row_number() OVER (ORDER BY d.monday) AS line,
			pg_catalog.to_char(d.monday, 'IYYY-"W"IW Mon DD') AS week,
			pg_catalog.array_agg(pg_catalog.lpad(d.cell, 4) ORDER BY d.weekday) AS cells,
			pg_catalog.min(d.weekday) AS first_day
		FROM days AS d
		GROUP BY d.monday
	), legend AS (
		SELECT l.line, l.text
		FROM pg_catalog.unnest('{+ loaded,o empty,~ thin,! failed,? never loaded}'::text[])
			WITH ORDINALITY AS l (text, line)
	)
	SELECT COALESCE(w.week, ''),
		COALESCE(w.cells[2 - w.first_day], ''),
		COALESCE(w.cells[3 - w.first_day], ''),
		COALESCE(w.cells[4 - w.first_day], ''),
		COALESCE(w.cells[5 - w.first_day], ''),
		COALESCE(w.cells[6 - w.first_day], ''),
		COALESCE(w.cells[7 - w.first_day], ''),
		COALESCE(w.cells[8 - w.first_day], ''),
		COALESCE(l.text, '')
	FROM weeks AS w FULL JOIN legend AS l ON l.line OPERATOR(pg_catalog.=) w.line
	ORDER BY COALESCE(w.line, l.line);
END;

COMMENT ON FUNCTION load_calendar(pg_catalog.regclass, date, date, real) IS
'days of a table and their states, drawn for a person: a row a week';

CREATE FUNCTION adopt_partitions(
	target pg_catalog.regclass,
	from_date date,
	to_date date,
	date_column text DEFAULT NULL,
	period interval DEFAULT '1 day',
	timezone text DEFAULT NULL,
	ignore_columns text[] DEFAULT NULL
) RETURNS SETOF load_result
AS 'MODULE_PATHNAME', 'iload_adopt_partitions'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION adopt_partitions(pg_catalog.regclass, date, date, text, interval, text, text[]) IS
'record days (or other periods) that have rows and no load, as they are';

--
-- Preview
--

CREATE FUNCTION preview_partition(
	target pg_catalog.regclass,
	date date,
	query text,
	date_column text DEFAULT NULL,
	period interval DEFAULT '1 day',
	timezone text DEFAULT NULL,
	ignore_columns text[] DEFAULT NULL,
	OUT measure text,
	OUT live numeric,
	OUT staged numeric,
	OUT difference numeric,
	OUT share numeric
) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'iload_preview_partition'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION preview_partition(pg_catalog.regclass, date, text, text, interval, text, text[]) IS
'rows and sums of a day (or other period) of a table as it is, and as a query would make it; writes nothing';

--
-- Commands that run once
--

CREATE TABLE once_tokens (
	role pg_catalog.regrole NOT NULL,
	token text NOT NULL,
	command_hash text NOT NULL,
	ran_at timestamptz NOT NULL,
	PRIMARY KEY (role, token)
);

COMMENT ON TABLE once_tokens IS
'one row for each token of run_once, written in the command''s own transaction';
COMMENT ON COLUMN once_tokens.role IS
'role that ran the command; another role may use the same token';
COMMENT ON COLUMN once_tokens.token IS
'what the caller passed as token';
COMMENT ON COLUMN once_tokens.command_hash IS
'digest of the text of the command';
COMMENT ON COLUMN once_tokens.ran_at IS
'when the command was begun, by the server''s clock';

REVOKE ALL ON once_tokens FROM PUBLIC;
GRANT SELECT ON once_tokens TO PUBLIC;

SELECT pg_catalog.pg_extension_config_dump('once_tokens', '');

CREATE FUNCTION run_once(
	token text,
	command text
) RETURNS boolean
AS 'MODULE_PATHNAME', 'iload_run_once'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION run_once(text, text) IS
'run a command unless it has been run with the same token; true if it was run now';

--
-- Retention
--

CREATE FUNCTION prune_history(
	before timestamptz
) RETURNS bigint
AS 'MODULE_PATHNAME', 'iload_prune_history'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION prune_history(timestamptz) IS
'delete older loads but the last one of each slice, failures, and tokens of run_once';

--
-- Proof
--

CREATE FUNCTION assert_idempotent(
	job text,
	date date,
	reruns text[] DEFAULT '{same,clock,crash}',
	ignore_columns text[] DEFAULT NULL,
	clock_shift interval DEFAULT NULL
) RETURNS boolean
AS 'MODULE_PATHNAME', 'iload_assert_idempotent'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION assert_idempotent(text, date, text[], text[], interval) IS
'true if a job can be retried for a date, else an error; what the job writes is undone';

CREATE FUNCTION check_idempotent(
	job text,
	date date,
	reruns text[] DEFAULT '{same,clock,crash}',
	ignore_columns text[] DEFAULT NULL,
	clock_shift interval DEFAULT NULL,
	OUT rerun text,
	OUT passed boolean,
	OUT runs integer,
	OUT world text,
	OUT relation text,
	OUT cause text,
	OUT added bigint,
	OUT missing bigint,
	OUT columns text[],
	OUT added_rows text[],
	OUT missing_rows text[],
	OUT source text,
	OUT message text,
	OUT hint text
) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'iload_check_idempotent'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION check_idempotent(text, date, text[], text[], interval) IS
'one row for each rerun of a job, or for each table that it changed; what the job writes is undone';

CREATE FUNCTION is_idempotent(
	job text,
	date date,
	description text DEFAULT NULL,
	reruns text[] DEFAULT '{same,clock,crash}',
	ignore_columns text[] DEFAULT NULL,
	clock_shift interval DEFAULT NULL
) RETURNS text
AS 'MODULE_PATHNAME', 'iload_is_idempotent'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION is_idempotent(text, date, text, text[], text[], interval) IS
'test for pgTAP: can a job be retried for a date? What the job writes is undone';

--
-- Fingerprint of a slice
--

CREATE FUNCTION partition_fingerprint(
	target pg_catalog.regclass,
	date date,
	date_column text DEFAULT NULL,
	period interval DEFAULT '1 day',
	timezone text DEFAULT NULL,
	ignore_columns text[] DEFAULT NULL
) RETURNS text
AS 'MODULE_PATHNAME', 'iload_partition_fingerprint'
LANGUAGE C STABLE CALLED ON NULL INPUT PARALLEL RESTRICTED;

COMMENT ON FUNCTION partition_fingerprint(pg_catalog.regclass, date, text, interval, text, text[]) IS
'fingerprint of a day (or other period) of a table as it is now, to compare with load_history';

CREATE FUNCTION slice_fingerprint(
	target pg_catalog.regclass,
	lower text,
	upper text,
	date_column text DEFAULT NULL,
	timezone text DEFAULT NULL,
	ignore_columns text[] DEFAULT NULL
) RETURNS text
AS 'MODULE_PATHNAME', 'iload_slice_fingerprint'
LANGUAGE C STABLE CALLED ON NULL INPUT PARALLEL RESTRICTED;

COMMENT ON FUNCTION slice_fingerprint(pg_catalog.regclass, text, text, text, text, text[]) IS
'fingerprint of the rows from lower up to, not including, upper, to compare with load_history';

--
-- Lint
--

CREATE FUNCTION lint_query(
	target pg_catalog.regclass,
	query text,
	date_column text DEFAULT NULL
) RETURNS TABLE (
	severity text,
	code text,
	message text,
	object text,
	line integer,
	"column" integer,
	hint text
)
AS 'MODULE_PATHNAME', 'iload_lint_query_rows'
LANGUAGE C STABLE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION lint_query(pg_catalog.regclass, text, text) IS
'what in a query for a table can be known, without running it, to differ in a rerun';

CREATE FUNCTION lint_job(
	name text
) RETURNS TABLE (
	severity text,
	code text,
	message text,
	object text,
	line integer,
	"column" integer,
	hint text
)
AS 'MODULE_PATHNAME', 'iload_lint_job_rows'
LANGUAGE C STABLE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION lint_job(text) IS
'what in a job can be known, without running it, to differ in a rerun, and how its statements write';

--
-- Progress
--

CREATE FUNCTION progress_loads(
	OUT pid integer,
	OUT datid oid,
	OUT relid oid,
	OUT phase text,
	OUT rows_done bigint,
	OUT rows_total bigint
) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'iload_progress_loads'
LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION progress_loads() IS
'loads that are running; use the view pg_stat_progress_load';

CREATE VIEW pg_stat_progress_load AS
SELECT p.pid, p.datid, d.datname, p.relid, p.phase, p.rows_done, p.rows_total
FROM progress_loads() AS p
LEFT JOIN pg_catalog.pg_database AS d ON d.oid OPERATOR(pg_catalog.=) p.datid;

COMMENT ON VIEW pg_stat_progress_load IS
'one row for each session that is running a load';
COMMENT ON COLUMN pg_stat_progress_load.pid IS
'process ID of the session';
COMMENT ON COLUMN pg_stat_progress_load.datid IS
'OID of the database that it is connected to';
COMMENT ON COLUMN pg_stat_progress_load.datname IS
'name of that database';
COMMENT ON COLUMN pg_stat_progress_load.relid IS
'OID of the table being loaded';
COMMENT ON COLUMN pg_stat_progress_load.phase IS
'what the load is doing';
COMMENT ON COLUMN pg_stat_progress_load.rows_done IS
'rows that it has done in this phase, a little behind';
COMMENT ON COLUMN pg_stat_progress_load.rows_total IS
'rows that this phase is about; null where that is not known';

GRANT SELECT ON pg_stat_progress_load TO PUBLIC;

--
-- Fingerprint
--

CREATE FUNCTION fingerprint_transition(internal, record) RETURNS internal
AS 'MODULE_PATHNAME', 'iload_fingerprint_transition'
LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE;

CREATE FUNCTION fingerprint_merge(internal, internal) RETURNS internal
AS 'MODULE_PATHNAME', 'iload_fingerprint_merge'
LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE;

CREATE FUNCTION fingerprint_serial(internal) RETURNS bytea
AS 'MODULE_PATHNAME', 'iload_fingerprint_serial'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION fingerprint_deserial(bytea, internal) RETURNS internal
AS 'MODULE_PATHNAME', 'iload_fingerprint_deserial'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION fingerprint_final(internal) RETURNS text
AS 'MODULE_PATHNAME', 'iload_fingerprint_final'
LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE;

CREATE AGGREGATE fingerprint(record) (
	SFUNC = fingerprint_transition,
	STYPE = internal,
	FINALFUNC = fingerprint_final,
	COMBINEFUNC = fingerprint_merge,
	SERIALFUNC = fingerprint_serial,
	DESERIALFUNC = fingerprint_deserial,
	PARALLEL = SAFE
);

COMMENT ON FUNCTION fingerprint_transition(internal, record) IS
'aggregate transition function of fingerprint';
COMMENT ON FUNCTION fingerprint_merge(internal, internal) IS
'aggregate combine function of fingerprint';
COMMENT ON FUNCTION fingerprint_serial(internal) IS
'aggregate serial function of fingerprint';
COMMENT ON FUNCTION fingerprint_deserial(bytea, internal) IS
'aggregate deserial function of fingerprint';
COMMENT ON FUNCTION fingerprint_final(internal) IS
'aggregate final function of fingerprint';
COMMENT ON AGGREGATE fingerprint(record) IS
'order-independent 128-bit digest of a multiset of rows, with their number';
