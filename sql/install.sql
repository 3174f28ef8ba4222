--
-- install: what the extension consists of, its flags, grants and schema
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotent_load;
RESET client_min_messages;

-- Functions, aggregates, relations and types, each with a comment. Indexes and
-- sequences follow their table, and row and array types are left out.
CREATE TEMP VIEW members AS
SELECT d.classid, d.objid
FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
  AND e.extname = 'idempotent_load';

SELECT * FROM (
SELECT CASE p.prokind WHEN 'a' THEN 'aggregate' ELSE 'function' END AS kind,
       p.oid::regprocedure::text AS object,
       obj_description(p.oid, 'pg_proc') IS NOT NULL AS commented
FROM members m JOIN pg_proc p ON m.classid = 'pg_proc'::regclass AND m.objid = p.oid
UNION ALL
SELECT CASE c.relkind WHEN 'r' THEN 'table' WHEN 'c' THEN 'type' ELSE c.relkind::text END,
       c.oid::regclass::text,
       coalesce(obj_description(c.oid, 'pg_class'), obj_description(c.reltype, 'pg_type')) IS NOT NULL
FROM members m JOIN pg_class c ON m.classid = 'pg_class'::regclass AND m.objid = c.oid
WHERE c.relkind NOT IN ('i', 'S')
UNION ALL
SELECT 'type', t.oid::regtype::text, obj_description(t.oid, 'pg_type') IS NOT NULL
FROM members m JOIN pg_type t ON m.classid = 'pg_type'::regclass AND m.objid = t.oid
WHERE t.typelem = 0 AND NOT EXISTS
  (SELECT 1 FROM members o WHERE o.classid = 'pg_class'::regclass AND o.objid = t.typrelid)
) AS s
ORDER BY kind COLLATE "C", object COLLATE "C";

-- other kinds of objects: none
SELECT classid::regclass AS kind, count(*)
FROM members
WHERE classid NOT IN ('pg_proc'::regclass, 'pg_class'::regclass, 'pg_type'::regclass)
GROUP BY classid ORDER BY 1;

-- columns, with comments on all but the number of the row
SELECT a.attname, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull AS not_null,
       col_description(a.attrelid, a.attnum) IS NOT NULL AS commented
FROM pg_attribute a
WHERE a.attrelid = 'load_history'::regclass AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum;
SELECT a.attname, format_type(a.atttypid, a.atttypmod) AS type
FROM pg_attribute a
WHERE a.attrelid = 'load_result'::regclass AND a.attnum > 0
ORDER BY a.attnum;

-- flags of the functions
SELECT p.proname, p.provolatile AS volatility, p.proparallel AS parallel,
       p.proisstrict AS strict, p.prosecdef AS definer, p.proconfig AS settings
FROM members m JOIN pg_proc p ON m.classid = 'pg_proc'::regclass AND m.objid = p.oid
ORDER BY p.proname COLLATE "C";

-- the parameters by name, and which may be left out
SELECT p.proname, a.ord, a.name, format_type(p.proargtypes[a.ord - 1], NULL) AS type,
       a.ord > p.pronargs - p.pronargdefaults AS optional
FROM pg_proc p, unnest(p.proargnames) WITH ORDINALITY AS a(name, ord)
WHERE p.oid IN ('replace_partition'::regproc, 'replace_slice'::regproc)
ORDER BY p.proname COLLATE "C", a.ord;

-- nothing is granted to others but to read the history
SELECT c.relname, coalesce(r.rolname, 'PUBLIC') AS grantee, x.privilege_type, x.is_grantable
FROM members m
JOIN pg_class c ON m.classid = 'pg_class'::regclass AND m.objid = c.oid,
     aclexplode(c.relacl) AS x LEFT JOIN pg_roles r ON r.oid = x.grantee
WHERE x.grantee <> c.relowner
ORDER BY 1, 2, 3;
SELECT p.oid::regprocedure
FROM members m JOIN pg_proc p ON m.classid = 'pg_proc'::regclass AND m.objid = p.oid
WHERE p.proacl IS NOT NULL;

-- what pg_dump takes along
SELECT c.oid::regclass::text AS relation, e.extcondition[u.ord] AS condition
FROM pg_extension e, unnest(e.extconfig) WITH ORDINALITY AS u(oid, ord)
JOIN pg_class c ON c.oid = u.oid
WHERE e.extname = 'idempotent_load'
ORDER BY c.relname COLLATE "C";

-- it stays in the schema that it was installed into, for its functions find
-- their table there, but that schema may be any and may be renamed
ALTER EXTENSION idempotent_load SET SCHEMA pg_catalog;
BEGIN;
SET LOCAL client_min_messages = warning;
DROP EXTENSION idempotent_load;
SELECT to_regclass('load_history') IS NULL AND to_regtype('load_result') IS NULL
       AND to_regproc('replace_partition') IS NULL AS dropped;
CREATE SCHEMA "Other Schema";
CREATE EXTENSION idempotent_load SCHEMA "Other Schema";
CREATE TABLE public.install_fact (d date, n int);
SET LOCAL search_path = '';
SELECT method, rows FROM "Other Schema".replace_partition('public.install_fact', '2024-01-01', 'SELECT $1 AS d, 1 AS n');
ALTER SCHEMA "Other Schema" RENAME TO renamed;
SELECT method, rows FROM renamed.replace_partition('public.install_fact', '2024-01-01', 'SELECT $1 AS d, 1 AS n');
SELECT target_name, method, rows FROM renamed.load_history ORDER BY id;
SELECT renamed.fingerprint(f) = max(h.fingerprint) AS same
FROM public.install_fact f, renamed.load_history h WHERE h.id = 1;
-- without the extension the loaded table stays
DROP EXTENSION idempotent_load;
SELECT * FROM public.install_fact;
ROLLBACK;
