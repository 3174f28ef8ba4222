/*
 * job_run.c
 *		One run of a job, for one date, and the SQL function run_job.
 *
 * A job runs in its caller's transaction and with its caller's rights, in the
 * environment that it has pinned.  That is a GUC nest level, which is undone at the
 * end, and by any abort.
 */
#include "postgres.h"

#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "parser/parse_param.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/json.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "argument.h"
#include "command.h"
#include "job_run.h"
#include "load_result.h"

PG_FUNCTION_INFO_V1(iload_run_job);

/* A run, for messages. */
typedef struct JobRun
{
	const IloadJob *job;
	DateADT		date;
} JobRun;

static void
job_error_callback(void *arg)
{
	JobRun	   *run = arg;

	/* in ISO style, whatever the DateStyle */
	errcontext("job \"%s\" for date %s", run->job->name,
			   JsonEncodeDateTime(NULL, DateADTGetDatum(run->date), DATEOID, NULL));
}

/* Set what a job has pinned, in the caller's GUC nest level. */
void
iload_job_set_environment(const IloadJob *job)
{
	const struct
	{
		const char *setting;
		const char *value;
	}			pinned[] = {
		{"TimeZone", job->timezone},
		{"DateStyle", job->datestyle},
		{"search_path", job->search_path}
	};

	for (size_t i = 0; i < lengthof(pinned); i++)
	{
		if (pinned[i].value != NULL)
			(void) set_config_option(pinned[i].setting, pinned[i].value, PGC_USERSET,
									 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	}
}

static void
setup_date_parameter(ParseState *pstate, void *arg)
{
	static const Oid types[] = {DATEOID};

	setup_parse_fixed_parameters(pstate, types, lengthof(types));
}

/* The date as $1. */
static ParamListInfo
date_parameter(DateADT date)
{
	ParamListInfo params = makeParamList(1);

	params->params[0].value = DateADTGetDatum(date);
	params->params[0].isnull = false;
	params->params[0].pflags = PARAM_FLAG_CONST;
	params->params[0].ptype = DATEOID;
	params->parserSetup = setup_date_parameter;
	return params;
}

/* The call of a function or procedure as SQL text. */
static char *
call_text(Oid function)
{
	char	   *name = quote_qualified_identifier(get_namespace_name(get_func_namespace(function)),
												  get_func_name(function));

	return psprintf("%s %s($1)",
					get_func_prokind(function) == PROKIND_PROCEDURE ? "CALL" : "SELECT", name);
}

/*
 * Run a job for a date.  Returns what the load did, in the current context; NULL
 * for a job that is no load.  "schema" is the extension's.  Needs an active snapshot.
 *
 * Locks: those of the load, or of the statements.
 * Errors: whatever the load or the statements raise; the job tries to end the
 * transaction.  The transaction, or subtransaction, undoes everything.
 */
IloadResult *
iload_job_run(Oid schema, const IloadJob *job, DateADT date)
{
	JobRun		run = {job, date};
	IloadSliceArgs args = {.by_date = true,.date = date,.period = job->period};
	char	   *what = psprintf("job \"%s\"", job->name);
	IloadResult *result = NULL;
	ErrorContextCallback callback;
	int			nestlevel;

	callback.callback = job_error_callback;
	callback.arg = &run;
	callback.previous = error_context_stack;
	error_context_stack = &callback;
	nestlevel = NewGUCNestLevel();
	iload_job_set_environment(job);

	switch (job->kind)
	{
		case ILOAD_JOB_QUERY:
			result = iload_load(schema, job->target, &args, job->text, &job->options);
			break;
		case ILOAD_JOB_COMMAND:
			iload_command_run(job->text, date_parameter(date), what);
			break;
		case ILOAD_JOB_FUNCTION:
			iload_command_run(call_text(job->function), date_parameter(date), what);
			break;
	}

	AtEOXact_GUC(true, nestlevel);
	error_context_stack = callback.previous;
	return result;
}

/* run_job(name text, date date, run_id text) returns load_result */
Datum
iload_run_job(PG_FUNCTION_ARGS)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "idempotent_load", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	Oid			schema = get_func_namespace(fcinfo->flinfo->fn_oid);
	TimestampTz started = GetCurrentTimestamp();
	IloadJob   *job;
	IloadResult *result;
	Datum		datum;

	iload_argument_require(fcinfo, 0, "name");
	iload_argument_require(fcinfo, 1, "date");
	job = iload_job_find(schema, iload_argument_text(fcinfo, 0));
	job->options.run_id = iload_argument_text(fcinfo, 2);
	result = iload_job_run(schema, job, PG_GETARG_DATEADT(1));
	MemoryContextSwitchTo(old);
	if (result != NULL)
		datum = iload_load_result_make(fcinfo, result);
	else
		datum = iload_load_result_make_command(fcinfo, started, GetCurrentTimestamp());
	MemoryContextDelete(context);
	PG_RETURN_DATUM(datum);
}
