-- Randomized loads into tables of many shapes, compared with an oracle: the
-- same work done plainly, by DELETE and INSERT, on a plain copy of the table.
-- Rows are compared as a reader sees them: as text.

BEGIN;
SELECT plan(70);
SELECT setseed(0.20261006);

SET LOCAL client_min_messages = warning;
SET LOCAL timezone = 'Europe/Berlin';

CREATE TYPE pair AS (x int, y text);
CREATE DOMAIN small AS int CHECK (VALUE < 1000);

-- A shape is a table "target", the expression of a row's key from day "d" and
-- the expression of a key's day.  Columns besides the key take few values, so
-- that equal rows are frequent, and nulls.
CREATE TABLE shapes (
	name text PRIMARY KEY,
	key_type text,
	key_value text,
	key_day text,
	columns text,
	row_values text,
	ddl text
);
INSERT INTO shapes VALUES
('daily partitions', 'date', 'd', 'k', 'i int, t text', 'i, t',
	'CREATE TABLE target (k date, i int, t text) PARTITION BY RANGE (k);
	CREATE TABLE l28 PARTITION OF target FOR VALUES FROM (''2026-03-28'') TO (''2026-03-29'');
	CREATE TABLE l29 PARTITION OF target FOR VALUES FROM (''2026-03-29'') TO (''2026-03-30'')'),
('monthly partitions', 'date', 'd', 'k', 'i int, t text', 'i, t',
	'CREATE TABLE target (k date, i int, t text) PARTITION BY RANGE (k);
	CREATE TABLE m3 PARTITION OF target FOR VALUES FROM (''2026-03-01'') TO (''2026-04-01'')'),
('hourly partitions', 'timestamp', 'd + h * interval ''6 h''', 'k::date', 'i int', 'i',
	'CREATE TABLE target (k timestamp, i int) PARTITION BY RANGE (k);
	CREATE TABLE h1 PARTITION OF target FOR VALUES FROM (''2026-03-28 00:00'') TO (''2026-03-28 12:00'');
	CREATE TABLE h2 PARTITION OF target FOR VALUES FROM (''2026-03-28 12:00'') TO (''2026-03-29 00:00'')'),
('list partitions', 'date', 'd', 'k', 'i int, t text', 'i, t',
	'CREATE TABLE target (k date, i int, t text) PARTITION BY LIST (k);
	CREATE TABLE l28 PARTITION OF target FOR VALUES IN (''2026-03-28'', ''2026-03-30'');
	CREATE TABLE l29 PARTITION OF target FOR VALUES IN (''2026-03-29'')'),
('sub-partitions', 'date', 'd', 'k', 'i int, t text', 'i, t',
	'CREATE TABLE target (k date, i int, t text) PARTITION BY RANGE (k);
	CREATE TABLE s28 PARTITION OF target FOR VALUES FROM (''2026-03-28'') TO (''2026-03-29'')
		PARTITION BY LIST (i);
	CREATE TABLE s28_a PARTITION OF s28 FOR VALUES IN (1, 2);
	CREATE TABLE s28_b PARTITION OF s28 DEFAULT'),
('default partition', 'date', 'd', 'k', 'i int, t text', 'i, t',
	'CREATE TABLE target (k date, i int, t text) PARTITION BY RANGE (k);
	CREATE TABLE l28 PARTITION OF target FOR VALUES FROM (''2026-03-28'') TO (''2026-03-29'');
	CREATE TABLE rest PARTITION OF target DEFAULT;
	INSERT INTO target VALUES (''2026-03-29'', 1, ''waiting'')'),
('leaf of another layout', 'date', 'd', 'k', 'i int, t text, n numeric', 'i, t, i * 0.75',
	'CREATE TABLE target (k date, gone text, i int, t text) PARTITION BY RANGE (k);
	ALTER TABLE target DROP gone;
	CREATE TABLE l28 (t text, gone int, i int, lost float8, k date);
	ALTER TABLE l28 DROP gone, DROP lost;
	ALTER TABLE target ATTACH PARTITION l28 FOR VALUES FROM (''2026-03-28'') TO (''2026-03-29'');
	INSERT INTO target VALUES (''2026-03-28'', 1, ''old''), (''2026-03-28'', 2, NULL);
	ALTER TABLE target ADD n numeric DEFAULT 1.50'),
('plain', 'date', 'd', 'k', 'i int, t text', 'i, t',
	'CREATE TABLE target (k date, i int, t text); CREATE INDEX ON target (k)'),
('plain, timestamptz', 'timestamptz',
	'CASE h WHEN 0 THEN d::timestamptz WHEN 3 THEN (d + 1)::timestamptz - interval ''1 us''
		ELSE d::timestamptz + h * interval ''7 h'' END',
	'(k AT TIME ZONE ''Europe/Berlin'')::date', 'i int, t text', 'i, t',
	'CREATE TABLE target (k timestamptz, i int, t text)'),
('partitions by integer', 'int', 'to_char(d, ''YYYYMMDD'')::int', 'to_date(k::text, ''YYYYMMDD'')',
	'i int, t text', 'i, t',
	'CREATE TABLE target (k int, i int, t text) PARTITION BY RANGE (k);
	CREATE TABLE l28 PARTITION OF target FOR VALUES FROM (20260328) TO (20260329)'),
('plain, text', 'text', 'to_char(d, ''YYYY-MM-DD'')', 'k::date', 'i int, t text', 'i, t',
	'CREATE TABLE target (k text COLLATE "C", i int, t text)'),
('many types', 'date', 'd', 'k',
	'b bool, n numeric, f float8, a int[], j jsonb, ra int4range, p pair, u uuid, v varchar(10), c char(5), e small, iv interval, x bytea, lo text',
	'i = 1, CASE i WHEN 1 THEN 1.0 WHEN 2 THEN 1.00 END, CASE i WHEN 1 THEN ''-0'' WHEN 2 THEN ''0'' WHEN 3 THEN ''NaN'' END::float8,
	CASE i WHEN 1 THEN ''{}'' WHEN 2 THEN ''{1,NULL}'' WHEN 3 THEN ''[2:3]={1,2}'' END::int[],
	CASE i WHEN 1 THEN ''{"a": [1, null]}'' WHEN 2 THEN ''null'' END::jsonb, int4range(i, 5), CASE WHEN i < 3 THEN ROW(i, t)::pair END,
	CASE WHEN i > 1 THEN (''00000000-0000-0000-0000-00000000000'' || i)::uuid END, t, left(t, 5), i, i * interval ''1 day'', decode(md5(t), ''hex''),
	CASE i WHEN 1 THEN repeat(t, 2000) WHEN 2 THEN (SELECT string_agg(md5(g::text), '''') FROM generate_series(1, 120) g) END',
	'CREATE TABLE target (k date, b bool, n numeric, f float8, a int[], j jsonb, ra int4range, p pair, u uuid, v varchar(10), c char(5), e small, iv interval, x bytea, lo text)'),
('generated and default', 'date', 'd', 'k', 'i int, t text', 'i, t',
	'CREATE TABLE target (k date NOT NULL, i int, t text, double int GENERATED ALWAYS AS (i * 2) STORED, z text DEFAULT ''z'');
	CREATE INDEX ON target (i)'),
('triggers', 'date', 'd', 'k', 'i int, t text', 'i, t',
	'CREATE TABLE target (k date, i int, t text);
	CREATE TABLE seen (op text);
	CREATE OR REPLACE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN INSERT INTO seen VALUES (TG_OP); RETURN NULL; END $f$;
	CREATE TRIGGER see AFTER INSERT OR DELETE OR UPDATE ON target FOR EACH ROW EXECUTE FUNCTION see()');

CREATE TABLE failures (shape text, property text, detail text);

-- Rows of a table as text, one column each.
CREATE FUNCTION difference(a text, b text) RETURNS bigint LANGUAGE plpgsql AS
$$
DECLARE n bigint;
BEGIN
	EXECUTE format('SELECT count(*) FROM (%s EXCEPT ALL %s) d', a, b) INTO n;
	RETURN n;
END
$$;

CREATE FUNCTION try_shape(s shapes, tries int) RETURNS void LANGUAGE plpgsql AS
$$
DECLARE
	names text := (SELECT string_agg(split_part(ltrim(c), ' ', 1), ', ')
		FROM regexp_split_to_table('k x, ' || s.columns, ', ') c);
	slice text := format('%s = $1', s.key_day);
	target_rows text := format('SELECT got::text FROM (SELECT %s FROM target) got', names);
	day date;
	old_rows bigint;
	new_rows bigint;
	gone bigint;
	came bigint;
	way text;
	print text;
	r load_result;
BEGIN
	EXECUTE s.ddl;
	EXECUTE format('CREATE TABLE source (k %s, %s)', s.key_type, s.columns);
	EXECUTE format('CREATE TABLE oracle (k %s, %s)', s.key_type, s.columns);
	EXECUTE format('INSERT INTO oracle SELECT %s FROM target', names);

	FOR try IN 1 .. tries LOOP
		day := date '2026-03-27' + (random() * 3)::int;
		way := (ARRAY['auto', 'diff', 'delete'])[1 + try % 3];

		-- some of the old rows, some of them twice, and new ones
		EXECUTE 'TRUNCATE source';
		EXECUTE format('INSERT INTO source SELECT o.* FROM oracle o,
			generate_series(1, CASE WHEN random() < 0.7 THEN 1 WHEN random() < 0.5 THEN 2 ELSE 0 END) WHERE %s', slice) USING day;
		EXECUTE format('INSERT INTO source SELECT %s, %s FROM (
			SELECT $1 AS d, floor(random() * 4)::int AS h, nullif(floor(random() * 4)::int, 0) AS i,
				(ARRAY[''a'', ''b'', '''', NULL, ''longer''])[1 + floor(random() * 5)] AS t
			FROM generate_series(1, floor(random() * $2)::int)) q', s.key_value, s.row_values)
			USING day, (ARRAY[0, 3, 20])[1 + floor(random() * 3)];

		EXECUTE format('SELECT count(*) FROM oracle WHERE %s', slice) INTO old_rows USING day;
		EXECUTE 'SELECT count(*), fingerprint(s) FROM source s' INTO new_rows, print;
		came := difference('SELECT s::text FROM source s',
			format('SELECT o::text FROM oracle o WHERE %s', replace(slice, '$1', quote_literal(day))));
		gone := difference(format('SELECT o::text FROM oracle o WHERE %s', replace(slice, '$1', quote_literal(day))),
			'SELECT s::text FROM source s');
		EXECUTE format('DELETE FROM oracle WHERE %s', slice) USING day;
		EXECUTE 'INSERT INTO oracle SELECT * FROM source';

		r := replace_partition('target', day, 'SELECT * FROM source', method => way, on_empty => 'replace',
			date_column => 'k');

		IF difference(target_rows, 'SELECT o::text FROM oracle o') > 0
			OR difference('SELECT o::text FROM oracle o', target_rows) > 0 THEN
			INSERT INTO failures SELECT s.name, 'rows', format('%s: %s', day, r);
		END IF;
		IF (r.rows, r.rows_before) <> (new_rows, old_rows) THEN
			INSERT INTO failures SELECT s.name, 'counts', format('%s: %s', day, r);
		END IF;
		IF r.method <> (CASE WHEN came + gone = 0 THEN 'none' WHEN way = 'delete' THEN 'delete' ELSE 'diff' END)
			OR (r.inserted, r.deleted) <> (CASE r.method
				WHEN 'none' THEN (0::bigint, 0::bigint)
				WHEN 'delete' THEN (new_rows, old_rows)
				ELSE (came, gone) END)
			OR r.changed <> (came + gone > 0) THEN
			INSERT INTO failures SELECT s.name, 'writes', format('%s: %s, came %s, gone %s', day, r, came, gone);
		END IF;
		IF s.name <> 'generated and default' AND r.fingerprint <> print THEN
			INSERT INTO failures SELECT s.name, 'fingerprint', format('%s: %s instead of %s', day, r, print);
		END IF;

		r := replace_partition('target', day, 'SELECT * FROM source ORDER BY random()', method => way,
			on_empty => 'replace', date_column => 'k');
		IF (r.method, r.rows, r.rows_before, r.inserted, r.deleted, r.changed) <> ('none', new_rows, new_rows, 0, 0, false)
			OR difference(target_rows, 'SELECT o::text FROM oracle o') > 0 THEN
			INSERT INTO failures SELECT s.name, 'retry', format('%s: %s', day, r);
		END IF;
	END LOOP;

	IF s.name = 'generated and default' THEN
		EXECUTE 'SELECT count(*) FROM target WHERE (double, z) IS DISTINCT FROM (i * 2, ''z'')' INTO gone;
		IF gone > 0 THEN
			INSERT INTO failures SELECT s.name, 'rows', gone || ' rows without default or generated value';
		END IF;
	END IF;
	-- what triggers have seen is what was written
	IF s.name = 'triggers' THEN
		EXECUTE 'SELECT (SELECT count(*) FILTER (WHERE op = ''INSERT'') - count(*) FILTER (WHERE op = ''DELETE'') FROM seen) -
			(SELECT count(*) FROM target)' INTO gone;
		IF gone <> 0 THEN
			INSERT INTO failures SELECT s.name, 'rows', 'triggers have not seen what was written';
		END IF;
		EXECUTE 'DROP TABLE seen';
	END IF;
	EXECUTE 'DROP TABLE target, source, oracle';
END
$$;

DO $$ DECLARE s shapes; BEGIN FOR s IN SELECT * FROM shapes LOOP PERFORM try_shape(s, 60); END LOOP; END $$;

SELECT is_empty(
	format('SELECT detail FROM failures WHERE shape = %L AND property = %L LIMIT 3', s.name, p.name),
	format('%s: %s', s.name, p.description))
FROM shapes s, (VALUES
	(1, 'rows', 'after each load the table is that of the oracle'),
	(2, 'counts', 'rows before and after are counted'),
	(3, 'writes', 'method, and rows inserted and deleted, are the difference of the multisets'),
	(4, 'fingerprint', 'fingerprint is that of the rows of the query'),
	(5, 'retry', 'a retry with the rows in another order changes nothing')) p (n, name, description)
ORDER BY s.name, p.n;

SELECT * FROM finish();
ROLLBACK;
