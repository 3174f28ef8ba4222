-- Small jobs, each with the verdict that is right: which reruns show a difference,
-- in which table and columns, and for what cause; none for a job that may be
-- retried.  The verdicts were worked out by thinking about the job.  Whatever the
-- verdict, a check leaves the database and the session as they were.

SET client_min_messages = error;
SET datestyle = 'ISO, MDY';
SET intervalstyle = 'postgres';
-- a zone in which it is about noon: a tick of the clock does not change the date
SELECT set_config('timezone', 'Etc/GMT' || CASE WHEN h = 12 THEN '' ELSE to_char(h - 12, 'FMSG99') END, false) <> ''
FROM (SELECT extract(hour FROM now() AT TIME ZONE 'UTC')::int AS h) AS utc \g /dev/null

-- A job is a query, which loads "target"; a command; or the body of a function or
-- procedure job(day date).  "setup" comes before it.
CREATE TABLE cases (
	n int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name text NOT NULL UNIQUE,
	kind text NOT NULL CHECK (kind IN ('query', 'command', 'sql', 'plpgsql', 'procedure')),
	body text NOT NULL,
	-- "rerun cause table(columns)" for each violation; columns where the first one has them
	wanted text[] NOT NULL DEFAULT '{}',
	setup text,
	-- null: all for a good job, the default for a bad one
	reruns text[],
	ignored text[],
	attributes text NOT NULL DEFAULT '',
	-- what the source of the first violation must match
	blamed text
);

-- Rows that are added again: append.
INSERT INTO cases (name, kind, body, wanted, blamed) VALUES
('append', 'command', 'INSERT INTO target SELECT d, i, v FROM source WHERE d = $1',
	'{same append target,crash append target}', '^INSERT, in: INSERT INTO target'),
('append by a function', 'sql', 'INSERT INTO target SELECT d, i, v FROM source WHERE d = day',
	'{same append target,crash append target}', 'SQL function "job"'),
('append by a procedure', 'procedure', 'BEGIN INSERT INTO target SELECT d, i, v FROM source WHERE d = day; END',
	'{same append target,crash append target}', 'PL/pgSQL function w?\.?job\(date\) line 1 at SQL statement'),
('append by dynamic SQL', 'plpgsql', $$ BEGIN EXECUTE format('INSERT INTO target VALUES (%L, 1), (%1$L, 2)', day); END $$,
	'{same append target,crash append target}', 'INSERT INTO target VALUES'),
('append by a loop', 'plpgsql', 'DECLARE r record; BEGIN
	FOR r IN SELECT * FROM source WHERE d = day LOOP INSERT INTO target VALUES (r.d, r.i, r.v); END LOOP; END',
	'{same append target,crash append target}', 'line 2'),
('append by MERGE', 'command', 'MERGE INTO target USING (SELECT * FROM source WHERE d = $1) s ON false
	WHEN NOT MATCHED THEN INSERT VALUES (s.d, s.i, s.v)',
	'{same append target,crash append target}', '^MERGE'),
('append of the wrong statement of two', 'command', 'DELETE FROM keyed; INSERT INTO keyed (i) SELECT i FROM source WHERE d = $1;
	INSERT INTO target SELECT d, i FROM source WHERE d = $1',
	'{same append target,crash append target}', '^INSERT, in: INSERT INTO target'),
('append with a key', 'command', 'INSERT INTO keyed SELECT i, d, v FROM source WHERE d = $1',
	'{same append,crash append}', NULL),
('ON CONFLICT without the right key', 'command', 'INSERT INTO numbered (d, i) SELECT d, i FROM source WHERE d = $1 ON CONFLICT DO NOTHING',
	'{same append numbered,crash append numbered}', '^INSERT'),
('append with loaded_at', 'command', 'INSERT INTO stamped (d, i) SELECT d, i FROM source WHERE d = $1',
	'{same append stamped,crash append stamped,clock append stamped}', '^INSERT'),
('append with a random key', 'command', 'INSERT INTO named (d, i) SELECT d, i FROM source WHERE d = $1',
	'{same append named,crash append named}', '^INSERT'),
('append beside an unlogged and a temporary table', 'plpgsql', 'BEGIN
	CREATE TEMP TABLE pass ON COMMIT DROP AS SELECT * FROM source WHERE d = day; TRUNCATE kept; INSERT INTO kept SELECT i FROM pass;
	INSERT INTO target SELECT d, i FROM pass; END',
	'{same append target,crash append target}', 'INSERT INTO target');
UPDATE cases SET setup = 'CREATE TABLE numbered (id serial PRIMARY KEY, d date, i int)' WHERE body ~ 'numbered';
UPDATE cases SET setup = 'CREATE TABLE stamped (d date, i int, loaded_at timestamptz DEFAULT now())' WHERE body ~ 'stamped';
UPDATE cases SET setup = 'CREATE TABLE named (d date, i int, u uuid DEFAULT gen_random_uuid())' WHERE body ~ 'named';
UPDATE cases SET setup = 'CREATE UNLOGGED TABLE kept (i int)' WHERE body ~ 'kept';
INSERT INTO cases (name, kind, setup, body, wanted, blamed) VALUES
('append by COPY', 'command', $$SELECT to_file('SELECT d, i, v, NULL FROM source WHERE d = ''2024-01-02''')$$,
	$$COPY target FROM 'idempotent_jobs.txt'$$, '{same append target,crash append target}', '^COPY FROM'),
('append to a partition that the job makes', 'plpgsql', 'CREATE TABLE parted (d date, i int) PARTITION BY RANGE (d)', $$ BEGIN
	EXECUTE format('CREATE TABLE IF NOT EXISTS parted_%s PARTITION OF parted FOR VALUES FROM (%L) TO (%L)', to_char(day, 'YYYYMMDD'), day, day + 1);
	INSERT INTO parted SELECT d, i FROM source WHERE d = day; END $$,
	'{same append parted,crash append parted}', 'INSERT INTO parted'),
('append by a statement trigger', 'command', 'CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
	$f$ BEGIN INSERT INTO log SELECT ''loaded '' || count(*) FROM fresh; RETURN NULL; END $f$;
	CREATE TRIGGER note AFTER INSERT ON target REFERENCING NEW TABLE AS fresh EXECUTE FUNCTION note()',
	'DELETE FROM target WHERE d = $1; INSERT INTO target SELECT d, i FROM source WHERE d = $1',
	'{same append log,crash append log}', 'PL/pgSQL function note\(\) line 1'),
('append by a row trigger', 'command', 'CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
	$f$ BEGIN INSERT INTO log VALUES (NEW.i); RETURN NULL; END $f$;
	CREATE TRIGGER note AFTER UPDATE ON keyed FOR EACH ROW EXECUTE FUNCTION note(); INSERT INTO keyed VALUES (1), (2)',
	'UPDATE keyed SET v = 5', '{same append log,crash append log}', 'note\(\)'),
('append by a deferred constraint trigger', 'plpgsql', 'CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
	$f$ BEGIN INSERT INTO log VALUES (NEW.i); RETURN NULL; END $f$;
	CREATE CONSTRAINT TRIGGER note AFTER INSERT ON target DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note()',
	'BEGIN DELETE FROM target WHERE d = day; INSERT INTO target SELECT d, i FROM source WHERE d = day; END',
	'{same append log,crash append log}', 'INSERT INTO log'),
('children appended to parents that stay', 'command', 'CREATE TABLE parent (i int PRIMARY KEY, d date);
	CREATE TABLE child (i int REFERENCES parent ON DELETE CASCADE, t text)',
	'INSERT INTO parent SELECT i, d FROM source WHERE d = $1 ON CONFLICT DO NOTHING; INSERT INTO child SELECT i, v FROM source WHERE d = $1',
	'{same append child,crash append child}', 'INSERT INTO child'),
('stage not emptied', 'command', 'CREATE TABLE stage (d date, i int)', 'INSERT INTO stage SELECT d, i FROM source WHERE d = $1;
	DELETE FROM target WHERE d = $1; INSERT INTO target SELECT DISTINCT d, i FROM stage WHERE d = $1',
	'{same append stage,crash append stage}', 'INSERT INTO stage'),
('stage not emptied, and copied twice', 'command', 'CREATE TABLE stage (d date, i int)', 'INSERT INTO stage SELECT d, i FROM source WHERE d = $1;
	DELETE FROM target WHERE d = $1; INSERT INTO target SELECT d, i FROM stage WHERE d = $1',
	'{same append stage,same append target,crash append stage,crash append target}', 'INSERT INTO stage');

-- The day, or the table, is replaced.
INSERT INTO cases (name, kind, setup, body) VALUES
('replace by a query', 'query', NULL, 'SELECT d, i, v FROM source WHERE d = $1'),
('replace by a command', 'command', NULL, 'DELETE FROM target WHERE d = $1; INSERT INTO target SELECT d, i, v FROM source WHERE d = $1'),
('replace by an SQL function', 'sql', NULL, 'DELETE FROM target WHERE d = day; INSERT INTO target SELECT d, i, v FROM source WHERE d = day'),
('replace by a PL/pgSQL function', 'plpgsql', NULL, 'BEGIN DELETE FROM target WHERE d = day; INSERT INTO target SELECT d, i, v FROM source WHERE d = day; END'),
('replace by a procedure', 'procedure', NULL, 'BEGIN DELETE FROM target WHERE d = day; INSERT INTO target SELECT d, i, v FROM source WHERE d = day; END'),
('TRUNCATE and INSERT', 'command', NULL, 'TRUNCATE target; INSERT INTO target SELECT d, i, v FROM source WHERE d <= $1'),
('TRUNCATE and COPY', 'command', $$SELECT to_file('SELECT d, i, v, NULL FROM source WHERE d = ''2024-01-02''')$$,
	$$TRUNCATE target; COPY target FROM 'idempotent_jobs.txt'$$),
('DELETE and COPY in PL/pgSQL', 'plpgsql', $$SELECT to_file('SELECT d, i, v, NULL FROM source WHERE d = ''2024-01-02''')$$,
	$$ BEGIN DELETE FROM target WHERE d = day; COPY target FROM 'idempotent_jobs.txt'; END $$),
('DROP and CREATE TABLE AS', 'command', NULL, 'DROP TABLE IF EXISTS built; CREATE TABLE built AS SELECT d, i, v FROM source WHERE d = $1'),
('DROP and SELECT INTO', 'command', NULL, 'DROP TABLE IF EXISTS built; SELECT d, i, v INTO built FROM source WHERE d = $1'),
('built anew and renamed', 'command', NULL, 'CREATE TABLE fresh AS SELECT d, i, v FROM source WHERE d <= $1; DROP TABLE target; ALTER TABLE fresh RENAME TO target'),
('two tables change places', 'command', 'CREATE TABLE other (LIKE target)', 'TRUNCATE other; INSERT INTO other SELECT d, i, v FROM source WHERE d = $1;
	ALTER TABLE target RENAME TO aside; ALTER TABLE other RENAME TO target; ALTER TABLE aside RENAME TO other; TRUNCATE other'),
('partition dropped and made', 'plpgsql', 'CREATE TABLE parted (d date, i int) PARTITION BY RANGE (d)', $$ BEGIN
	DROP TABLE IF EXISTS parted_day; CREATE TABLE parted_day (LIKE parted); INSERT INTO parted_day SELECT d, i FROM source WHERE d = day;
	EXECUTE format('ALTER TABLE parted ATTACH PARTITION parted_day FOR VALUES FROM (%L) TO (%L)', day, day + 1); END $$),
('partition made where it is missing', 'plpgsql', 'CREATE TABLE parted (d date, i int) PARTITION BY RANGE (d)', $$ BEGIN
	EXECUTE format('CREATE TABLE IF NOT EXISTS parted_%s PARTITION OF parted FOR VALUES FROM (%L) TO (%L)', to_char(day, 'YYYYMMDD'), day, day + 1);
	DELETE FROM parted WHERE d = day; INSERT INTO parted SELECT d, i FROM source WHERE d = day; END $$),
('partitions and a query', 'query', 'DROP TABLE target; CREATE TABLE target (d date, i int) PARTITION BY RANGE (d);
	CREATE TABLE target_1 PARTITION OF target FOR VALUES FROM (''2024-01-01'') TO (''2024-01-02'')', 'SELECT d, i FROM source WHERE d = $1'),
('partition that a query replaces', 'query', 'DROP TABLE target; CREATE TABLE target (d date, i int) PARTITION BY RANGE (d);
	CREATE TABLE target_1 PARTITION OF target FOR VALUES FROM (''2024-01-02'') TO (''2024-01-03''); INSERT INTO target VALUES (''2024-01-02'', 0)', 'SELECT d, i FROM source WHERE d = $1'),
('generated column', 'command', 'ALTER TABLE target ADD g text GENERATED ALWAYS AS (v * 2 || ''!'') STORED',
	'DELETE FROM target WHERE d = $1; INSERT INTO target SELECT d, i, v FROM source WHERE d = $1'),
('materialized view', 'command', 'CREATE MATERIALIZED VIEW total AS SELECT d, sum(v) FROM source GROUP BY d', 'REFRESH MATERIALIZED VIEW total'),
('parents and children by cascade', 'command', 'CREATE TABLE parent (i int PRIMARY KEY, d date);
	CREATE TABLE child (i int REFERENCES parent ON DELETE CASCADE, t text)',
	'DELETE FROM parent WHERE d = $1; INSERT INTO parent SELECT i, d FROM source WHERE d = $1; INSERT INTO child SELECT i, v FROM source WHERE d = $1'),
('cascade into partitions', 'command', 'CREATE TABLE parent (d date PRIMARY KEY); INSERT INTO parent VALUES (''2024-01-01'');
	CREATE TABLE child (d date REFERENCES parent ON DELETE CASCADE, i int) PARTITION BY RANGE (d);
	CREATE TABLE child_1 PARTITION OF child FOR VALUES FROM (''2024-01-01'') TO (''2024-01-02'');
	CREATE TABLE child_2 PARTITION OF child FOR VALUES FROM (''2024-01-02'') TO (''2024-01-03''); INSERT INTO child VALUES (''2024-01-01'', 1)',
	'DELETE FROM parent WHERE d = $1; INSERT INTO parent VALUES ($1); INSERT INTO child SELECT d, i FROM source WHERE d = $1'),
('ON DELETE SET NULL', 'command', 'CREATE TABLE parent (i int PRIMARY KEY, d date); INSERT INTO parent VALUES (1, ''2024-01-02'');
	CREATE TABLE child (i int REFERENCES parent ON DELETE SET NULL); INSERT INTO child VALUES (1)',
	'DELETE FROM parent WHERE d = $1; INSERT INTO parent SELECT i, d FROM source WHERE d = $1'),
('ON UPDATE CASCADE', 'command', 'CREATE TABLE parent (t text PRIMARY KEY); INSERT INTO parent VALUES (''a''), (''b'');
	CREATE TABLE child (t text REFERENCES parent ON UPDATE CASCADE); INSERT INTO child VALUES (''a''), (''b'')',
	'UPDATE parent SET t = upper(t)'),
('children before their parents, deferred', 'plpgsql', 'CREATE TABLE parent (i int PRIMARY KEY, d date);
	CREATE TABLE child (i int REFERENCES parent DEFERRABLE INITIALLY DEFERRED, d date)',
	'BEGIN DELETE FROM child WHERE d = day; DELETE FROM parent WHERE d = day;
	INSERT INTO child SELECT i, d FROM source WHERE d = day; INSERT INTO parent SELECT i, d FROM source WHERE d = day; END'),
('totals kept by a deferred trigger', 'command', 'CREATE TABLE total (d date PRIMARY KEY, n bigint);
	CREATE FUNCTION total() RETURNS trigger LANGUAGE plpgsql AS
	$f$ BEGIN INSERT INTO total SELECT NEW.d, count(*) FROM target WHERE d = NEW.d ON CONFLICT (d) DO UPDATE SET n = excluded.n; RETURN NULL; END $f$;
	CREATE CONSTRAINT TRIGGER total AFTER INSERT ON target DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION total()',
	'DELETE FROM target WHERE d = $1; INSERT INTO target SELECT d, i FROM source WHERE d = $1'),
('totals kept by triggers, both ways', 'command', 'CREATE TABLE total (n int); INSERT INTO total VALUES (0);
	CREATE FUNCTION up() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN UPDATE total SET n = n + 1; RETURN NULL; END $f$;
	CREATE FUNCTION down() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN UPDATE total SET n = n - 1; RETURN NULL; END $f$;
	CREATE TRIGGER up AFTER INSERT ON target FOR EACH ROW EXECUTE FUNCTION up();
	CREATE TRIGGER down AFTER DELETE ON target FOR EACH ROW EXECUTE FUNCTION down()',
	'DELETE FROM target WHERE d = $1; INSERT INTO target SELECT d, i FROM source WHERE d = $1'),
('trigger that changes the row', 'command', 'CREATE FUNCTION mend() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN NEW.t := ''v'' || NEW.v; RETURN NEW; END $f$;
	CREATE TRIGGER mend BEFORE INSERT ON target FOR EACH ROW EXECUTE FUNCTION mend()',
	'DELETE FROM target WHERE d = $1; INSERT INTO target SELECT d, i, v FROM source WHERE d = $1');

-- Rows merge by a key.
INSERT INTO cases (name, kind, setup, body) VALUES
('ON CONFLICT DO NOTHING', 'command', NULL, 'INSERT INTO keyed SELECT i, d, v FROM source WHERE d = $1 ON CONFLICT DO NOTHING'),
('ON CONFLICT DO UPDATE', 'command', NULL, 'INSERT INTO keyed SELECT i, d, v FROM source WHERE d = $1 ON CONFLICT (i) DO UPDATE SET d = excluded.d, v = excluded.v'),
('rows of other days are updated', 'command', 'INSERT INTO keyed SELECT i, d, 9 FROM source WHERE d = ''2024-01-01''',
	'INSERT INTO keyed SELECT i, d, v FROM source WHERE d = $1 ON CONFLICT (i) DO UPDATE SET d = excluded.d, v = excluded.v'),
('only what differs is written', 'command', NULL, 'INSERT INTO keyed AS k SELECT i, d, v FROM source WHERE d = $1
	ON CONFLICT (i) DO UPDATE SET v = excluded.v WHERE k.v IS DISTINCT FROM excluded.v'),
('highest value wins', 'command', NULL, 'INSERT INTO keyed AS k SELECT i, d, v FROM source WHERE d = $1 ON CONFLICT (i) DO UPDATE SET v = greatest(k.v, excluded.v)'),
('MERGE', 'command', 'INSERT INTO keyed VALUES (1, ''2024-01-01'', 7)', 'MERGE INTO keyed k USING (SELECT * FROM source WHERE d = $1) s ON k.i = s.i
	WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (i, d, v) VALUES (s.i, s.d, s.v)'),
('MERGE in PL/pgSQL, that deletes', 'plpgsql', 'INSERT INTO keyed VALUES (1, ''2024-01-01'', 7), (2, ''2024-01-01'', 8)',
	'BEGIN MERGE INTO keyed k USING (SELECT * FROM source WHERE d = day) s ON k.i = s.i
	WHEN MATCHED AND s.v = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED AND s.v <> 1 THEN INSERT (i, d, v) VALUES (s.i, s.d, s.v); END'),
('rows that are not there, one by one', 'command', NULL, 'INSERT INTO target SELECT d, i, v FROM source s WHERE d = $1
	AND NOT EXISTS (SELECT FROM target t WHERE (t.d, t.i) = (s.d, s.i))'),
('EXCEPT what is there', 'command', NULL, 'INSERT INTO target (d, i, v) SELECT d, i, v FROM source WHERE d = $1 EXCEPT SELECT d, i, v FROM target'),
('identity with ON CONFLICT', 'command', 'CREATE TABLE numbered (id int GENERATED ALWAYS AS IDENTITY, d date, i int UNIQUE);
	INSERT INTO numbered (d, i) SELECT d, i FROM source WHERE d = ''2024-01-02''',
	'INSERT INTO numbered (d, i) SELECT d, i FROM source WHERE d = $1 ON CONFLICT DO NOTHING'),
('SCD2 by the date', 'command', 'CREATE TABLE dim (i int, v int, since date, until date);
	INSERT INTO dim SELECT i, 0, ''2023-01-01'' FROM source WHERE d = ''2024-01-02'' AND i < 7',
	'UPDATE dim SET until = $1 FROM source s WHERE s.d = $1 AND s.i = dim.i AND until IS NULL AND dim.v <> s.v;
	INSERT INTO dim SELECT i, v, $1 FROM source s WHERE d = $1 AND NOT EXISTS (SELECT FROM dim WHERE dim.i = s.i AND until IS NULL)'),
('yesterday''s balance', 'plpgsql', 'INSERT INTO target VALUES (''2024-01-01'', 0, 100)',
	'BEGIN DELETE FROM target WHERE d = day; INSERT INTO target SELECT day, 0, t.v + s.v
	FROM (SELECT sum(v) AS v FROM target WHERE d = day - 1 AND i = 0) t, (SELECT sum(v) AS v FROM source WHERE d = day) s; END'),
('update in place', 'command', 'INSERT INTO target SELECT d, i, v FROM source', 'UPDATE target SET t = ''done'' WHERE d = $1'),
('retention by the date', 'command', 'INSERT INTO target SELECT d, i, v FROM source', 'DELETE FROM target WHERE d < $1'),
('writes nothing', 'sql', NULL, 'SELECT count(*) FROM source WHERE d = day'),
('nothing to write', 'query', NULL, 'SELECT d, i FROM source WHERE d = $1 AND i < 0');

-- Guards: what is there is taken for all.
INSERT INTO cases (name, kind, setup, body, wanted) VALUES
('skip if the day has rows', 'plpgsql', NULL, 'BEGIN
	IF NOT EXISTS (SELECT FROM target WHERE d = day) THEN INSERT INTO target SELECT d, i, v FROM source WHERE d = day; END IF; END',
	'{crash skip_if_present target}'),
('skip within the statement', 'command', NULL, 'INSERT INTO target SELECT d, i, v FROM source WHERE d = $1 AND NOT EXISTS (SELECT FROM target WHERE d = $1)',
	'{crash skip_if_present target}'),
('skip if the table is there', 'command', NULL, 'CREATE TABLE IF NOT EXISTS built AS SELECT d, i FROM source WHERE d = $1',
	'{crash skip_if_present built}'),
('day is marked as loaded', 'plpgsql', 'CREATE TABLE loaded (d date)', 'BEGIN IF EXISTS (SELECT FROM loaded WHERE d = day) THEN RETURN; END IF;
	DELETE FROM target WHERE d = day; INSERT INTO target SELECT d, i FROM source WHERE d = day; INSERT INTO loaded VALUES (day); END',
	'{crash skip_if_present target}'),
('watermark', 'command', NULL, 'INSERT INTO target SELECT d, i FROM source WHERE d = $1 AND i > (SELECT coalesce(max(i), 0) FROM target WHERE d = $1)',
	'{crash skip_if_present target}'),
('one table guards another', 'plpgsql', 'CREATE TABLE line (d date, i int)', 'BEGIN
	IF (SELECT count(*) FROM target WHERE d = day) = (SELECT count(*) FROM source WHERE d = day) THEN RETURN; END IF;
	DELETE FROM line WHERE d = day; DELETE FROM target WHERE d = day;
	INSERT INTO target SELECT d, i FROM source WHERE d = day; INSERT INTO line SELECT d, i FROM source WHERE d = day; END',
	'{crash skip_if_present line}'),
('lines of new heads only', 'command', 'CREATE TABLE line (i int PRIMARY KEY)', 'WITH fresh AS
	(INSERT INTO keyed SELECT i, d FROM source WHERE d = $1 ON CONFLICT DO NOTHING RETURNING i) INSERT INTO line SELECT i FROM fresh ON CONFLICT DO NOTHING',
	'{crash skip_if_present line}');
INSERT INTO cases (name, kind, setup, body, reruns) VALUES
('watermark, not after a crash', 'command', NULL, 'INSERT INTO target SELECT d, i FROM source WHERE d = $1 AND i > (SELECT coalesce(max(i), 0) FROM target WHERE d = $1)',
	'{same}'),
('guard, not after a crash', 'plpgsql', NULL, 'BEGIN
	IF NOT EXISTS (SELECT FROM target WHERE d = day) THEN INSERT INTO target SELECT d, i, v FROM source WHERE d = day; END IF; END',
	'{same,clock}');

-- The next result comes from the last one.
INSERT INTO cases (name, kind, setup, body, wanted, blamed) VALUES
('counter', 'command', NULL, 'INSERT INTO keyed AS k SELECT i, d, v FROM source WHERE d = $1 ON CONFLICT (i) DO UPDATE SET n = k.n + 1',
	'{same reads_target keyed(n),crash reads_target keyed(n)}', '^INSERT'),
('counter by MERGE', 'command', NULL, 'MERGE INTO keyed k USING (SELECT * FROM source WHERE d = $1) s ON k.i = s.i
	WHEN MATCHED THEN UPDATE SET n = k.n + s.v WHEN NOT MATCHED THEN INSERT (i, d, n) VALUES (s.i, s.d, s.v)',
	'{same reads_target keyed(n),crash reads_target keyed(n)}', '^MERGE'),
('counter in a trigger', 'command', 'CREATE TABLE total (n int); INSERT INTO total VALUES (0);
	CREATE FUNCTION up() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN UPDATE total SET n = n + 1; RETURN NULL; END $f$;
	CREATE TRIGGER up AFTER INSERT ON target FOR EACH ROW EXECUTE FUNCTION up()',
	'DELETE FROM target WHERE d = $1; INSERT INTO target SELECT d, i FROM source WHERE d = $1',
	'{same reads_target total(n),crash reads_target total(n)}', 'function up\(\)'),
('update of what is there', 'plpgsql', 'INSERT INTO target SELECT d, i, v FROM source', 'BEGIN UPDATE target SET v = v * 2 + 1 WHERE d = day; END',
	'{same reads_target target(v)}', '^UPDATE'),
('query over its own day', 'query', 'INSERT INTO target SELECT d, i, v FROM source', 'SELECT d, i, v + 1 AS v FROM target WHERE d = $1',
	'{same reads_target target(v),crash reads_target target()}', 'SELECT d, i, v \+ 1'),
('query over its own day, through a view', 'query', 'INSERT INTO target SELECT d, i, v FROM source; CREATE VIEW own AS SELECT * FROM target',
	'SELECT d, i, v + 1 AS v FROM own WHERE d = $1', '{same reads_target target(v),crash reads_target target()}', 'FROM own'),
('table copied onto itself', 'command', 'INSERT INTO target SELECT d, i, v FROM source', 'INSERT INTO target SELECT d, i, v FROM target WHERE d = $1',
	'{same reads_target target,crash reads_target target}', 'FROM target'),
('watermark that takes the last row again', 'command', NULL, 'INSERT INTO target SELECT d, i FROM source WHERE d = $1 AND i >= (SELECT coalesce(max(i), 0) FROM target WHERE d = $1)',
	'{same reads_target target,crash reads_target target}', '^INSERT'),
('smallest one is deleted, with its children', 'command', 'CREATE TABLE parent (i int PRIMARY KEY); INSERT INTO parent SELECT generate_series(1, 5);
	CREATE TABLE child (i int REFERENCES parent ON DELETE CASCADE); INSERT INTO child SELECT i FROM parent',
	'DELETE FROM parent WHERE i = (SELECT min(i) FROM parent)', '{same reads_target child,same reads_target parent}', NULL),
('keys are moved, and cascade', 'command', 'CREATE TABLE parent (i int PRIMARY KEY); INSERT INTO parent VALUES (1), (2);
	CREATE TABLE child (i int REFERENCES parent ON UPDATE CASCADE); INSERT INTO child VALUES (1), (2)',
	'UPDATE parent SET i = i + 10', '{same reads_target child(i),same reads_target parent(i)}', NULL),
('plus one by PL/pgSQL', 'plpgsql', 'INSERT INTO target VALUES (''2024-01-02'', 0, 5)', 'DECLARE x int; BEGIN
	SELECT v INTO x FROM target WHERE d = day; UPDATE target SET v = x + 1 WHERE d = day; END',
	'{same reads_target target(v)}', NULL);
INSERT INTO cases (name, kind, setup, body) VALUES
('query carries its rows over', 'query', 'INSERT INTO target VALUES (''2024-01-02'', 100, 5)',
	'SELECT d, i, v, t FROM target WHERE d = $1 UNION SELECT d, i, v, NULL FROM source WHERE d = $1');

-- The clock reaches a table.
INSERT INTO cases (name, kind, body, wanted, blamed)
SELECT f || ' is stored', (ARRAY['command', 'plpgsql', 'sql'])[1 + n % 3],
	CASE n % 3 WHEN 0 THEN format('DELETE FROM target WHERE d = $1; INSERT INTO target (d, t) VALUES ($1, %s)', f)
	WHEN 1 THEN format('BEGIN DELETE FROM target WHERE d = day; INSERT INTO target (d, t) VALUES (day, %s); END', f)
	ELSE format('DELETE FROM target WHERE d = day; INSERT INTO target (d, t) VALUES (day, %s)', f) END,
	'{same clock target(t),crash clock target(t),clock clock target(t)}', regexp_replace(f, '\(.*', '', 'g')
FROM unnest('{now(),transaction_timestamp(),statement_timestamp(),clock_timestamp(),timeofday(),CURRENT_TIMESTAMP,CURRENT_TIMESTAMP(0),
	CURRENT_TIME,CURRENT_TIME(0),LOCALTIME,LOCALTIME(0),LOCALTIMESTAMP,LOCALTIMESTAMP(3)}'::text[]) WITH ORDINALITY AS u (f, n);
INSERT INTO cases (name, kind, body, wanted, blamed)
SELECT e || ' is stored', (ARRAY['command', 'plpgsql'])[1 + n % 2],
	CASE n % 2 WHEN 0 THEN format('DELETE FROM target WHERE d = $1; INSERT INTO target (d, t) VALUES ($1, %s)', e)
	ELSE format('BEGIN DELETE FROM target WHERE d = day; INSERT INTO target (d, t) VALUES (day, %s); END', e) END,
	'{clock clock target(t)}', b
FROM unnest(ARRAY['CURRENT_DATE', 'age(timestamp ''2024-01-02'')', 'date ''today''', 'timestamp ''yesterday''', '''tomorrow''::timestamptz', '''yesterday 03:00''::timestamp'],
	'{CURRENT_DATE,CURRENT_DATE,today,yesterday,tomorrow,yesterday}'::text[]) WITH ORDINALITY AS u (e, b, n);

INSERT INTO cases (name, kind, setup, body, wanted, blamed) VALUES
('now() in dynamic SQL', 'plpgsql', NULL, $$ BEGIN DELETE FROM target WHERE d = day; EXECUTE 'INSERT INTO target (d, t) SELECT $1, now()' USING day; END $$,
	'{same clock target(t),crash clock target(t),clock clock target(t)}', 'now\(\)'),
('now() three functions deep', 'plpgsql', 'CREATE FUNCTION f3(date) RETURNS void LANGUAGE plpgsql AS $f$ BEGIN INSERT INTO target (d, t) VALUES ($1, now()); END $f$;
	CREATE FUNCTION f2(date) RETURNS void LANGUAGE sql AS $f$ SELECT f3($1) $f$;
	CREATE FUNCTION f1(date) RETURNS void LANGUAGE plpgsql AS $f$ BEGIN PERFORM f2($1); END $f$',
	'BEGIN DELETE FROM target WHERE d = day; PERFORM f1(day); END',
	'{same clock target(t),crash clock target(t),clock clock target(t)}', 'function f3\(date\) line 1'),
('now() in a variable', 'plpgsql', NULL, 'DECLARE x text := now(); BEGIN DELETE FROM target WHERE d = day; INSERT INTO target (d, t) VALUES (day, x); END',
	'{same clock target(t),crash clock target(t),clock clock target(t)}', 'now\(\)'),
('now() as the default of an argument', 'command', 'CREATE FUNCTION put(d date, at timestamptz DEFAULT now()) RETURNS void LANGUAGE plpgsql AS
	$f$ BEGIN INSERT INTO target VALUES ($1, 0, 0, $2); END $f$',
	'DELETE FROM target WHERE d = $1; SELECT put($1)', '{same clock target(t),crash clock target(t),clock clock target(t)}', 'now\(\)'),
('now() as the argument of a procedure', 'command', 'CREATE PROCEDURE put(d date, at timestamptz) LANGUAGE plpgsql AS
	$f$ BEGIN INSERT INTO target VALUES ($1, 0, 0, $2); END $f$',
	'DELETE FROM target WHERE d = $1; CALL put($1, now())', '{same clock target(t),crash clock target(t),clock clock target(t)}', 'now\(\)'),
('now() as the argument of a procedure, in PL/pgSQL', 'plpgsql', 'CREATE PROCEDURE put(d date, at timestamptz) LANGUAGE plpgsql AS
	$f$ BEGIN INSERT INTO target VALUES ($1, 0, 0, $2); END $f$',
	'BEGIN DELETE FROM target WHERE d = day; CALL put(day, now()); END', '{same clock target(t),crash clock target(t),clock clock target(t)}', 'now\(\)'),
('statement prepared before', 'plpgsql', 'PREPARE put(date) AS INSERT INTO target VALUES ($1, 0, 0, now())',
	$$ BEGIN DELETE FROM target WHERE d = day; EXECUTE format('EXECUTE put(%L)', day); END $$,
	'{same clock target(t),crash clock target(t),clock clock target(t)}', 'now\(\)'),
('statement prepared and planned before', 'plpgsql', $f$SET plan_cache_mode = force_generic_plan; PREPARE put AS INSERT INTO target VALUES ('2024-01-02', 0, 0, now());
	DO $$ BEGIN EXECUTE 'EXECUTE put'; EXECUTE 'EXECUTE put'; END $$$f$,
	$$ BEGIN DELETE FROM target WHERE d = day; EXECUTE 'EXECUTE put'; END $$,
	'{same clock target(t),crash clock target(t),clock clock target(t)}', 'now\(\)'),
('function called before', 'plpgsql', $f$CREATE FUNCTION stamp() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN date 'today' || CURRENT_TIME(2)::text; END $$;
	DO $$ BEGIN FOR n IN 1..7 LOOP PERFORM stamp(); END LOOP; END $$$f$,
	'BEGIN DELETE FROM target WHERE d = day; INSERT INTO target VALUES (day, 0, 0, stamp()); END',
	'{same clock target(t),crash clock target(t),clock clock target(t)}', 'CURRENT_TIME'),
('SQL function that is inlined', 'command', $$CREATE FUNCTION stamp() RETURNS text LANGUAGE sql STABLE AS 'SELECT now()::text'$$,
	'DELETE FROM target WHERE d = $1; INSERT INTO target VALUES ($1, 0, 0, stamp())',
	'{same clock target(t),crash clock target(t),clock clock target(t)}', 'now\(\)'),
('set-returning SQL function', 'query', $$CREATE FUNCTION fresh(date) RETURNS TABLE (d date, i int, t text) LANGUAGE sql STABLE AS
	'SELECT $1, i, clock_timestamp()::text FROM source WHERE d = $1'$$, 'SELECT d, i, t FROM fresh($1)',
	'{same clock target(t),crash clock target(t),clock clock target(t)}', 'clock_timestamp\(\)'),
('operator that reads the clock', 'query', $$CREATE FUNCTION days_ago(date, int) RETURNS text LANGUAGE sql STABLE AS 'SELECT (current_date - $1 + $2)::text';
	CREATE OPERATOR <<<>>> (FUNCTION = days_ago, LEFTARG = date, RIGHTARG = int)$$, 'SELECT d, i, d <<<>>> i AS t FROM source WHERE d = $1',
	'{clock clock target(t)}', 'CURRENT_DATE'),
('view over current_date', 'query', 'CREATE VIEW recent AS SELECT current_date - i AS seen, i, v FROM source WHERE d = current_date - 36500 OR d = ''2024-01-02''',
	'SELECT $1 AS d, i, seen::text AS t FROM recent', '{clock clock target(t)}', 'CURRENT_DATE, through a view'),
('view of a view that ends today', 'query', 'CREATE TABLE due AS SELECT current_date - 20 + i AS on_day, i FROM generate_series(1, 200) i;
	CREATE VIEW past AS SELECT * FROM due WHERE on_day <= current_date; CREATE VIEW odd AS SELECT * FROM past WHERE i % 2 = 1',
	'SELECT $1 AS d, i FROM odd', '{clock clock target}', 'CURRENT_DATE, through a view'),
('loaded_at by default', 'query', 'ALTER TABLE target ADD loaded_at timestamptz DEFAULT now()', 'SELECT d, i FROM source WHERE d = $1',
	'{same clock target(loaded_at),crash clock target(loaded_at),clock clock target(loaded_at)}', 'now\(\)'),
('loaded_at by default, in a partition', 'command', 'CREATE TABLE parted (d date, i int, loaded_at timestamptz DEFAULT now()) PARTITION BY RANGE (d);
	CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (''2024-01-02'') TO (''2024-01-03'')',
	'DELETE FROM parted WHERE d = $1; INSERT INTO parted SELECT d, i FROM source WHERE d = $1',
	'{same clock parted(loaded_at),crash clock parted(loaded_at),clock clock parted(loaded_at)}', 'now\(\), through a view, default or function'),
('loaded_at by default, with COPY', 'command', $$ALTER TABLE target ADD loaded_at timestamptz DEFAULT now();
	SELECT to_file('SELECT d, i FROM source WHERE d = ''2024-01-02''')$$, $$DELETE FROM target WHERE d = $1; COPY target (d, i) FROM 'idempotent_jobs.txt'$$,
	'{same clock target(loaded_at)}', 'now\(\), through a view, default or function'),
('loaded_at by a domain''s default', 'command', 'CREATE DOMAIN stamp AS text DEFAULT now(); CREATE TABLE stamped (d date, t stamp)',
	'DELETE FROM stamped; INSERT INTO stamped VALUES ($1)', '{same clock stamped(t),crash clock stamped(t),clock clock stamped(t)}', 'now\(\)'),
('trigger that reads the clock', 'query', 'CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN NEW.t := clock_timestamp(); RETURN NEW; END $f$;
	CREATE TRIGGER stamp BEFORE INSERT OR UPDATE ON target FOR EACH ROW EXECUTE FUNCTION stamp()', 'SELECT d, i, 0 AS v FROM source WHERE d = $1',
	'{same clock target(t),crash clock target(t),clock clock target(t)}', 'function stamp\(\)'),
('clock behind IMMUTABLE', 'command', 'CREATE FUNCTION stamp(int) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $f$ BEGIN RETURN now(); END $f$;
	CREATE TABLE stamped (i int, t text GENERATED ALWAYS AS (stamp(i)) STORED)', 'DELETE FROM stamped; INSERT INTO stamped VALUES (1)',
	'{same clock stamped(t),crash clock stamped(t),clock clock stamped(t)}', 'now\(\)'),
('retention by the clock', 'command', 'CREATE TABLE due AS SELECT current_date - 20 + i AS on_day FROM generate_series(1, 200) i', 'DELETE FROM due WHERE on_day < current_date',
	'{clock clock due}', 'CURRENT_DATE'),
('materialized view that reads the clock', 'command', 'CREATE MATERIALIZED VIEW total AS SELECT now() AS seen, sum(v) FROM source', 'REFRESH MATERIALIZED VIEW total',
	'{same clock total(seen),clock clock total(seen)}', 'now\(\)'),
('CREATE TABLE AS of the clock', 'command', NULL, 'DROP TABLE IF EXISTS built; CREATE TABLE built AS SELECT i, now() AS seen FROM source WHERE d = $1',
	'{same clock built(seen),crash clock built(seen),clock clock built(seen)}', 'now\(\)'),
('key updated by MERGE, with the clock', 'command', NULL, 'MERGE INTO keyed k USING (SELECT * FROM source WHERE d = $1) s ON k.i = s.i
	WHEN MATCHED THEN UPDATE SET t = now()::text WHEN NOT MATCHED THEN INSERT (i, t) VALUES (s.i, now()::text)',
	'{same clock keyed(t),crash clock keyed(t),clock clock keyed(t)}', 'now\(\)'),
('a day of the clock is replaced', 'command', NULL, 'DELETE FROM target WHERE d = current_date; INSERT INTO target SELECT current_date, i FROM source WHERE d = $1',
	'{clock clock target}', 'CURRENT_DATE'),
-- seen from the half state only
('SCD2 by the clock', 'command', 'CREATE TABLE dim (i int, v int, since timestamptz, until timestamptz);
	INSERT INTO dim SELECT i, 0, ''2023-01-01'' FROM source WHERE d = ''2024-01-02'' AND i < 7',
	'UPDATE dim SET until = now() FROM source s WHERE s.d = $1 AND s.i = dim.i AND until IS NULL AND dim.v <> s.v;
	INSERT INTO dim SELECT i, v, now() FROM source s WHERE d = $1 AND NOT EXISTS (SELECT FROM dim WHERE dim.i = s.i AND until IS NULL)',
	'{crash clock dim(since),clock clock dim(since)}', 'Column "since": now\(\)'),
('SCD2 by the date of the clock', 'command', 'CREATE TABLE dim (i int, v int, since date, until date);
	INSERT INTO dim SELECT i, 0, ''2023-01-01'' FROM source WHERE d = ''2024-01-02'' AND i < 7',
	'UPDATE dim SET until = current_date FROM source s WHERE s.d = $1 AND s.i = dim.i AND until IS NULL AND dim.v <> s.v;
	INSERT INTO dim SELECT i, v, current_date FROM source s WHERE d = $1 AND NOT EXISTS (SELECT FROM dim WHERE dim.i = s.i AND until IS NULL)',
	'{clock clock dim(since)}', 'Column "since": CURRENT_DATE'),
('SCD2 by the date of the clock, and a materialized view', 'command', 'CREATE TABLE dim (i int, since date); CREATE MATERIALIZED VIEW total AS SELECT count(*) FROM dim',
	'INSERT INTO dim SELECT i, current_date FROM source s WHERE d = $1 AND NOT EXISTS (SELECT FROM dim WHERE dim.i = s.i); REFRESH MATERIALIZED VIEW total',
	'{clock clock dim(since)}', 'Column "since": CURRENT_DATE'),
('updated_at of what differs', 'command', NULL, 'INSERT INTO keyed AS k SELECT i, d, v, now()::text FROM source WHERE d = $1
	ON CONFLICT (i) DO UPDATE SET v = excluded.v, t = excluded.t WHERE k.v IS DISTINCT FROM excluded.v',
	'{crash clock keyed(t),clock clock keyed(t)}', 'now\(\)'),
('first seen', 'command', NULL, 'INSERT INTO keyed AS k SELECT i, d, v, now()::text FROM source WHERE d = $1 ON CONFLICT (i) DO UPDATE SET t = coalesce(k.t, excluded.t)',
	'{crash clock keyed(t),clock clock keyed(t)}', 'now\(\)');

-- The clock is read, but reaches no table that counts.
INSERT INTO cases (name, kind, setup, body, ignored) VALUES
('the clock is logged only', 'plpgsql', 'CREATE TABLE source_seen (i int)', $$ DECLARE start timestamptz := clock_timestamp(); x interval; BEGIN
	CREATE TEMP TABLE timing ON COMMIT DROP AS SELECT now() AS at, 'start' AS what;
	DELETE FROM target WHERE d = day; INSERT INTO target SELECT d, i, v FROM source WHERE d = day; PERFORM pg_sleep(0);
	x := clock_timestamp() - start; INSERT INTO timing VALUES (statement_timestamp(), 'end'); RAISE DEBUG 'took %, at %', x, now(); END $$, NULL),
('the clock is far away', 'command', NULL, 'DELETE FROM target WHERE d = $1; INSERT INTO target SELECT d, i FROM source WHERE d = $1 AND d < current_date', NULL),
('age of two times', 'command', NULL, 'DELETE FROM target WHERE d = $1; INSERT INTO target SELECT d, i, extract(year FROM age(timestamp ''2024-01-02'', timestamp ''2023-01-01'')) FROM source WHERE d = $1', NULL),
('words that are no literals', 'command', NULL, $$DELETE FROM target WHERE d = $1; INSERT INTO target SELECT d, i, 0, 'today' FROM source WHERE d = $1$$, NULL),
('loaded_at ignored', 'query', 'ALTER TABLE target ADD loaded_at timestamptz DEFAULT now()', 'SELECT d, i FROM source WHERE d = $1', '{loaded_at}'),
('loaded_at of the table ignored', 'command', 'ALTER TABLE target ADD loaded_at timestamptz DEFAULT clock_timestamp()',
	'DELETE FROM target WHERE d = $1; INSERT INTO target SELECT d, i FROM source WHERE d = $1', '{target.loaded_at}'),
('loaded_at of the table in its schema ignored', 'command', 'ALTER TABLE target ADD loaded_at timestamptz DEFAULT clock_timestamp()',
	'DELETE FROM target WHERE d = $1; INSERT INTO target SELECT d, i FROM source WHERE d = $1', '{w.target.loaded_at}'),
('loaded_at of a partition ignored', 'command', 'CREATE TABLE parted (d date, i int, loaded_at timestamptz DEFAULT now()) PARTITION BY RANGE (d);
	CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (''2024-01-02'') TO (''2024-01-03'')',
	'DELETE FROM parted WHERE d = $1; INSERT INTO parted SELECT d, i FROM source WHERE d = $1', '{parted.loaded_at}'),
('updated_at ignored', 'command', NULL, 'INSERT INTO keyed AS k SELECT i, d, v, now()::text FROM source WHERE d = $1
	ON CONFLICT (i) DO UPDATE SET v = excluded.v, t = excluded.t WHERE k.v IS DISTINCT FROM excluded.v', '{t}');
INSERT INTO cases (name, kind, setup, body, ignored, wanted) VALUES
('loaded_at of another table ignored', 'query', 'ALTER TABLE target ADD loaded_at timestamptz DEFAULT now()', 'SELECT d, i FROM source WHERE d = $1', '{keyed.loaded_at}',
	'{same clock target(loaded_at),crash clock target(loaded_at),clock clock target(loaded_at)}'),
('one of two columns ignored', 'query', 'ALTER TABLE target ADD loaded_at timestamptz DEFAULT now(), ADD u uuid DEFAULT gen_random_uuid()',
	'SELECT d, i FROM source WHERE d = $1', '{loaded_at}', '{same random target(u),crash random target(u),clock random target(u)}');

-- Chance and sequences.
INSERT INTO cases (name, kind, setup, body, wanted, blamed) VALUES
('random()', 'query', NULL, 'SELECT d, i, random()::text AS t FROM source WHERE d = $1', '{same random target(t),crash random target(t)}', 'Column "t": random\(\)'),
('gen_random_uuid() by default', 'command', 'CREATE TABLE named (d date, i int, u uuid DEFAULT gen_random_uuid())',
	'DELETE FROM named WHERE d = $1; INSERT INTO named SELECT d, i FROM source WHERE d = $1', '{same random named(u),crash random named(u)}', 'gen_random_uuid\(\)'),
('random() in a function', 'plpgsql', 'CREATE FUNCTION dice() RETURNS text LANGUAGE plpgsql AS $f$ BEGIN RETURN random(); END $f$',
	'BEGIN DELETE FROM target WHERE d = day; INSERT INTO target VALUES (day, 0, 0, dice()); END', '{same random target(t),crash random target(t)}', 'random\(\)'),
('rows by chance', 'command', 'CREATE TABLE many AS SELECT generate_series(1, 300) AS i', 'DELETE FROM target WHERE d = $1; INSERT INTO target SELECT $1, i FROM many WHERE random() < 0.5',
	'{same random target,crash random target}', 'random\(\)'),
('rows in random order', 'command', 'CREATE TABLE many AS SELECT generate_series(1, 300) AS i',
	'DELETE FROM target WHERE d = $1; INSERT INTO target SELECT $1, i FROM many ORDER BY random() LIMIT 100', '{same random target,crash random target}', 'random\(\)'),
('sample', 'query', 'CREATE TABLE many AS SELECT generate_series(1, 300) AS i', 'SELECT $1 AS d, i FROM many TABLESAMPLE bernoulli (50)',
	'{same random target,crash random target}', 'TABLESAMPLE'),
('nextval()', 'command', 'CREATE SEQUENCE ids', 'DELETE FROM target WHERE d = $1; INSERT INTO target SELECT d, nextval(''ids'') FROM source WHERE d = $1',
	'{same sequence target(i),crash sequence target(i)}', 'nextval\(\)'),
('identity', 'query', 'ALTER TABLE target ADD id int GENERATED ALWAYS AS IDENTITY', 'SELECT d, i FROM source WHERE d = $1',
	'{same sequence target(id),crash sequence target(id)}', 'IDENTITY'),
('serial', 'plpgsql', 'ALTER TABLE target ADD id serial', 'BEGIN DELETE FROM target WHERE d = day; INSERT INTO target (d, i) SELECT d, i FROM source WHERE d = day; END',
	'{same sequence target(id),crash sequence target(id)}', 'nextval\(\)'),
('identity as the primary key', 'command', 'CREATE TABLE numbered (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, d date, i int)',
	'DELETE FROM numbered WHERE d = $1; INSERT INTO numbered (d, i) SELECT d, i FROM source WHERE d = $1',
	'{same sequence numbered(id),crash sequence numbered(id)}', 'IDENTITY');
INSERT INTO cases (name, kind, setup, body, ignored, reruns) VALUES
('setseed() and random(), in order', 'plpgsql', NULL, 'BEGIN PERFORM setseed(0.5); DELETE FROM target WHERE d = day;
	INSERT INTO target SELECT d, i, v, random() FROM (SELECT * FROM source WHERE d = day ORDER BY i) s; END', NULL, NULL),
('sample that can be repeated', 'query', 'CREATE TABLE many AS SELECT generate_series(1, 300) AS i', 'SELECT $1 AS d, i FROM many TABLESAMPLE bernoulli (50) REPEATABLE (1)', NULL, NULL),
('key from a digest', 'query', NULL, 'SELECT d, i, md5(d::text || i) AS t FROM source WHERE d = $1', NULL, NULL),
('identity ignored', 'query', 'ALTER TABLE target ADD id int GENERATED ALWAYS AS IDENTITY', 'SELECT d, i FROM source WHERE d = $1', '{id}', NULL),
('random() is thrown away', 'plpgsql', NULL, 'DECLARE x float; BEGIN x := random(); PERFORM setseed(x); DELETE FROM target WHERE d = day; INSERT INTO target SELECT d, i FROM source WHERE d = day; END', NULL, NULL);

-- The order of rows.
INSERT INTO cases (name, kind, setup, body, reruns, wanted) VALUES
('setseed() and random(), in no order', 'plpgsql', NULL, 'BEGIN PERFORM setseed(0.5); DELETE FROM target WHERE d = day;
	INSERT INTO target SELECT d, i, v, random() FROM source WHERE d = day; END', '{same,plan}', '{plan order target}'),
('LIMIT without ORDER BY', 'query', NULL, 'SELECT d, i FROM source WHERE d = $1 LIMIT 3', '{same,plan}', '{plan order target}'),
('LIMIT with ties', 'command', NULL, 'DELETE FROM target WHERE d = $1; INSERT INTO target SELECT d, i FROM source WHERE d = $1 ORDER BY v LIMIT 3', '{same,plan}', '{plan order target}'),
('row_number() with ties', 'query', NULL, 'SELECT d, i, (row_number() OVER (ORDER BY v))::int AS v FROM source WHERE d = $1', '{same,plan}', '{plan order target}'),
('lag() with ties', 'sql', NULL, 'DELETE FROM target WHERE d = day; INSERT INTO target SELECT d, i, lag(i) OVER (ORDER BY v) FROM source WHERE d = day', '{same,plan}', '{plan order target}'),
('DISTINCT ON with ties', 'query', NULL, 'SELECT DISTINCT ON (v) d, i, v FROM source WHERE d = $1 ORDER BY v', '{same,plan}', '{plan order target(i)}'),
('array_agg() in no order', 'query', NULL, 'SELECT d, v, array_agg(i)::text AS t FROM source WHERE d = $1 GROUP BY d, v', '{same,plan}', '{plan order target(t)}'),
('string_agg() in no order', 'plpgsql', NULL, $$ BEGIN DELETE FROM target WHERE d = day; INSERT INTO target SELECT d, 0, 0, string_agg(i::text, ',') FROM source WHERE d = day GROUP BY d; END $$,
	'{same,plan}', '{plan order target(t)}'),
('a row is taken into a variable', 'plpgsql', NULL, 'DECLARE x int; BEGIN DELETE FROM target WHERE d = day; SELECT i INTO x FROM source WHERE d = day; INSERT INTO target VALUES (day, x); END',
	'{same,plan}', '{plan order target(i)}'),
('the first of many conflicts wins', 'command', NULL, 'DELETE FROM keyed; INSERT INTO keyed SELECT v, d, i FROM source WHERE d = $1 ON CONFLICT DO NOTHING',
	'{same,plan}', '{plan order keyed(v)}'),
('UPDATE from many rows', 'command', 'INSERT INTO keyed VALUES (0), (1), (2)', 'UPDATE keyed k SET t = s.i FROM source s WHERE s.d = $1 AND s.v = k.i', '{same,plan}', '{plan order keyed(t)}'),
('numbers given in a loop', 'plpgsql', NULL, 'DECLARE x int; n int := 0; BEGIN DELETE FROM target WHERE d = day;
	FOR x IN SELECT i FROM source WHERE d = day LOOP n := n + 1; INSERT INTO target VALUES (day, x, n); END LOOP; END', '{same,plan}', '{plan order target}'),
-- and sums
('sum of floats', 'query', 'ALTER TABLE target ADD x float8', 'SELECT d, sum(x) AS x FROM source WHERE d = $1 GROUP BY d', '{same,plan}', '{plan float target(x)}'),
('sum of floats by a window', 'command', 'ALTER TABLE target ADD x float8', 'DELETE FROM target WHERE d = $1;
	INSERT INTO target (d, i, x) SELECT d, i, sum(x) OVER (PARTITION BY d) FROM source WHERE d = $1', '{same,plan}', '{plan float target(x)}'),
('average of floats', 'sql', 'CREATE TABLE total (d date PRIMARY KEY, x float4)', 'INSERT INTO total SELECT d, avg(x) FROM source WHERE d = day GROUP BY d ON CONFLICT (d) DO UPDATE SET x = excluded.x',
	'{same,plan}', '{plan float total(x)}');
INSERT INTO cases (name, kind, setup, body) VALUES
('LIMIT in a total order', 'query', NULL, 'SELECT d, i FROM source WHERE d = $1 ORDER BY v, i LIMIT 3'),
('row_number() in a total order', 'query', NULL, 'SELECT d, i, (row_number() OVER (PARTITION BY v ORDER BY at DESC, i))::int AS v FROM source WHERE d = $1'),
('windows in a total order', 'command', NULL, 'DELETE FROM target WHERE d = $1; INSERT INTO target SELECT d, i, sum(v) OVER w, lag(i, 2) OVER w || ''/'' || first_value(i) OVER w
	FROM source WHERE d = $1 WINDOW w AS (ORDER BY v, i)'),
('rank() with ties', 'query', NULL, 'SELECT d, i, (rank() OVER (ORDER BY v))::int AS v FROM source WHERE d = $1'),
('DISTINCT ON in a total order', 'query', NULL, 'SELECT DISTINCT ON (v) d, i, v FROM source WHERE d = $1 ORDER BY v, i DESC'),
('aggregates in order', 'query', NULL, 'SELECT d, v, string_agg(i::text, '','' ORDER BY i) || array_agg(i ORDER BY i DESC)::text AS t FROM source WHERE d = $1 GROUP BY d, v'),
('sum of numerics', 'query', 'ALTER TABLE target ADD n numeric', 'SELECT d, sum(n) AS n, max(i) AS i FROM source WHERE d = $1 GROUP BY d'),
('sum of floats in order', 'command', 'ALTER TABLE target ADD x float8', 'DELETE FROM target WHERE d = $1; INSERT INTO target (d, x) SELECT $1, sum(x ORDER BY i) FROM source WHERE d = $1'),
('row taken by key', 'plpgsql', NULL, 'DECLARE x int; BEGIN DELETE FROM target WHERE d = day; SELECT v INTO x FROM source WHERE d = day AND i = 5; INSERT INTO target VALUES (day, 0, x); END'),
('semijoins and subqueries', 'query', NULL, 'SELECT d, i, (SELECT count(*)::int FROM source s WHERE s.d <= o.d AND s.i <= o.i) AS v FROM source o
	WHERE d = $1 AND i IN (SELECT v FROM source) AND EXISTS (SELECT FROM source s WHERE s.d = o.d - 1 AND s.i = o.i)'),
('rows that are locked', 'plpgsql', NULL, 'BEGIN PERFORM FROM source WHERE d = day FOR UPDATE; DELETE FROM target WHERE d = day; INSERT INTO target SELECT d, i FROM source WHERE d = day; END');

-- The session.
INSERT INTO cases (name, kind, setup, body, reruns, wanted) VALUES
('time as text', 'plpgsql', NULL, 'BEGIN DELETE FROM target WHERE d = day; INSERT INTO target SELECT d, i, v, at FROM source WHERE d = day; END', '{same,timezone}', '{timezone session target(t)}'),
('time as date', 'sql', NULL, 'DELETE FROM target; INSERT INTO target SELECT at::date, i FROM source', '{same,timezone}', '{timezone session target(d)}'),
('hour of a time', 'plpgsql', NULL, 'BEGIN DELETE FROM target WHERE d = day; INSERT INTO target SELECT d, i, extract(hour FROM at) FROM source WHERE d = day; END', '{same,timezone}', '{timezone session target}'),
('date_trunc()', 'plpgsql', 'CREATE TABLE hour (d date, i int, at timestamptz)',
	'BEGIN DELETE FROM hour; INSERT INTO hour SELECT d, i, date_trunc(''day'', at) FROM source; END', '{same,timezone}', '{timezone session hour(at)}'),
('setting TimeZone', 'sql', NULL, 'DELETE FROM target WHERE d = day; INSERT INTO target SELECT day, 0, 0, current_setting(''TimeZone'')', '{same,timezone}', '{timezone session target(t)}'),
('date as text', 'sql', NULL, 'DELETE FROM target WHERE d = day; INSERT INTO target SELECT day, 0, 0, day', '{same,timezone}', '{timezone session target(t)}'),
('text as date', 'procedure', 'CREATE TABLE raw AS SELECT ''03/04/2024'' AS t', 'BEGIN DELETE FROM target WHERE i = 0; INSERT INTO target SELECT t::date, 0 FROM raw; END',
	'{same,timezone}', '{timezone session target(d)}'),
('interval as text', 'command', NULL, 'DELETE FROM target WHERE d = $1; INSERT INTO target SELECT $1, 0, 0, interval ''1 day 2 hours''', '{same,timezone}', '{timezone session target(t)}'),
('CURRENT_DATE of the session', 'plpgsql', NULL, 'BEGIN DELETE FROM target WHERE i = 7; INSERT INTO target VALUES (current_date, 7); END', '{same,timezone}', '{timezone session target(d)}');
INSERT INTO cases (name, kind, setup, body, attributes) VALUES
('time as date in a job', 'command', NULL, 'DELETE FROM target WHERE d = $1; INSERT INTO target SELECT d, i, v, at::date || '' '' || at FROM source WHERE d = $1', ''),
('time as date in a query', 'query', NULL, 'SELECT d, i, at::date || '' '' || at AS t FROM source WHERE d = $1', ''),
('function with its own zone', 'sql', NULL, 'DELETE FROM target WHERE d = day; INSERT INTO target SELECT d, i, v, at FROM source WHERE d = day',
	'SET timezone = ''Europe/Berlin'' SET datestyle = ''ISO, MDY'''),
('function sets the zone', 'plpgsql', NULL, 'BEGIN SET LOCAL timezone = ''UTC''; SET LOCAL datestyle = ''ISO''; DELETE FROM target WHERE d = day;
	INSERT INTO target SELECT d, i, v, at FROM source WHERE d = day; END', ''),
('zone is named', 'plpgsql', 'CREATE TABLE hour (d date, i int, at timestamptz)', 'BEGIN DELETE FROM hour; INSERT INTO hour SELECT (at AT TIME ZONE ''UTC'')::date, i, date_trunc(''day'', at, ''UTC'') FROM source;
	DELETE FROM target; INSERT INTO target SELECT day, i, 0, to_char(at AT TIME ZONE ''UTC'', ''YYYY-MM-DD HH24'') FROM source; END', ''),
('current_user is stored', 'sql', NULL, 'DELETE FROM target WHERE d = day; INSERT INTO target VALUES (day, 0, 0, current_user)', ''),
('prepared statement of the job''s own', 'plpgsql', NULL, $$ BEGIN EXECUTE 'PREPARE own(date) AS INSERT INTO target SELECT d, i FROM source WHERE d = $1';
	DELETE FROM target WHERE d = day; EXECUTE format('EXECUTE own(%L)', day); END $$, ''),
('temporary table of the transaction', 'command', NULL, 'CREATE TEMP TABLE pass ON COMMIT DROP AS SELECT d, i FROM source WHERE d = $1;
	DELETE FROM target WHERE d = $1; INSERT INTO target SELECT * FROM pass', ''),
('temporary table of the session', 'plpgsql', NULL, 'BEGIN CREATE TEMP TABLE pass AS SELECT d, i FROM source WHERE d = day;
	DELETE FROM target WHERE d = day; INSERT INTO target SELECT * FROM pass; END', ''),
('temporary table made if need be', 'plpgsql', NULL, 'BEGIN CREATE TEMP TABLE IF NOT EXISTS pass (d date, i int); INSERT INTO pass SELECT d, i FROM source WHERE d = day;
	DELETE FROM target WHERE d = day; INSERT INTO target SELECT * FROM pass; END', ''),
('advisory lock of the session', 'plpgsql', NULL, $$ BEGIN IF NOT pg_try_advisory_lock(hashtext('job'), 1) THEN RAISE 'running'; END IF; PERFORM pg_advisory_lock_shared(7);
	DELETE FROM target WHERE d = day; INSERT INTO target SELECT d, i FROM source WHERE d = day; END $$, ''),
('settings of the job', 'plpgsql', NULL, $$ BEGIN SET work_mem = '8MB'; SET search_path = w; PERFORM set_config('job.done', current_setting('job.done', true) || 'x', false);
	DELETE FROM target WHERE d = day; INSERT INTO target SELECT d, i, 0, coalesce(nullif(current_setting('job.undone', true), ''), 'no') FROM source WHERE d = day; SET job.undone = 'yes'; END $$, ''),
('NOTIFY', 'command', NULL, 'DELETE FROM target WHERE d = $1; INSERT INTO target SELECT d, i FROM source WHERE d = $1; NOTIFY done', '');

-- What names the transaction is the same in all runs of a check.
INSERT INTO cases (name, kind, setup, body, wanted, ignored) VALUES
('txid_current() is stored', 'command', NULL, 'DELETE FROM target WHERE d = $1; INSERT INTO target VALUES ($1, txid_current())', '{same transaction target(i)}', NULL),
('pg_current_xact_id() in a function', 'plpgsql', NULL, 'BEGIN DELETE FROM target WHERE d = day; INSERT INTO target VALUES (day, 0, 0, pg_current_xact_id()); END', '{same transaction target(t)}', NULL),
('pg_backend_pid() is stored', 'query', NULL, 'SELECT $1 AS d, pg_backend_pid() AS i', '{same transaction target(i)}', NULL),
('pg_backend_pid() by default', 'command', 'CREATE TABLE run (d date, pid int DEFAULT pg_backend_pid())', 'DELETE FROM run; INSERT INTO run VALUES ($1)', '{same transaction run(pid)}', NULL);
INSERT INTO cases (name, kind, setup, body, ignored) VALUES
('pg_backend_pid() ignored', 'command', 'CREATE TABLE run (d date, pid int DEFAULT pg_backend_pid())', 'DELETE FROM run; INSERT INTO run VALUES ($1)', '{pid}'),
('txid_current() is logged only', 'plpgsql', NULL, 'BEGIN RAISE DEBUG ''%'', txid_current(); DELETE FROM target WHERE d = day; INSERT INTO target SELECT d, i FROM source WHERE d = day; END', NULL);

-- The rerun raises an error.
INSERT INTO cases (name, kind, setup, body, wanted) VALUES
('refuses to run twice', 'plpgsql', NULL, $$ BEGIN IF EXISTS (SELECT FROM target WHERE d = day) THEN RAISE EXCEPTION 'day % is loaded', day; END IF;
	INSERT INTO target SELECT d, i FROM source WHERE d = day; END $$, '{same error,crash error}'),
('table is there', 'command', NULL, 'CREATE TABLE built AS SELECT d, i FROM source WHERE d = $1', '{same error,crash error}'),
('partition is there', 'plpgsql', 'CREATE TABLE parted (d date, i int) PARTITION BY RANGE (d)', $$ BEGIN
	EXECUTE format('CREATE TABLE parted_%s PARTITION OF parted FOR VALUES FROM (%L) TO (%L)', to_char(day, 'YYYYMMDD'), day, day + 1);
	INSERT INTO parted SELECT d, i FROM source WHERE d = day; END $$, '{same error,crash error}'),
('key is there', 'plpgsql', NULL, 'BEGIN INSERT INTO keyed SELECT i, d, v FROM source WHERE d = day; END', '{same append,crash append}'),
('foreign key fails at the end', 'plpgsql', 'CREATE TABLE parent (i int PRIMARY KEY, d date);
	CREATE TABLE child (i int REFERENCES parent DEFERRABLE INITIALLY DEFERRED, d date)',
	'BEGIN IF EXISTS (SELECT FROM child WHERE d = day) THEN DELETE FROM parent WHERE d = day; RETURN; END IF;
	INSERT INTO child SELECT i, d FROM source WHERE d = day; INSERT INTO parent SELECT i, d FROM source WHERE d = day; END', '{same error,crash error}'),
('unique key that is deferred', 'plpgsql', 'CREATE TABLE once (i int UNIQUE DEFERRABLE INITIALLY DEFERRED)', 'BEGIN INSERT INTO once SELECT i FROM source WHERE d = day; END',
	'{same append,crash append}'),
('division by what is left', 'plpgsql', 'INSERT INTO keyed VALUES (1, ''2024-01-02'', 1)', 'BEGIN UPDATE keyed SET v = 0, n = 10 / v WHERE d = day; END', '{same error}');

-- A file for COPY, in the server's data directory.
CREATE FUNCTION to_file(query text) RETURNS void LANGUAGE plpgsql AS
$$ BEGIN EXECUTE format('COPY (%s) TO %L', query, current_setting('data_directory') || '/idempotent_jobs.txt'); END $$;

-- What a job finds, in a schema of its own.
CREATE FUNCTION make_fixture() RETURNS void LANGUAGE plpgsql AS
$$
BEGIN
	DROP SCHEMA IF EXISTS w CASCADE;
	CREATE SCHEMA w;
	CREATE TABLE w.source (d date, i int, v int, n numeric, x float8, at timestamptz, PRIMARY KEY (d, i));
	INSERT INTO w.source SELECT d, i, i % 3, i / 10.0, ('{1e17,1,-1e17,2,1e17,4,-1e17,8}'::float8[])[i], d + i * interval '3 hours'
	FROM generate_series(timestamp '2024-01-01', '2024-01-03', '1 day') d, generate_series(1, 8) i ORDER BY d, i;
	CREATE TABLE w.target (d date, i int, v int, t text);
	INSERT INTO w.target VALUES ('2024-01-01', 1, 1, 'before');
	CREATE TABLE w.keyed (i int PRIMARY KEY, d date, v int, t text, n int NOT NULL DEFAULT 1);
	CREATE TABLE w.log (t text);
END
$$;

-- Make a case, and return the name of its job.
CREATE FUNCTION set_up(test cases) RETURNS text LANGUAGE plpgsql AS
$$
BEGIN
	DEALLOCATE ALL;
	RESET plan_cache_mode;
	PERFORM drop_job('job', true), make_fixture();
	EXECUTE coalesce(test.setup, '');
	IF test.kind = 'query' THEN
		PERFORM create_job('job', 'target', test.body, date_column => 'd', on_empty => 'replace');
	ELSIF test.kind = 'command' THEN
		PERFORM create_job('job', command => test.body);
	ELSE
		EXECUTE format('CREATE %s job(day date) %s LANGUAGE %I %s AS %L', CASE test.kind WHEN 'procedure' THEN 'PROCEDURE' ELSE 'FUNCTION' END,
			CASE test.kind WHEN 'procedure' THEN '' ELSE 'RETURNS void' END, CASE test.kind WHEN 'sql' THEN 'sql' ELSE 'plpgsql' END, test.attributes,
			test.body || CASE test.kind WHEN 'sql' THEN '; SELECT' ELSE '' END);
		RETURN 'job(date)';
	END IF;
	RETURN 'job';
END
$$;

-- All that a check must leave as it is: rows, catalogs, the session.
CREATE FUNCTION state() RETURNS TABLE (what text, value text) LANGUAGE plpgsql AS
$$
BEGIN
	FOR what IN SELECT oid::regclass FROM pg_class WHERE relnamespace IN ('w'::regnamespace, 'public'::regnamespace) AND relkind IN ('r', 'm') LOOP
		EXECUTE format('SELECT fingerprint(whole_row) FROM %s AS whole_row', what) INTO value;
		RETURN NEXT;
	END LOOP;
	RETURN QUERY
	SELECT 'pg_class', fingerprint((oid, relname, relnamespace, reltype, relowner, relfilenode, relkind, relhasindex, relhastriggers, relispartition)) FROM pg_class
	UNION ALL SELECT 'pg_attribute', fingerprint((attrelid, attname, attnum, atttypid, atthasdef, attisdropped)) FROM pg_attribute
	UNION ALL SELECT 'pg_constraint', fingerprint((oid, conname, convalidated)) FROM pg_constraint
	UNION ALL SELECT 'pg_trigger', fingerprint((oid, tgname, tgenabled)) FROM pg_trigger
	UNION ALL SELECT 'pg_inherits', fingerprint((inhrelid, inhparent)) FROM pg_inherits
	UNION ALL SELECT 'prepared statement ' || name, statement FROM pg_prepared_statements
	UNION ALL SELECT 'advisory lock', format('%s %s %s %s', classid, objid, objsubid, mode) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()
	UNION ALL SELECT name, nullif(current_setting(name, true), '')
	FROM unnest('{timezone,datestyle,intervalstyle,search_path,work_mem,enable_seqscan,idempotent_load.clock_shift,job.done,job.undone,transaction_isolation}'::text[]) AS name;
END
$$;

-- What the check finds, as in cases.wanted.
CREATE FUNCTION violations(test cases, job text, OUT violated text[], OUT source text) LANGUAGE plpgsql AS
$$
BEGIN
	SELECT coalesce(array_agg(concat_ws(' ', c.rerun, c.cause, regexp_replace(c.relation, '^w\.', '') ||
			CASE WHEN test.wanted[1] ~ '\(' THEN '(' || array_to_string(c.columns, ' ') || ')' ELSE '' END) ORDER BY n), '{}'),
		(array_agg(c.source ORDER BY n))[1]
	INTO violated, source
	FROM (
		SELECT *, row_number() OVER (ORDER BY array_position('{same,crash,clock,timezone,plan}', rerun), relation) AS n
		FROM check_idempotent(job, '2024-01-02', coalesce(test.reruns,
			CASE WHEN test.wanted = '{}' THEN '{same,clock,crash,timezone,plan}' ELSE '{same,clock,crash}' END::text[]), test.ignored)
		WHERE NOT passed) c;
EXCEPTION WHEN OTHERS THEN
	violated := ARRAY['raised: ' || SQLERRM];
END
$$;

CREATE FUNCTION test_case(test cases, job text) RETURNS SETOF text LANGUAGE plpgsql AS
$$
DECLARE
	before text[] := array(SELECT s::text FROM state() s ORDER BY s);
	v record;
BEGIN
	SELECT * INTO v FROM violations(test, job);
	RETURN NEXT is(v.violated, test.wanted, test.name);
	IF test.blamed IS NOT NULL THEN
		RETURN NEXT matches(v.source, test.blamed, test.name || ': source');
	END IF;
	RETURN NEXT is(array(SELECT s::text FROM state() s ORDER BY s), before, test.name || ': all is as before');
END
$$;

SET search_path = w, public;
SELECT plan((SELECT 2 * count(*) + count(blamed) FROM cases)::int);
-- a transaction to make the case, and one to test it
SELECT format('CREATE TEMP TABLE made AS SELECT set_up(c) AS job FROM cases c WHERE n = %s', n),
	format('SELECT test_case(c, job) FROM cases c, made WHERE n = %s', n), 'DROP TABLE made'
FROM cases ORDER BY n \gexec
SELECT * FROM finish();
