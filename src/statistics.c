/*
 * statistics.c
 *		Planner statistics of leaves that a load has changed.
 *
 * Whoever reads a slice right after its load should get a good plan, not one from
 * before autovacuum has come by.  So what autovacuum would find to be due, a load
 * does before it commits: ANALYZE.  Its thresholds are the server's and the table's.
 *
 * Only for leaves that hold the slice and nothing else.  In others the slice is a
 * part, and the lock that ANALYZE takes would make loads of other slices wait.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "postmaster/autovacuum.h"
#include "storage/bufmgr.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "attempt.h"
#include "guc.h"
#include "statistics.h"

/*
 * Is ANALYZE of a leaf due after so many changes, by autovacuum's rule?  Where
 * autovacuum is turned off for the table, so much the more.
 */
static bool
is_due(Relation leaf, uint64 rows_before, uint64 changed)
{
	StdRdOptions *options = (StdRdOptions *) leaf->rd_options;
	double		threshold = autovacuum_anl_thresh;
	double		scale = autovacuum_anl_scale;

	if (options != NULL)
	{
		if (options->autovacuum.analyze_threshold >= 0)
			threshold = options->autovacuum.analyze_threshold;
		if (options->autovacuum.analyze_scale_factor >= 0)
			scale = options->autovacuum.analyze_scale_factor;
	}
	return (double) changed > threshold + scale * rows_before;
}

/*
 * ANALYZE the leaf whose OID is given, as its owner: loading does not need that
 * right, and autovacuum would not ask for it either.
 */
static void
analyze_as_owner(void *arg)
{
	Oid			relid = *(Oid *) arg;
	Relation	leaf = table_open(relid, NoLock);
	Oid			owner = leaf->rd_rel->relowner;
	VacuumParams params = {.options = VACOPT_ANALYZE,.log_min_duration = -1};
	Oid			user;
	int			context;

	table_close(leaf, NoLock);
	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(owner, context | SECURITY_LOCAL_USERID_CHANGE);
	analyze_rel(relid, NULL, &params, NIL, true, GetAccessStrategy(BAS_VACUUM));
	SetUserIdAndSecContext(user, context);
}

/*
 * The same, but that an error is a warning: the rows are right, and a function in an
 * index that fails for the owner is no reason to lose them.
 */
static void
analyze_leaf(Oid relid)
{
	ErrorData  *error = iload_attempt(analyze_as_owner, &relid);

	if (error == NULL)
		return;
	ereport(WARNING,
			(errmsg("could not analyze \"%s\": %s", get_rel_name(relid), error->message),
			 errhint("Its planner statistics are those from before the load.")));
	FreeErrorData(error);
}

/*
 * Gather the statistics of the leaves of a slice that had "rows_before" rows, of
 * which "changed" were deleted or inserted.
 */
void
iload_statistics_gather(IloadLeaves *leaves, uint64 rows_before, uint64 changed)
{
	ListCell   *lc;

	if (!iload_auto_analyze || !leaves->all_exact)
		return;
	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
	foreach(lc, leaves->leaves)
	{
		Relation	leaf = table_open(((IloadLeaf *) lfirst(lc))->relid, NoLock);
		Oid			relid = RelationGetRelid(leaf);
		bool		due = leaf->rd_rel->relkind == RELKIND_RELATION &&
		is_due(leaf, rows_before, changed);

		table_close(leaf, NoLock);
		if (due)
			analyze_leaf(relid);
	}
	PopActiveSnapshot();
	CommandCounterIncrement();
}
