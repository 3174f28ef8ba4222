/*
 * undo.c
 *		The SQL function undo_load: a slice as it was before its last load.
 *
 * It is a load by itself: the query reads the rows that were kept, and all that a load
 * promises holds.  What was kept is used up by it.
 */
#include "postgres.h"

#include "access/table.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "argument.h"
#include "error_fields.h"
#include "load.h"
#include "load_result.h"
#include "previous.h"
#include "query.h"
#include "root.h"
#include "target.h"

PG_FUNCTION_INFO_V1(iload_undo_load);

/* The query for the rows that were kept. */
static char *
previous_query(Oid schema, Relation target, const IloadSlice *slice)
{
	IloadColumns *columns = iload_columns_create(target, slice->key->name, NIL);
	Oid			kept = iload_previous_find(schema, slice);

	if (!OidIsValid(kept))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("no previous version of slice %s of table \"%s\" is kept",
						iload_slice_text(slice), slice->table_name),
				 errdetail("The last load that changed it kept none, or it was undone before."),
				 errhint("Versions are kept by loads with keep_previous => true."),
				 iload_errtable(slice->target)));
	return psprintf(ILOAD_QUERY_MARK "SELECT %s FROM %s AS t WHERE %s",
					iload_columns_list(columns, "t"),
					iload_table_name(kept),
					iload_slice_literal_predicate(slice));
}

/*
 * Load the slice as it was.  Locks are those of a load, and taken in the same order.
 */
static IloadResult *
undo(Oid schema, Oid relid, const IloadSliceArgs *args, IloadOptions *options)
{
	Relation	target = iload_target_open(relid, RowExclusiveLock);
	int			nestlevel = NewGUCNestLevel();
	IloadSlice *slice;
	IloadResult *result;
	char	   *query;

	iload_slice_set_timezone(options->timezone);
	slice = iload_slice_create(target, options->date_column, args);
	(void) iload_lock_slice(slice, ILOAD_RUNNING_WAIT);
	query = previous_query(schema, target, slice);
	table_close(target, NoLock);
	result = iload_load(schema, relid, args, query, options);
	iload_previous_forget(schema, slice);
	AtEOXact_GUC(true, nestlevel);
	return result;
}

/*
 * undo_load(target regclass, date date, date_column text, period interval,
 * timezone text, run_id text) returns load_result
 */
Datum
iload_undo_load(PG_FUNCTION_ARGS)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "idempotent_load", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	IloadSliceArgs args = {.by_date = true};
	IloadOptions options = {.on_empty = ILOAD_EMPTY_REPLACE,.create_partition = true};
	IloadResult *result;
	Datum		datum;

	iload_argument_require(fcinfo, 0, "target");
	iload_argument_require(fcinfo, 1, "date");
	args.date = PG_GETARG_DATEADT(1);
	options.date_column = iload_argument_text(fcinfo, 2);
	args.period = iload_argument_period(fcinfo, 3);
	options.timezone = iload_argument_text(fcinfo, 4);
	options.run_id = iload_argument_text(fcinfo, 5);
	result = undo(get_func_namespace(fcinfo->flinfo->fn_oid), PG_GETARG_OID(0), &args, &options);
	MemoryContextSwitchTo(old);
	datum = iload_load_result_make(fcinfo, result);
	MemoryContextDelete(context);
	PG_RETURN_DATUM(datum);
}
