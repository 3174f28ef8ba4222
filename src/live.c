/*
 * live.c
 *		The slice as it is stored now, read for comparison.
 *
 * Two ways.  Leaves that hold the slice and nothing else are scanned as heaps,
 * and their tuples hashed where they lie.  Everything else is read by a SELECT
 * on the target, as the caller could write it: the planner prunes and uses
 * indexes, row security hides what the caller may not see, and foreign tables
 * answer too.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"

#include "live.h"
#include "progress.h"
#include "query.h"
#include "world.h"

/* Why rows of a leaf cannot be named by ctid, or NULL where they can. */
static char *
leaf_without_ctids(IloadLeaf *leaf)
{
	Relation	rel = table_open(leaf->relid, NoLock);
	char	   *reason = NULL;

	if (rel->rd_rel->relkind != RELKIND_RELATION)
		reason = psprintf("\"%s\" is a foreign table", RelationGetRelationName(rel));
	else if (rel->rd_tableam != GetHeapamTableAmRoutine())
		reason = psprintf("\"%s\" does not use the table access method heap",
						  RelationGetRelationName(rel));
	table_close(rel, NoLock);
	return reason;
}

/*
 * Why rows of the target cannot be named by ctid, or NULL where they can.  A
 * table with children by inheritance may be a shell whose rows are elsewhere,
 * such as a hypertable.
 */
static char *
without_ctids(Relation target, IloadLeaves *leaves)
{
	ListCell   *lc;

	if (target->rd_rel->relkind == RELKIND_RELATION &&
		has_subclass(RelationGetRelid(target)))
		return psprintf("\"%s\" has child tables by inheritance",
						RelationGetRelationName(target));
	foreach(lc, leaves->leaves)
	{
		char	   *reason = leaf_without_ctids(lfirst(lc));

		if (reason != NULL)
			return reason;
	}
	return NULL;
}

/* The SELECT that reads the slice, analyzed; its text is returned too. */
static Query *
slice_query(IloadLive *live, bool ctids, char **text)
{
	Oid			types[ILOAD_SLICE_NPARAMS];

	*text = psprintf(ILOAD_QUERY_MARK "SELECT %s%s FROM %s AS t WHERE %s",
					 iload_columns_list(live->columns, "t"),
					 ctids ? ", t.tableoid, t.ctid" : "",
					 iload_slice_table(live->slice),
					 iload_slice_predicate(live->slice, "t"));
	iload_slice_param_types(live->slice, types);
	return iload_query_analyze(iload_query_parse(*text, "comparison"), *text, "comparison",
							   types, ILOAD_SLICE_NPARAMS, NULL);
}

/* How the server would read the slice by SQL. */
static Plan *
plan_slice(IloadLive *live)
{
	char	   *text;
	Query	   *query = slice_query(live, false, &text);
	PlannedStmt *plan;

	PushActiveSnapshot(GetTransactionSnapshot());
	plan = iload_query_plan(iload_query_rewrite(query), text, iload_slice_params(live->slice));
	PopActiveSnapshot();
	return plan->planTree;
}

static bool plan_has_custom_scan(Plan *plan);

static bool
plans_have_custom_scan(List *plans)
{
	ListCell   *lc;

	foreach(lc, plans)
	{
		if (plan_has_custom_scan((Plan *) lfirst(lc)))
			return true;
	}
	return false;
}

static bool
plan_has_custom_scan(Plan *plan)
{
	if (plan == NULL)
		return false;
	if (IsA(plan, CustomScan))
		return true;
	if (IsA(plan, Append) && plans_have_custom_scan(((Append *) plan)->appendplans))
		return true;
	return plan_has_custom_scan(plan->lefttree) || plan_has_custom_scan(plan->righttree);
}

/*
 * Would SQL on the target be carried out by another extension?  A planner hook
 * may turn a table that looks like a heap into one whose rows are on other
 * servers, or in another form; the local heap is then only a shell.  The plan
 * tells.
 */
static bool
planned_by_extension(IloadLive *live)
{
	return iload_world_has_other_planner() && plan_has_custom_scan(plan_slice(live));
}

/* Prepare to read the slice.  The leaves are locked. */
IloadLive *
iload_live_create(Relation target, IloadSlice *slice, IloadLeaves *leaves,
				  IloadColumns *columns)
{
	IloadLive  *live = palloc0(sizeof(IloadLive));

	live->slice = slice;
	live->leaves = leaves;
	live->columns = columns;
	live->no_ctids = without_ctids(target, leaves);
	if (live->no_ctids == NULL && planned_by_extension(live))
		live->no_ctids = psprintf("\"%s\" is read by a custom scan of another extension",
								  RelationGetRelationName(target));
	live->direct = live->no_ctids == NULL && leaves->all_exact &&
		check_enable_rls(RelationGetRelid(target), InvalidOid, true) != RLS_ENABLED;
	return live;
}

/*
 * The rows of a page lie in it from its end to its start, mostly.  This is how
 * far ahead of a row, in bytes, the page is asked for: two lines of the cache,
 * since rows are often longer than one.
 */
#define PREFETCH_DISTANCE	512
#define PREFETCH_LINE		64

static void
scan_leaf(IloadLive *live, IloadLeaf *leaf, Snapshot snapshot,
		  IloadLiveFunction function, void *arg)
{
	Relation	rel = table_open(leaf->relid, NoLock);
	IloadRowHasher *hasher = iload_columns_leaf_hasher(live->columns, rel);
	TableScanDesc scan = table_beginscan(rel, snapshot, 0, NULL);
	HeapTuple	tuple;

	/* interrupts are served once a page, by the scan */
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		iload_prefetch((char *) tuple->t_data - PREFETCH_DISTANCE);
		iload_prefetch((char *) tuple->t_data - PREFETCH_DISTANCE - PREFETCH_LINE);
		function(leaf->relid, &tuple->t_self, iload_row_hash_tuple(hasher, tuple), arg);
	}
	table_endscan(scan);
	table_close(rel, NoLock);
}

/* Reading by SQL: the loaded columns, then tableoid and ctid where trusted. */
typedef struct LiveQuery
{
	IloadRowHasher *hasher;
	int			natts;
	bool		ctids;
	IloadLiveFunction function;
	void	   *arg;
} LiveQuery;

static void
live_row(TupleTableSlot *slot, void *arg)
{
	LiveQuery  *query = arg;
	IloadRowHash hash;

	slot_getallattrs(slot);
	hash = iload_row_hash_values(query->hasher, slot->tts_values, slot->tts_isnull);
	if (query->ctids)
		query->function(DatumGetObjectId(slot->tts_values[query->natts]),
						(ItemPointer) DatumGetPointer(slot->tts_values[query->natts + 1]),
						hash, query->arg);
	else
		query->function(InvalidOid, NULL, hash, query->arg);
}

static void
scan_by_query(IloadLive *live, Snapshot snapshot, IloadLiveFunction function, void *arg)
{
	LiveQuery	run = {
		.hasher = iload_columns_hasher(live->columns),
		.natts = live->columns->desc->natts,
		.ctids = live->no_ctids == NULL,
		.function = function,
		.arg = arg
	};
	char	   *text;
	Query	   *query = slice_query(live, run.ctids, &text);

	(void) iload_query_run(query, text, iload_slice_params(live->slice), NULL, snapshot,
						   live_row, &run);
}

/* Tell "function" of each row of the slice that the snapshot sees. */
void
iload_live_scan(IloadLive *live, Snapshot snapshot, IloadLiveFunction function, void *arg)
{
	ListCell   *lc;

	if (!live->direct)
	{
		scan_by_query(live, snapshot, function, arg);
		return;
	}
	foreach(lc, live->leaves->leaves)
		scan_leaf(live, lfirst(lc), snapshot, function, arg);
}

/* Where the rows are summed up. */
typedef struct LiveSum
{
	IloadFingerprint fingerprint;
	IloadSketch *sketch;		/* or NULL */
} LiveSum;

static void
sum_row(Oid leaf, ItemPointer tid, IloadRowHash hash, void *arg)
{
	LiveSum    *sum = arg;

	iload_fingerprint_add(&sum->fingerprint, hash);
	iload_progress_rows(sum->fingerprint.rows);
	if (sum->sketch != NULL)
		iload_sketch_subtract(sum->sketch, hash);
}

/*
 * The fingerprint of the slice as the snapshot sees it.  Its rows are also
 * subtracted from "sketch", if that is not NULL.
 */
IloadFingerprint
iload_live_fingerprint(IloadLive *live, Snapshot snapshot, IloadSketch *sketch)
{
	LiveSum		sum = {.sketch = sketch};

	iload_live_scan(live, snapshot, sum_row, &sum);
	return sum.fingerprint;
}

/* How many rows the slice has, as the server's statistics have it. */
double
iload_live_expected_rows(IloadLive *live)
{
	return plan_slice(live)->plan_rows;
}

/*
 * Is it certain, without reading much, that the slice has no rows?  Where it has
 * to be read by SQL, it never is.
 */
bool
iload_live_is_empty(IloadLive *live, Snapshot snapshot)
{
	bool		empty = true;
	ListCell   *lc;

	if (!live->direct)
		return false;
	foreach(lc, live->leaves->leaves)
	{
		Relation	rel;
		TupleTableSlot *slot;
		TableScanDesc scan;

		if (!empty)
			break;
		rel = table_open(((IloadLeaf *) lfirst(lc))->relid, NoLock);
		slot = table_slot_create(rel, NULL);
		scan = table_beginscan(rel, snapshot, 0, NULL);
		empty = !table_scan_getnextslot(scan, ForwardScanDirection, slot);
		table_endscan(scan);
		ExecDropSingleTupleTableSlot(slot);
		table_close(rel, NoLock);
	}
	return empty;
}
