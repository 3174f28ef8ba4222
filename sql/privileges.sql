--
-- privileges: whose rights a load needs and uses
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotent_load;
CREATE SCHEMA iload_privileges;
CREATE ROLE regress_iload_loader;
CREATE ROLE regress_iload_reader;
RESET client_min_messages;
SET search_path = iload_privileges, public;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
\set SHOW_CONTEXT never

CREATE TABLE t (d date, n int) PARTITION BY RANGE (d);
CREATE TABLE t_20240101 PARTITION OF t FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
CREATE TABLE src (d date, n int);
INSERT INTO t VALUES ('2024-01-01', 1);
INSERT INTO src VALUES ('2024-01-01', 2);
GRANT USAGE ON SCHEMA iload_privileges TO regress_iload_loader, regress_iload_reader;

-- each right that is lacking is named, before anything is done
SET ROLE regress_iload_loader;
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d, 2 AS n');
RESET ROLE;
GRANT INSERT, DELETE ON t TO regress_iload_loader;
SET ROLE regress_iload_loader;
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d, 2 AS n');
RESET ROLE;
GRANT SELECT ON t TO regress_iload_loader;
REVOKE INSERT ON t FROM regress_iload_loader;
SET ROLE regress_iload_loader;
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d, 2 AS n');
RESET ROLE;
GRANT INSERT ON t TO regress_iload_loader;
REVOKE DELETE ON t FROM regress_iload_loader;
SET ROLE regress_iload_loader;
-- also where the load would need none of them
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d, 1 AS n');
RESET ROLE;
GRANT DELETE ON t TO regress_iload_loader;
SELECT * FROM t;

-- rights on the source are those of the caller
SET ROLE regress_iload_loader;
SELECT replace_partition('t', '2024-01-01', 'SELECT * FROM src WHERE d = $1');
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d, 2 AS n', audit => 'SELECT count(*) > 0 FROM src');
-- rights on the leaf are not needed
SELECT n FROM t_20240101;
SELECT method, rows FROM replace_partition('t', '2024-01-01', 'SELECT $1 AS d, 2 AS n', audit => 'SELECT count(*) = 1 FROM live');
SELECT method, rows FROM replace_partition('t', '2024-01-01', 'SELECT $1 AS d, 2 AS n');
SELECT method, rows FROM replace_partition('t', '2024-01-01', 'SELECT $1 AS d, 3 AS n', method => 'delete');
SELECT * FROM t;
-- nor is a right to load the leaf by its own name given
SELECT replace_partition('t_20240101', '2024-01-01', 'SELECT $1 AS d, 2 AS n');
RESET ROLE;
-- rights on some columns are not rights on the table
REVOKE SELECT, INSERT ON t FROM regress_iload_loader;
GRANT SELECT (d, n), INSERT (d, n) ON t TO regress_iload_loader;
SET ROLE regress_iload_loader;
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d, 2 AS n');
RESET ROLE;
GRANT SELECT, INSERT ON t TO regress_iload_loader;

-- the history is written by loads alone; everybody may read it
SET ROLE regress_iload_loader;
SELECT method, rows, loaded_by FROM load_history WHERE target = 't'::regclass ORDER BY id;
INSERT INTO load_history (target_name) VALUES ('t');
UPDATE load_history SET rows = 0;
DELETE FROM load_history;
TRUNCATE load_history;
SELECT nextval('load_history_id_seq');
SELECT replace_partition('load_history', '2024-01-01', 'SELECT $1 AS logical_date', date_column => 'logical_date');
SET ROLE regress_iload_reader;
SELECT count(*) FROM load_history WHERE target_name = 'iload_privileges.t';
-- a role may not call what it was not given
RESET ROLE;
BEGIN;
REVOKE EXECUTE ON FUNCTION replace_partition FROM PUBLIC;
SET LOCAL ROLE regress_iload_loader;
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d, 2 AS n');
ROLLBACK;

-- inside a SECURITY DEFINER function the rights are those of its owner
CREATE FUNCTION load_day(day date) RETURNS text LANGUAGE sql SECURITY DEFINER SET search_path = iload_privileges, public AS $$
	SELECT method FROM replace_partition('t', day, 'SELECT $1 AS d, 4 AS n')
$$;
SET ROLE regress_iload_reader;
SELECT load_day('2024-01-01');
RESET ROLE;
SELECT loaded_by = current_user AS by_owner FROM load_history WHERE target = 't'::regclass ORDER BY id DESC LIMIT 1;

-- the query, the triggers and the defaults run as the caller, whose rights are
-- the same again after the load
CREATE FUNCTION who() RETURNS text LANGUAGE sql STABLE AS 'SELECT current_user::text';
CREATE TABLE seen (who text);
GRANT INSERT ON seen TO regress_iload_loader;
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO seen VALUES (current_user); RETURN NULL; END$$;
CREATE TABLE by_whom (d date, asked text, given text DEFAULT current_user);
CREATE TRIGGER note AFTER INSERT ON by_whom FOR EACH ROW EXECUTE FUNCTION note();
GRANT SELECT, INSERT, DELETE ON by_whom TO regress_iload_loader;
SET ROLE regress_iload_loader;
SELECT method FROM replace_partition('by_whom', '2024-01-01', 'SELECT $1 AS d, who() AS asked');
SELECT current_user;
RESET ROLE;
SELECT * FROM by_whom;
SELECT * FROM seen;

-- row security: hidden rows are neither seen nor touched, and policies hold
CREATE TABLE tenants (d date, tenant text, n int) PARTITION BY RANGE (d);
CREATE TABLE tenants_20240101 PARTITION OF tenants FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
INSERT INTO tenants VALUES ('2024-01-01', 'regress_iload_loader', 1), ('2024-01-01', 'other', 2);
ALTER TABLE tenants ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON tenants USING (tenant = current_user);
GRANT SELECT, INSERT, DELETE ON tenants TO regress_iload_loader;
SET ROLE regress_iload_loader;
SELECT method, rows, rows_before, inserted, deleted FROM replace_partition('tenants', '2024-01-01', 'SELECT $1 AS d, current_user AS tenant, 3 AS n');
SELECT method, rows, rows_before FROM replace_partition('tenants', '2024-01-01', 'SELECT $1 AS d, current_user AS tenant, 3 AS n');
SELECT method, rows, rows_before, inserted, deleted FROM replace_partition('tenants', '2024-01-01', 'SELECT $1 AS d, current_user AS tenant, 4 AS n', method => 'delete');
SELECT method, rows FROM replace_partition('tenants', '2024-01-01', 'SELECT * FROM tenants', audit => 'SELECT count(*) = 1 FROM live');
SELECT replace_partition('tenants', '2024-01-01', $$SELECT $1 AS d, 'other' AS tenant, 5 AS n$$);
RESET ROLE;
SELECT * FROM tenants ORDER BY n;
-- one who is above the policies replaces all rows
SELECT method, rows, rows_before, deleted FROM replace_partition('tenants', '2024-01-01', $$SELECT $1 AS d, 'other' AS tenant, 6 AS n$$);
SELECT * FROM tenants ORDER BY n;
-- a policy that lets fewer rows be deleted than be seen: rows that would stay
-- beside the new ones are an error
CREATE TABLE shared (d date, tenant text, n int);
INSERT INTO shared VALUES ('2024-01-01', 'regress_iload_loader', 1), ('2024-01-01', 'other', 2);
ALTER TABLE shared ENABLE ROW LEVEL SECURITY;
CREATE POLICY see ON shared FOR SELECT USING (true);
CREATE POLICY add ON shared FOR INSERT WITH CHECK (true);
CREATE POLICY own ON shared FOR DELETE USING (tenant = current_user);
GRANT SELECT, INSERT, DELETE ON shared TO regress_iload_loader;
SET ROLE regress_iload_loader;
SELECT replace_partition('shared', '2024-01-01', 'SELECT $1 AS d, current_user AS tenant, 3 AS n');
\echo :SQLSTATE
SELECT replace_partition('shared', '2024-01-01', 'SELECT $1 AS d, current_user AS tenant, 3 AS n', method => 'delete');
\echo :SQLSTATE
SELECT replace_partition('shared', '2024-01-01', 'SELECT * FROM shared WHERE false', on_empty => 'replace');
\echo :SQLSTATE
SELECT * FROM shared ORDER BY n;
-- as long as only own rows have to go, it is none
SELECT method, rows, rows_before, inserted, deleted
FROM replace_partition('shared', '2024-01-01', $$SELECT * FROM shared WHERE tenant = 'other' UNION ALL SELECT $1, current_user, 3$$);
RESET ROLE;
SELECT * FROM shared ORDER BY n;
SELECT count(*) FROM load_history WHERE target = 'shared'::regclass;

-- what stands first in the search_path, or in pg_temp, is not called
CREATE TABLE loot (who text);
GRANT INSERT ON loot TO PUBLIC;
CREATE SCHEMA iload_evil;
GRANT USAGE ON SCHEMA iload_evil TO PUBLIC;
CREATE FUNCTION iload_evil.format(text, VARIADIC "any") RETURNS text LANGUAGE internal STABLE AS 'text_format';
CREATE FUNCTION iload_evil.quote_ident(text) RETURNS text LANGUAGE plpgsql AS $$BEGIN INSERT INTO iload_privileges.loot VALUES (current_user); RETURN pg_catalog.quote_ident($1); END$$;
CREATE FUNCTION iload_evil.count(integer) RETURNS bigint LANGUAGE sql AS 'SELECT 42::bigint';
CREATE FUNCTION iload_evil.evil_compare(date, date) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN INSERT INTO iload_privileges.loot VALUES (current_user); RETURN true; END$$;
CREATE OPERATOR iload_evil.>= (FUNCTION = iload_evil.evil_compare, LEFTARG = date, RIGHTARG = date);
CREATE OPERATOR iload_evil.< (FUNCTION = iload_evil.evil_compare, LEFTARG = date, RIGHTARG = date);
CREATE OPERATOR iload_evil.= (FUNCTION = iload_evil.evil_compare, LEFTARG = date, RIGHTARG = date);
CREATE FUNCTION iload_evil.evil_same(tid, tid) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN INSERT INTO iload_privileges.loot VALUES (current_user); RETURN true; END$$;
CREATE OPERATOR iload_evil.= (FUNCTION = iload_evil.evil_same, LEFTARG = tid, RIGHTARG = tid);
CREATE DOMAIN iload_evil.date AS text;
CREATE DOMAIN iload_evil.regclass AS text;
CREATE TEMP TABLE pg_class AS SELECT * FROM pg_catalog.pg_class WHERE false;
CREATE TEMP TABLE pg_locks AS SELECT * FROM pg_catalog.pg_locks WHERE false;
CREATE TEMP TABLE load_history AS SELECT * FROM public.load_history WHERE false;
CREATE TEMP TABLE t AS SELECT * FROM t WHERE false;
CREATE TEMP TABLE staged AS SELECT 1 AS x WHERE false;
CREATE TEMP TABLE live AS SELECT 1 AS x WHERE false;
CREATE TEMP TABLE iload_doomed AS SELECT 1 AS x WHERE false;
CREATE TEMP TABLE iload_fresh AS SELECT 1 AS x WHERE false;
SET search_path = iload_evil, pg_temp, iload_privileges, public, pg_catalog;
SELECT (public.replace_partition('iload_privileges.t', '2024-01-01', 'SELECT $1 AS d, i AS n FROM generate_series(1, 3) i')).method;
SELECT (public.replace_partition('iload_privileges.t', '2024-01-01', 'SELECT $1 AS d, i AS n FROM generate_series(2, 4) i', if_running => 'cancel', audit => 'SELECT pg_catalog.max(n) OPERATOR(pg_catalog.=) 4 FROM staged')).method;
SELECT (public.replace_partition('iload_privileges.t', '2024-01-01', 'SELECT $1 AS d, i AS n FROM generate_series(1, 3) i', method => 'delete')).method;
SELECT (public.replace_partition('iload_privileges.t', '2024-01-02', 'SELECT $1 AS d, i AS n FROM generate_series(1, 3) i')).method;
-- the query itself goes by the search_path of its caller
SELECT (public.replace_partition('iload_privileges.t', '2024-01-02', 'SELECT $1 AS d, count(1)::int AS n')).method;
SET search_path = iload_privileges, public;
SELECT count(*) FROM loot;
SELECT d, n FROM iload_privileges.t ORDER BY d, n;
SELECT count(*) FROM pg_temp.t;
SELECT count(*) FROM pg_temp.load_history;
DROP TABLE pg_temp.pg_class, pg_temp.pg_locks, pg_temp.load_history, pg_temp.t, pg_temp.staged, pg_temp.live, pg_temp.iload_doomed, pg_temp.iload_fresh;

-- a read-only transaction
BEGIN READ ONLY;
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d, 1 AS n');
ROLLBACK;
DO $$
BEGIN
	SET TRANSACTION READ ONLY;
	PERFORM replace_partition('t', '2024-01-01', 'SELECT $1 AS d, 1 AS n');
EXCEPTION WHEN others THEN
	RAISE NOTICE '%', SQLSTATE;
END
$$;
-- and the setting for tests is not for everybody
SET ROLE regress_iload_loader;
SET idempotent_load.wait_point = 'staged';
RESET ROLE;

SET client_min_messages = warning;
DROP SCHEMA iload_privileges, iload_evil CASCADE;
DROP ROLE regress_iload_loader, regress_iload_reader;
