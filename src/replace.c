/*
 * replace.c
 *		The SQL functions replace_partition and replace_slice.
 */
#include "postgres.h"

#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "argument.h"
#include "load_result.h"
#include "options.h"

PG_FUNCTION_INFO_V1(iload_replace_partition);
PG_FUNCTION_INFO_V1(iload_replace_slice);

/* Run a load in a context of its own and return its result. */
static Datum
load_and_return(FunctionCallInfo fcinfo, Oid target, const IloadSliceArgs *args,
				const char *query, const IloadOptions *options)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "idempotent_load", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	IloadResult *result = iload_load(get_func_namespace(fcinfo->flinfo->fn_oid),
									 target, args, query, options);
	Datum		datum;

	MemoryContextSwitchTo(old);
	datum = iload_load_result_make(fcinfo, result);
	MemoryContextDelete(context);
	PG_RETURN_DATUM(datum);
}

/*
 * replace_partition(target regclass, date date, query text, date_column text,
 * period interval, timezone text, method text, on_empty text, audit text,
 * if_running text, create_partition boolean, ignore_columns text[],
 * run_id text) returns load_result
 */
Datum
iload_replace_partition(PG_FUNCTION_ARGS)
{
	IloadOptions options = {0};
	IloadSliceArgs args = {.by_date = true};

	iload_argument_require(fcinfo, 0, "target");
	iload_argument_require(fcinfo, 1, "date");
	iload_argument_require(fcinfo, 2, "query");
	options.date_column = iload_argument_text(fcinfo, 3);
	args.date = PG_GETARG_DATEADT(1);
	args.period = iload_argument_period(fcinfo, 4);
	iload_options_read(fcinfo, 5, &options);
	options.run_id = iload_argument_text(fcinfo, 12);
	return load_and_return(fcinfo, PG_GETARG_OID(0), &args, iload_argument_text(fcinfo, 2), &options);
}

/*
 * replace_slice(target regclass, lower text, upper text, query text,
 * date_column text, timezone text, method text, on_empty text, audit text,
 * if_running text, create_partition boolean, ignore_columns text[],
 * run_id text) returns load_result
 */
Datum
iload_replace_slice(PG_FUNCTION_ARGS)
{
	IloadOptions options = {0};
	IloadSliceArgs args = {.by_date = false};

	iload_argument_require(fcinfo, 0, "target");
	iload_argument_require(fcinfo, 1, "lower");
	iload_argument_require(fcinfo, 3, "query");
	args.lower = iload_argument_text(fcinfo, 1);
	args.upper = iload_argument_text(fcinfo, 2);
	options.date_column = iload_argument_text(fcinfo, 4);
	iload_options_read(fcinfo, 5, &options);
	options.run_id = iload_argument_text(fcinfo, 12);
	return load_and_return(fcinfo, PG_GETARG_OID(0), &args, iload_argument_text(fcinfo, 3), &options);
}
