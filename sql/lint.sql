--
-- lint: what can be known of a query or job without running it
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotent_load;
CREATE SCHEMA iload_lint;
RESET client_min_messages;
SET search_path = iload_lint, public;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
\pset format unaligned
\set SHOW_CONTEXT never

CREATE TABLE sales (id int PRIMARY KEY, d date, at timestamptz, shop int, item text, amount numeric, ratio float8);
CREATE TABLE shops (shop int PRIMARY KEY, city text, code text UNIQUE, twin int NOT NULL, UNIQUE (city, twin));
CREATE TABLE daily (d date, shop int, n numeric, f float8, note text);

-- findings for the table daily, a line each
CREATE FUNCTION lint(query text) RETURNS TABLE (finding text) LANGUAGE sql AS $$
	SELECT concat_ws(' | ', code || CASE severity WHEN 'info' THEN ' (info)' ELSE '' END, message, object, line || ':' || "column")
	FROM lint_query('daily', query)
$$;

-- the whole row
SELECT * FROM lint_query('daily', 'SELECT d, shop FROM sales WHERE at < now()');

-- clock_read
SELECT lint('SELECT d, 1 AS n FROM sales WHERE d >= current_date - 1 AND at < CURRENT_TIMESTAMP(0)');
SELECT finding AS lint FROM lint('SELECT d, clock_timestamp()::text AS note FROM sales') WHERE finding NOT LIKE 'session_cast%';
SELECT lint('SELECT d, 1 AS n FROM sales WHERE age(d) > ''1 year''');
SELECT lint('SELECT d, 1 AS n FROM sales WHERE d = $1');
-- of the output, it matters what is used
SELECT lint('SELECT d, shop FROM (SELECT *, now() AS seen FROM sales) s');
SELECT lint('SELECT d, shop FROM (SELECT *, now() AS seen FROM sales) s WHERE seen > at');
SELECT finding AS lint FROM lint('WITH s AS (SELECT *, now() AS seen FROM sales) SELECT d, seen::date - d AS n FROM s') WHERE finding NOT LIKE 'session_cast%';
SELECT lint('SELECT d, shop FROM (SELECT d, shop, now() FROM sales UNION ALL SELECT d, shop, now() FROM sales) s');
SELECT lint('SELECT d, shop FROM (SELECT d, shop, now() FROM sales UNION SELECT d, shop, now() FROM sales) s');
SELECT lint('SELECT d, count(*) AS n FROM sales GROUP BY d, now()');

-- line and column, in characters
SELECT lint(E'SELECT d, ''äöü€'' || item AS note, -- größer\n\t1 AS n\nFROM sales\nWHERE ''ä'' < item AND at < now()');

-- clock_literal
SELECT lint('SELECT d, 1 AS n FROM sales WHERE d = ''today''');
SELECT lint($$SELECT d, 1 AS n FROM sales WHERE d = ' Today '::date OR d = date 'YESTERDAY' OR d = CAST('tomorrow' AS date)$$);
SELECT lint($$SELECT d, 1 AS n FROM sales WHERE d IN ('2024-01-01', 'tomorrow') OR d = ANY ('{2024-01-01,today}') OR '[yesterday,today)'::daterange @> d$$);
SELECT finding AS lint FROM lint($q$SELECT d, 1 AS n FROM sales WHERE at > 'yesterday 04:05' OR at::time > E'now' OR at::timestamp = $_$now$_$$q$) WHERE finding NOT LIKE 'session_cast%';
SELECT lint($$SELECT 'today' AS d, 1 AS n$$);
SELECT lint($$VALUES ('2024-01-01', 1), ('today', 2)$$);
SELECT lint($$SELECT d, 'today' AS note FROM sales WHERE item = 'now' OR d > '2024-01-01' OR at = 'infinity' OR item IN ('today')$$);

-- random_value, sequence_value
CREATE SEQUENCE numbers;
SELECT lint('SELECT d, random() AS f, nextval(''numbers'') AS n FROM sales');
SELECT lint('SELECT d, shop, gen_random_uuid()::text AS note FROM sales TABLESAMPLE bernoulli (10)');
SELECT lint('SELECT d, shop, md5(id::text) AS note FROM sales TABLESAMPLE bernoulli (10) REPEATABLE (1)');

-- transaction_value, session_value
SELECT lint('SELECT d, txid_current() AS n, pg_backend_pid() AS shop, session_user::text AS note FROM sales');

-- session_cast
SELECT lint($$SELECT at::date AS d, d::text AS note FROM sales WHERE at >= $1 AND at < $1::timestamptz + '1 day'$$);
SELECT lint($$SELECT d, date_part('day', at) AS n, concat(d) AS note FROM sales WHERE date_trunc('day', at) < item::timestamptz$$);
SELECT lint($$SELECT (at AT TIME ZONE 'UTC')::date AS d, extract(epoch FROM at) AS n FROM sales WHERE at > '2024-01-01' AND at + interval '1 hour' < 'infinity'$$);
SELECT lint($$SELECT date_trunc('month', d)::date AS d, to_char(d, 'YYYY') AS note FROM sales WHERE d >= date_trunc('month', $1) AND d < date_trunc('month', $1) + interval '1 month'$$);

-- reads_target
SELECT lint('SELECT $1 AS d, sum(n) AS n FROM daily WHERE d < $1');
SELECT lint('SELECT $1 AS d, coalesce(s.shop, b.shop) AS shop FROM sales s FULL JOIN daily b ON b.shop = s.shop AND b.d = $1 - 1');
SELECT lint('SELECT s.d, shop FROM sales s WHERE s.d > (SELECT max(d) FROM iload_lint.daily)');
SELECT lint('SELECT d, n + 1 AS n FROM daily WHERE d = $1');
SELECT lint('SELECT d, n + 1 AS n FROM (SELECT * FROM daily WHERE n > 0) b WHERE d >= $1 AND d < $2');
SELECT lint($$SELECT d, n + 1 AS n FROM daily WHERE $1 <= d AND d < $1 + interval '1 day'$$);
SELECT lint('SELECT d, n FROM (SELECT *, row_number() OVER (ORDER BY n, d, shop, f, note) AS k FROM daily) b WHERE d = $1');
SELECT lint('SELECT d, shop FROM sales AS daily WHERE d = $1');
CREATE TABLE parts (d date, n int) PARTITION BY RANGE (d);
CREATE TABLE part_1 PARTITION OF parts FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
CREATE TABLE part_2 PARTITION OF parts FOR VALUES FROM ('2024-01-02') TO ('2024-01-03');
SELECT code, severity, message FROM lint_query('parts', 'SELECT $1 AS d, n FROM part_1');
SELECT code, severity, message FROM lint_query('part_2', 'SELECT $1 AS d, n FROM part_1', 'd');
SELECT code, severity, message FROM lint_query('part_2', 'SELECT d, n FROM parts WHERE d = $1', 'd');

-- limit_without_order, limit_with_ties
SELECT lint('SELECT d, shop FROM sales LIMIT 10');
SELECT lint('SELECT d, shop FROM sales OFFSET 10');
SELECT lint('SELECT d, shop FROM sales ORDER BY amount DESC LIMIT 10');
SELECT lint('SELECT d, shop FROM sales ORDER BY amount DESC, id LIMIT 10');
SELECT lint('SELECT d, shop FROM sales WHERE id = 7 LIMIT 1');
SELECT lint('SELECT d, shop FROM sales ORDER BY shop, d LIMIT 10');
SELECT lint('SELECT max(d) AS d FROM sales LIMIT 1');
SELECT lint('SELECT d, shop FROM sales ORDER BY amount FETCH FIRST 3 ROWS WITH TIES');
SELECT lint('SELECT d, shop FROM sales WHERE EXISTS (SELECT FROM shops LIMIT 1) LIMIT ALL');
SELECT lint('SELECT d, sum(amount) AS n FROM sales GROUP BY d, shop ORDER BY n DESC, d, shop LIMIT 10');
SELECT lint('SELECT d, shop, sum(amount) AS n FROM sales GROUP BY d, shop ORDER BY n DESC, d LIMIT 10');
SELECT lint('SELECT s.d, t.city AS note FROM sales s JOIN shops t ON t.shop = s.shop ORDER BY s.amount, s.id LIMIT 10');
SELECT lint('SELECT s.d, t.city AS note FROM sales s LEFT JOIN shops t USING (shop) ORDER BY s.amount, s.id LIMIT 10');
SELECT lint('SELECT s.d, t.city AS note FROM shops t LEFT JOIN sales s USING (shop) ORDER BY s.amount, s.id LIMIT 10');
SELECT lint('SELECT s.d, t.twin AS n FROM sales s JOIN shops t ON t.city = s.item ORDER BY s.id LIMIT 10');
CREATE TABLE sales_old () INHERITS (sales);
SELECT lint('SELECT d, shop FROM sales ORDER BY id LIMIT 10');
SELECT lint('SELECT d, shop FROM ONLY sales ORDER BY id LIMIT 10');
DROP TABLE sales_old;
SELECT lint('SELECT $1 AS d, twin AS n FROM shops ORDER BY code LIMIT 10');
SELECT lint('SELECT $1 AS d, twin AS n FROM shops WHERE city = ''A'' ORDER BY twin LIMIT 10');
SELECT lint('WITH s AS (SELECT d, shop, count(*) AS c FROM sales GROUP BY d, shop) SELECT d, c AS n FROM s ORDER BY c, d, shop LIMIT 10');
SELECT lint('SELECT d, shop FROM (SELECT d, shop FROM sales UNION SELECT d, shop FROM sales) s ORDER BY d LIMIT 10');
SELECT lint('SELECT s.d, x.id AS n FROM sales s, LATERAL (SELECT b.id FROM sales b WHERE b.shop = s.shop ORDER BY b.at LIMIT 1) x');

-- distinct_on_ties
SELECT lint('SELECT DISTINCT ON (shop) shop, d FROM sales');
SELECT lint('SELECT DISTINCT ON (shop) shop, d, amount AS n FROM sales ORDER BY shop, at DESC');
SELECT lint('SELECT DISTINCT ON (shop) shop, d, amount AS n FROM sales ORDER BY shop, at DESC, id');
SELECT lint('SELECT DISTINCT ON (shop) shop, d FROM sales ORDER BY shop, d');

-- window_ties
SELECT lint('SELECT d, row_number() OVER () AS n FROM sales');
SELECT lint('SELECT d, row_number() OVER (PARTITION BY shop ORDER BY at) AS n FROM sales');
SELECT lint('SELECT d, lag(amount) OVER w AS n, ntile(4) OVER w AS shop FROM sales WINDOW w AS (ORDER BY at)');
SELECT lint('SELECT d, sum(amount) OVER (ORDER BY at ROWS UNBOUNDED PRECEDING) AS n FROM sales');
SELECT lint('SELECT d, row_number() OVER (PARTITION BY shop ORDER BY at, id) AS n, lead(shop) OVER (ORDER BY id) AS shop FROM sales');
SELECT lint('SELECT d, rank() OVER (ORDER BY at) AS n, sum(shop) OVER (ORDER BY at) AS shop, first_value(at) OVER (ORDER BY at) = at AS note FROM sales');
SELECT lint('SELECT d, row_number() OVER (ORDER BY sum(amount), d) AS n FROM sales GROUP BY d');

-- order_dependent_aggregate
SELECT lint('SELECT d, string_agg(item, '','') AS note FROM sales GROUP BY d');
SELECT lint('SELECT d, array_agg(item ORDER BY at)::text AS note FROM sales GROUP BY d');
SELECT lint('SELECT d, array_agg(item ORDER BY at, id)::text || string_agg(item, '','' ORDER BY item) AS note FROM sales GROUP BY d');
SELECT lint('SELECT d, array_agg(DISTINCT item)::text || jsonb_object_agg(id, item) AS note FROM sales GROUP BY d');
SELECT lint('SELECT min(d) AS d, array_agg(item)::text AS note FROM (SELECT * FROM sales ORDER BY id) s');

-- float_aggregate
SELECT lint('SELECT d, sum(ratio) AS f, avg(amount) AS n FROM sales GROUP BY d');
SELECT lint('SELECT d, max(ratio) AS f, sum(ratio::numeric) AS n FROM sales GROUP BY d');

-- views, over views; columns that nobody reads
CREATE VIEW seen AS SELECT *, now() AS seen FROM sales;
CREATE VIEW recent AS SELECT id, d, shop, seen FROM seen WHERE amount > 0;
CREATE VIEW old AS SELECT d, shop FROM recent WHERE d < current_date;
CREATE VIEW best AS SELECT d, shop FROM sales ORDER BY amount LIMIT 1;
CREATE VIEW loaded AS SELECT * FROM daily;
CREATE VIEW both_kinds AS SELECT d, shop, seen FROM seen UNION ALL SELECT d, shop, at FROM sales;
SELECT lint('SELECT d, shop FROM both_kinds');
SELECT lint('SELECT d, shop, (seen IS NULL)::text AS note FROM both_kinds');
SELECT lint('SELECT d, shop FROM recent');
SELECT lint('SELECT d, shop, seen > ''2024-01-01'' AS note FROM recent');
SELECT lint('SELECT d, shop FROM old');
SELECT lint('SELECT d, shop FROM best');
SELECT lint('SELECT d, n FROM loaded WHERE d = $1');
SELECT lint('SELECT d, n FROM loaded');

-- functions in SQL, inlined by the planner or not, and BEGIN ATOMIC
CREATE FUNCTION days_since(d date) RETURNS int STABLE LANGUAGE sql AS $$ SELECT CURRENT_DATE - d $$;
CREATE FUNCTION shops_now() RETURNS SETOF int VOLATILE LANGUAGE sql AS $$
	SELECT shop FROM iload_lint.sales WHERE item = 'ä' AND at > 'now';
	SELECT shop FROM iload_lint.sales WHERE random() > 0.5
$$;
CREATE FUNCTION atomic(n int) RETURNS timestamptz STABLE LANGUAGE sql BEGIN ATOMIC SELECT now() + make_interval(hours => n); END;
CREATE FUNCTION again(n int) RETURNS int VOLATILE LANGUAGE sql AS $$ SELECT CASE WHEN n > 0 THEN iload_lint.again(n - 1) ELSE random()::int END $$;
CREATE FUNCTION by_default(n int, d date DEFAULT current_date) RETURNS int IMMUTABLE LANGUAGE sql AS $$ SELECT n $$;
CREATE FUNCTION elsewhere() RETURNS timestamptz STABLE LANGUAGE sql SET search_path = iload_lint AS $$ SELECT max(seen) FROM seen $$;
CREATE FUNCTION one() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
CREATE FUNCTION total(d date) RETURNS numeric STABLE LANGUAGE sql AS $$ SELECT sum(n) FROM iload_lint.daily b WHERE b.d = total.d $$;
SELECT lint('SELECT d, days_since(d) AS n FROM sales');
SELECT lint('SELECT $1 AS d, s AS shop FROM shops_now() s');
SELECT finding AS lint FROM lint('SELECT d, 1 AS n FROM sales WHERE at > atomic(3)') WHERE finding NOT LIKE 'session_cast%';
SELECT lint('SELECT d, again(3) AS n FROM sales');
SELECT lint('SELECT d, by_default(3) AS n FROM sales');
SELECT lint('SELECT d, by_default(3, $1) + by_default(d => $1, n => 3) AS n FROM sales');
SELECT lint('SELECT d, 1 AS n FROM sales WHERE at > elsewhere()');
SELECT lint('SELECT $1 AS d, total($1) AS n');
SELECT lint('SELECT $1 AS d, total($1 - 1) AS n');
-- an operator and a cast that are functions in SQL
CREATE FUNCTION plus_noise(a int, b int) RETURNS int VOLATILE LANGUAGE sql AS $$ SELECT a + b + random()::int $$;
CREATE OPERATOR +~ (LEFTARG = int, RIGHTARG = int, FUNCTION = plus_noise);
CREATE TYPE stamped AS (n int, at timestamptz);
CREATE FUNCTION stamp(n int) RETURNS stamped STABLE LANGUAGE sql AS $$ SELECT ROW(n, now())::iload_lint.stamped $$;
CREATE CAST (int AS stamped) WITH FUNCTION stamp(int);
SELECT lint('SELECT d, shop +~ id AS n FROM sales');
SELECT lint('SELECT d, (shop::stamped).n AS n FROM sales');

-- PL/pgSQL is looked at as text
CREATE FUNCTION pl(n int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	größe date := 'today';
	a date := date 'yesterday';
	b timestamptz := 'now'::timestamptz;
	today text := 'today';
BEGIN
	-- now()
	RAISE NOTICE 'now() % %', 'größe', CURRENT_DATE; /* random() */
	a := my.now() - pg_catalog.now();
	RETURN nextval('numbers') + random();
END
$$;
SELECT lint('SELECT d, pl(3) AS n FROM sales');
SELECT lint('SELECT d, one() AS n FROM sales');

-- defaults of columns that are not given, unless they are ignored
CREATE TABLE stamps (d date, shop int, loaded_at timestamptz DEFAULT now(), id bigint GENERATED ALWAYS AS IDENTITY, uid uuid DEFAULT gen_random_uuid());
SELECT code, message, object, line, hint FROM lint_query('stamps', 'SELECT d, shop FROM sales', 'd');
SELECT code, message, object, line, hint FROM lint_query('stamps', 'SELECT d, shop, now() AS loaded_at, NULL AS uid FROM sales', date_column => 'd');

-- the parameters are dates, or of the key's type
CREATE TABLE batches (batch int, shop int);
CREATE TABLE lists (region text, at timestamp);
SELECT code FROM lint_query('batches', 'SELECT $1 AS batch, shop FROM sales WHERE id / 2 = $1 LIMIT 1', 'batch');
SELECT code FROM lint_query('lists', 'SELECT $1 || city AS region FROM shops WHERE city = $1', 'region');
SELECT code FROM lint_query('lists', 'SELECT $1 AS at FROM lists WHERE at = $1', 'at');

-- a policy
CREATE TABLE secret (d date, shop int);
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY not_old ON secret USING (d > current_date - 7);
CREATE ROLE iload_lint_role;
GRANT USAGE ON SCHEMA iload_lint TO iload_lint_role;
GRANT SELECT ON secret, daily, sales TO iload_lint_role;
SET ROLE iload_lint_role;
SELECT lint('SELECT d, shop FROM secret');
RESET ROLE;
SELECT lint('SELECT d, shop FROM secret');

-- ordinary errors
SELECT * FROM lint_query('daily', 'SELECT nothing AS d FROM sales');
SELECT * FROM lint_query('daily', 'SELECT d FROM');
SELECT * FROM lint_query('daily', 'DELETE FROM sales');
SELECT * FROM lint_query('daily', 'SELECT shop FROM sales');
SELECT * FROM lint_query('daily', 'SELECT d FROM sales', 'nothing');
SELECT * FROM lint_query(NULL, 'SELECT d FROM sales');
SELECT * FROM lint_query('daily', NULL);
SELECT * FROM lint_job(NULL);
SELECT * FROM lint_job('nothing');
SELECT * FROM lint_job('pl(int)');
REVOKE EXECUTE ON FUNCTION days_since(date), pl(int) FROM PUBLIC;
SET ROLE iload_lint_role;
SELECT * FROM lint_query('stamps', 'SELECT d, shop FROM sales', 'd');
SELECT * FROM lint_query('daily', 'SELECT d, iload_lint.days_since(d) AS n FROM sales');
RESET ROLE;

--
-- Jobs
--

CREATE FUNCTION lint_command(command text) RETURNS TABLE (finding text) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM create_job('iload_lint', command => command);
	RETURN QUERY SELECT concat_ws(' | ', code || CASE severity WHEN 'info' THEN ' (info)' ELSE '' END, message, object, line || ':' || "column")
		FROM lint_job('iload_lint');
	PERFORM drop_job('iload_lint');
END
$$;
CREATE TABLE facts (d date, shop int, n int, note text, PRIMARY KEY (d, shop));
CREATE TABLE numbered (d date, shop int, id serial PRIMARY KEY);
CREATE MATERIALIZED VIEW summary AS SELECT d, count(*) FROM sales GROUP BY d;

-- append
SELECT lint_command('INSERT INTO facts SELECT d, shop FROM sales WHERE d = $1');
SELECT lint_command('COPY facts FROM ''/nowhere''');
SELECT lint_command('INSERT INTO facts VALUES ($1, 1); DELETE FROM facts WHERE d = $1');
SELECT lint_command('DELETE FROM facts WHERE d < current_date - 90; INSERT INTO facts SELECT d, shop FROM sales WHERE d = $1');
SELECT lint_command('INSERT INTO numbered (d, shop) SELECT d, shop FROM sales WHERE d = $1 ON CONFLICT DO NOTHING');
-- replace_slice
SELECT lint_command('DELETE FROM facts WHERE d = $1; INSERT INTO iload_lint.facts SELECT d, shop FROM sales WHERE d = $1');
SELECT lint_command('WITH gone AS (DELETE FROM facts WHERE d = $1) INSERT INTO facts SELECT d, shop FROM sales WHERE d = $1');
SELECT lint_command('DELETE FROM parts WHERE d = $1; INSERT INTO part_1 SELECT d, shop FROM sales WHERE d = $1');
SELECT lint_command('SELECT replace_partition(''facts'', $1, ''SELECT d, shop FROM sales WHERE d = $1'')');
SELECT lint_command('CREATE TEMP TABLE new ON COMMIT DROP AS SELECT * FROM sales WHERE d = $1; INSERT INTO new SELECT * FROM sales;
DELETE FROM facts WHERE d = $1; INSERT INTO facts SELECT d, shop FROM new');
-- full_reload
SELECT lint_command('TRUNCATE facts; INSERT INTO facts SELECT d, shop FROM sales');
SELECT lint_command('DELETE FROM facts; INSERT INTO facts SELECT d, shop FROM sales');
SELECT lint_command('DROP TABLE IF EXISTS made; CREATE TABLE made AS SELECT d, now() FROM sales');
SELECT lint_command('DROP TABLE IF EXISTS made; CREATE TABLE made (d date); INSERT INTO made SELECT d FROM sales');
SELECT lint_command('REFRESH MATERIALIZED VIEW summary');
-- insert_if_absent, by a key or not
SELECT lint_command('INSERT INTO facts SELECT d, shop FROM sales WHERE d = $1 AND NOT EXISTS (SELECT FROM facts WHERE d = $1)');
SELECT lint_command('INSERT INTO facts SELECT s.d, s.shop FROM sales s LEFT JOIN facts f ON f.d = s.d WHERE f.d IS NULL');
SELECT lint_command('INSERT INTO facts SELECT s.d, s.shop FROM sales s WHERE s.d NOT IN (SELECT d FROM facts)');
SELECT lint_command('INSERT INTO facts SELECT s.d, s.shop FROM sales s WHERE s.d > (SELECT max(d) FROM facts)');
SELECT lint_command('INSERT INTO facts SELECT s.d, s.shop FROM sales s WHERE NOT EXISTS (SELECT FROM facts f WHERE f.d = s.d AND s.shop = f.shop)');
SELECT lint_command('INSERT INTO facts SELECT s.d, s.shop FROM sales s LEFT JOIN facts f USING (d, shop) WHERE f.shop IS NULL');
SELECT lint_command('INSERT INTO facts (d, shop) SELECT d, shop FROM sales EXCEPT SELECT d, shop FROM facts');
SELECT lint_command('INSERT INTO facts SELECT d, shop FROM sales WHERE d = $1 ON CONFLICT DO NOTHING');
-- merge
SELECT lint_command('INSERT INTO facts SELECT d, shop, 1 FROM sales WHERE d = $1 ON CONFLICT (d, shop) DO UPDATE SET n = EXCLUDED.n, note = coalesce(facts.note, EXCLUDED.note)');
SELECT lint_command('MERGE INTO facts f USING sales s ON f.d = s.d AND s.shop = f.shop WHEN MATCHED THEN UPDATE SET n = s.id WHEN NOT MATCHED THEN INSERT (d, shop) VALUES (s.d, s.shop)');
SELECT lint_command('DELETE FROM facts f USING sales s WHERE s.shop = f.shop; INSERT INTO facts SELECT d, shop FROM sales');
SELECT lint_command('WITH old AS (UPDATE facts f SET n = s.id FROM sales s WHERE s.shop = f.shop RETURNING f.shop) INSERT INTO facts SELECT d, shop FROM sales WHERE shop NOT IN (SELECT shop FROM old)');
-- update_in_place, counter, delete_only
SELECT lint_command('UPDATE facts f SET n = s.id + 1 FROM sales s WHERE s.shop = f.shop');
SELECT lint_command('UPDATE facts SET note = ''x'', n = n + 1 WHERE d = $1');
SELECT lint_command('INSERT INTO facts AS f SELECT d, shop, 1 FROM sales WHERE d = $1 ON CONFLICT (d, shop) DO UPDATE SET n = f.n + EXCLUDED.n');
SELECT lint_command('MERGE INTO facts f USING sales s ON f.d = s.d WHEN MATCHED THEN UPDATE SET n = f.n - s.id');
SELECT lint_command('DELETE FROM facts WHERE d = $1');

-- its statements are also looked at as queries
SELECT lint_command(E'DELETE FROM facts WHERE d = $1;\nINSERT INTO facts SELECT $1, shop, n + 1 FROM facts WHERE d = $1 - 1');
SELECT lint_command(E'DELETE FROM numbered WHERE d = $1;\nINSERT INTO numbered (d, shop) SELECT d, shop FROM sales LIMIT 1');
SELECT lint_command('CREATE TABLE soon (d date); INSERT INTO soon SELECT now()');

-- a query has the options and the environment of its job
SELECT create_job('iload_lint', 'stamps', 'SELECT at::date AS d, shop, now() AS loaded_at FROM sales', date_column => 'd', ignore_columns => '{loaded_at, id}');
SELECT code, message, object FROM lint_job('iload_lint');
SELECT drop_job('iload_lint');

-- functions
CREATE FUNCTION load_pl(day date) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	v int;
BEGIN
	IF EXISTS (SELECT FROM facts WHERE d = day) THEN
		RETURN;
	ELSE
		INSERT INTO facts SELECT d, shop FROM sales WHERE d = day RETURNING shop INTO v;
	END IF;
	DELETE FROM numbered WHERE d = day;
	FOR v IN SELECT shop FROM sales WHERE d = day LOOP
		INSERT INTO numbered (d, shop) VALUES (day, v);
		UPDATE facts SET n = facts.n + 1 WHERE shop = v;
	END LOOP;
	PERFORM replace_slice('daily', 'a', 'b', 'SELECT 1');
	EXECUTE 'INSERT INTO log SELECT 1';
EXCEPTION WHEN unique_violation THEN
	INSERT INTO log VALUES ('größe', now());
END
$$;
CREATE FUNCTION load_sql(day date) RETURNS void LANGUAGE sql AS $$
	DELETE FROM facts WHERE d = day;
	INSERT INTO facts SELECT d, shop FROM sales WHERE d = day AND at < now();
	INSERT INTO numbered (d, shop) SELECT d, shop FROM numbered WHERE d = day;
$$;
CREATE PROCEDURE load_atomic(day date) LANGUAGE sql
BEGIN ATOMIC
	DELETE FROM facts WHERE d = day;
	INSERT INTO facts SELECT d, shop FROM sales WHERE d = day AND at < now();
END;
CREATE FUNCTION load_return(day date) RETURNS int LANGUAGE sql RETURN 1;
SELECT severity, code, message, object, line, "column" FROM lint_job('load_pl(date)');
SELECT severity, code, message, object, line, "column" FROM lint_job('load_sql(date)');
SELECT severity, code, message, object, line, "column" FROM lint_job('iload_lint.load_atomic(date)');
SELECT severity, code, message, object, line, "column" FROM lint_job('load_return(date)');
REVOKE EXECUTE ON FUNCTION load_sql(date) FROM PUBLIC;
SET ROLE iload_lint_role;
SELECT * FROM lint_job('iload_lint.load_sql(date)');
RESET ROLE;

-- the guard of an INSERT: IF around it, or with RETURN before it, by FOUND or by a variable
CREATE FUNCTION guarded_1(day date) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT FROM facts WHERE d = day) THEN RETURN; END IF;
	INSERT INTO facts SELECT d, shop FROM sales WHERE d = day;
END
$$;
CREATE FUNCTION guarded_2(day date) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM 1 FROM facts WHERE d = day;
	IF FOUND THEN RETURN; END IF;
	INSERT INTO facts SELECT d, shop FROM sales WHERE d = day;
END
$$;
CREATE FUNCTION guarded_3(day date) RETURNS void LANGUAGE plpgsql AS $$
DECLARE n int;
BEGIN
	SELECT count(*) INTO n FROM facts WHERE d = day;
	IF day IS NULL THEN RAISE EXCEPTION 'no day'; ELSIF n = 0 THEN
		INSERT INTO facts SELECT d, shop FROM sales WHERE d = day;
	END IF;
END
$$;
CREATE FUNCTION unguarded(day date) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT FROM facts WHERE d = day) THEN RAISE NOTICE 'again'; END IF;
	IF day IS NULL THEN RETURN; END IF;
	INSERT INTO facts SELECT d, shop FROM sales WHERE d = day;
END
$$;
SELECT 1 AS guarded, code, message, object, line, "column" FROM lint_job('guarded_1(date)')
UNION ALL SELECT 2, code, message, object, line, "column" FROM lint_job('guarded_2(date)')
UNION ALL SELECT 3, code, message, object, line, "column" FROM lint_job('guarded_3(date)')
UNION ALL SELECT NULL, code, message, object, line, "column" FROM lint_job('unguarded(date)');

-- what each code tells to do
CREATE FUNCTION load_all(day date) RETURNS void LANGUAGE sql AS $$
	INSERT INTO facts (d, shop) SELECT d, shop FROM sales ON CONFLICT DO NOTHING;
	INSERT INTO facts (d, shop) SELECT d, shop FROM sales ON CONFLICT (d, shop) DO UPDATE SET n = 1;
	DELETE FROM facts WHERE d = day;
	TRUNCATE numbered;
	INSERT INTO numbered (d, shop, id) SELECT d, shop, id FROM sales;
	UPDATE facts SET n = 1;
$$;
SELECT DISTINCT code, severity, hint FROM (
	SELECT * FROM lint_query('daily', 'SELECT $1 AS d, string_agg(item, '','') AS note, sum(ratio) AS f
		FROM sales TABLESAMPLE bernoulli (1) WHERE at < now() AND at > ''yesterday'' AND at::date = $1
		AND id > lastval() AND id > random() AND id <> pg_backend_pid() AND id < txid_current()
		AND item IN (SELECT note FROM daily) AND item IN (SELECT note FROM daily WHERE d = $1)
		AND id IN (SELECT id FROM sales LIMIT 1) AND id IN (SELECT id FROM sales ORDER BY d LIMIT 1)
		AND id IN (SELECT DISTINCT ON (shop) shop + id FROM sales) AND id IN (SELECT row_number() OVER () FROM sales)')
	UNION ALL SELECT * FROM lint_job('load_pl(date)')
	UNION ALL SELECT * FROM lint_job('load_sql(date)')
	UNION ALL SELECT * FROM lint_job('load_all(date)')
) f ORDER BY code, severity, hint;

--
-- Loads
--

INSERT INTO sales VALUES (1, '2024-01-01', '2024-01-01', 1, 'a', 1, 1);
SELECT method FROM replace_partition('daily', '2024-01-01', 'SELECT d, shop FROM sales WHERE d = $1 AND at < now() AND at < clock_timestamp()');
SELECT method FROM replace_partition('stamps', '2024-01-01', 'SELECT d, shop FROM sales WHERE d = $1', date_column => 'd');
SELECT method FROM replace_partition('stamps', '2024-01-01', 'SELECT d, shop FROM sales WHERE d = $1', date_column => 'd', ignore_columns => '{loaded_at, id, uid}');
SELECT method FROM replace_slice('daily', '2024-01-01', NULL, E'SELECT d, shop FROM recent\nWHERE d = $1 AND seen >= ''yesterday'' AND days_since(d) > 0');
SELECT method FROM replace_partition('daily', '2024-01-01', 'SELECT d, shop FROM sales WHERE d = $1 ORDER BY random() LIMIT 1');
-- no warning: what changes nothing, and what is told by lint_query only
SELECT method FROM replace_partition('daily', '2024-01-01', 'SELECT d, shop, txid_current() > 0 AS note, one() AS f FROM recent WHERE d = $1');
SELECT method FROM replace_partition('daily', '2024-01-01', 'SELECT d, shop FROM recent WHERE d = $1 ORDER BY now()');

SET idempotent_load.lint = 'error';
SELECT method FROM replace_partition('daily', '2024-01-01', 'SELECT d, shop, random() AS f FROM sales WHERE d = $1');
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) FROM daily;
SET idempotent_load.lint = 'off';
SELECT method FROM replace_partition('daily', '2024-01-01', 'SELECT d, shop FROM sales WHERE d = $1 AND random() >= 0');
SET idempotent_load.lint = 'loud';
RESET idempotent_load.lint;

SET client_min_messages = warning;
DROP SCHEMA iload_lint CASCADE;
DROP ROLE iload_lint_role;
