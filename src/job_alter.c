/*
 * job_alter.c
 *		The SQL function alter_job.
 *
 * An option that is not given stays as it is; one that is named in "reset" is again
 * as create_job has it by default.  A job stays a load or a command.  The result is
 * checked as create_job does it, in the environment that the job has pinned.
 */
#include "postgres.h"

#include "nodes/value.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "argument.h"
#include "job_run.h"
#include "options.h"

PG_FUNCTION_INFO_V1(iload_alter_job);

/* Arguments of alter_job; those from ARG_DATE_COLUMN on can be reset. */
typedef enum AlterArgument
{
	ARG_NAME,
	ARG_TARGET,
	ARG_QUERY,
	ARG_COMMAND,
	ARG_DATE_COLUMN,
	ARG_PERIOD,
	ARG_TIMEZONE,
	ARG_METHOD,
	ARG_ON_EMPTY,
	ARG_AUDIT,
	ARG_IF_RUNNING,
	ARG_CREATE_PARTITION,
	ARG_IGNORE_COLUMNS,
	ARG_KEY,
	ARG_VERSION,
	ARG_KEEP_PREVIOUS,
	ARG_RESET
} AlterArgument;

/* What can be reset: these arguments, in their order, and what is only pinned. */
static const char *const reset_words[] = {
	"date_column", "period", "timezone", "method", "on_empty", "audit", "if_running",
	"create_partition", "ignore_columns", "key", "version", "keep_previous",
	"datestyle", "search_path", NULL
};

#define RESET_DATESTYLE		ARG_RESET
#define RESET_SEARCH_PATH	(ARG_RESET + 1)

/* Which options are to be reset, as a set of AlterArgument and the two above. */
static Bitmapset *
read_reset(FunctionCallInfo fcinfo)
{
	Bitmapset  *reset = NULL;
	ListCell   *lc;

	foreach(lc, iload_argument_names(fcinfo, ARG_RESET, "reset"))
	{
		char	   *name = strVal(lfirst(lc));
		int			option = ARG_DATE_COLUMN + iload_argument_word("reset", name, reset_words);

		if (option < ARG_RESET && !PG_ARGISNULL(option))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("option \"%s\" is both given and reset", name)));
		reset = bms_add_member(reset, option);
	}
	return reset;
}

/* A job is of one kind for good. */
static void
check_kind(FunctionCallInfo fcinfo, const IloadJob *job)
{
	const char *given = NULL;

	if (job->kind == ILOAD_JOB_QUERY && !PG_ARGISNULL(ARG_COMMAND))
		given = "command";
	else if (job->kind == ILOAD_JOB_COMMAND && !PG_ARGISNULL(ARG_TARGET))
		given = "target";
	else if (job->kind == ILOAD_JOB_COMMAND && !PG_ARGISNULL(ARG_QUERY))
		given = "query";
	if (given != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"%s\" is not for job \"%s\"", given, job->name),
				 job->kind == ILOAD_JOB_QUERY ?
				 errdetail("The job loads a table.") : errdetail("The job runs a command."),
				 errhint("Drop the job, and create another one.")));
}

/* Text that is given, or NULL where it is reset, or as it is. */
static char *
alter_text(FunctionCallInfo fcinfo, const Bitmapset *reset, AlterArgument option, char *text)
{
	if (bms_is_member(option, reset))
		return NULL;
	return PG_ARGISNULL(option) ? text : iload_argument_text(fcinfo, option);
}

static List *
alter_names(FunctionCallInfo fcinfo, const Bitmapset *reset, AlterArgument option, List *names)
{
	if (bms_is_member(option, reset))
		return NIL;
	return PG_ARGISNULL(option) ? names :
		iload_argument_names(fcinfo, option, reset_words[option - ARG_DATE_COLUMN]);
}

static bool
alter_flag(FunctionCallInfo fcinfo, const Bitmapset *reset, AlterArgument option, bool flag,
		   bool by_default)
{
	if (bms_is_member(option, reset))
		return by_default;
	return PG_ARGISNULL(option) ? flag : PG_GETARG_BOOL(option);
}

static void
alter_options(FunctionCallInfo fcinfo, const Bitmapset *reset, IloadJob *job)
{
	IloadOptions *options = &job->options;
	bool		is_query = job->kind == ILOAD_JOB_QUERY;
	char	   *method = is_query ? pstrdup(iload_method_name(options->method)) : NULL;
	char	   *on_empty = is_query ? pstrdup(iload_options_on_empty(options)) : NULL;
	char	   *if_running = is_query ? pstrdup(iload_options_if_running(options)) : NULL;

	iload_options_set_words(options, iload_job_methods,
							alter_text(fcinfo, reset, ARG_METHOD, method),
							alter_text(fcinfo, reset, ARG_ON_EMPTY, on_empty),
							alter_text(fcinfo, reset, ARG_IF_RUNNING, if_running));
	options->date_column = alter_text(fcinfo, reset, ARG_DATE_COLUMN, options->date_column);
	if (!PG_ARGISNULL(ARG_PERIOD) || bms_is_member(ARG_PERIOD, reset) || !is_query)
		job->period = iload_argument_period(fcinfo, ARG_PERIOD);
	options->audit = alter_text(fcinfo, reset, ARG_AUDIT, options->audit);
	options->create_partition = alter_flag(fcinfo, reset, ARG_CREATE_PARTITION,
										   options->create_partition || !is_query, true);
	options->ignore_columns = alter_names(fcinfo, reset, ARG_IGNORE_COLUMNS,
										  options->ignore_columns);
	options->key = alter_names(fcinfo, reset, ARG_KEY, options->key);
	options->version = alter_text(fcinfo, reset, ARG_VERSION, options->version);
	options->keep_previous = alter_flag(fcinfo, reset, ARG_KEEP_PREVIOUS,
										options->keep_previous, false);
}

/* Check the job in the environment that it has pinned, or where reset, in that of now. */
static void
check_in_environment(FunctionCallInfo fcinfo, const Bitmapset *reset, IloadJob *job)
{
	int			nestlevel = NewGUCNestLevel();

	if (bms_is_member(ARG_TIMEZONE, reset))
		job->timezone = NULL;
	if (bms_is_member(RESET_DATESTYLE, reset))
		job->datestyle = NULL;
	if (bms_is_member(RESET_SEARCH_PATH, reset))
		job->search_path = NULL;
	job->options.timezone = iload_argument_text(fcinfo, ARG_TIMEZONE);
	iload_job_set_environment(job);
	iload_job_check_and_pin(job);
	AtEOXact_GUC(true, nestlevel);
}

/*
 * alter_job(name text, target regclass, query text, command text, date_column text,
 * period interval, timezone text, method text, on_empty text, audit text,
 * if_running text, create_partition boolean, ignore_columns text[], key text[],
 * version text, keep_previous boolean, reset text[]) returns void
 */
Datum
iload_alter_job(PG_FUNCTION_ARGS)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "idempotent_load", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	Oid			schema = get_func_namespace(fcinfo->flinfo->fn_oid);
	Bitmapset  *reset = read_reset(fcinfo);
	IloadJob   *job;

	iload_argument_require(fcinfo, ARG_NAME, "name");
	job = iload_job_lock(schema, iload_argument_text(fcinfo, ARG_NAME));
	check_kind(fcinfo, job);
	if (!PG_ARGISNULL(ARG_TARGET))
		job->target = PG_GETARG_OID(ARG_TARGET);
	job->text = alter_text(fcinfo, NULL,
						   job->kind == ILOAD_JOB_QUERY ? ARG_QUERY : ARG_COMMAND, job->text);
	alter_options(fcinfo, reset, job);
	check_in_environment(fcinfo, reset, job);
	iload_job_update(schema, job);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	PG_RETURN_VOID();
}
