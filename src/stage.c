/*
 * stage.c
 *		The stage: the query's rows, spooled, checked and fingerprinted.
 *
 * The query runs as the caller, in the shape of the target (shape.c), and nothing is
 * in the target yet.  A row that is not of the slice ends the load.  The spool goes to a temporary file beyond its share of work_mem.
 *
 * A query that is cheap and has no volatile functions may be run for its
 * fingerprint first: where that tells that nothing has changed, no spool is needed.
 *
 * Where the slice is empty, many rows are expected, and new files may take the
 * place of its leaves, the rows go straight into these files: there is nothing to
 * compare them with.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/htup_details.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "errcodes.h"
#include "lint.h"
#include "named_store.h"
#include "progress.h"
#include "query.h"
#include "shape.h"
#include "stage.h"

/* State of the run of the query. */
typedef struct StageRun
{
	IloadStage *stage;
	int			key;			/* position of the key column, from 0 */
	Datum		first_key;		/* surely in the slice */
	IloadRowHasher *hasher;
	TupleDesc	desc;			/* of the last slot that had a tuple */
	bool		same_layout;	/* tuples of "desc" can be spooled */
	TupleTableSlot *row;		/* a row, out-of-line values fetched */
	TupleTableSlot *stored;		/* the same as it goes into a new file */
	bool		probe;			/* rows are hashed only */
	MemoryContext row_context;
} StageRun;

/* The value of a stray key, and where the slice lies, as an error. */
static void
stray_row(StageRun *run, Datum value, bool isnull)
{
	IloadSlice *slice = run->stage->slice;
	DateADT		date;
	bool		not_a_day = false;

	if (!isnull && slice->by_date)
		not_a_day = !iload_key_is_day(slice->key, value, &date);
	ereport(ERROR,
			(errcode(ERRCODE_ILOAD_STRAY_ROW),
			 errmsg("query returned a row that is not in slice %s of table \"%s\"",
					iload_slice_text(slice), slice->table_name),
			 isnull ? errdetail("Its \"%s\" is null.", slice->key->name) :
			 not_a_day ? errdetail("Its \"%s\" is %s, which is not a day.", slice->key->name,
								   iload_key_quoted(slice->key, value)) :
			 errdetail("Its \"%s\" is %s.", slice->key->name,
					   iload_key_quoted(slice->key, value)),
			 slice->single ? errhint("Let the query keep to rows with the value $1.") :
			 slice->by_date ?
			 errhint("Let the query keep to rows of the period that starts on $1 and ends before $2. The time zone is \"%s\".",
					 slice->timezone) :
			 errhint("Let the query keep to rows from $1 up to, not including, $2."),
			 errtablecol(run->stage->target, slice->key->attnum)));
}

/* Fetch out-of-line values: the rows that own them may be replaced. */
static void
fetch_external(TupleTableSlot *slot)
{
	TupleDesc	desc = slot->tts_tupleDescriptor;

	for (int i = 0; i < desc->natts; i++)
	{
		if (!slot->tts_isnull[i] && TupleDescAttr(desc, i)->attlen == -1 &&
			VARATT_IS_EXTERNAL(DatumGetPointer(slot->tts_values[i])))
			slot->tts_values[i] =
				PointerGetDatum(detoast_external_attr((struct varlena *)
													  DatumGetPointer(slot->tts_values[i])));
	}
}

/* Has a tuple of "desc" the loaded columns, in the form of the spool? */
static bool
has_spool_layout(const StageRun *run, TupleDesc desc)
{
	TupleDesc	spool = run->stage->columns->desc;

	if (desc->natts != spool->natts)
		return false;
	for (int i = 0; i < spool->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		Form_pg_attribute other = TupleDescAttr(spool, i);

		if (att->attisdropped || att->attlen != other->attlen ||
			att->attalign != other->attalign)
			return false;
	}
	return true;
}

/*
 * The tuple that lies in the slot, if it can go into the spool as it is: one
 * that was read from a table or a sort, with nothing computed from it.  Else
 * NULL.
 */
static HeapTuple
tuple_in_slot(StageRun *run, TupleTableSlot *slot)
{
	TupleDesc	desc = slot->tts_tupleDescriptor;
	HeapTuple	tuple = NULL;

	if (TTS_IS_BUFFERTUPLE(slot) || TTS_IS_HEAPTUPLE(slot))
		tuple = ((HeapTupleTableSlot *) slot)->tuple;
	else if (TTS_IS_MINIMALTUPLE(slot) && ((MinimalTupleTableSlot *) slot)->mintuple != NULL)
		tuple = ((MinimalTupleTableSlot *) slot)->tuple;
	if (tuple == NULL || HeapTupleHasExternal(tuple) ||
		HeapTupleHeaderGetNatts(tuple->t_data) != desc->natts)
		return NULL;

	/* the slots of an Append take turns; all of them outlive the run */
	if (desc != run->desc)
	{
		run->desc = desc;
		run->same_layout = has_spool_layout(run, desc);
	}
	return run->same_layout ? tuple : NULL;
}

/* A new tuple of the values in the slot, in the current context. */
static HeapTuple
form_tuple(StageRun *run, TupleTableSlot *slot)
{
	int			natts = run->row->tts_tupleDescriptor->natts;
	bool		should_free;

	slot_getallattrs(slot);
	ExecClearTuple(run->row);
	memcpy(run->row->tts_values, slot->tts_values, natts * sizeof(Datum));
	memcpy(run->row->tts_isnull, slot->tts_isnull, natts * sizeof(bool));
	ExecStoreVirtualTuple(run->row);
	fetch_external(run->row);
	return ExecFetchSlotHeapTuple(run->row, false, &should_free);
}

static void
keep_row(StageRun *run, HeapTuple tuple, IloadRowHash hash)
{
	IloadStage *stage = run->stage;

	iload_sketch_add(stage->sketch, hash);
	if (stage->transients != NULL)
		iload_transients_put(stage->transients,
							 ExecStoreHeapTuple(tuple, run->stored, false));
	else
		tuplestore_puttuple(stage->spool, tuple);
}

/* One row of the query: check it, hash it, keep it. */
static void
stage_row(TupleTableSlot *slot, void *arg)
{
	StageRun   *run = arg;
	MemoryContext old;
	Datum		key;
	bool		isnull;
	HeapTuple	tuple;
	IloadRowHash hash;

	MemoryContextReset(run->row_context);
	old = MemoryContextSwitchTo(run->row_context);
	key = slot_getattr(slot, run->key + 1, &isnull);
	if (isnull ||
		(key != run->first_key && !iload_slice_contains(run->stage->slice, key)))
		stray_row(run, key, isnull);

	tuple = tuple_in_slot(run, slot);
	if (tuple == NULL)
		tuple = form_tuple(run, slot);
	hash = iload_row_hash_tuple(run->hasher, tuple);
	iload_fingerprint_add(&run->stage->fingerprint, hash);
	iload_progress_rows(run->stage->fingerprint.rows);
	run->stage->size += tuple->t_len;
	if (!run->probe)
		keep_row(run, tuple, hash);
	MemoryContextSwitchTo(old);
}

static int
key_position(const IloadColumns *columns, const IloadSlice *slice)
{
	for (int i = 0; i < columns->desc->natts; i++)
	{
		if (columns->attnums[i] == slice->key->attnum)
			return i;
	}
	elog(ERROR, "key column \"%s\" is not loaded", slice->key->name);
	return -1;
}

static Tuplestorestate *
begin_spool(void)
{
	return tuplestore_begin_heap(false, false, work_mem / 2);
}

/*
 * Parse and plan the query, whose rows are going to be staged.  The result lives in
 * the current context.
 *
 * Errors: a query of another shape, or one that idempotent_load.lint refuses.
 */
IloadStage *
iload_stage_create(Relation target, IloadSlice *slice, IloadColumns *columns,
				   const char *query, Snapshot snapshot)
{
	IloadStage *stage = palloc0(sizeof(IloadStage));
	Query	   *tree;

	stage->target = target;
	stage->slice = slice;
	stage->columns = columns;
	stage->query = query;
	tree = iload_shape_query(target, slice, columns, query);
	iload_lint_load(target, tree, query, columns, slice->key->name);
	tree = iload_query_rewrite(tree);
	stage->repeatable = !contain_volatile_functions((Node *) tree);
	PushActiveSnapshot(snapshot);
	stage->plan = iload_query_plan(tree, query, iload_slice_params(slice));
	PopActiveSnapshot();
	return stage;
}

/* Run the query and do with each row as "run" says. */
static void
run_query(StageRun *run, Snapshot snapshot)
{
	IloadStage *stage = run->stage;

	memset(&stage->fingerprint, 0, sizeof(stage->fingerprint));
	stage->size = 0;
	run->key = key_position(stage->columns, stage->slice);
	run->first_key = stage->slice->lower;
	run->hasher = iload_columns_hasher(stage->columns);
	run->row = MakeSingleTupleTableSlot(stage->columns->desc, &TTSOpsVirtual);
	run->stored = MakeSingleTupleTableSlot(stage->columns->desc, &TTSOpsHeapTuple);
	run->row_context = AllocSetContextCreate(CurrentMemoryContext,
											 "idempotent_load staged row",
											 ALLOCSET_DEFAULT_SIZES);
	(void) iload_query_execute(stage->plan, stage->query, iload_slice_params(stage->slice),
							   NULL, snapshot, stage_row, run);
	ExecDropSingleTupleTableSlot(run->stored);
	ExecDropSingleTupleTableSlot(run->row);
	MemoryContextDelete(run->row_context);
}

/* The bytes of the rows that the planner expects. */
static double
expected_size(const PlannedStmt *plan)
{
	return plan->planTree->plan_rows * plan->planTree->plan_width;
}

/*
 * Is it no matter if the query is run once more?  It has no volatile functions, and
 * is expected to cost no more than to write the spool and read it.
 */
bool
iload_stage_can_probe(const IloadStage *stage)
{
	Plan	   *plan = stage->plan->planTree;

	return stage->repeatable &&
		plan->total_cost <= plan->plan_rows * cpu_tuple_cost +
		2 * expected_size(stage->plan) / BLCKSZ * seq_page_cost;
}

/*
 * Run the query with the snapshot given for the fingerprint of its rows, and keep
 * none of them.
 *
 * Errors: a stray row, and whatever the query raises.
 */
void
iload_stage_probe(IloadStage *stage, Snapshot snapshot)
{
	StageRun	run = {.stage = stage,.probe = true};

	run_query(&run, snapshot);
}

/*
 * Run the query with the snapshot given and spool its rows.  Where "leaves" is not
 * NULL and rows of "min_size" bytes or more are expected, they go into new files
 * for these leaves instead.
 *
 * The spool is released by iload_stage_end, or with the transaction.
 *
 * Errors: a stray row, and whatever the query raises.
 */
void
iload_stage_run(IloadStage *stage, Snapshot snapshot, IloadLeaves *leaves, Size min_size)
{
	StageRun	run = {.stage = stage};

	stage->sketch = iload_sketch_create();
	if (leaves != NULL && expected_size(stage->plan) >= min_size &&
		!(stage->plan->parallelModeNeeded && iload_transients_call_functions(leaves)))
		stage->transients = iload_transients_begin(stage->target, leaves, stage->columns);
	else
		stage->spool = begin_spool();
	run_query(&run, snapshot);
	if (stage->transients != NULL)
		iload_transients_finish(stage->transients);
}

/* Put the spooled rows into new files. */
void
iload_stage_fill(IloadStage *stage, IloadTransients *transients)
{
	TupleTableSlot *row = MakeSingleTupleTableSlot(stage->columns->desc, &TTSOpsMinimalTuple);
	uint64		rows = 0;

	tuplestore_rescan(stage->spool);
	while (tuplestore_gettupleslot(stage->spool, true, false, row))
	{
		CHECK_FOR_INTERRUPTS();
		iload_transients_put(transients, row);
		iload_progress_rows(++rows);
	}
	ExecDropSingleTupleTableSlot(row);
}

/* State of reading rows back from new files. */
typedef struct StageUnload
{
	Tuplestorestate *spool;
	MemoryContext row_context;
} StageUnload;

static void
unload_row(TupleTableSlot *row, void *arg)
{
	StageUnload *unload = arg;
	MemoryContext old;

	MemoryContextReset(unload->row_context);
	old = MemoryContextSwitchTo(unload->row_context);
	fetch_external(row);
	tuplestore_puttupleslot(unload->spool, row);
	MemoryContextSwitchTo(old);
}

/* Spool the rows after all, where the new files cannot take the leaves' place. */
void
iload_stage_unload(IloadStage *stage)
{
	StageUnload unload = {
		.spool = begin_spool(),
		.row_context = AllocSetContextCreate(CurrentMemoryContext, "idempotent_load staged row",
											 ALLOCSET_DEFAULT_SIZES)
	};

	iload_transients_scan(stage->transients, unload_row, &unload);
	iload_transients_drop(stage->transients);
	MemoryContextDelete(unload.row_context);
	stage->transients = NULL;
	stage->spool = unload.spool;
}

/*
 * Has a staged row a key from "lower" up to, not including, "upper", or where
 * "single", the key "lower"?
 */
bool
iload_stage_has_key(IloadStage *stage, bool single, Datum lower, Datum upper)
{
	TupleTableSlot *row = MakeSingleTupleTableSlot(stage->columns->desc, &TTSOpsMinimalTuple);
	AttrNumber	attnum = key_position(stage->columns, stage->slice) + 1;
	bool		found = false;

	tuplestore_rescan(stage->spool);
	while (!found && tuplestore_gettupleslot(stage->spool, true, false, row))
	{
		bool		isnull;
		Datum		key = slot_getattr(row, attnum, &isnull);
		int			cmp = iload_key_cmp(stage->slice->key, key, lower);

		CHECK_FOR_INTERRUPTS();
		found = single ? cmp == 0 : cmp >= 0 && iload_key_cmp(stage->slice->key, key, upper) < 0;
	}
	ExecDropSingleTupleTableSlot(row);
	return found;
}

/* Where a query finds the spooled rows, as ILOAD_STAGE_NAME. */
QueryEnvironment *
iload_stage_environment(IloadStage *stage)
{
	QueryEnvironment *env = create_queryEnv();

	register_ENR(env, iload_named_store_make(ILOAD_STAGE_NAME, stage->columns->desc,
											 stage->spool, stage->fingerprint.rows));
	return env;
}

/* Release the spool and its temporary file, and new files that are not used. */
void
iload_stage_end(IloadStage *stage)
{
	if (stage->spool != NULL)
		tuplestore_end(stage->spool);
	if (stage->transients != NULL)
		iload_transients_drop(stage->transients);
	stage->spool = NULL;
	stage->transients = NULL;
}
