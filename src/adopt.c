/*
 * adopt.c
 *		The SQL function adopt_partitions: history of what was loaded before.
 *
 * Days that have rows and no load in load_history get a row there, with the number of
 * their rows and their fingerprint.  The target is only read.  All the same it takes
 * the rights of a load, since who may not load a table has nothing to tell about its
 * loads; and the slice lock of each day, so that no load of it is under way.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "tcop/utility.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "argument.h"
#include "coverage.h"
#include "history.h"
#include "load_result.h"
#include "slice_fingerprint.h"
#include "target.h"

PG_FUNCTION_INFO_V1(iload_adopt_partitions);

typedef struct Adoption
{
	FunctionCallInfo fcinfo;
	Oid			schema;			/* of the extension */
	Relation	target;
	char	   *date_column;	/* or NULL */
	Interval   *period;
	List	   *ignore_columns; /* of String */
	IloadSlice *slice;			/* the present one; NULL between two */
} Adoption;

static void
adopt_error_callback(void *arg)
{
	Adoption   *adoption = arg;

	if (adoption->slice != NULL)
		errcontext("adoption of slice %s of table \"%s\"",
				   iload_slice_text(adoption->slice), adoption->slice->table_name);
}

/*
 * The fingerprint of the present slice.  The latest snapshot is used in every isolation
 * level: what is recorded is what the next load will find.
 *
 * Locks: ACCESS SHARE on the leaves.
 */
static IloadFingerprint
read_slice(Adoption *adoption)
{
	IloadLeaves *leaves = iload_leaves_lock(adoption->target, adoption->slice,
											ILOAD_LEAVES_READ);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	IloadFingerprint fingerprint;

	fingerprint = iload_slice_fingerprint_compute(adoption->target, adoption->slice, leaves,
												  adoption->ignore_columns, snapshot);
	UnregisterSnapshot(snapshot);
	return fingerprint;
}

static void
record(const Adoption *adoption, const IloadResult *result)
{
	IloadHistoryRow row = {
		.slice = result->slice,
		.method = iload_method_name(result->method),
		.rows = result->rows,
		.rows_before = result->rows_before,
		.fingerprint = result->fingerprint,
		.started = result->started,
		.finished = result->finished
	};

	iload_history_insert(adoption->schema, &row);
}

static void
put_result(const Adoption *adoption, const IloadResult *result)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) adoption->fcinfo->resultinfo;
	HeapTupleHeader row = DatumGetHeapTupleHeader(iload_load_result_make(adoption->fcinfo, result));
	HeapTupleData tuple;

	tuple.t_len = HeapTupleHeaderGetDatumLength(row);
	ItemPointerSetInvalid(&tuple.t_self);
	tuple.t_tableOid = InvalidOid;
	tuple.t_data = row;
	tuplestore_puttuple(rsinfo->setResult, &tuple);
}

/* Adopt the period that begins on "date", if there is something to adopt. */
static void
adopt_period(Adoption *adoption, DateADT date)
{
	Oid			target = RelationGetRelid(adoption->target);
	IloadSliceArgs args = {.by_date = true,.date = date,.period = adoption->period};
	IloadResult result = {.method = ILOAD_METHOD_ADOPT,.started = GetCurrentTimestamp()};
	IloadFingerprint fingerprint;

	adoption->slice = iload_slice_create(adoption->target, adoption->date_column, &args);
	if (iload_coverage_has_load(adoption->schema, target, date, adoption->period))
		return;
	(void) iload_lock_slice(adoption->slice, ILOAD_RUNNING_WAIT);
	/* a load that we have waited for has recorded itself */
	if (iload_coverage_has_load(adoption->schema, target, date, adoption->period))
		return;

	fingerprint = read_slice(adoption);
	if (fingerprint.rows == 0)
		return;
	result.slice = adoption->slice;
	result.rows = result.rows_before = fingerprint.rows;
	result.fingerprint = iload_fingerprint_text(&fingerprint);
	result.finished = GetCurrentTimestamp();
	record(adoption, &result);
	put_result(adoption, &result);
}

/*
 * Adopt the periods that begin from "from" to "to".
 *
 * Locks, until the end of the transaction: ROW EXCLUSIVE on the target; for each
 * period that has no load the slice lock, and ACCESS SHARE on its leaves.
 */
static void
adopt_range(Adoption *adoption, DateADT from, DateADT to)
{
	DateADT		date = iload_coverage_first(from, to, adoption->period);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "idempotent_load adopted slice",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);

	while (date <= to)
	{
		CHECK_FOR_INTERRUPTS();
		adopt_period(adoption, date);
		adoption->slice = NULL;
		date = iload_period_end(date, adoption->period);
		MemoryContextReset(context);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

/*
 * adopt_partitions(target regclass, from_date date, to_date date, date_column text,
 * period interval, timezone text, ignore_columns text[]) returns setof load_result
 */
Datum
iload_adopt_partitions(PG_FUNCTION_ARGS)
{
	MemoryContext context;
	MemoryContext old;
	Adoption	adoption = {.fcinfo = fcinfo};
	ErrorContextCallback callback;
	int			nestlevel;

	iload_argument_require(fcinfo, 0, "target");
	iload_argument_require(fcinfo, 1, "from_date");
	iload_argument_require(fcinfo, 2, "to_date");
	PreventCommandIfReadOnly("adopt_partitions()");
	InitMaterializedSRF(fcinfo, 0);
	context = AllocSetContextCreate(CurrentMemoryContext,
									"idempotent_load", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	adoption.schema = get_func_namespace(fcinfo->flinfo->fn_oid);
	adoption.date_column = iload_argument_text(fcinfo, 3);
	adoption.period = iload_argument_period(fcinfo, 4);
	adoption.ignore_columns = iload_argument_names(fcinfo, 6, "ignore_columns");

	callback.callback = adopt_error_callback;
	callback.arg = &adoption;
	callback.previous = error_context_stack;
	error_context_stack = &callback;
	adoption.target = iload_target_open(PG_GETARG_OID(0), RowExclusiveLock);
	nestlevel = NewGUCNestLevel();
	iload_slice_set_timezone(iload_argument_text(fcinfo, 5));
	adopt_range(&adoption, PG_GETARG_DATEADT(1), PG_GETARG_DATEADT(2));
	AtEOXact_GUC(true, nestlevel);
	table_close(adoption.target, NoLock);
	error_context_stack = callback.previous;

	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return (Datum) 0;
}
