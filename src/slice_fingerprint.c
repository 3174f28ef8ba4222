/*
 * slice_fingerprint.c
 *		The SQL functions partition_fingerprint and slice_fingerprint.
 *
 * They tell whether a slice is still as a load has left it: load_history has the
 * fingerprint that it had then.
 */
#include "postgres.h"

#include "access/table.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "argument.h"
#include "live.h"
#include "slice_fingerprint.h"
#include "target.h"

PG_FUNCTION_INFO_V1(iload_partition_fingerprint);
PG_FUNCTION_INFO_V1(iload_slice_fingerprint);

/* Which slice, and which columns, as the caller gave them. */
typedef struct FingerprintArgs
{
	Oid			target;
	IloadSliceArgs slice;
	char	   *date_column;	/* or NULL */
	char	   *timezone;		/* or NULL: the session's */
	List	   *ignore_columns; /* of String */
}			FingerprintArgs;

/*
 * The fingerprint of a slice as "snapshot" sees it.  The leaves are locked.
 */
IloadFingerprint
iload_slice_fingerprint_compute(Relation target, IloadSlice *slice, IloadLeaves *leaves,
								List *ignore_columns, Snapshot snapshot)
{
	IloadColumns *columns = iload_columns_create(target, slice->key->name, ignore_columns);
	IloadLive  *live = iload_live_create(target, slice, leaves, columns);

	return iload_live_fingerprint(live, snapshot, NULL);
}

/*
 * The fingerprint of a slice as the active snapshot sees it, in text.
 * Locks: ACCESS SHARE on the target and on the leaves of the slice.
 */
static char *
fingerprint_of(const FingerprintArgs * args)
{
	Relation	target = iload_target_open(args->target, AccessShareLock);
	int			nestlevel = NewGUCNestLevel();
	IloadSlice *slice;
	IloadFingerprint fingerprint;

	iload_slice_set_timezone(args->timezone);
	slice = iload_slice_create(target, args->date_column, &args->slice);
	fingerprint = iload_slice_fingerprint_compute(target, slice,
												  iload_leaves_lock(target, slice, ILOAD_LEAVES_READ),
												  args->ignore_columns, GetActiveSnapshot());
	AtEOXact_GUC(true, nestlevel);
	table_close(target, NoLock);
	return iload_fingerprint_text(&fingerprint);
}

/* Compute it in a context of its own. */
static Datum
return_fingerprint(const FingerprintArgs * args)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "idempotent_load", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	char	   *text = fingerprint_of(args);
	Datum		result;

	MemoryContextSwitchTo(old);
	result = CStringGetTextDatum(text);
	MemoryContextDelete(context);
	return result;
}

/*
 * partition_fingerprint(target regclass, date date, date_column text,
 * period interval, timezone text, ignore_columns text[]) returns text
 */
Datum
iload_partition_fingerprint(PG_FUNCTION_ARGS)
{
	FingerprintArgs args = {.slice.by_date = true};

	iload_argument_require(fcinfo, 0, "target");
	iload_argument_require(fcinfo, 1, "date");
	args.target = PG_GETARG_OID(0);
	args.slice.date = PG_GETARG_DATEADT(1);
	args.date_column = iload_argument_text(fcinfo, 2);
	args.slice.period = iload_argument_period(fcinfo, 3);
	args.timezone = iload_argument_text(fcinfo, 4);
	args.ignore_columns = iload_argument_names(fcinfo, 5, "ignore_columns");
	return return_fingerprint(&args);
}

/*
 * slice_fingerprint(target regclass, lower text, upper text, date_column text,
 * timezone text, ignore_columns text[]) returns text
 */
Datum
iload_slice_fingerprint(PG_FUNCTION_ARGS)
{
	FingerprintArgs args = {.slice.by_date = false};

	iload_argument_require(fcinfo, 0, "target");
	iload_argument_require(fcinfo, 1, "lower");
	args.target = PG_GETARG_OID(0);
	args.slice.lower = iload_argument_text(fcinfo, 1);
	args.slice.upper = iload_argument_text(fcinfo, 2);
	args.date_column = iload_argument_text(fcinfo, 3);
	args.timezone = iload_argument_text(fcinfo, 4);
	args.ignore_columns = iload_argument_names(fcinfo, 5, "ignore_columns");
	return return_fingerprint(&args);
}
