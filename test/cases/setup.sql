/* test/cases/setup.sql */

-- Wrappers by which cases of public reports are replayed, whatever the exact
-- API.  The extension lies in a schema of its own, so that the wrappers can
-- bear the names that the cases call.

CREATE SCHEMA iload;
CREATE EXTENSION idempotent_load SCHEMA iload;
GRANT USAGE ON SCHEMA iload TO PUBLIC;

-- Some cases have a date column "d" beside other columns of a timestamp type.
CREATE FUNCTION replace_partition(tbl regclass, day date, query text) RETURNS bigint
LANGUAGE sql AS
$$
SELECT r.rows
FROM iload.replace_partition(tbl, day, query, on_empty => 'replace',
	date_column => (SELECT a.attname FROM pg_catalog.pg_attribute a
		WHERE a.attrelid OPERATOR(pg_catalog.=) tbl
		AND a.attname OPERATOR(pg_catalog.=) 'd')) r
$$;

CREATE FUNCTION merge_partition(tbl regclass, day date, query text, keys text[], version text) RETURNS bigint
LANGUAGE sql AS
$$
SELECT r.rows FROM iload.merge_rows(tbl, day, query, keys, version) r
$$;

CREATE FUNCTION register_job(job text, tbl regclass, query text) RETURNS void
LANGUAGE sql AS
$$
SELECT iload.create_job(job, tbl, query, on_empty => 'replace',
	date_column => (SELECT a.attname FROM pg_catalog.pg_attribute a
		WHERE a.attrelid OPERATOR(pg_catalog.=) tbl
		AND a.attname OPERATOR(pg_catalog.=) 'd'))
$$;

CREATE FUNCTION assert_idempotent(job text, day date) RETURNS boolean
LANGUAGE plpgsql AS
$$
BEGIN
	RETURN iload.assert_idempotent(job, day, '{same,clock,crash,plan}');
EXCEPTION
	WHEN SQLSTATE 'IL006' THEN
		RETURN false;
END
$$;

CREATE PROCEDURE backfill(tbl regclass, first date, last date, query text)
LANGUAGE plpgsql AS
$$
BEGIN
	PERFORM iload.drop_job('backfill', if_exists => true);
	PERFORM register_job('backfill', tbl, query);
	CALL iload.backfill('backfill', first, last);
END
$$;

CREATE VIEW load_log AS
SELECT logical_date AS day, 'ok'::text AS status, id, target_name, method, rows
FROM iload.load_history
UNION ALL
SELECT logical_date, 'failed', id, target_name, NULL, NULL
FROM iload.load_failures;

-- A case that loses the log means the history.
CREATE RULE load_log_delete AS ON DELETE TO load_log DO INSTEAD DELETE FROM iload.load_history;

CREATE FUNCTION missing_days(tbl regclass, first date, last date) RETURNS SETOF date LANGUAGE sql AS
$$
SELECT m.date FROM iload.missing_dates(tbl, first, last) m
$$;
