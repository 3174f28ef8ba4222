--
-- swap_gate: where a swap would not mean the same as DELETE and INSERT
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotent_load;
CREATE SCHEMA iload_swap_gate;
CREATE ROLE regress_iload_gate;
GRANT USAGE ON SCHEMA iload_swap_gate TO regress_iload_gate;
RESET client_min_messages;
SET search_path = iload_swap_gate, public;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
\set SHOW_CONTEXT never

-- auto is to swap wherever it may
LOAD 'idempotent_load';
SET idempotent_load.swap_min_size = 0;
SET idempotent_load.swap_threshold = 0;
SET idempotent_load.delete_threshold = 1;

-- A load of a day by swap, which is undone, and then by auto: the error of the
-- first one, or the word swap; the method of the second one, and whether the day
-- has the rows that it is to have and the other days have kept theirs.  One of the
-- rows is there already, and each call takes another n, so that there is something
-- to do and not all of it changes.
CREATE FUNCTION gate(target regclass, n int, ignored text[] DEFAULT NULL)
RETURNS TABLE (swap text, auto text, rows_right boolean) LANGUAGE plpgsql AS $$
DECLARE
	query text := format('SELECT $1 AS d, i AS id, CASE i WHEN 0 THEN ''old'' ELSE ''new'' END AS v FROM generate_series(0, %s) i', n);
	day text := format('SELECT t.d, t.id, t.v FROM %s t WHERE t.d = ''2024-01-01''', target);
	wanted text := format('SELECT date ''2024-01-01'', i, CASE i WHEN 0 THEN ''old'' ELSE ''new'' END FROM generate_series(0, %s) i', n);
	others bigint;
	others_now bigint;
BEGIN
	EXECUTE format('SELECT count(*) FROM %s WHERE d <> ''2024-01-01''', target) INTO others;
	BEGIN
		SELECT r.method INTO swap FROM replace_partition(target, '2024-01-01', query, method => 'swap', ignore_columns => ignored) r;
		RAISE EXCEPTION USING ERRCODE = 'P0099';
	EXCEPTION
		WHEN SQLSTATE 'P0099' THEN
			NULL;
		WHEN others THEN
			GET STACKED DIAGNOSTICS swap = PG_EXCEPTION_DETAIL;
			swap := SQLSTATE || ' ' || split_part(swap, ': ', 2);
	END;
	SELECT r.method INTO auto FROM replace_partition(target, '2024-01-01', query, ignore_columns => ignored) r;
	EXECUTE format('SELECT NOT EXISTS (%1$s EXCEPT ALL %2$s) AND NOT EXISTS (%2$s EXCEPT ALL %1$s)', day, wanted) INTO rows_right;
	EXECUTE format('SELECT count(*) FROM %s WHERE d <> ''2024-01-01''', target) INTO others_now;
	rows_right := rows_right AND others = others_now;
	RETURN NEXT;
END
$$;

CREATE TABLE t (d date, id int, v text) PARTITION BY RANGE (d);
CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
CREATE TABLE t_2 PARTITION OF t FOR VALUES FROM ('2024-01-02') TO ('2024-01-03');
INSERT INTO t VALUES ('2024-01-01', 0, 'old'), ('2024-01-02', 0, 'old');

-- nothing stands against it
SELECT * FROM gate('t', 1);
-- the whole of an error
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER see AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION nothing();
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d, 1 AS id', method => 'swap');
\echo :LAST_ERROR_SQLSTATE
DROP TRIGGER see ON t;

-- leaves that hold more than the slice: a month, a default partition, a part of a
-- list, a partition by hash, a table without partitions, a slice of one value
CREATE TABLE monthly (d date, id int, v text) PARTITION BY RANGE (d);
CREATE TABLE monthly_1 PARTITION OF monthly FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
INSERT INTO monthly VALUES ('2024-01-01', 0, 'old'), ('2024-01-02', 0, 'old');
SELECT * FROM gate('monthly', 2);
CREATE TABLE rest (d date, id int, v text) PARTITION BY RANGE (d);
CREATE TABLE rest_default PARTITION OF rest DEFAULT;
INSERT INTO rest VALUES ('2024-01-01', 0, 'old'), ('2024-01-02', 0, 'old');
SET client_min_messages = warning;
SELECT * FROM gate('rest', 2);
RESET client_min_messages;
CREATE TABLE listed (d date, id int, v text) PARTITION BY LIST (d);
CREATE TABLE listed_1 PARTITION OF listed FOR VALUES IN ('2024-01-01', '2024-01-02');
INSERT INTO listed VALUES ('2024-01-01', 0, 'old'), ('2024-01-02', 0, 'old');
SELECT * FROM gate('listed', 2);
CREATE TABLE hashed (d date, id int, v text) PARTITION BY HASH (d);
CREATE TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (MODULUS 1, REMAINDER 0);
INSERT INTO hashed VALUES ('2024-01-01', 0, 'old'), ('2024-01-02', 0, 'old');
SELECT * FROM gate('hashed', 2);
CREATE TABLE plain (d date, id int, v text);
INSERT INTO plain VALUES ('2024-01-01', 0, 'old'), ('2024-01-02', 0, 'old');
SELECT * FROM gate('plain', 2);
DROP TABLE monthly, rest, listed, hashed, plain;

-- children by inheritance hold rows elsewhere
CREATE TABLE parent (d date, id int, v text);
CREATE TABLE child () INHERITS (parent);
INSERT INTO child VALUES ('2024-01-01', 0, 'old'), ('2024-01-02', 0, 'old');
SELECT * FROM gate('parent', 2);
DROP TABLE child, parent;

-- a foreign table has no file; one of another day does not count
CREATE FOREIGN DATA WRAPPER swap_gate_fdw;
CREATE SERVER swap_gate_server FOREIGN DATA WRAPPER swap_gate_fdw;
CREATE TABLE abroad (d date, id int, v text) PARTITION BY RANGE (d);
CREATE TABLE abroad_1 PARTITION OF abroad FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
CREATE FOREIGN TABLE abroad_2 PARTITION OF abroad FOR VALUES FROM ('2024-01-02') TO ('2024-01-03') SERVER swap_gate_server;
SELECT replace_partition('abroad', '2024-01-02', 'SELECT $1 AS d', method => 'swap');
SELECT method, rows FROM replace_partition('abroad', '2024-01-01', 'SELECT $1 AS d', method => 'swap');
DROP TABLE abroad;
DROP SERVER swap_gate_server;
DROP FOREIGN DATA WRAPPER swap_gate_fdw;

-- a heap by another name is a heap, and stays what it is
CREATE ACCESS METHOD swap_gate_heap TYPE TABLE HANDLER heap_tableam_handler;
CREATE TABLE named (d date, id int, v text) PARTITION BY RANGE (d);
CREATE TABLE named_1 PARTITION OF named FOR VALUES FROM ('2024-01-01') TO ('2024-01-02') USING swap_gate_heap;
INSERT INTO named VALUES ('2024-01-01', 0, 'old');
SELECT * FROM gate('named', 2);
SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.oid = 'named_1'::regclass;
DROP TABLE named;
DROP ACCESS METHOD swap_gate_heap;

-- sixty-four leaves, and one more
CREATE TABLE many (d date, id int, v text) PARTITION BY RANGE (d);
CREATE TABLE many_1 PARTITION OF many FOR VALUES FROM ('2024-01-01') TO ('2024-01-02') PARTITION BY LIST (id);
DO $$
BEGIN
	FOR i IN 0 .. 63 LOOP
		EXECUTE format('CREATE TABLE many_1_%s PARTITION OF many_1 FOR VALUES IN (%s)', i, i);
	END LOOP;
END
$$;
INSERT INTO many SELECT '2024-01-01', i, 'old' FROM generate_series(0, 63) i;
SELECT * FROM gate('many', 63);
CREATE TABLE many_1_64 PARTITION OF many_1 FOR VALUES IN (64);
SELECT * FROM gate('many', 64);
DROP TABLE many;

-- row-level security: not for the owner unless forced, and not for a superuser;
-- policies of the leaf alone do not count for who comes by the table
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY all_rows ON t USING (true);
GRANT SELECT, INSERT, DELETE ON t TO regress_iload_gate;
SELECT * FROM gate('t', 3);
SET ROLE regress_iload_gate;
SELECT * FROM gate('t', 4);
RESET ROLE;
ALTER TABLE t OWNER TO regress_iload_gate;
SET ROLE regress_iload_gate;
SELECT * FROM gate('t', 5);
RESET ROLE;
ALTER TABLE t FORCE ROW LEVEL SECURITY;
SET ROLE regress_iload_gate;
SELECT * FROM gate('t', 6);
RESET ROLE;
ALTER TABLE t OWNER TO CURRENT_USER;
ALTER TABLE t DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY;
DROP POLICY all_rows ON t;
GRANT SELECT, INSERT, DELETE ON t TO regress_iload_gate;
ALTER TABLE t_1 ENABLE ROW LEVEL SECURITY;
SET ROLE regress_iload_gate;
SELECT * FROM gate('t', 7);
RESET ROLE;
ALTER TABLE t_1 DISABLE ROW LEVEL SECURITY;

-- rules, of the table and of a leaf; of another leaf they do not count
CREATE TABLE log (v text);
CREATE RULE note AS ON DELETE TO t DO ALSO INSERT INTO log VALUES ('deleted');
SELECT replace_partition('t', '2024-01-01', 'SELECT $1 AS d', method => 'swap');
DROP RULE note ON t;
CREATE RULE note AS ON INSERT TO t_1 DO ALSO INSERT INTO log VALUES ('inserted');
SELECT * FROM gate('t', 8);
DROP RULE note ON t_1;
CREATE RULE note AS ON INSERT TO t_2 DO ALSO INSERT INTO log VALUES ('inserted');
SELECT * FROM gate('t', 9);
DROP RULE note ON t_2;

-- triggers: of rows and of statements, of the table and of the leaf
CREATE TRIGGER see AFTER DELETE ON t FOR EACH STATEMENT EXECUTE FUNCTION nothing();
SELECT * FROM gate('t', 10);
-- one that is disabled does not count
ALTER TABLE t DISABLE TRIGGER see;
SELECT * FROM gate('t', 11);
ALTER TABLE t ENABLE ALWAYS TRIGGER see;
SELECT * FROM gate('t', 12);
DROP TRIGGER see ON t;
CREATE TRIGGER see AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION nothing();
SELECT * FROM gate('t', 13);
DROP TRIGGER see ON t;
CREATE TRIGGER see AFTER DELETE ON t_1 FOR EACH ROW EXECUTE FUNCTION nothing();
SELECT * FROM gate('t', 14);
ALTER TABLE t_1 DISABLE TRIGGER see;
SELECT * FROM gate('t', 15);
DROP TRIGGER see ON t_1;
CREATE TRIGGER see AFTER INSERT ON t_1 FOR EACH STATEMENT EXECUTE FUNCTION nothing();
SELECT * FROM gate('t', 16);
DROP TRIGGER see ON t_1;
-- nor does one of another leaf, or for what a load does not do
CREATE TRIGGER see AFTER INSERT OR DELETE ON t_2 FOR EACH ROW EXECUTE FUNCTION nothing();
CREATE TRIGGER see_update BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION nothing();
CREATE TRIGGER see_truncate BEFORE TRUNCATE ON t_1 FOR EACH STATEMENT EXECUTE FUNCTION nothing();
SELECT * FROM gate('t', 17);
DROP TRIGGER see ON t_2;
DROP TRIGGER see_update ON t;
DROP TRIGGER see_truncate ON t_1;

-- foreign keys: from the table and from the leaf, to the table and to the leaf
CREATE TABLE ids (id int PRIMARY KEY);
INSERT INTO ids SELECT generate_series(0, 100);
ALTER TABLE t ADD CONSTRAINT fk FOREIGN KEY (id) REFERENCES ids;
SELECT * FROM gate('t', 18);
ALTER TABLE t DROP CONSTRAINT fk;
ALTER TABLE t_1 ADD CONSTRAINT fk FOREIGN KEY (id) REFERENCES ids;
SELECT * FROM gate('t', 19);
ALTER TABLE t_1 DROP CONSTRAINT fk;
ALTER TABLE t ADD CONSTRAINT t_key UNIQUE (d, id);
CREATE TABLE refers (d date, id int, FOREIGN KEY (d, id) REFERENCES t (d, id));
SELECT * FROM gate('t', 20);
DROP TABLE refers;
CREATE TABLE refers (d date, id int, FOREIGN KEY (d, id) REFERENCES t_1 (d, id));
SELECT * FROM gate('t', 21);
DROP TABLE refers;
-- none of another leaf
CREATE TABLE refers (d date, id int, FOREIGN KEY (d, id) REFERENCES t_2 (d, id));
SELECT * FROM gate('t', 22);
DROP TABLE refers;
ALTER TABLE t DROP CONSTRAINT t_key;

-- a constraint that is checked later
ALTER TABLE t ADD CONSTRAINT t_key UNIQUE (d, id) DEFERRABLE;
SELECT swap ~ 'is deferrable' AS deferrable, auto, rows_right FROM gate('t', 23);
ALTER TABLE t DROP CONSTRAINT t_key;
ALTER TABLE t_1 ADD CONSTRAINT t_1_excl EXCLUDE (id WITH =) DEFERRABLE INITIALLY DEFERRED;
SELECT * FROM gate('t', 24);
ALTER TABLE t_1 DROP CONSTRAINT t_1_excl;

-- publications: of the table, of the leaf, of a schema, of everything
SET client_min_messages = error;
CREATE PUBLICATION swap_gate FOR TABLE t;
RESET client_min_messages;
-- rows without a replica identity can be inserted, but not deleted
ALTER TABLE t_1 REPLICA IDENTITY FULL;
SELECT * FROM gate('t', 25);
ALTER PUBLICATION swap_gate SET (publish = 'delete');
SELECT * FROM gate('t', 26);
ALTER PUBLICATION swap_gate SET (publish = 'update, truncate');
SELECT * FROM gate('t', 27);
ALTER PUBLICATION swap_gate SET (publish = 'insert');
ALTER PUBLICATION swap_gate SET TABLE t_1;
SELECT * FROM gate('t', 28);
ALTER PUBLICATION swap_gate SET TABLE t_2;
SELECT * FROM gate('t', 29);
ALTER PUBLICATION swap_gate SET TABLES IN SCHEMA iload_swap_gate;
SELECT * FROM gate('t', 30);
DROP PUBLICATION swap_gate;
SET client_min_messages = error;
CREATE PUBLICATION swap_gate FOR ALL TABLES;
RESET client_min_messages;
SELECT * FROM gate('t', 31);
DROP PUBLICATION swap_gate;
ALTER TABLE t_1 REPLICA IDENTITY DEFAULT;

-- rows that differ in ignored columns only are to stay; into an empty day any go
SELECT * FROM gate('t', 32, '{v}');
DELETE FROM t WHERE d = '2024-01-01';
SELECT * FROM gate('t', 33, '{v}');
-- a list of nothing ignores nothing
SELECT * FROM gate('t', 34, '{}');

-- a cursor of this session that reads the leaf, by the table or by itself
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM t WHERE d = '2024-01-01' ORDER BY id;
FETCH 1 FROM c;
SELECT * FROM gate('t', 35);
FETCH 1 FROM c;
CLOSE c;
-- one of the other day, or one whose rows have been put aside, does not count
DECLARE c CURSOR FOR SELECT id FROM t WHERE d = '2024-01-02';
SELECT * FROM gate('t', 36);
COMMIT;
DECLARE c CURSOR WITH HOLD FOR SELECT id FROM t WHERE d = '2024-01-01';
SELECT * FROM gate('t', 37);
CLOSE c;
-- the very statement that calls
SELECT g.* FROM (SELECT FROM t WHERE d = '2024-01-01' LIMIT 1) AS one, gate('t', 38) g;
SELECT g.* FROM (SELECT FROM t WHERE d = '2024-01-02' LIMIT 1) AS one, gate('t', 39) g;
-- the leaf itself as the target
SELECT * FROM gate('t_1', 40);
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM t WHERE d = '2024-01-01' ORDER BY id;
SELECT * FROM gate('t_1', 41);
ROLLBACK;

-- triggers that are still to come: those of rows that are gone after a swap
CREATE CONSTRAINT TRIGGER later AFTER UPDATE ON t_1 DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION nothing();
BEGIN;
UPDATE t SET v = 'changed' WHERE d = '2024-01-01' AND id = 1;
SELECT * FROM gate('t', 42);
SET CONSTRAINTS ALL IMMEDIATE;
SELECT * FROM gate('t', 43);
COMMIT;
DROP TRIGGER later ON t_1;

-- a logical replication slot of this database may decode anything
SELECT FROM pg_create_logical_replication_slot('regress_swap_gate', 'pgoutput');
SELECT * FROM gate('t', 44);
-- but what is not in the WAL
ALTER TABLE t_1 SET UNLOGGED;
SELECT * FROM gate('t', 45);
ALTER TABLE t_1 SET LOGGED;
SELECT pg_drop_replication_slot('regress_swap_gate');
SELECT * FROM gate('t', 46);

-- a slice of one value is not known to be all of a leaf
SELECT replace_slice('t', '2024-01-01', NULL, 'SELECT $1 AS d', method => 'swap');
SELECT count(*) FROM t WHERE d = '2024-01-01';

-- functions of an index are called by the caller of an INSERT, and by the owner when an
-- index is built
CREATE FUNCTION own(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';
CREATE INDEX called ON t_1 (own(v));
SELECT * FROM gate('t', 47);
DROP INDEX called;
CREATE INDEX called ON t_1 (id) WHERE own(v) > '';
SELECT * FROM gate('t', 48);
DROP INDEX called;
CREATE INDEX called ON t_1 (lower(v)) WHERE length(v) > 0;
SELECT * FROM gate('t', 49);
DROP INDEX called;
-- what a plugin of logical decoding reads as a catalog
ALTER TABLE t_1 SET (user_catalog_table = true);
SELECT * FROM gate('t', 50);
ALTER TABLE t_1 RESET (user_catalog_table);

SET client_min_messages = warning;
DROP SCHEMA iload_swap_gate CASCADE;
DROP ROLE regress_iload_gate;
