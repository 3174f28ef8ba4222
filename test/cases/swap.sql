/* test/cases/swap.sql */

-- Run after setup.sql by the pass of ci/cases that swaps wherever that can be.
-- Many cases load the rows that are there already, for which nothing would be
-- written.  So such a day is emptied and filled again, by swaps in the same
-- transaction; where it may not be swapped, or others are in the way, it is left
-- as it is.  Each swap is noted in the server's log, to be counted.

CREATE OR REPLACE FUNCTION replace_partition(tbl regclass, day date, query text) RETURNS bigint
LANGUAGE plpgsql AS
$$
DECLARE
	key text := (SELECT a.attname FROM pg_catalog.pg_attribute a
		WHERE a.attrelid OPERATOR(pg_catalog.=) tbl AND a.attname OPERATOR(pg_catalog.=) 'd');
	first iload.load_result;
	swapped iload.load_result;
BEGIN
	first := iload.replace_partition(tbl, day, query, on_empty => 'replace', date_column => key);
	IF first.method OPERATOR(pg_catalog.=) 'swap' THEN
		RAISE LOG 'case swapped';
	ELSIF first.method OPERATOR(pg_catalog.=) 'none' AND first.rows OPERATOR(pg_catalog.>) 0 THEN
		BEGIN
			PERFORM iload.replace_partition(tbl, day, pg_catalog.format('SELECT %I FROM %s WHERE false', key, tbl),
				on_empty => 'replace', date_column => key, method => 'swap');
			swapped := iload.replace_partition(tbl, day, query, date_column => key, method => 'swap');
			IF swapped.method OPERATOR(pg_catalog.<>) 'swap' OR swapped.rows OPERATOR(pg_catalog.<>) first.rows THEN
				RAISE 'case was not swapped: %', swapped;
			END IF;
			RAISE LOG 'case swapped';
		EXCEPTION
			WHEN feature_not_supported OR lock_not_available THEN
				NULL;
		END;
	END IF;
	RETURN first.rows;
END
$$;
