--
-- run_once: a command that runs once for its token
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotent_load;
CREATE SCHEMA iload_once;
CREATE ROLE regress_iload_one;
CREATE ROLE regress_iload_two;
RESET client_min_messages;
SET search_path = iload_once, public;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
SET IntervalStyle = 'postgres';
\set SHOW_CONTEXT never

CREATE TABLE paid (payout int, amount numeric);
GRANT USAGE ON SCHEMA iload_once TO PUBLIC;
GRANT SELECT, INSERT ON paid TO regress_iload_one, regress_iload_two;

-- once, and not again
SELECT run_once('payout 1', 'INSERT INTO paid VALUES (1, 299730.00)');
SELECT run_once('payout 1', 'INSERT INTO paid VALUES (1, 299730.00)');
SELECT * FROM paid;
-- another token is another run
SELECT run_once('payout 2', 'INSERT INTO paid VALUES (1, 299730.00)');
SELECT count(*) FROM paid;
SELECT role = current_user::regrole AS role, token, length(command_hash) AS command_hash, ran_at > now() - interval '1 hour' AS ran_at
FROM once_tokens WHERE token LIKE 'payout%' ORDER BY token;
-- another command under the same token is an error, if only by a blank
\set VERBOSITY terse
SELECT run_once('payout 1', 'INSERT INTO paid VALUES (1, 1.00)');
SELECT run_once('payout 1', 'INSERT INTO paid VALUES (1,  299730.00)');
\set VERBOSITY sqlstate
SELECT run_once('payout 1', 'INSERT INTO paid VALUES (1, 1.00)');
\set VERBOSITY default
SELECT count(*) FROM paid;

-- several statements, of which a later one uses what an earlier one made
SELECT run_once('steps', $$
	CREATE TEMP TABLE step ON COMMIT DROP AS SELECT 3 AS payout;
	INSERT INTO paid SELECT payout, 3.00 FROM step RETURNING *; -- the last one
$$);
SELECT * FROM paid WHERE payout = 3;

-- the token commits with the command, and is undone with it
SELECT run_once('fails', 'INSERT INTO paid VALUES (4, 4.00); SELECT 1 / 0');
SELECT count(*) FROM once_tokens WHERE token = 'fails';
SELECT run_once('fails', 'INSERT INTO paid VALUES (4, 4.00)');
BEGIN;
SELECT run_once('undone', 'INSERT INTO paid VALUES (5, 5.00)');
SELECT run_once('undone', 'INSERT INTO paid VALUES (5, 5.00)');
ROLLBACK;
SELECT run_once('undone', 'INSERT INTO paid VALUES (5, 5.50)');
BEGIN;
SAVEPOINT a;
SELECT run_once('savepoint', 'INSERT INTO paid VALUES (6, 6.00)');
ROLLBACK TO a;
SELECT run_once('savepoint', 'INSERT INTO paid VALUES (6, 6.00)');
COMMIT;
DO $$
BEGIN
	PERFORM run_once('caught', 'INSERT INTO paid VALUES (7, 7.00); SELECT 1 / 0');
EXCEPTION WHEN division_by_zero THEN
	PERFORM run_once('caught', 'INSERT INTO paid VALUES (7, 7.00)');
END
$$;
SELECT payout, count(*), sum(amount) FROM paid WHERE payout >= 4 GROUP BY 1 ORDER BY 1;

-- a command that calls run_once for its own token finds that it has run
SELECT run_once('nested', 'INSERT INTO paid VALUES (8, 8.00); DO $a$ BEGIN RAISE NOTICE ''%'', run_once(''inner'', ''INSERT INTO paid VALUES (8, 8.00)''); END $a$');
SELECT run_once('nested', 'INSERT INTO paid VALUES (8, 8.00); DO $a$ BEGIN RAISE NOTICE ''%'', run_once(''inner'', ''INSERT INTO paid VALUES (8, 8.00)''); END $a$');
SELECT count(*) FROM paid WHERE payout = 8;

-- a token is its role's, which is known after it has been renamed
SET ROLE regress_iload_one;
SELECT run_once('shared', 'INSERT INTO paid VALUES (9, 1)');
SET ROLE regress_iload_two;
SELECT run_once('shared', 'INSERT INTO paid VALUES (9, 2)');
SELECT run_once('payout 1', 'INSERT INTO paid VALUES (9, 3)');
-- it runs with the caller's rights
SELECT run_once('no right', 'DELETE FROM paid');
INSERT INTO once_tokens VALUES ('regress_iload_one', 'forged', '', now());
DELETE FROM once_tokens;
RESET ROLE;
ALTER ROLE regress_iload_one RENAME TO regress_iload_three;
SET ROLE regress_iload_three;
SELECT run_once('shared', 'INSERT INTO paid VALUES (9, 1)');
RESET ROLE;
SELECT amount FROM paid WHERE payout = 9 ORDER BY amount;

-- errors: none of these leaves a token
SELECT run_once('bad', '');
SELECT run_once('bad', 'INSERT INTO paid VALUES (10, 1); COMMIT');
SELECT run_once('bad', 'DO $$BEGIN INSERT INTO paid VALUES (10, 1); COMMIT; END$$');
SELECT run_once('bad', 'INSERT INTO paid VALUES ($1, 1)');
SELECT run_once('bad', concat('INSERT INTO paid ', 'SELEC 1'));
\set SHOW_CONTEXT errors
SELECT run_once('bad', 'INSERT INTO paid VALUES (10, 1 / 0)');
\set SHOW_CONTEXT never
\set VERBOSITY sqlstate
SELECT run_once(NULL, 'SELECT 1');
SELECT run_once('bad', NULL);
SELECT run_once('', 'SELECT 1');
SELECT run_once('bad', 'VACUUM paid');
SELECT run_once('bad', 'COPY paid FROM STDIN');
BEGIN READ ONLY;
SELECT run_once('bad', 'SELECT 1');
ROLLBACK;
\set VERBOSITY default
SELECT count(*) FROM once_tokens WHERE token = 'bad';
SELECT count(*) FROM paid WHERE payout = 10;

-- a job that runs a command once gives the same when it is run again; rows that are lost
-- apart from their token it does not bring back
SELECT create_job('pays once', command => $$SELECT run_once('payout of ' || $1, 'INSERT INTO iload_once.paid VALUES (11, 11.00)')$$);
SELECT assert_idempotent('pays once', '2024-01-01', '{same}');
SELECT count(*) FROM paid WHERE payout = 11;
SELECT drop_job('pays once');

-- nothing depends on the caller's search_path
SET search_path = '';
SELECT public.run_once('anywhere', 'INSERT INTO iload_once.paid VALUES (12, 12.00)');
SELECT public.run_once('anywhere', 'INSERT INTO iload_once.paid VALUES (12, 12.00)');
SET search_path = iload_once, public;

DELETE FROM once_tokens WHERE role IN ('regress_iload_three'::regrole, 'regress_iload_two'::regrole)
	OR token IN ('payout 1', 'payout 2', 'steps', 'fails', 'undone', 'savepoint', 'caught', 'nested', 'inner', 'anywhere');
SET client_min_messages = warning;
DROP SCHEMA iload_once CASCADE;
DROP ROLE regress_iload_three, regress_iload_two;
