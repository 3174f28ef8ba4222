/*
 * audit.c
 *		The audit: a query that must be true before a load is published.
 *
 * It reads the staged rows as "staged", a named relation over the spool, and
 * the slice as it is now as "live", which is put before its other WITH queries.
 * Nothing has been written yet, so a failed audit leaves everything as it was.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "nodes/nodeFuncs.h"

#include "audit.h"
#include "errcodes.h"
#include "error_fields.h"
#include "named_store.h"
#include "query.h"

#define LIVE_NAME	"live"

/* What the audit returned. */
typedef struct AuditResult
{
	uint64		rows;
	bool		isnull;
	bool		value;
} AuditResult;

static void
audit_row(TupleTableSlot *slot, void *arg)
{
	AuditResult *result = arg;

	result->rows++;
	result->value = DatumGetBool(slot_getattr(slot, 1, &result->isnull));
}

static bool
has_with_query(SelectStmt *select, const char *name)
{
	ListCell   *lc;

	if (select->withClause == NULL)
		return false;
	foreach(lc, select->withClause->ctes)
	{
		if (strcmp(lfirst_node(CommonTableExpr, lc)->ctename, name) == 0)
			return true;
	}
	return false;
}

/* Put "live" before the other WITH queries of the audit. */
static void
add_live(SelectStmt *select, IloadSlice *slice)
{
	char	   *text = psprintf("WITH " LIVE_NAME " AS (SELECT * FROM %s AS t WHERE %s) SELECT",
								iload_slice_table(slice), iload_slice_predicate(slice, "t"));
	SelectStmt *with;

	if (has_with_query(select, LIVE_NAME))
		return;
	with = iload_query_parse(text, "audit");
	if (select->withClause == NULL)
		select->withClause = with->withClause;
	else
		select->withClause->ctes = list_concat(with->withClause->ctes,
											   select->withClause->ctes);
}

static void
check_shape(Query *query)
{
	int			columns = 0;
	Oid			type = InvalidOid;
	ListCell   *lc;

	foreach(lc, query->targetList)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, lc);

		if (entry->resjunk)
			continue;
		columns++;
		type = exprType((Node *) entry->expr);
	}
	if (columns != 1 || type != BOOLOID)
		ereport(ERROR,
				(errcode(ERRCODE_ILOAD_QUERY_SHAPE),
				 errmsg("audit must return one column of type boolean"),
				 errhint("For example: SELECT count(*) > 0 FROM staged.")));
}

/*
 * Run the audit with the snapshot given; raises an error unless it returns one
 * row that is true.  It has the same two parameters as the query, and the bounds
 * as $3 and $4, which "live" reads.
 */
void
iload_audit_check(IloadStage *stage, IloadSlice *slice, const char *audit, Snapshot snapshot)
{
	SelectStmt *select = iload_query_parse(audit, "audit");
	QueryEnvironment *env = iload_stage_environment(stage);
	AuditResult result = {0, true, false};
	Oid			types[ILOAD_SLICE_NPARAMS];
	Query	   *query;

	add_live(select, slice);
	iload_slice_param_types(slice, types);
	query = iload_query_analyze(select, audit, "audit", types, ILOAD_SLICE_NPARAMS, env);
	check_shape(query);
	(void) iload_query_run(query, audit, iload_slice_params(slice), env, snapshot,
						   audit_row, &result);
	if (result.rows == 1 && !result.isnull && result.value)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_ILOAD_AUDIT_FAILED),
			 errmsg("audit of slice %s of table \"%s\" failed",
					iload_slice_text(slice), slice->table_name),
			 result.rows != 1 ? errdetail("It returned " UINT64_FORMAT " rows; one was expected.", result.rows) :
			 errdetail("It returned %s for " UINT64_FORMAT " staged rows.",
					   result.isnull ? "null" : "false", stage->fingerprint.rows),
			 errhint("Nothing was written. Look at what the query returns, and at the audit."),
			 iload_errtable(slice->target)));
}
