--
-- The schema, table, column and constraint that an error names for programs.
--
-- Client drivers give them as attributes of the error (Diagnostic.table_name and the
-- like), so that a program need not take the message apart.
--
CREATE SCHEMA error_fields;
SET search_path = error_fields, public;
SET idempotent_load.lint = off;
SET client_min_messages = warning;

CREATE FUNCTION fields(statement text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	state text;
	s text;
	t text;
	c text;
	n text;
BEGIN
	EXECUTE statement;
	RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, s = SCHEMA_NAME, t = TABLE_NAME,
		c = COLUMN_NAME, n = CONSTRAINT_NAME;
	RETURN format('%s schema=%s table=%s column=%s constraint=%s', state, s, t, c, n);
END $$;

CREATE TABLE facts (day date NOT NULL, id int CHECK (id < 100), v int NOT NULL UNIQUE);
INSERT INTO facts VALUES ('2024-01-01', 1, 1);
CREATE TABLE parted (day date NOT NULL, id int CHECK (id < 100), UNIQUE (day, id)) PARTITION BY RANGE (day);
CREATE TABLE parted_0102 PARTITION OF parted FOR VALUES FROM ('2024-01-02') TO ('2024-01-03');
CREATE TABLE "Odd.Name" (day date NOT NULL, id int);
CREATE VIEW a_view AS SELECT * FROM facts;

-- by the load itself
SELECT fields($q$SELECT replace_partition('facts', '2024-01-01', 'SELECT day, id, v FROM facts WHERE false')$q$);
SELECT fields($q$SELECT replace_partition('facts', '2024-01-01', 'SELECT $1::date AS day, 1 AS id, 2 AS v', audit => 'SELECT false')$q$);
SELECT fields($q$SELECT replace_partition('facts', '2024-01-01', 'SELECT $1::date + 1 AS day, 1 AS id, 2 AS v')$q$);
SELECT fields($q$SELECT replace_partition('facts', '2024-01-01', 'SELECT null::date AS day, 1 AS id, 2 AS v')$q$);
SELECT fields($q$SELECT replace_partition('facts', '2024-01-01', 'SELECT $1::date AS day, 1 AS id, 2 AS w')$q$);
SELECT fields($q$SELECT replace_partition('facts', '2024-01-01', 'SELECT 1', date_column => 'dya')$q$);
SELECT fields($q$SELECT replace_partition('facts', '2024-01-01', 'SELECT 1', ignore_columns => '{day}')$q$);
SELECT fields($q$SELECT merge_rows('facts', '2024-01-01', 'SELECT $1::date AS day, 1 AS id, 1 AS v', key => '{id}', ignore_columns => '{id}')$q$);
SELECT fields($q$SELECT merge_rows('facts', '2024-01-01', 'SELECT $1::date AS day, 1 AS v', key => '{id}')$q$);
SELECT fields($q$SELECT replace_partition('a_view', '2024-01-01', 'SELECT 1')$q$);
SELECT fields($q$SELECT replace_partition('parted', '2024-01-01', 'SELECT $1::date AS day, 1 AS id', create_partition => false)$q$);
SELECT fields($q$SELECT replace_partition('"Odd.Name"', '2024-01-01', 'SELECT $1::date AS day, 1 AS id', audit => 'SELECT null::boolean')$q$);
SELECT fields($q$SELECT undo_load('facts', '2024-01-01')$q$);
SELECT fields($q$SELECT merge_rows('facts', '2024-01-01', 'SELECT $1::date AS day, 1 AS id, i AS v FROM generate_series(1, 2) AS i', key => '{id}')$q$);

-- by the target's constraints: the server's own, whatever the method
SELECT fields($q$SELECT replace_partition('facts', '2024-01-01', 'SELECT $1::date AS day, 100 AS id, 2 AS v')$q$);
SELECT fields($q$SELECT replace_partition('parted', '2024-01-02', 'SELECT $1::date AS day, 100 AS id', method => 'swap')$q$);
SELECT fields($q$SELECT replace_partition('facts', '2024-01-01', 'SELECT $1::date AS day, 1 AS id, null::int AS v')$q$);
SELECT fields($q$SELECT replace_partition('facts', '2024-01-01', 'SELECT $1::date AS day, i AS id, 1 AS v FROM generate_series(1, 2) AS i')$q$);
SELECT fields($q$SELECT replace_partition('parted', '2024-01-02', 'SELECT $1::date AS day, 1 AS id FROM generate_series(1, 2) AS i', method => 'swap')$q$);

-- a foreign key that acts on what refers to a row
CREATE TABLE parents (day date NOT NULL, id int PRIMARY KEY, v int);
CREATE TABLE children (id int CONSTRAINT children_parent REFERENCES parents ON DELETE CASCADE);
INSERT INTO parents VALUES ('2024-01-01', 1, 1);
INSERT INTO children VALUES (1);
SELECT fields($q$SELECT replace_partition('parents', '2024-01-01', 'SELECT $1::date AS day, 1 AS id, 2 AS v', method => 'delete')$q$);

-- coverage, and proof: the table that a rerun changes, or what its error names
SELECT fields($q$SELECT assert_loaded('facts', '2024-01-01', '2024-01-02')$q$);
SELECT create_job('append', command => 'INSERT INTO error_fields."Odd.Name" VALUES ($1, 1)');
SELECT create_job('insert', command => 'INSERT INTO error_fields.facts VALUES ($1, 2, 2)');
SELECT fields($q$SELECT assert_idempotent('append', '2024-01-01')$q$);
SELECT fields($q$SELECT assert_idempotent('insert', '2024-01-01')$q$);

-- an error of the query is not about the table; nor is one of another argument
SELECT fields($q$SELECT replace_partition('facts', '2024-01-01', 'SELECT $1::date AS day, 1 / 0 AS id, 2 AS v')$q$);
SELECT fields($q$SELECT replace_partition('facts', '2024-01-01', 'SELECT $1::date AS day, 1 AS id, 2 AS v', method => 'quickly')$q$);
SELECT fields($q$SELECT replace_partition('facts', '2024-01-01', 'SELECT $1::date AS day, 1 AS id, 2 AS v', method => 'swap')$q$);

SELECT drop_job('append'), drop_job('insert');
DROP SCHEMA error_fields CASCADE;
