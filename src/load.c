/*
 * load.c
 *		One load: a slice of the target is made equal to a query's result.
 *
 * The order of the steps is the order of the locks and of what can fail:
 *
 *	open the target (ROW EXCLUSIVE), compute the slice, take the slice lock, lock
 *	the leaves, take a snapshot, stage the query, take a snapshot, audit, compare
 *	-- up to here nothing has been written --
 *	make missing partitions, delete and insert, record the load
 *
 * The snapshot is taken after the locks, so a load that had to wait sees what
 * the other one committed.  Where the transaction has one snapshot for good, a
 * slice that another transaction has changed since is a serialization failure.
 *
 * Everything that a load allocates lives in one context, which ends with it.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "pgtime.h"
#include "tcop/utility.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "audit.h"
#include "diff.h"
#include "errcodes.h"
#include "history.h"
#include "live.h"
#include "load.h"
#include "partition.h"
#include "stage.h"
#include "target.h"
#include "wait_point.h"

typedef struct Load
{
	const IloadOptions *options;
	const char *query;
	Relation	target;
	IloadSlice *slice;
	IloadLeaves *leaves;
	IloadColumns *columns;
	IloadLive  *live;
	IloadFingerprint before;	/* of the slice as it was */
	IloadStage *stage;
	Snapshot	snapshot;
	IloadRewrite rewrite;
	const char *step;			/* for messages */
} Load;

static void
load_error_callback(void *arg)
{
	Load	   *load = arg;

	if (load->slice != NULL)
		errcontext("load of slice %s of table \"%s\", step \"%s\"",
				   iload_slice_text(load->slice), load->slice->table_name, load->step);
}

/* Compute and run everything in the load's time zone.  Undone by the caller. */
static void
set_timezone(const char *timezone)
{
	if (timezone == NULL)
		return;
	if (pg_tzset(timezone) == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("time zone \"%s\" not recognized", timezone)));
	(void) set_config_option("TimeZone", timezone, PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
}

/*
 * In an isolation level with one snapshot for the whole transaction: has
 * another one changed the slice since?  We hold its lock now, so no load of it
 * is under way.
 */
static void
check_serialization(Load *load)
{
	Snapshot	latest;
	IloadFingerprint now;

	if (!IsolationUsesXactSnapshot())
		return;
	latest = RegisterSnapshot(GetLatestSnapshot());
	now = iload_live_fingerprint(load->live, latest, NULL);
	UnregisterSnapshot(latest);
	if (!iload_fingerprint_equal(&load->before, &now))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to concurrent update"),
				 errdetail("Slice %s of table \"%s\" was changed by a transaction that this one's snapshot does not see.",
						   iload_slice_text(load->slice), load->slice->table_name),
				 errhint("The transaction might succeed if retried.")));
}

/* Refuse to turn a slice with rows into an empty one, unless told to. */
static void
check_empty(Load *load)
{
	if (load->stage->fingerprint.rows > 0 || load->before.rows == 0 ||
		load->options->on_empty != ILOAD_EMPTY_ERROR)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_ILOAD_EMPTY_REFUSED),
			 errmsg("query returned no rows, but slice %s of table \"%s\" has " UINT64_FORMAT,
					iload_slice_text(load->slice), load->slice->table_name, load->before.rows),
			 errdetail("An empty result would empty the slice."),
			 errhint("If that is meant, pass on_empty => 'replace'; to leave the slice as it is, on_empty => 'keep'.")));
}

/* The gaps that rows of the query fall into; others need no partition. */
static List *
gaps_with_rows(Load *load)
{
	List	   *gaps = NIL;
	ListCell   *lc;

	foreach(lc, load->leaves->gaps)
	{
		IloadGap   *gap = lfirst(lc);

		if (iload_stage_has_key(load->stage, load->slice, gap->single, gap->lower, gap->upper))
			gaps = lappend(gaps, gap);
	}
	return gaps;
}

/* Make what partitions can be made; true if any was. */
static bool
fill_gaps(Load *load, List *gaps)
{
	bool		made = false;
	ListCell   *lc;

	foreach(lc, gaps)
		made = iload_partition_create(load->slice, lfirst(lc)) || made;
	return made;
}

/* Gaps that remain: the rows go to a default partition, or nowhere. */
static void
report_gaps(Load *load, List *gaps)
{
	ListCell   *lc;

	foreach(lc, gaps)
	{
		IloadGap   *gap = lfirst(lc);

		if (!OidIsValid(gap->default_leaf))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("table \"%s\" has no partition for slice %s",
							load->slice->table_name, iload_slice_text(load->slice)),
					 errhint("Create the partition, or pass create_partition => true.")));
		if (load->options->create_partition)
			ereport(NOTICE,
					(errmsg("loading slice %s of table \"%s\" into default partition \"%s\"",
							iload_slice_text(load->slice), load->slice->table_name,
							get_rel_name(gap->default_leaf)),
					 errdetail("No partition was made: the default partition holds rows of it, or the caller may not make one.")));
	}
}

/*
 * Make missing partitions, level by level: one that was made may itself be
 * partitioned by the key.  No relation may be open meanwhile.
 */
static void
create_partitions(Load *load)
{
	Oid			relid = RelationGetRelid(load->target);
	List	   *gaps = gaps_with_rows(load);
	bool		made;

	if (gaps == NIL)
		return;
	load->step = "create partition";
	if (load->options->create_partition)
	{
		do
		{
			load->leaves = iload_leaves_lock(load->target, load->slice, ILOAD_GAPS_FILL_NOW);
			gaps = gaps_with_rows(load);
			table_close(load->target, NoLock);
			made = fill_gaps(load, gaps);
			load->target = table_open(relid, NoLock);
		} while (made);
	}
	report_gaps(load, gaps);
}

/* What remains to be done, once nothing that was asked for stands in the way. */
static IloadMethod
choose_method(Load *load)
{
	if (iload_fingerprint_equal(&load->stage->fingerprint, &load->before))
		return ILOAD_METHOD_NONE;
	if (load->stage->fingerprint.rows == 0 && load->options->on_empty == ILOAD_EMPTY_KEEP)
		return ILOAD_METHOD_NONE;
	if (load->options->method != ILOAD_METHOD_AUTO)
		return load->options->method;
	return load->live->no_ctids == NULL ? ILOAD_METHOD_DIFF : ILOAD_METHOD_DELETE;
}

/* Bring the slice to the staged rows.  From here on the target is written. */
static void
apply(Load *load, IloadMethod method)
{
	IloadRewrite *rewrite = &load->rewrite;

	create_partitions(load);
	load->step = "apply";
	rewrite->slice = load->slice;
	rewrite->leaves = load->leaves;
	rewrite->columns = load->columns;
	rewrite->ndoomed = load->before.rows;
	rewrite->fresh = load->stage->spool;
	rewrite->nfresh = load->stage->fingerprint.rows;
	if (method == ILOAD_METHOD_DIFF && rewrite->ndoomed > 0 && rewrite->nfresh > 0)
		iload_diff_apply(load->stage, load->live, load->snapshot, rewrite);
	else
		iload_rewrite_apply(rewrite);
}

const char *
iload_method_name(IloadMethod method)
{
	static const char *const names[] = {"auto", "diff", "delete", "none", "skipped"};

	return names[method];
}

static void
record(Load *load, Oid schema, IloadResult *result)
{
	IloadHistoryRow row = {
		.slice = result->slice,
		.run_id = load->options->run_id,
		.query = load->query,
		.method = iload_method_name(result->method),
		.rows = result->rows,
		.rows_before = result->rows_before,
		.inserted = result->inserted,
		.deleted = result->deleted,
		.fingerprint = result->fingerprint,
		.started = result->started,
		.finished = result->finished
	};

	load->step = "record";
	iload_history_insert(schema, &row);
}

/* The newest snapshot that the isolation level allows. */
static void
take_snapshot(Load *load)
{
	if (load->snapshot != NULL)
		UnregisterSnapshot(load->snapshot);
	CommandCounterIncrement();
	load->snapshot = RegisterSnapshot(GetTransactionSnapshot());
}

/* Everything between the slice lock and the result. */
static void
run_load(Load *load, Oid schema, IloadResult *result)
{
	load->leaves = iload_leaves_lock(load->target, load->slice,
									 load->options->create_partition ?
									 ILOAD_GAPS_FILL_LATER : ILOAD_GAPS_STAY);
	iload_wait_point("locked");

	/* see what was committed while we waited, and what our caller wrote */
	take_snapshot(load);

	load->step = "stage";
	load->columns = iload_columns_create(load->target, load->slice->key->name,
										 load->options->ignore_columns);
	load->live = iload_live_create(load->target, load->slice, load->leaves, load->columns);
	if (load->options->method == ILOAD_METHOD_DIFF && load->live->no_ctids != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("method \"diff\" cannot load table \"%s\"", load->slice->table_name),
				 errdetail("Rows cannot be named by their place: %s.", load->live->no_ctids),
				 errhint("Use method => 'delete', or leave the choice to 'auto'.")));
	load->stage = iload_stage_run(load->target, load->slice, load->columns, load->query,
								  load->snapshot);
	iload_wait_point("staged");

	/* functions in the query may have written, even to the slice */
	take_snapshot(load);
	if (load->options->audit != NULL)
	{
		load->step = "audit";
		iload_audit_check(load->stage, load->slice, load->options->audit, load->snapshot);
	}

	load->step = "compare";
	load->before = iload_live_fingerprint(load->live, load->snapshot, load->stage->sketch);
	check_serialization(load);
	check_empty(load);
	iload_wait_point("compared");

	result->method = choose_method(load);
	if (result->method != ILOAD_METHOD_NONE)
		apply(load, result->method);

	result->rows_before = load->before.rows;
	result->rows = load->stage->fingerprint.rows;
	result->fingerprint = iload_fingerprint_text(&load->stage->fingerprint);
	if (result->rows == 0 && result->method == ILOAD_METHOD_NONE)
	{
		/* the slice is kept as it is, or is empty as before */
		result->rows = load->before.rows;
		result->fingerprint = iload_fingerprint_text(&load->before);
	}
	result->inserted = load->rewrite.inserted;
	result->deleted = load->rewrite.deleted;
	result->finished = GetCurrentTimestamp();
	record(load, schema, result);
	iload_wait_point("recorded");

	iload_stage_end(load->stage);
	UnregisterSnapshot(load->snapshot);
}

/*
 * Make the slice of "target" that "args" describes equal to the result of
 * "query", and record it in the history table in "schema".  The result lives in
 * the current context.
 *
 * Locks, all until the end of the transaction: ROW EXCLUSIVE on the target, the
 * slice lock, then SHARE ROW EXCLUSIVE on each leaf that is the slice's alone;
 * where a partition is made also SHARE UPDATE EXCLUSIVE on its parent and ACCESS
 * EXCLUSIVE on the parent's default partition.
 * On any error the transaction, or subtransaction, undoes everything.
 */
IloadResult *
iload_load(Oid schema, Oid target, const IloadSliceArgs *args, const char *query,
		   const IloadOptions *options)
{
	IloadResult *result = palloc0(sizeof(IloadResult));
	Load	   *load = palloc0(sizeof(Load));
	ErrorContextCallback callback;
	int			nestlevel;

	PreventCommandIfReadOnly("a load");
	result->started = GetCurrentTimestamp();
	load->options = options;
	load->query = query;
	load->step = "lock";
	callback.callback = load_error_callback;
	callback.arg = load;
	callback.previous = error_context_stack;
	error_context_stack = &callback;

	load->target = iload_target_open(target, RowExclusiveLock);
	nestlevel = NewGUCNestLevel();
	set_timezone(options->timezone);
	load->slice = args->by_date ?
		iload_slice_for_date(load->target, options->date_column, args->date, args->period) :
		iload_slice_for_bounds(load->target, options->date_column, args->lower, args->upper);
	result->slice = load->slice;

	if (iload_lock_slice(load->slice, options->if_running))
		run_load(load, schema, result);
	else
	{
		ereport(NOTICE,
				(errmsg("skipped slice %s of table \"%s\": another load of it is running",
						iload_slice_text(load->slice), load->slice->table_name)));
		result->method = ILOAD_METHOD_SKIPPED;
		result->finished = GetCurrentTimestamp();
	}

	AtEOXact_GUC(true, nestlevel);
	table_close(load->target, NoLock);
	error_context_stack = callback.previous;
	return result;
}
