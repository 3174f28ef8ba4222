--
-- statistics: what planner and monitoring know after a load
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotent_load;
CREATE SCHEMA iload_statistics;
CREATE ROLE regress_iload_owner;
CREATE ROLE regress_iload_loader;
GRANT USAGE ON SCHEMA iload_statistics TO regress_iload_owner, regress_iload_loader;
RESET client_min_messages;
SET search_path = iload_statistics, public;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
\set SHOW_CONTEXT never

LOAD 'idempotent_load';
SET idempotent_load.swap_min_size = 0;

-- Autovacuum is not to come between.
CREATE TABLE t (d date, id int, n int, v text) PARTITION BY RANGE (d);
CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM ('2024-01-01') TO ('2024-01-02') WITH (autovacuum_enabled = off);
CREATE TABLE t_2 PARTITION OF t FOR VALUES FROM ('2024-01-02') TO ('2024-01-03') WITH (autovacuum_enabled = off);
CREATE VIEW planner AS
SELECT relname, reltuples, relpages = pg_relation_size(oid) / current_setting('block_size')::int AS pages_right, relallvisible = relpages AS all_visible
FROM pg_class WHERE relname ~ '^t_\d$' AND relnamespace = 'iload_statistics'::regnamespace;
CREATE VIEW known AS
SELECT tablename, attname, n_distinct, null_frac, most_common_vals::text, most_common_freqs
FROM pg_stats WHERE schemaname = 'iload_statistics' AND tablename ~ '^t_\d$';

-- after a swap, in the same transaction
-- (of 2000 rows: ids all differ, of n there are five, 500 rows have no v)
BEGIN;
SELECT method FROM replace_partition('t', '2024-01-01', $$SELECT $1 AS d, i AS id, i % 5 AS n, CASE WHEN i <= 1200 THEN 'a' WHEN i <= 1500 THEN 'b' END AS v FROM generate_series(1, 2000) i$$);
SELECT * FROM planner ORDER BY relname;
SELECT * FROM known ORDER BY tablename, attname;
COMMIT;
SELECT * FROM planner ORDER BY relname;
-- the plan knows that there are 300 rows of 'b'
CREATE FUNCTION estimate(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan -> 0 -> 'Plan' ->> 'Plan Rows';
END
$$;
SELECT estimate($$SELECT FROM t WHERE d = '2024-01-01' AND v = 'b'$$);
-- after a diff
SELECT method FROM replace_partition('t', '2024-01-01', $$SELECT $1 AS d, i AS id, i % 5 AS n, CASE WHEN i <= 600 THEN 'a' WHEN i <= 1800 THEN 'b' END AS v FROM generate_series(1, 2000) i$$, method => 'diff');
SELECT reltuples, pages_right FROM planner WHERE relname = 't_1';
SELECT n_distinct, null_frac, most_common_vals, most_common_freqs FROM known WHERE attname = 'v';
-- and after a delete
SELECT method FROM replace_partition('t', '2024-01-01', $$SELECT $1 AS d, i AS id, i % 5 AS n, CASE WHEN i <= 600 THEN 'a' WHEN i <= 1000 THEN 'b' END AS v FROM generate_series(1, 1000) i$$, method => 'delete');
SELECT reltuples FROM planner WHERE relname = 't_1';
SELECT n_distinct, null_frac, most_common_vals, most_common_freqs FROM known WHERE attname = 'v';
-- the other leaf has none
SELECT relname, reltuples FROM planner ORDER BY relname;

-- only where autovacuum would: of 1000 rows more than 50 and a tenth
SELECT method, inserted + deleted AS changed FROM replace_partition('t', '2024-01-01', $$SELECT d, id, n, CASE WHEN id <= 675 THEN 'a' ELSE 'b' END AS v FROM t WHERE d = $1$$, method => 'diff');
SELECT most_common_freqs FROM known WHERE attname = 'v';
SELECT method, inserted + deleted AS changed FROM replace_partition('t', '2024-01-01', $$SELECT d, id, n, CASE WHEN id <= 751 THEN 'a' ELSE 'b' END AS v FROM t WHERE d = $1$$, method => 'diff');
SELECT most_common_freqs FROM known WHERE attname = 'v';
-- by the server's thresholds
SET idempotent_load.auto_analyze = on;
SHOW autovacuum_analyze_threshold;
SHOW autovacuum_analyze_scale_factor;
-- a retry gathers nothing
DELETE FROM pg_statistic WHERE starelid = 't_1'::regclass;
SELECT method FROM replace_partition('t', '2024-01-01', 'SELECT * FROM t WHERE d = $1');
SELECT count(*) FROM known WHERE tablename = 't_1';
-- nor does a load that is told not to; by then the swap itself knows nothing
SET idempotent_load.auto_analyze = off;
SELECT method FROM replace_partition('t', '2024-01-01', $$SELECT $1 AS d, i AS id FROM generate_series(1, 2000) i$$);
SELECT count(*) FROM known WHERE tablename = 't_1';
SELECT method FROM replace_partition('t', '2024-01-01', $$SELECT $1 AS d, -i AS id FROM generate_series(1, 2000) i$$, method => 'diff');
SELECT count(*) FROM known WHERE tablename = 't_1';
RESET idempotent_load.auto_analyze;

-- a first load in a partition that it makes
SELECT method FROM replace_partition('t', '2024-01-05', $$SELECT $1 AS d, i AS id, 1 AS n FROM generate_series(1, 100) i$$);
SELECT reltuples, relpages FROM pg_class WHERE oid = 't_20240105'::regclass;
SELECT n_distinct, most_common_vals FROM pg_stats WHERE tablename = 't_20240105' AND attname = 'n';
-- several leaves, each for itself
CREATE TABLE hours (at timestamp, n int) PARTITION BY RANGE (at);
CREATE TABLE hours_am PARTITION OF hours FOR VALUES FROM ('2024-01-01 00:00') TO ('2024-01-01 12:00') WITH (autovacuum_enabled = off);
CREATE TABLE hours_pm PARTITION OF hours FOR VALUES FROM ('2024-01-01 12:00') TO ('2024-01-02 00:00') WITH (autovacuum_enabled = off);
SELECT method FROM replace_partition('hours', '2024-01-01', $$SELECT $1::date + make_interval(mins => i * 10) AS at, 1 AS n FROM generate_series(0, 99) i$$);
SELECT relname, reltuples FROM pg_class WHERE oid IN ('hours_am'::regclass, 'hours_pm'::regclass) ORDER BY 1;

-- not of a table that holds other slices too
CREATE TABLE shared (d date, n int) WITH (autovacuum_enabled = off);
SELECT method FROM replace_partition('shared', '2024-01-01', 'SELECT $1 AS d, n FROM generate_series(1, 500) n');
SELECT reltuples FROM pg_class WHERE oid = 'shared'::regclass;
SELECT count(*) FROM pg_stats WHERE schemaname = 'iload_statistics' AND tablename = 'shared';
CREATE TABLE monthly (d date, n int) PARTITION BY RANGE (d);
CREATE TABLE monthly_1 PARTITION OF monthly FOR VALUES FROM ('2024-01-01') TO ('2024-02-01') WITH (autovacuum_enabled = off);
SELECT method FROM replace_partition('monthly', '2024-01-01', 'SELECT $1 AS d, n FROM generate_series(1, 500) n');
SELECT reltuples FROM pg_class WHERE oid = 'monthly_1'::regclass;
SELECT method FROM replace_partition('monthly', '2024-01-01', 'SELECT $1 AS d, n FROM generate_series(1, 501) n', period => '1 month');
SELECT reltuples FROM pg_class WHERE oid = 'monthly_1'::regclass;

-- who may not ANALYZE: it is done for the owner, who needs no other rights for it
ALTER TABLE t_1 OWNER TO regress_iload_owner;
GRANT SELECT, INSERT, DELETE ON t TO regress_iload_loader;
DELETE FROM pg_statistic WHERE starelid = 't_1'::regclass;
SET ROLE regress_iload_loader;
SELECT method FROM replace_partition('t', '2024-01-01', $$SELECT $1 AS d, i AS id, 7 AS n FROM generate_series(1, 300) i$$);
SELECT current_user = 'regress_iload_loader' AS still_the_loader;
SELECT method FROM replace_partition('t', '2024-01-01', $$SELECT $1 AS d, i AS id, 8 AS n FROM generate_series(1, 300) i$$, method => 'diff');
RESET ROLE;
SELECT n_distinct, most_common_vals FROM known WHERE tablename = 't_1' AND attname = 'n';
REVOKE USAGE ON SCHEMA iload_statistics FROM regress_iload_owner;
SET ROLE regress_iload_loader;
SELECT method FROM replace_partition('t', '2024-01-01', $$SELECT $1 AS d, i AS id, 9 AS n FROM generate_series(1, 300) i$$, method => 'diff');
RESET ROLE;
SELECT n_distinct, most_common_vals FROM known WHERE tablename = 't_1' AND attname = 'n';
ALTER TABLE t_1 OWNER TO CURRENT_USER;

-- cumulative statistics: rows that have come and gone, alive and dead, counted when the
-- transaction has committed; ANALYZE would put them right, so at first without it
SET idempotent_load.auto_analyze = off;
CREATE TABLE counted (d date, n int) PARTITION BY RANGE (d);
CREATE TABLE counted_1 PARTITION OF counted FOR VALUES FROM ('2024-01-01') TO ('2024-01-02') WITH (autovacuum_enabled = off);
CREATE VIEW counts AS
SELECT n_tup_ins, n_tup_upd, n_tup_del, n_live_tup, n_dead_tup FROM pg_stat_user_tables WHERE relid = 'counted_1'::regclass;
SELECT method FROM replace_partition('counted', '2024-01-01', 'SELECT $1 AS d, n FROM generate_series(1, 100) n');
SELECT pg_stat_force_next_flush();
SELECT * FROM counts;
SELECT method FROM replace_partition('counted', '2024-01-01', 'SELECT $1 AS d, n FROM generate_series(31, 100) n', method => 'diff');
SELECT pg_stat_force_next_flush();
SELECT * FROM counts;
SELECT method FROM replace_partition('counted', '2024-01-01', 'SELECT $1 AS d, n FROM generate_series(101, 350) n', method => 'swap');
SELECT pg_stat_force_next_flush();
SELECT * FROM counts;
-- undone
BEGIN;
SELECT method FROM replace_partition('counted', '2024-01-01', 'SELECT $1 AS d, n FROM generate_series(1, 10) n', method => 'swap');
ROLLBACK;
SELECT pg_stat_force_next_flush();
SELECT n_live_tup FROM counts;
RESET idempotent_load.auto_analyze;
-- with rows written after it
BEGIN;
SELECT method FROM replace_partition('counted', '2024-01-01', 'SELECT $1 AS d, n FROM generate_series(1, 20) n', method => 'swap');
INSERT INTO counted VALUES ('2024-01-01', 0);
DELETE FROM counted WHERE n <= 5;
COMMIT;
SELECT pg_stat_force_next_flush();
SELECT n_live_tup, n_dead_tup FROM counts;
SELECT count(*) FROM counted;

-- storage parameters of the table come before the server's settings
CREATE TABLE tuned (d date, n int) PARTITION BY RANGE (d);
CREATE TABLE tuned_1 PARTITION OF tuned FOR VALUES FROM ('2024-01-01') TO ('2024-01-02') WITH (autovacuum_enabled = off, autovacuum_analyze_threshold = 5000, autovacuum_analyze_scale_factor = 0);
CREATE FUNCTION tune(n int, method text) RETURNS TABLE (method text, analyzed bigint) LANGUAGE sql AS $$
SELECT method FROM replace_partition('tuned', '2024-01-01', format('SELECT $1 AS d, n FROM generate_series(1, %s) n', n), method => method);
SELECT method, count(*) FROM pg_stats WHERE tablename = 'tuned_1' AND attname = 'n'
$$;
SELECT * FROM tune(2000, 'swap');
SELECT * FROM tune(3000, 'diff');
ALTER TABLE tuned_1 SET (autovacuum_analyze_threshold = 999);
SELECT * FROM tune(4000, 'diff');

-- an error of ANALYZE, here of an index, is a warning, and the rows are there
CREATE TABLE failing (d date, n int) PARTITION BY RANGE (d);
CREATE TABLE failing_1 PARTITION OF failing FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
CREATE ROLE regress_iload_failing;
CREATE FUNCTION picky(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF current_user = 'regress_iload_failing' THEN
		RAISE 'not for you';
	END IF;
	RETURN n;
END
$$;
ALTER TABLE failing_1 OWNER TO CURRENT_USER;
CREATE INDEX ON failing_1 (picky(n));
ALTER TABLE failing_1 OWNER TO regress_iload_failing;
SELECT method, inserted FROM replace_partition('failing', '2024-01-01', 'SELECT $1 AS d, n FROM generate_series(1, 1000) n');
SELECT count(*), sum(n) FROM failing;

SET client_min_messages = warning;
DROP SCHEMA iload_statistics CASCADE;
DROP ROLE regress_iload_owner, regress_iload_loader, regress_iload_failing;
