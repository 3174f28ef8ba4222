-- After a merge the table is that of an oracle, and only what differs was written.
--
-- Random batches are merged into many shapes of a table.  Beside each, an oracle does
-- the same by plain SQL: rows of a batch are ranked by version, those of the slice
-- with lower versions updated, missing ones inserted.  Tables are compared both ways,
-- and rows that were not to be written by their places.

BEGIN;
SELECT plan(25);
SELECT setseed(0.17);
SET LOCAL search_path = public, pg_catalog;
SET LOCAL client_min_messages = error;

CREATE TABLE shapes (name text, ddl text);
INSERT INTO shapes VALUES
('plain', 'CREATE TABLE target (d date, k1 numeric, k2 text, ver int, v text, note text DEFAULT ''note'', id serial)'),
('partitioned', 'CREATE TABLE target (d date, k1 numeric, gone int, k2 text, ver int, v text, note text DEFAULT ''note'', id serial) PARTITION BY RANGE (d);
	ALTER TABLE target DROP gone;
	CREATE TABLE other_layout (id int NOT NULL, note text, v text, lost int, ver int, k2 text, k1 numeric, d date);
	ALTER TABLE other_layout DROP lost;
	ALTER TABLE target ATTACH PARTITION other_layout FOR VALUES FROM (''2026-03-28'') TO (''2026-03-29'')'),
('unique index', 'CREATE TABLE target (d date, k1 numeric, k2 text, ver int, v text, note text DEFAULT ''note'', id serial,
	UNIQUE NULLS NOT DISTINCT (d, k1, k2)) PARTITION BY RANGE (d);
	CREATE TABLE indexed PARTITION OF target FOR VALUES FROM (''2026-03-27'') TO (''2026-03-30'')'),
('no nulls', 'CREATE TABLE target (d date, k1 numeric NOT NULL, k2 text NOT NULL, ver int, v text, note text DEFAULT ''note'', id serial, PRIMARY KEY (d, k2, k1))'),
('children', 'CREATE TABLE target (d date, k1 numeric, k2 text, ver int, v text, note text DEFAULT ''note'', id serial);
	CREATE TABLE child () INHERITS (target)');

CREATE TABLE failures (shape text, property text, detail text);
CREATE TABLE batch (d date, k1 numeric, k2 text, ver int, v text);

-- Rows of a batch that a merge should write, or keep as they are: one for each key.
CREATE FUNCTION winners(versioned boolean) RETURNS SETOF batch LANGUAGE sql AS
$$
SELECT DISTINCT ON (k1, k2) d, k1, k2, ver, v
FROM (SELECT *, rank() OVER (PARTITION BY k1, k2 ORDER BY CASE WHEN versioned THEN ver END DESC NULLS LAST) AS r FROM batch) b
WHERE r = 1
ORDER BY k1, k2
$$;

-- Are there rows of which none can be preferred?
CREATE FUNCTION tied(versioned boolean) RETURNS boolean LANGUAGE sql AS
$$
SELECT EXISTS (
	SELECT FROM (SELECT *, rank() OVER (PARTITION BY k1, k2 ORDER BY CASE WHEN versioned THEN ver END DESC NULLS LAST) AS r FROM batch) b
	WHERE r = 1
	GROUP BY k1, k2
	HAVING count(DISTINCT ROW(ver, v)::text) > 1)
$$;

CREATE FUNCTION fill_batch(day date, kind text, with_nulls boolean) RETURNS void LANGUAGE plpgsql AS
$$
BEGIN
	TRUNCATE batch;
	-- rows that are stored, some of them in other words; large ones are nearly all of the slice
	INSERT INTO batch
	SELECT d, CASE WHEN random() < 0.1 THEN round(k1, 3) ELSE k1 END, k2,
		CASE WHEN random() < 0.1 THEN nullif(floor(random() * 6)::int, 0) ELSE ver END,
		CASE WHEN random() < (CASE kind WHEN 'large' THEN 0.01 ELSE 0.4 END) THEN 'v' || floor(random() * 4) ELSE v END
	FROM oracle WHERE d = day AND random() < (CASE kind WHEN 'large' THEN 0.99 ELSE 0.6 END);
	-- others, which may meet these and each other
	INSERT INTO batch
	SELECT day, CASE WHEN with_nulls THEN nullif(k, 0) ELSE k END, CASE WHEN with_nulls AND random() < 0.2 THEN NULL ELSE 'k' || k % 2 END,
		nullif(floor(random() * 6)::int, 0), nullif('v' || floor(random() * 4), 'v0')
	FROM (SELECT floor(random() * (CASE kind WHEN 'large' THEN 1e6 WHEN 'few keys' THEN 5 ELSE 1e3 END))::int AS k
		FROM generate_series(1, (CASE kind WHEN 'large' THEN 30 ELSE floor(random() * 12) END)::int)) r;
	-- some twice
	INSERT INTO batch SELECT * FROM batch WHERE random() < 0.05;
	IF kind = 'large' AND random() < 0.8 THEN
		DELETE FROM batch a USING batch b WHERE a.k1 = b.k1 AND a.k2 = b.k2 AND a.ctid < b.ctid AND (a.ver, a.v) IS DISTINCT FROM (b.ver, b.v);
	END IF;
END
$$;

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
	rows text := 'SELECT (t.d, t.k1, t.k2, t.ver, t.v, t.note)::text FROM %I t';
	places text := 'SELECT (tableoid, ctid, t)::text FROM target t';
	day date;
	kind text;
	versioned boolean;
	with_nulls boolean := s.name <> 'no nulls';
	expected_updates bigint;
	expected_inserts bigint;
	failed boolean;
	serials bigint;
	r load_result;
BEGIN
	EXECUTE s.ddl;
	CREATE TABLE oracle (d date, k1 numeric, k2 text, ver int, v text, note text DEFAULT 'note');
	INSERT INTO oracle SELECT '2026-03-28', i, 'k' || i % 2, i % 5, 'v' || i % 3, 'mine' FROM generate_series(1, 1500) i;
	INSERT INTO target SELECT * FROM oracle;
	ANALYZE target;

	FOR try IN 1 .. tries LOOP
		day := CASE WHEN try % 3 = 0 THEN '2026-03-28' ELSE date '2026-03-27' + (random() * 2)::int * 2 END;
		kind := CASE WHEN try % 3 = 0 THEN 'large' WHEN try % 3 = 1 THEN 'few keys' ELSE 'small' END;
		versioned := try % 4 < 2;
		PERFORM set_config('work_mem', CASE WHEN try % 5 = 0 THEN '64kB' ELSE '4MB' END, true);
		PERFORM fill_batch(day, kind, with_nulls);
		EXECUTE format('CREATE TEMP TABLE before ON COMMIT DROP AS %s', places);
		SELECT last_value INTO serials FROM target_id_seq;

		failed := false;
		BEGIN
			r := merge_rows('target', day, 'SELECT v, ver, k2, k1, d FROM batch ORDER BY random()',
				CASE WHEN try % 2 = 0 THEN '{k1,k2}'::text[] ELSE '{k2,d,k1}' END,
				CASE WHEN versioned THEN 'ver' END);
		EXCEPTION WHEN cardinality_violation THEN
			failed := true;
		END;
		IF failed IS DISTINCT FROM tied(versioned) THEN
			INSERT INTO failures SELECT s.name, 'ties', format('%s %s: failed %s', try, kind, failed);
		END IF;

		IF NOT failed THEN
			UPDATE oracle o SET ver = w.ver, v = w.v
			FROM winners(versioned) w
			WHERE o.d = day AND coalesce(o.k1, -1) = coalesce(w.k1, -1) AND coalesce(o.k2, '') = coalesce(w.k2, '')
				AND (o.ver, o.v) IS DISTINCT FROM (w.ver, w.v)
				AND (NOT versioned OR w.ver > o.ver OR o.ver IS NULL AND w.ver IS NOT NULL);
			GET DIAGNOSTICS expected_updates = ROW_COUNT;
			INSERT INTO oracle (d, k1, k2, ver, v)
			SELECT * FROM winners(versioned) w
			WHERE NOT EXISTS (SELECT FROM oracle o WHERE o.d = day AND coalesce(o.k1, -1) = coalesce(w.k1, -1) AND coalesce(o.k2, '') = coalesce(w.k2, ''));
			GET DIAGNOSTICS expected_inserts = ROW_COUNT;
			IF (r.method, r.rows, r.inserted, r.updated, r.deleted, r.changed) IS DISTINCT FROM
				('merge', (SELECT count(*) FROM batch), expected_inserts, expected_updates, 0::bigint, expected_inserts + expected_updates > 0) THEN
				INSERT INTO failures SELECT s.name, 'counts', format('%s %s: %s, expected %s, %s', try, kind, r, expected_inserts, expected_updates);
			END IF;
			-- rows that were not written are where they were, and no value of a sequence was spent on them
			IF difference('SELECT * FROM before', places) <> expected_updates
				OR (SELECT last_value FROM target_id_seq) <> serials + expected_inserts THEN
				INSERT INTO failures SELECT s.name, 'writes', format('%s %s: %s', try, kind, r);
			END IF;
		END IF;
		IF difference(format(rows, 'target'), format(rows, 'oracle')) > 0
			OR difference(format(rows, 'oracle'), format(rows, 'target')) > 0 THEN
			INSERT INTO failures SELECT s.name, 'rows', format('%s %s: %s', try, kind, r);
		END IF;
		DROP TABLE before;

		-- once more, in another order
		IF NOT failed THEN
			EXECUTE format('CREATE TEMP TABLE before ON COMMIT DROP AS %s', places);
			r := merge_rows('target', day, 'SELECT * FROM batch ORDER BY random()', '{k1,k2}', CASE WHEN versioned THEN 'ver' END);
			IF r.changed OR difference('SELECT * FROM before', places) > 0 THEN
				INSERT INTO failures SELECT s.name, 'writes', format('%s %s, again: %s', try, kind, r);
			END IF;
			DROP TABLE before;
		END IF;
	END LOOP;
	INSERT INTO failures SELECT s.name, 'coverage', 'too few ties, or too many'
	WHERE (SELECT count(*) FROM load_history WHERE target = 'target'::regclass) NOT BETWEEN tries AND 2 * tries - 3;
	DROP TABLE target, oracle CASCADE;
END
$$;

DO $$ DECLARE s shapes; BEGIN FOR s IN SELECT * FROM shapes LOOP PERFORM try_shape(s, 60); END LOOP; END $$;

SELECT is_empty(
	format('SELECT detail FROM failures WHERE shape = %L AND property = %L LIMIT 3', s.name, p.name),
	format('%s: %s', s.name, p.description))
FROM shapes s, (VALUES
	(1, 'rows', 'after each merge the table is that of the oracle'),
	(2, 'counts', 'rows inserted and updated are counted'),
	(3, 'writes', 'nothing else is written, and nothing the second time'),
	(4, 'ties', 'a tie is an error, and nothing else is'),
	(5, 'coverage', 'most batches have no tie, and some have')) p (n, name, description)
ORDER BY s.name, p.n;

SELECT * FROM finish();
ROLLBACK;
