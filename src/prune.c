/*
 * prune.c
 *		The SQL function prune_history: what the extension remembers, cut short.
 *
 * The last load of a slice stays: it is what tells that the slice has been loaded, and
 * as what.  Of a table that no longer exists nothing is kept, so that a later table
 * that gets its OID does not inherit its loads.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "argument.h"
#include "own_table.h"

PG_FUNCTION_INFO_V1(iload_prune_history);

/* A load that is not the last one of its slice, or whose table is gone; %s is the history. */
#define NOT_LAST_LOAD \
	"(EXISTS (SELECT FROM %s AS l" \
	" WHERE l.target OPERATOR(pg_catalog.=) t.target" \
	" AND l.lower_bound OPERATOR(pg_catalog.=) t.lower_bound" \
	" AND (l.upper_bound OPERATOR(pg_catalog.=) t.upper_bound" \
	" OR l.upper_bound IS NULL AND t.upper_bound IS NULL)" \
	" AND l.id OPERATOR(pg_catalog.>) t.id)" \
	" OR NOT EXISTS (SELECT FROM pg_catalog.pg_class AS c" \
	" WHERE c.oid OPERATOR(pg_catalog.=) t.target))"

/* What is deleted: from which table "t", where what is before $1, and which rows. */
static const struct
{
	const char *table;
	const char *time;
	const char *condition;
}			prunings[] = {
	{"load_history", "finished_at", NOT_LAST_LOAD},
	{"load_failures", "failed_at", "true"},
	{"once_tokens", "ran_at", "true"}
};

/* History is kept, and cut, by whom it belongs to. */
static void
check_may_prune(Oid schema)
{
	Oid			owner = iload_own_table_owner(schema, prunings[0].table);

	if (has_privs_of_role(GetUserId(), owner))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied to prune the history of loads"),
			 errhint("Members of role \"%s\", which owns the extension's tables, and superusers may prune it.",
					 GetUserNameFromId(owner, false))));
}

/*
 * prune_history(before timestamptz) returns bigint: the number of rows deleted from
 * all tables.
 *
 * The last load of a slice that another transaction is loading is still the one that
 * is committed, so nothing has to be locked.
 */
Datum
iload_prune_history(PG_FUNCTION_ARGS)
{
	Oid			schema = get_func_namespace(fcinfo->flinfo->fn_oid);
	uint64		deleted = 0;

	iload_argument_require(fcinfo, 0, "before");
	PreventCommandIfReadOnly("prune_history()");
	check_may_prune(schema);
	SPI_connect();
	for (size_t i = 0; i < lengthof(prunings); i++)
	{
		IloadOwnValues values = {0};
		char	   *name = iload_own_table_name(schema, prunings[i].table);

		iload_own_values_add(&values, TIMESTAMPTZOID, PG_GETARG_DATUM(0), false);
		iload_own_table_execute(schema, prunings[i].table,
								psprintf("DELETE FROM %s AS t"
										 " WHERE t.%s OPERATOR(pg_catalog.<) $1 AND %s",
										 name, prunings[i].time,
										 psprintf(prunings[i].condition, name)),
								&values, false, SPI_OK_DELETE);
		deleted += SPI_processed;
	}
	SPI_finish();
	PG_RETURN_INT64((int64) deleted);
}
