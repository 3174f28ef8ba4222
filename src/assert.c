/*
 * assert.c
 *		The SQL functions assert_idempotent, check_idempotent and is_idempotent.
 *
 * They run the same check, and tell its result as an error, as rows, or in TAP.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "nodes/value.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "argument.h"
#include "check.h"
#include "errcodes.h"
#include "error_fields.h"
#include "query.h"

PG_FUNCTION_INFO_V1(iload_assert_idempotent);
PG_FUNCTION_INFO_V1(iload_check_idempotent);
PG_FUNCTION_INFO_V1(iload_is_idempotent);

/* A check that was asked for, and its result. */
typedef struct Request
{
	IloadJob   *job;
	DateADT		date;
	IloadCheckOptions options;
	IloadCheckResult *result;
} Request;

/* Set the reruns that a list names, those of the default where it is null. */
static void
read_reruns(FunctionCallInfo fcinfo, int argno, bool *reruns)
{
	ListCell   *lc;

	if (PG_ARGISNULL(argno))
	{
		reruns[ILOAD_RERUN_SAME] = reruns[ILOAD_RERUN_CLOCK] = reruns[ILOAD_RERUN_CRASH] = true;
		return;
	}
	foreach(lc, iload_argument_names(fcinfo, argno, "reruns"))
	{
		int			rerun = iload_rerun_find(strVal(lfirst(lc)));

		if (rerun < 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("unknown rerun: \"%s\"", strVal(lfirst(lc))),
					 errhint("Reruns are \"same\", \"clock\", \"crash\", \"timezone\" and \"plan\".")));
		reruns[rerun] = true;
	}
}

/* By how many seconds the clock is to be moved; a month has 30 days. */
static void
read_clock_shift(FunctionCallInfo fcinfo, int argno, IloadCheckOptions *options)
{
	Interval   *shift;
	double		seconds;

	if (PG_ARGISNULL(argno))
		return;
	shift = PG_GETARG_INTERVAL_P(argno);
	seconds = (shift->month * (double) DAYS_PER_MONTH + shift->day) * SECS_PER_DAY +
		shift->time / USECS_PER_SEC;
	if (seconds == 0 || seconds < INT_MIN || seconds > INT_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("clock_shift must be at least a second, and less than 68 years, either way")));
	options->clock_shift = (int) seconds;
	options->clock_shift_text =
		DatumGetCString(DirectFunctionCall1(interval_out, IntervalPGetDatum(shift)));
}

/* Run the check that the arguments ask for; the options begin at "first". */
static Request *
run_check(FunctionCallInfo fcinfo, int first, bool stop_at_first)
{
	Oid			schema = get_func_namespace(fcinfo->flinfo->fn_oid);
	Request    *request = palloc0(sizeof(Request));

	iload_argument_require(fcinfo, 0, "job");
	iload_argument_require(fcinfo, 1, "date");
	read_reruns(fcinfo, first, request->options.reruns);
	request->options.ignore_columns = iload_argument_names(fcinfo, first + 1, "ignore_columns");
	read_clock_shift(fcinfo, first + 2, &request->options);
	request->options.stop_at_first = stop_at_first;
	request->job = iload_job_find(schema, iload_argument_text(fcinfo, 0));
	request->date = PG_GETARG_DATEADT(1);
	request->result = iload_check_job(schema, request->job, request->date, &request->options);
	return request;
}

/* The first violation, and the rerun that showed it; NULL where all passed. */
static IloadViolation *
first_violation(const Request *request, IloadRerunResult **rerun)
{
	ListCell   *lc;

	foreach(lc, request->result->reruns)
	{
		*rerun = lfirst(lc);
		if ((*rerun)->violations != NIL)
			return linitial((*rerun)->violations);
	}
	return NULL;
}

static void
append_rows(StringInfo text, const char *title, List *rows, uint64 total)
{
	ListCell   *lc;

	if (rows == NIL)
		return;
	appendStringInfo(text, "\n%s:", title);
	foreach(lc, rows)
		appendStringInfo(text, "%s %s", foreach_current_index(lc) > 0 ? "," : "", strVal(lfirst(lc)));
	if ((uint64) list_length(rows) < total)
		appendStringInfo(text, ", and " UINT64_FORMAT " more", total - list_length(rows));
}

static char *
join_names(List *names)
{
	StringInfoData text;
	ListCell   *lc;

	initStringInfo(&text);
	foreach(lc, names)
		appendStringInfo(&text, "%s\"%s\"", foreach_current_index(lc) > 0 ? ", " : "",
						 strVal(lfirst(lc)));
	return text.data;
}

/* What was wrong, in one line. */
static char *
violation_message(const Request *request, const IloadRerunResult *rerun,
				  const IloadViolation *violation)
{
	char	   *start = psprintf("job \"%s\" is not idempotent for %s: rerun \"%s\"", request->job->name,
								 JsonEncodeDateTime(NULL, DateADTGetDatum(request->date), DATEOID, NULL),
								 iload_rerun_name(rerun->rerun));

	if (violation->error != NULL)
		return psprintf("%s failed: %s", start, violation->error->message);
	return psprintf("%s %s table %s", start,
					violation->difference->added + violation->difference->missing > 0 ?
					"changed" : "in another transaction would change",
					violation->difference->relation);
}

/* The rows and columns that differ, and where that comes from. */
static char *
violation_detail(const IloadRerunResult *rerun, const IloadViolation *violation)
{
	const IloadDifference *difference = violation->difference;
	StringInfoData text;

	initStringInfo(&text);
	if (difference == NULL)
		appendStringInfo(&text, "SQLSTATE %s.%s%s",
						 unpack_sql_state(violation->error->sqlerrcode),
						 violation->error->detail == NULL ? "" : " ",
						 violation->error->detail == NULL ? "" : violation->error->detail);
	else
		appendStringInfo(&text, "Rows added: " UINT64_FORMAT ", missing: " UINT64_FORMAT ".",
						 difference->added, difference->missing);
	if (rerun->what != NULL)
		appendStringInfo(&text, "\nWorld: %s.", rerun->what);
	if (difference != NULL)
	{
		if (difference->columns != NIL)
			appendStringInfo(&text, "\nColumns that differ: %s.", join_names(difference->columns));
		if (difference->permuted)
			appendStringInfoString(&text, "\nEach column has the same values, but in other rows.");
		if (difference->floats)
			appendStringInfo(&text, "\nLargest relative difference: %g.", difference->relative);
		append_rows(&text, "Added", difference->added_rows, difference->added);
		append_rows(&text, "Missing", difference->missing_rows, difference->missing);
		if (!difference->readable)
			appendStringInfoString(&text, "\nRows are not shown, since the user may not read the table.");
	}
	appendStringInfo(&text, "\nCause: %s.", violation->cause->name);
	if (violation->cause->source != NULL)
		appendStringInfo(&text, " %s", violation->cause->source);
	return text.data;
}

/* For ereport: the table that differs, or what the error of the rerun names. */
static int
errviolation(const IloadViolation *violation)
{
	IloadErrorFields fields;

	if (violation->error == NULL)
		return iload_errtablename(violation->difference->relation);
	iload_error_fields_get(violation->error, &fields);
	return iload_errfields(&fields);
}

static void
tell_notes(const Request *request)
{
	ListCell   *lc;

	foreach(lc, request->result->notes)
		ereport(NOTICE,
				(errmsg("the check of job \"%s\" has a note", request->job->name),
				 errdetail_internal("%s", (char *) lfirst(lc))));
}

/*
 * assert_idempotent(job text, date date, reruns text[], ignore_columns text[],
 * clock_shift interval) returns boolean
 */
Datum
iload_assert_idempotent(PG_FUNCTION_ARGS)
{
	Request    *request = run_check(fcinfo, 2, true);
	IloadRerunResult *rerun;
	IloadViolation *violation = first_violation(request, &rerun);

	tell_notes(request);
	if (violation != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_ILOAD_NOT_IDEMPOTENT),
				 errmsg_internal("%s", violation_message(request, rerun, violation)),
				 errdetail_internal("%s", violation_detail(rerun, violation)),
				 errhint("%s", violation->cause->hint),
				 errviolation(violation)));
	PG_RETURN_BOOL(true);
}

/* Columns of check_idempotent. */
typedef enum CheckColumn
{
	CHECK_RERUN,
	CHECK_PASSED,
	CHECK_RUNS,
	CHECK_WORLD,
	CHECK_RELATION,
	CHECK_CAUSE,
	CHECK_ADDED,
	CHECK_MISSING,
	CHECK_COLUMNS,
	CHECK_ADDED_ROWS,
	CHECK_MISSING_ROWS,
	CHECK_SOURCE,
	CHECK_MESSAGE,
	CHECK_HINT,
	CHECK_NCOLUMNS
} CheckColumn;

/* A row of the result, all null at first. */
typedef struct CheckRow
{
	Datum		values[CHECK_NCOLUMNS];
	bool		nulls[CHECK_NCOLUMNS];
} CheckRow;

static void
clear_row(CheckRow *row)
{
	memset(row->nulls, true, sizeof(row->nulls));
}

static void
set_value(CheckRow *row, CheckColumn column, Datum value)
{
	row->values[column] = value;
	row->nulls[column] = false;
}

static void
set_text(CheckRow *row, CheckColumn column, const char *text)
{
	if (text !=NULL)
		set_value(row, column, CStringGetTextDatum(text));
}

static void
set_texts(CheckRow *row, CheckColumn column, List *texts)
{
	Datum	   *elements = palloc(list_length(texts) * sizeof(Datum));
	ListCell   *lc;

	foreach(lc, texts)
		elements[foreach_current_index(lc)] = CStringGetTextDatum(strVal(lfirst(lc)));
	set_value(row, column,
			  PointerGetDatum(construct_array(elements, list_length(texts), TEXTOID, -1, false,
											  TYPALIGN_INT)));
}

static void
set_violation(CheckRow *row, const Request *request, const IloadRerunResult *rerun,
			  const IloadViolation *violation)
{
	const IloadDifference *difference = violation->difference;

	set_text(row, CHECK_WORLD, rerun->what);
	set_text(row, CHECK_CAUSE, violation->cause->name);
	set_text(row, CHECK_SOURCE, violation->cause->source);
	set_text(row, CHECK_HINT, violation->cause->hint);
	set_text(row, CHECK_MESSAGE, violation_message(request, rerun, violation));
	if (difference == NULL)
		return;
	set_text(row, CHECK_RELATION, difference->relation);
	set_value(row, CHECK_ADDED, Int64GetDatum(difference->added));
	set_value(row, CHECK_MISSING, Int64GetDatum(difference->missing));
	set_texts(row, CHECK_COLUMNS, difference->columns);
	set_texts(row, CHECK_ADDED_ROWS, difference->added_rows);
	set_texts(row, CHECK_MISSING_ROWS, difference->missing_rows);
}

static void
put_row(ReturnSetInfo *rsinfo, CheckRow *row)
{
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, row->values, row->nulls);
}

/* One row for a rerun that passed, else one for each violation. */
static void
put_rerun(ReturnSetInfo *rsinfo, const Request *request, const IloadRerunResult *rerun)
{
	CheckRow	row;
	ListCell   *lc;

	clear_row(&row);
	set_text(&row, CHECK_RERUN, iload_rerun_name(rerun->rerun));
	set_value(&row, CHECK_PASSED, BoolGetDatum(rerun->violations == NIL));
	set_value(&row, CHECK_RUNS, Int32GetDatum(rerun->runs));
	if (rerun->violations == NIL)
	{
		if (rerun->runs == 0)
			set_text(&row, CHECK_MESSAGE, rerun->rerun == ILOAD_RERUN_CLOCK ?
					 "no query of the job reads the clock" :
					 "no state after a crash could be made: the first run inserted no rows, or constraints forbid it");
		put_row(rsinfo, &row);
	}
	foreach(lc, rerun->violations)
	{
		CheckRow	copy = row;

		set_violation(&copy, request, rerun, lfirst(lc));
		put_row(rsinfo, &copy);
	}
}

/*
 * check_idempotent(job text, date date, reruns text[], ignore_columns text[],
 * clock_shift interval) returns table (...)
 */
Datum
iload_check_idempotent(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Request    *request;
	CheckRow	row;
	ListCell   *lc;

	InitMaterializedSRF(fcinfo, 0);
	request = run_check(fcinfo, 2, false);
	foreach(lc, request->result->reruns)
		put_rerun(rsinfo, request, lfirst(lc));
	foreach(lc, request->result->notes)
	{
		clear_row(&row);
		set_text(&row, CHECK_MESSAGE, lfirst(lc));
		put_row(rsinfo, &row);
	}
	return (Datum) 0;
}

/* The schema of pgTAP, as SQL text. */
static char *
pgtap_schema(void)
{
	if (SPI_execute(ILOAD_QUERY_MARK "SELECT pg_catalog.quote_ident(n.nspname)"
					" FROM pg_catalog.pg_extension AS e"
					" JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) e.extnamespace"
					" WHERE e.extname OPERATOR(pg_catalog.=) 'pgtap'", true, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not look for pgTAP");
	if (SPI_processed == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("pgTAP is not installed in this database"),
				 errhint("Run CREATE EXTENSION pgtap, or use assert_idempotent or check_idempotent.")));
	return SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
}

/* What pgTAP says to a result, in the context given: a line of TAP, and diagnostics. */
static text *
tell_pgtap(bool passed, const char *description, const char *diagnostics, MemoryContext context)
{
	Oid			types[] = {BOOLOID, TEXTOID, TEXTOID};
	Datum		values[] = {
		BoolGetDatum(passed),
		CStringGetTextDatum(description),
		CStringGetTextDatum(diagnostics)
	};
	char	   *schema;
	char	   *line;
	MemoryContext old;
	text	   *result;

	SPI_connect();
	schema = pgtap_schema();
	if (SPI_execute_with_args(psprintf("SELECT %s.ok($1, $2) OPERATOR(pg_catalog.||)"
									   " CASE WHEN $1 THEN '' ELSE E'\\n' OPERATOR(pg_catalog.||) %s.diag($3) END",
									   schema, schema),
							  3, types, values, NULL, false, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not call pgTAP");
	line = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
	old = MemoryContextSwitchTo(context);
	result = cstring_to_text(line);
	MemoryContextSwitchTo(old);
	SPI_finish();
	return result;
}

/*
 * is_idempotent(job text, date date, description text, reruns text[],
 * ignore_columns text[], clock_shift interval) returns text
 */
Datum
iload_is_idempotent(PG_FUNCTION_ARGS)
{
	MemoryContext context = CurrentMemoryContext;
	Request    *request;
	IloadRerunResult *rerun;
	IloadViolation *violation;
	char	   *description = iload_argument_text(fcinfo, 2);
	char	   *diagnostics = "";

	SPI_connect();
	(void) pgtap_schema();
	SPI_finish();
	request = run_check(fcinfo, 3, true);
	tell_notes(request);
	violation = first_violation(request, &rerun);
	if (description == NULL)
		description = psprintf("job \"%s\" is idempotent", request->job->name);
	if (violation != NULL)
		diagnostics = psprintf("%s\n%s\nHint: %s",
							   violation_message(request, rerun, violation),
							   violation_detail(rerun, violation), violation->cause->hint);
	PG_RETURN_TEXT_P(tell_pgtap(violation == NULL, description, diagnostics, context));
}
