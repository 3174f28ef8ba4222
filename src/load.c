/*
 * load.c
 *		One load: a slice of the target is made equal to a query's result.
 *
 * The order of the steps is the order of the locks and of what can fail:
 *
 *	open the target (ROW EXCLUSIVE), compute the slice, take the slice lock, lock
 *	the leaves, take a snapshot, stage the query, take a snapshot, audit, compare
 *	-- up to here nothing has been written --
 *	make missing partitions, swap or delete and insert, gather statistics, record
 *	the load
 *
 * The snapshot is taken after the locks, so a load that had to wait sees what
 * the other one committed.  Where the transaction has one snapshot for good, a
 * slice that another transaction has changed since is a serialization failure.
 *
 * Everything that a load allocates lives in one context, which ends with it.
 */
#include "postgres.h"

#include <math.h>

#include "access/table.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "tcop/utility.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "audit.h"
#include "diff.h"
#include "errcodes.h"
#include "error_fields.h"
#include "guc.h"
#include "history.h"
#include "live.h"
#include "load.h"
#include "merge.h"
#include "partition.h"
#include "patience.h"
#include "previous.h"
#include "progress.h"
#include "stage.h"
#include "statistics.h"
#include "swap.h"
#include "swap_gate.h"
#include "target.h"
#include "wait_point.h"

typedef struct Load
{
	Oid			schema;			/* of the extension */
	const IloadOptions *options;
	const char *query;
	TimestampTz started;
	Relation	target;
	IloadSlice *slice;
	IloadLeaves *leaves;
	IloadColumns *columns;
	IloadLive  *live;
	bool		empty;			/* the slice has surely no rows, see live.c */
	char	   *no_swap;		/* why it may not be swapped, or NULL */
	IloadFingerprint before;	/* of the slice as it was */
	IloadStage *stage;
	IloadMergeKey *merge_key;	/* method merge only */
	Snapshot	snapshot;
	IloadRewrite rewrite;
	const char *step;			/* for messages */
} Load;

/* Begin a step.  "rows" is how many rows it is about, 0 where that is not known. */
static void
begin_step(Load *load, const char *step, IloadPhase phase, uint64 rows)
{
	load->step = step;
	iload_progress_phase(load->slice->target, phase, rows);
}

static void
load_error_callback(void *arg)
{
	Load	   *load = arg;

	if (load->slice != NULL)
		errcontext("load of slice %s of table \"%s\", step \"%s\"",
				   iload_slice_text(load->slice), load->slice->table_name, load->step);
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
	/* the rows of a file that a swap brought are seen by every snapshot */
	if (!iload_fingerprint_equal(&load->before, &now) ||
		iload_leaves_defined_after(load->leaves, load->snapshot))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to concurrent update"),
				 errdetail("Slice %s of table \"%s\" was changed by a transaction that this one's snapshot does not see.",
						   iload_slice_text(load->slice), load->slice->table_name),
				 errhint("The transaction might succeed if retried."),
				 iload_errtable(load->slice->target)));
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
			 errhint("If that is meant, pass on_empty => 'replace'; to leave the slice as it is, on_empty => 'keep'."),
			 iload_errtable(load->slice->target)));
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

		if (iload_stage_has_key(load->stage, gap->single, gap->lower, gap->upper))
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
					 errhint("Create the partition, or pass create_partition => true."),
					 iload_errtable(load->slice->target)));
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
	begin_step(load, "create partition", ILOAD_PHASE_CREATING_PARTITIONS, 0);
	if (load->options->create_partition)
	{
		do
		{
			load->leaves = iload_leaves_lock(load->target, load->slice, ILOAD_LEAVES_FILL_NOW);
			gaps = gaps_with_rows(load);
			table_close(load->target, NoLock);
			made = fill_gaps(load, gaps);
			load->target = table_open(relid, NoLock);
		} while (made);
		load->live = iload_live_create(load->target, load->slice, load->leaves, load->columns);
	}
	report_gaps(load, gaps);
}

/* See why the slice may not be swapped, if so. */
static void
ask_gate(Load *load)
{
	if (!load->empty && load->columns->ncompared < load->columns->desc->natts)
		load->no_swap = pstrdup("rows that differ in ignored columns only are to keep what they have");
	else
		load->no_swap = iload_swap_refusal(load->target, load->live);
}

static void
refuse_method(Load *load, int sqlstate, const char *detail, const char *hint)
{
	ereport(ERROR,
			(errcode(sqlstate),
			 errmsg("method \"%s\" cannot load slice %s of table \"%s\"",
					iload_method_name(load->options->method), iload_slice_text(load->slice),
					load->slice->table_name),
			 errdetail_internal("%s", detail),
			 errhint("%s", hint),
			 iload_errtable(load->slice->target)));
}

/* A method that was asked for by name and cannot be is an error, before the query runs. */
static void
check_method(Load *load)
{
	if (load->options->method == ILOAD_METHOD_DIFF && load->live->no_ctids != NULL)
		refuse_method(load, ERRCODE_FEATURE_NOT_SUPPORTED,
					  psprintf("Rows cannot be named by their place: %s.", load->live->no_ctids),
					  "Use method => 'delete', or leave the choice to 'auto'.");
	if (load->options->method == ILOAD_METHOD_SWAP && load->no_swap != NULL)
		refuse_method(load, ERRCODE_FEATURE_NOT_SUPPORTED,
					  psprintf("It would not mean the same as DELETE and INSERT: %s.", load->no_swap),
					  "Use another method, or leave the choice to 'auto'.");
}

/*
 * The leaves into whose new files the rows may go straight, or NULL.  That is where
 * the slice has no rows, the audit does not want to see them first, and nobody has a
 * snapshot that would stand in the way of the exchange.
 */
static IloadLeaves *
straight_leaves(Load *load)
{
	IloadMethod method = load->options->method;

	if (!load->empty || load->no_swap != NULL || load->options->audit != NULL ||
		load->leaves->leaves == NIL || load->leaves->gaps != NIL ||
		(method != ILOAD_METHOD_AUTO && method != ILOAD_METHOD_SWAP) ||
		iload_patience_is_needed())
		return NULL;
	return load->leaves;
}

/* Run the query and keep its rows, in the spool or in new files. */
static void
stage(Load *load)
{
	iload_stage_run(load->stage, load->snapshot, straight_leaves(load),
					load->options->method == ILOAD_METHOD_SWAP ? 0 : iload_method_swap_cost());
}

/*
 * Is it a retry that changes nothing?  Where the slice was last loaded by the same
 * query, and that is no matter to run once more, it is run for its fingerprint
 * only.  An audit wants to see the rows.
 */
static bool
is_mere_retry(Load *load)
{
	if (load->merge_key != NULL || load->options->audit != NULL ||
		!iload_stage_can_probe(load->stage) ||
		!iload_history_repeats(load->schema, load->slice, load->query))
		return false;
	iload_stage_probe(load->stage, load->snapshot);
	begin_step(load, "compare", ILOAD_PHASE_COMPARING, 0);
	load->before = iload_live_fingerprint(load->live, load->snapshot, NULL);
	if (!iload_fingerprint_equal(&load->stage->fingerprint, &load->before))
		return false;
	check_serialization(load);
	return true;
}

/* About what share of the rows, before and after, has no equal on the other side. */
static double
changed_share(Load *load)
{
	double		before = load->before.rows;
	double		after = load->stage->fingerprint.rows;
	double		differences = Max(iload_sketch_differences(load->stage->sketch),
								  fabs(before - after));

	return Min(differences / (before + after), 1.0);
}

/* The method that auto takes.  Why it is not swap can be seen among debug messages. */
static IloadMethod
cheapest_method(Load *load)
{
	IloadStage *stage = load->stage;
	IloadMethodFacts facts = {
		.can_swap = load->no_swap == NULL,
		.can_diff = load->live->no_ctids == NULL,
		.must_diff = load->columns->ncompared < load->columns->desc->natts,
		.one_sided = load->before.rows == 0 || stage->fingerprint.rows == 0,
		.size = Max(stage->size, iload_leaves_size(load->leaves)),
		.share = changed_share(load)
	};

	if (load->no_swap != NULL)
		ereport(DEBUG1,
				(errmsg_internal("slice is not swapped: %s", load->no_swap)));
	else if (stage->transients != NULL)
		return ILOAD_METHOD_SWAP;
	return iload_method_choose(&facts);
}

/* Does anything remain to be done? */
static bool
is_unchanged(Load *load)
{
	return iload_fingerprint_equal(&load->stage->fingerprint, &load->before) ||
		(load->stage->fingerprint.rows == 0 && load->options->on_empty == ILOAD_EMPTY_KEEP);
}

/* Swap, if that can be; else nothing has happened, and load->no_swap tells why. */
static bool
try_swap(Load *load)
{
	bool		by_name = load->options->method == ILOAD_METHOD_SWAP;

	load->no_swap = iload_swap_apply(load->target, load->stage, load->live, load->snapshot,
									 by_name);
	if (load->no_swap != NULL)
	{
		if (by_name)
			refuse_method(load, ERRCODE_LOCK_NOT_AVAILABLE,
						  psprintf("In the end, %s.", load->no_swap),
						  "Try again, raise idempotent_load.swap_patience, or leave the choice to 'auto'.");
		return false;
	}
	load->rewrite.inserted = load->stage->fingerprint.rows;
	load->rewrite.deleted = load->before.rows;
	return true;
}

static void
prepare_rewrite(Load *load)
{
	load->rewrite.slice = load->slice;
	load->rewrite.leaves = load->leaves;
	load->rewrite.columns = load->columns;
}

/* Delete and insert: all rows, or those that differ. */
static void
rewrite(Load *load, IloadMethod method)
{
	IloadRewrite *rewrite = &load->rewrite;

	if (load->stage->spool == NULL)
		iload_stage_unload(load->stage);
	prepare_rewrite(load);
	rewrite->ndoomed = load->before.rows;
	rewrite->fresh = load->stage->spool;
	rewrite->nfresh = load->stage->fingerprint.rows;
	if (method == ILOAD_METHOD_DIFF && rewrite->ndoomed > 0 && rewrite->nfresh > 0)
		iload_diff_apply(load->stage, load->live, load->snapshot, rewrite);
	else
		iload_rewrite_apply(rewrite);
}

/* Keep the rows of the slice as it was, if that is wanted. */
static void
keep_previous(Load *load)
{
	if (!load->options->keep_previous)
		return;
	load->step = "keep previous";
	/* a merge may load less than all columns */
	iload_previous_keep(load->schema, load->slice,
						iload_columns_create(load->target, load->slice->key->name, NIL),
						load->started);
}

/*
 * Bring the slice to the staged rows, and return the method by which.  From here
 * on the target is written.
 */
static IloadMethod
apply(Load *load)
{
	IloadMethod method = load->options->method;

	keep_previous(load);
	create_partitions(load);
	load->step = "apply";
	load->empty = load->before.rows == 0;
	ask_gate(load);
	check_method(load);
	if (method == ILOAD_METHOD_AUTO)
		method = cheapest_method(load);
	if (method == ILOAD_METHOD_SWAP)
	{
		if (try_swap(load))
			return method;
		method = cheapest_method(load);
	}
	rewrite(load, method);
	return method;
}

/* A merge does not count the rows that were there before. */
static void
gather_statistics(Load *load)
{
	const IloadRewrite *rewrite = &load->rewrite;
	uint64		changed = rewrite->inserted + rewrite->deleted + rewrite->updated;

	if (changed > 0)
		iload_statistics_gather(load->leaves,
								load->merge_key == NULL ? load->before.rows :
								(uint64) iload_live_expected_rows(load->live), changed);
}

static void
record(Load *load, IloadResult *result)
{
	IloadHistoryRow row = {
		.slice = result->slice,
		.run_id = load->options->run_id,
		.query = load->query,
		.method = iload_method_name(result->method),
		.rows = result->rows,
		.rows_before = result->rows_before,
		.before_unknown = result->before_unknown,
		.inserted = result->inserted,
		.deleted = result->deleted,
		.updated = result->updated,
		.fingerprint = result->fingerprint,
		.started = result->started,
		.finished = result->finished
	};

	begin_step(load, "record", ILOAD_PHASE_RECORDING, 0);
	iload_history_insert(load->schema, &row);
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

/*
 * Put the staged rows into the slice by their key.  The target is written from
 * create_partitions on.
 */
static IloadMethod
merge(Load *load)
{
	iload_merge_find(load->stage, load->live, load->merge_key, load->snapshot, &load->rewrite);
	if (IsolationUsesXactSnapshot())
	{
		load->before = iload_live_fingerprint(load->live, load->snapshot, NULL);
		check_serialization(load);
	}
	iload_wait_point("compared");
	if (load->rewrite.nfresh + load->rewrite.nchanged > 0)
		keep_previous(load);
	if (load->rewrite.nfresh > 0)
		create_partitions(load);
	load->step = "apply";
	prepare_rewrite(load);
	iload_merge_apply(&load->rewrite, load->stage);
	return ILOAD_METHOD_MERGE;
}

/* Bring the slice to the query's rows, and return the method by which. */
static IloadMethod
stage_and_apply(Load *load)
{
	begin_step(load, "stage", ILOAD_PHASE_STAGING, 0);
	stage(load);
	iload_wait_point("staged");

	/* functions in the query may have written, even to the slice */
	take_snapshot(load);
	if (load->options->audit != NULL)
	{
		begin_step(load, "audit", ILOAD_PHASE_AUDITING, 0);
		iload_audit_check(load->stage, load->slice, load->options->audit, load->snapshot);
	}

	begin_step(load, "compare", ILOAD_PHASE_COMPARING, 0);
	if (load->merge_key != NULL)
		return merge(load);
	load->before = iload_live_fingerprint(load->live, load->snapshot, load->stage->sketch);
	iload_sketch_finish(load->stage->sketch);
	check_serialization(load);
	check_empty(load);
	iload_wait_point("compared");
	return is_unchanged(load) ? ILOAD_METHOD_NONE : apply(load);
}

/* Everything between the slice lock and the result. */
static void
run_load(Load *load, IloadResult *result)
{
	load->leaves = iload_leaves_lock(load->target, load->slice,
									 load->options->create_partition ?
									 ILOAD_LEAVES_FILL_LATER : ILOAD_LEAVES_WRITE);
	iload_wait_point("locked");

	/* see what was committed while we waited, and what our caller wrote */
	take_snapshot(load);

	begin_step(load, "stage", ILOAD_PHASE_STAGING, 0);
	load->columns = iload_columns_create(load->target, load->slice->key->name,
										 load->options->ignore_columns);
	if (load->options->method == ILOAD_METHOD_MERGE)
		load->merge_key = iload_merge_key_create(load->target, load->slice, load->query,
												 load->options->key, load->options->version,
												 &load->columns);
	load->live = iload_live_create(load->target, load->slice, load->leaves, load->columns);
	load->empty = iload_live_is_empty(load->live, load->snapshot);
	ask_gate(load);
	check_method(load);
	load->stage = iload_stage_create(load->target, load->slice, load->columns, load->query,
									 load->snapshot);
	result->method = is_mere_retry(load) ? ILOAD_METHOD_NONE : stage_and_apply(load);
	if (result->method != ILOAD_METHOD_NONE)
	{
		begin_step(load, "analyze", ILOAD_PHASE_ANALYZING, 0);
		gather_statistics(load);
	}

	result->rows_before = load->before.rows;
	result->before_unknown = load->merge_key != NULL;
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
	result->updated = load->rewrite.updated;
	result->finished = GetCurrentTimestamp();
	record(load, result);
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
 * EXCLUSIVE on the parent's default partition; for a swap ACCESS EXCLUSIVE on the
 * leaves.
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
	result->started = load->started = GetCurrentTimestamp();
	load->schema = schema;
	load->options = options;
	load->query = query;
	load->step = "lock";
	callback.callback = load_error_callback;
	callback.arg = load;
	callback.previous = error_context_stack;
	error_context_stack = &callback;

	load->target = options->method == ILOAD_METHOD_MERGE ?
		iload_target_open_for_merge(target) : iload_target_open(target, RowExclusiveLock);
	nestlevel = NewGUCNestLevel();
	iload_slice_set_timezone(options->timezone);
	load->slice = iload_slice_create(load->target, options->date_column, args);
	result->slice = load->slice;

	begin_step(load, "lock", ILOAD_PHASE_LOCKING, 0);
	if (iload_lock_slice(load->slice, options->if_running))
		run_load(load, result);
	else
	{
		ereport(NOTICE,
				(errmsg("skipped slice %s of table \"%s\": another load of it is running",
						iload_slice_text(load->slice), load->slice->table_name)));
		result->method = ILOAD_METHOD_SKIPPED;
		result->finished = GetCurrentTimestamp();
	}

	iload_progress_end();
	AtEOXact_GUC(true, nestlevel);
	table_close(load->target, NoLock);
	error_context_stack = callback.previous;
	return result;
}
