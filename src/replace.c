/*
 * replace.c
 *		The SQL functions replace_partition and replace_slice.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "argument.h"
#include "load.h"

PG_FUNCTION_INFO_V1(iload_replace_partition);
PG_FUNCTION_INFO_V1(iload_replace_slice);

/* The options that both functions take, from the argument "first" on. */
static void
read_options(FunctionCallInfo fcinfo, int first, IloadOptions *options)
{
	static const char *const methods[] = {"auto", "swap", "diff", "delete", NULL};
	static const char *const on_empty[] = {"error", "replace", "keep", NULL};
	static const char *const if_running[] = {"wait", "fail", "skip", "cancel", NULL};

	options->timezone = iload_argument_text(fcinfo, first);
	options->method = iload_argument_word("method", iload_argument_text(fcinfo, first + 1), methods);
	options->on_empty = iload_argument_word("on_empty", iload_argument_text(fcinfo, first + 2), on_empty);
	options->audit = iload_argument_text(fcinfo, first + 3);
	options->if_running = iload_argument_word("if_running", iload_argument_text(fcinfo, first + 4), if_running);
	options->create_partition = PG_ARGISNULL(first + 5) || PG_GETARG_BOOL(first + 5);
	options->ignore_columns = iload_argument_names(fcinfo, first + 6);
	options->run_id = iload_argument_text(fcinfo, first + 7);
}

/* Columns of the composite type load_result. */
typedef enum ResultColumn
{
	RESULT_TARGET,
	RESULT_LOWER_BOUND,
	RESULT_UPPER_BOUND,
	RESULT_METHOD,
	RESULT_ROWS,
	RESULT_ROWS_BEFORE,
	RESULT_INSERTED,
	RESULT_DELETED,
	RESULT_CHANGED,
	RESULT_FINGERPRINT,
	RESULT_ELAPSED,
	RESULT_NCOLUMNS
} ResultColumn;

static Datum
make_result(FunctionCallInfo fcinfo, const IloadResult *result)
{
	Datum		values[RESULT_NCOLUMNS] = {0};
	bool		nulls[RESULT_NCOLUMNS] = {false};
	bool		skipped = result->method == ILOAD_METHOD_SKIPPED;
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE ||
		desc->natts != RESULT_NCOLUMNS)
		elog(ERROR, "return type must be load_result");

	values[RESULT_TARGET] = ObjectIdGetDatum(result->slice->target);
	values[RESULT_LOWER_BOUND] = CStringGetTextDatum(result->slice->lower_text);
	nulls[RESULT_UPPER_BOUND] = result->slice->single;
	if (!result->slice->single)
		values[RESULT_UPPER_BOUND] = CStringGetTextDatum(result->slice->upper_text);
	values[RESULT_METHOD] = CStringGetTextDatum(iload_method_name(result->method));
	values[RESULT_ROWS] = Int64GetDatum(result->rows);
	values[RESULT_ROWS_BEFORE] = Int64GetDatum(result->rows_before);
	values[RESULT_INSERTED] = Int64GetDatum(result->inserted);
	values[RESULT_DELETED] = Int64GetDatum(result->deleted);
	values[RESULT_CHANGED] = BoolGetDatum(result->inserted > 0 || result->deleted > 0);
	nulls[RESULT_ROWS] = nulls[RESULT_ROWS_BEFORE] = nulls[RESULT_FINGERPRINT] = skipped;
	if (!skipped)
		values[RESULT_FINGERPRINT] = CStringGetTextDatum(result->fingerprint);
	values[RESULT_ELAPSED] = DirectFunctionCall2(timestamp_mi,
												 TimestampTzGetDatum(result->finished),
												 TimestampTzGetDatum(result->started));
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls));
}

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
	datum = make_result(fcinfo, result);
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
	read_options(fcinfo, 5, &options);
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
	read_options(fcinfo, 5, &options);
	return load_and_return(fcinfo, PG_GETARG_OID(0), &args, iload_argument_text(fcinfo, 3), &options);
}
