/*
 * replace.c
 *		The SQL functions replace_partition, replace_slice and merge_rows.
 */
#include "postgres.h"

#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "argument.h"
#include "load_result.h"
#include "options.h"

PG_FUNCTION_INFO_V1(iload_replace_partition);
PG_FUNCTION_INFO_V1(iload_replace_slice);
PG_FUNCTION_INFO_V1(iload_merge_rows);

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
 * run_id text, keep_previous boolean) returns load_result
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
	iload_options_read(fcinfo, 5, iload_load_methods, &options);
	options.run_id = iload_argument_text(fcinfo, 12);
	options.keep_previous = !PG_ARGISNULL(13) && PG_GETARG_BOOL(13);
	return load_and_return(fcinfo, PG_GETARG_OID(0), &args, iload_argument_text(fcinfo, 2), &options);
}

/*
 * replace_slice(target regclass, lower text, upper text, query text,
 * date_column text, timezone text, method text, on_empty text, audit text,
 * if_running text, create_partition boolean, ignore_columns text[],
 * run_id text, keep_previous boolean) returns load_result
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
	iload_options_read(fcinfo, 5, iload_load_methods, &options);
	options.run_id = iload_argument_text(fcinfo, 12);
	options.keep_previous = !PG_ARGISNULL(13) && PG_GETARG_BOOL(13);
	return load_and_return(fcinfo, PG_GETARG_OID(0), &args, iload_argument_text(fcinfo, 3), &options);
}

/*
 * merge_rows(target regclass, date date, query text, key text[], version text,
 * date_column text, period interval, timezone text, audit text, if_running text,
 * create_partition boolean, ignore_columns text[], run_id text,
 * keep_previous boolean) returns load_result
 */
Datum
iload_merge_rows(PG_FUNCTION_ARGS)
{
	IloadOptions options = {0};
	IloadSliceArgs args = {.by_date = true};

	iload_argument_require(fcinfo, 0, "target");
	iload_argument_require(fcinfo, 1, "date");
	iload_argument_require(fcinfo, 2, "query");
	iload_argument_require(fcinfo, 3, "key");
	args.date = PG_GETARG_DATEADT(1);
	options.key = iload_argument_names(fcinfo, 3, "key");
	options.version = iload_argument_text(fcinfo, 4);
	options.date_column = iload_argument_text(fcinfo, 5);
	args.period = iload_argument_period(fcinfo, 6);
	options.timezone = iload_argument_text(fcinfo, 7);
	options.audit = iload_argument_text(fcinfo, 8);
	iload_options_set_words(&options, iload_job_methods, "merge", NULL,
							iload_argument_text(fcinfo, 9));
	options.create_partition = PG_ARGISNULL(10) || PG_GETARG_BOOL(10);
	options.ignore_columns = iload_argument_names(fcinfo, 11, "ignore_columns");
	options.run_id = iload_argument_text(fcinfo, 12);
	options.keep_previous = !PG_ARGISNULL(13) && PG_GETARG_BOOL(13);
	return load_and_return(fcinfo, PG_GETARG_OID(0), &args, iload_argument_text(fcinfo, 2), &options);
}
