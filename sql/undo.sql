-- The version of a slice before its last load, and undo_load
CREATE SCHEMA iload_undo;
SET search_path = iload_undo, public;
SET timezone = 'UTC';
SET idempotent_load.lint = off;

CREATE TABLE day (d date NOT NULL, id int, v numeric NOT NULL, twice numeric GENERATED ALWAYS AS (v * 2) STORED)
	PARTITION BY RANGE (d);
CREATE TABLE src (d date, id int, v numeric);
INSERT INTO src SELECT d, i, i FROM generate_series(date '2026-08-01', '2026-08-03', '1 day') d, generate_series(1, 10) i;

CREATE FUNCTION load(day date, keep boolean, v numeric DEFAULT 0) RETURNS text LANGUAGE sql AS
$$
SELECT r.method || ' ' || r.inserted || ' ' || r.deleted
FROM replace_partition('day', day, format('SELECT d, id, v + %s AS v FROM src WHERE d = $1', v),
	method => 'diff', on_empty => 'replace', keep_previous => keep) r
$$;
CREATE VIEW sums AS SELECT d, count(*), sum(v), sum(twice) AS twice FROM day GROUP BY d ORDER BY d;

-- nothing is kept, nothing can be undone
SELECT load('2026-08-01', false);
SELECT load('2026-08-01', false, 1);
\set VERBOSITY default
SELECT undo_load('day', '2026-08-01');
\set VERBOSITY sqlstate
SELECT undo_load('day', '2026-08-02');
SELECT undo_load('day', NULL);
\set VERBOSITY default

-- a load that keeps, and its undo: all columns, also generated ones, are back
SELECT load('2026-08-01', true, 2);
SELECT * FROM sums;
SELECT relname, obj_description(oid) FROM pg_class WHERE relname LIKE 'day_previous%' AND relkind = 'r';
SELECT target, lower_bound, upper_bound, kept_in FROM previous_versions WHERE target = 'day'::regclass;
SELECT method, rows, inserted, deleted FROM undo_load('day', '2026-08-01', run_id => 'undo');
SELECT * FROM sums;

-- what was kept is used up
\set VERBOSITY sqlstate
SELECT undo_load('day', '2026-08-01');
\set VERBOSITY default

-- a retry that changes nothing leaves the version in place
SELECT load('2026-08-01', true, 3);
SELECT load('2026-08-01', true, 3);
SELECT method FROM undo_load('day', '2026-08-01');
SELECT * FROM sums;

-- a later load that keeps nothing makes it no longer the previous one
SELECT load('2026-08-01', true, 4);
SELECT load('2026-08-01', false, 5);
\set VERBOSITY sqlstate
SELECT undo_load('day', '2026-08-01');
\set VERBOSITY default

-- two in a row: the last one only
SELECT load('2026-08-01', true, 6);
SELECT load('2026-08-01', true, 7);
SELECT method FROM undo_load('day', '2026-08-01');
SELECT * FROM sums;

-- a day that was empty before is empty again; slices do not mix
SELECT load('2026-08-02', true);
SELECT load('2026-08-01', true, 8);
SELECT method, rows, deleted FROM undo_load('day', '2026-08-02');
SELECT * FROM sums;
SELECT method FROM undo_load('day', '2026-08-01');
SELECT * FROM sums;

-- undone with the transaction
BEGIN;
SELECT load('2026-08-01', true, 9);
ROLLBACK;
SELECT lower_bound, kept_in, kept_at IS NULL AS used_up FROM previous_versions WHERE target = 'day'::regclass ORDER BY lower_bound;

-- a job that keeps, by merge
SELECT create_job('keeps', 'day', 'SELECT d, id, v + 100 AS v FROM src WHERE d = $1 AND id <= 3',
	method => 'merge', key => '{id}', keep_previous => true);
SELECT method, inserted, updated FROM run_job('keeps', '2026-08-01');
SELECT * FROM sums;
SELECT method FROM undo_load('day', '2026-08-01');
SELECT * FROM sums;
SELECT drop_job('keeps');

-- rights: the table is the target's owner's
CREATE ROLE regress_iload_loader;
GRANT ALL ON SCHEMA iload_undo TO regress_iload_loader;
GRANT ALL ON day, src TO regress_iload_loader;
SET ROLE regress_iload_loader;
SELECT load('2026-08-01', true, 10);
RESET ROLE;
GRANT ALL ON day_previous TO regress_iload_loader;
SET ROLE regress_iload_loader;
SELECT load('2026-08-01', true, 10);
INSERT INTO previous_versions VALUES ('day', 'x', 'y', 'day', now());
RESET ROLE;
SELECT * FROM sums;

-- dropped: the next one makes it anew; not by who is not the owner, nor for one that another owns
DROP TABLE day_previous;
SET ROLE regress_iload_loader;
SELECT load('2026-08-01', true, 11);
RESET ROLE;
SELECT load('2026-08-01', true, 11);
ALTER TABLE day_previous OWNER TO regress_iload_loader;
SELECT load('2026-08-01', true, 12);
DROP TABLE day_previous;
SELECT load('2026-08-01', true, 12);
SELECT relname FROM pg_class WHERE relname LIKE 'day_previous%' AND relkind = 'r' ORDER BY relname;

-- a check leaves what is kept alone
SELECT create_job('keeps', 'day', 'SELECT d, id, v FROM src WHERE d = $1', method => 'diff', keep_previous => true);
SELECT assert_idempotent('keeps', '2026-08-01');
SELECT drop_job('keeps');
SELECT lower_bound, kept_in, kept_at IS NULL AS used_up FROM previous_versions WHERE target = 'day'::regclass AND lower_bound = '2026-08-01';

DELETE FROM previous_versions WHERE target = 'day'::regclass;
\set VERBOSITY terse
SET client_min_messages = warning;
DROP SCHEMA iload_undo CASCADE;
DROP ROLE regress_iload_loader;
