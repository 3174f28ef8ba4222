/*
 * load_result.c
 *		The composite type load_result: what a load did, as a row.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "load_result.h"

/* Columns of the type. */
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
	RESULT_UPDATED,
	RESULT_CHANGED,
	RESULT_FINGERPRINT,
	RESULT_ELAPSED,
	RESULT_NCOLUMNS
} ResultColumn;

static Datum
elapsed(TimestampTz started, TimestampTz finished)
{
	return DirectFunctionCall2(timestamp_mi, TimestampTzGetDatum(finished),
							   TimestampTzGetDatum(started));
}

/* A row of the calling function's return type, which must be load_result. */
static Datum
form_row(FunctionCallInfo fcinfo, Datum *values, bool *nulls)
{
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE ||
		desc->natts != RESULT_NCOLUMNS)
		elog(ERROR, "return type must be load_result");
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls));
}

/* The row for a load. */
Datum
iload_load_result_make(FunctionCallInfo fcinfo, const IloadResult *result)
{
	Datum		values[RESULT_NCOLUMNS] = {0};
	bool		nulls[RESULT_NCOLUMNS] = {false};
	bool		skipped = result->method == ILOAD_METHOD_SKIPPED;

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
	values[RESULT_UPDATED] = Int64GetDatum(result->updated);
	values[RESULT_CHANGED] = BoolGetDatum(result->inserted > 0 || result->deleted > 0 ||
										  result->updated > 0);
	nulls[RESULT_ROWS] = nulls[RESULT_FINGERPRINT] = skipped;
	nulls[RESULT_ROWS_BEFORE] = skipped || result->before_unknown;
	if (!skipped)
		values[RESULT_FINGERPRINT] = CStringGetTextDatum(result->fingerprint);
	values[RESULT_ELAPSED] = elapsed(result->started, result->finished);
	return form_row(fcinfo, values, nulls);
}

/* The row for a job that is no load: what it wrote is not known. */
Datum
iload_load_result_make_command(FunctionCallInfo fcinfo, TimestampTz started,
							   TimestampTz finished)
{
	Datum		values[RESULT_NCOLUMNS] = {0};
	bool		nulls[RESULT_NCOLUMNS];

	memset(nulls, true, sizeof(nulls));
	nulls[RESULT_METHOD] = nulls[RESULT_ELAPSED] = false;
	values[RESULT_METHOD] = CStringGetTextDatum("command");
	values[RESULT_ELAPSED] = elapsed(started, finished);
	return form_row(fcinfo, values, nulls);
}
