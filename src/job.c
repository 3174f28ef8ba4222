/*
 * job.c
 *		The table jobs, and the SQL functions create_job and drop_job.
 *
 * A job is a named load (target, query and options) or a named command.  It pins
 * the environment in which it was made: TimeZone, DateStyle and search_path.  All
 * that can be known to be wrong without a run is refused when the job is made.
 *
 * A function or procedure that takes a date is a job without a row: its name is
 * its signature.  So no registered job has a parenthesis in its name.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/value.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "argument.h"
#include "command.h"
#include "job.h"
#include "merge_key.h"
#include "options.h"
#include "own_table.h"
#include "query.h"
#include "shape.h"
#include "target.h"

PG_FUNCTION_INFO_V1(iload_create_job);
PG_FUNCTION_INFO_V1(iload_drop_job);

#define JOB_TABLE	"jobs"

/* The columns that make up a job, in the order of JobColumn. */
#define JOB_COLUMNS \
	"name, target, query, command, date_column, period, timezone, datestyle, search_path," \
	" method, on_empty, audit, if_running, create_partition, ignore_columns," \
	" key, version, keep_previous"
#define JOB_PARAMETERS \
	"$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18"
#define JOB_NPARAMETERS 18

typedef enum JobColumn
{
	JOB_NAME = 1,
	JOB_TARGET,
	JOB_QUERY,
	JOB_COMMAND,
	JOB_DATE_COLUMN,
	JOB_PERIOD,
	JOB_TIMEZONE,
	JOB_DATESTYLE,
	JOB_SEARCH_PATH,
	JOB_METHOD,
	JOB_ON_EMPTY,
	JOB_AUDIT,
	JOB_IF_RUNNING,
	JOB_CREATE_PARTITION,
	JOB_IGNORE_COLUMNS,
	JOB_KEY,
	JOB_VERSION,
	JOB_KEEP_PREVIOUS
} JobColumn;

/* A column of type text[]; NIL where it is null. */
static List *
read_names(HeapTuple tup, TupleDesc desc, JobColumn column, const char *name)
{
	bool		isnull;
	Datum		value = SPI_getbinval(tup, desc, column, &isnull);

	return isnull ? NIL : iload_array_names(DatumGetArrayTypeP(value), name);
}

/* The options of a query job, from the row that SPI has read. */
static void
read_query_options(IloadJob *job, HeapTuple tup, TupleDesc desc)
{
	IloadOptions *options = &job->options;
	Datum		value;
	bool		isnull;

	job->target = DatumGetObjectId(SPI_getbinval(tup, desc, JOB_TARGET, &isnull));
	value = SPI_getbinval(tup, desc, JOB_PERIOD, &isnull);
	job->period = palloc(sizeof(Interval));
	*job->period = *DatumGetIntervalP(value);

	/* options->timezone is not set: the whole run is in the pinned one */
	options->date_column = SPI_getvalue(tup, desc, JOB_DATE_COLUMN);
	iload_options_set_words(options, iload_job_methods,
							SPI_getvalue(tup, desc, JOB_METHOD),
							SPI_getvalue(tup, desc, JOB_ON_EMPTY),
							SPI_getvalue(tup, desc, JOB_IF_RUNNING));
	options->audit = SPI_getvalue(tup, desc, JOB_AUDIT);
	options->create_partition =
		DatumGetBool(SPI_getbinval(tup, desc, JOB_CREATE_PARTITION, &isnull));
	options->ignore_columns = read_names(tup, desc, JOB_IGNORE_COLUMNS, "ignore_columns");
	options->key = read_names(tup, desc, JOB_KEY, "key");
	options->version = SPI_getvalue(tup, desc, JOB_VERSION);
	options->keep_previous =
		DatumGetBool(SPI_getbinval(tup, desc, JOB_KEEP_PREVIOUS, &isnull));
}

/* A job from the row that SPI has read. */
static IloadJob *
read_row(HeapTuple tup, TupleDesc desc)
{
	IloadJob   *job = palloc0(sizeof(IloadJob));
	char	   *query = SPI_getvalue(tup, desc, JOB_QUERY);

	job->name = SPI_getvalue(tup, desc, JOB_NAME);
	job->timezone = SPI_getvalue(tup, desc, JOB_TIMEZONE);
	job->datestyle = SPI_getvalue(tup, desc, JOB_DATESTYLE);
	job->search_path = SPI_getvalue(tup, desc, JOB_SEARCH_PATH);
	if (query != NULL)
	{
		job->kind = ILOAD_JOB_QUERY;
		job->text = query;
		read_query_options(job, tup, desc);
	}
	else
	{
		job->kind = ILOAD_JOB_COMMAND;
		job->text = SPI_getvalue(tup, desc, JOB_COMMAND);
	}
	return job;
}

/*
 * The registered job of a name, or NULL.  It is read as the active snapshot sees it, or,
 * where "latest", as it is now: the row has been locked.
 */
static IloadJob *
find_registered(Oid schema, const char *name, bool latest)
{
	MemoryContext context = CurrentMemoryContext;
	IloadOwnValues values = {0};
	IloadJob   *job = NULL;

	SPI_connect();
	iload_own_values_add_text(&values, name);
	iload_own_table_execute(schema, JOB_TABLE,
							psprintf("SELECT " JOB_COLUMNS " FROM %s"
									 " WHERE name OPERATOR(pg_catalog.=) $1",
									 iload_own_table_name(schema, JOB_TABLE)),
							&values, !latest, SPI_OK_SELECT);
	if (SPI_processed == 1)
	{
		MemoryContextSwitchTo(context);
		job = read_row(SPI_tuptable->vals[0], SPI_tuptable->tupdesc);
	}
	SPI_finish();
	return job;
}

/* Why a function or procedure cannot be a job, or NULL. */
static const char *
function_refusal(HeapTuple tup)
{
	Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(tup);

	if (proc->prokind != PROKIND_FUNCTION && proc->prokind != PROKIND_PROCEDURE)
		return "It is an aggregate or a window function.";
	if (proc->prorettype == TRIGGEROID || proc->prorettype == EVENT_TRIGGEROID)
		return "It is a trigger function.";
	if (OidIsValid(proc->provariadic))
		return "Its last argument is VARIADIC.";
	if (proc->pronargs != 1 || proc->proargtypes.values[0] != DATEOID)
		return "It does not take exactly one argument, of type date.";
	/* the modes are stored only where some argument is not IN */
	if (proc->prokind == PROKIND_PROCEDURE &&
		!heap_attisnull(tup, Anum_pg_proc_proargmodes, NULL))
		return "It has OUT or INOUT arguments.";
	return NULL;
}

/*
 * The function or procedure of a signature, as a job.
 *
 * Errors: there is none, it takes something else than a date, the caller may not
 * execute it.
 */
static IloadJob *
find_function(const char *signature)
{
	Oid			oid = DatumGetObjectId(DirectFunctionCall1(regprocedurein,
														   CStringGetDatum(signature)));
	HeapTuple	tup = SearchSysCache1(PROCOID, ObjectIdGetDatum(oid));
	Form_pg_proc proc;
	IloadJob   *job;
	const char *detail;

	if (!HeapTupleIsValid(tup))
		elog(ERROR, "cache lookup failed for function %u", oid);
	detail = function_refusal(tup);
	if (detail != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" cannot be run as a job", signature),
				 errdetail_internal("%s", detail),
				 errhint("A job is a function or procedure that takes one date.")));
	proc = (Form_pg_proc) GETSTRUCT(tup);
	if (!DatumGetBool(DirectFunctionCall2(has_function_privilege_id, ObjectIdGetDatum(oid),
										  CStringGetTextDatum("EXECUTE"))))
		aclcheck_error(ACLCHECK_NO_PRIV,
					   proc->prokind == PROKIND_PROCEDURE ? OBJECT_PROCEDURE : OBJECT_FUNCTION,
					   NameStr(proc->proname));

	job = palloc0(sizeof(IloadJob));
	job->kind = ILOAD_JOB_FUNCTION;
	job->function = oid;
	job->name = psprintf("%s(date)",
						 quote_qualified_identifier(get_namespace_name(proc->pronamespace),
													NameStr(proc->proname)));
	ReleaseSysCache(tup);
	return job;
}

/*
 * The job of a name: a registered one, else the function or procedure whose
 * signature it is.  "schema" is the extension's.  The result lives in the current
 * context.  Needs an active snapshot.
 *
 * Errors: there is no such job, and those of find_function.
 */
IloadJob *
iload_job_find(Oid schema, const char *name)
{
	IloadJob   *job = find_registered(schema, name, false);

	if (job != NULL)
		return job;
	if (strchr(name, '(') == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("job \"%s\" does not exist", name),
				 errhint("Names of jobs are in the table %s; a function is named by its signature, as in 'etl.load_payouts(date)'.",
						 iload_own_table_name(schema, JOB_TABLE))));
	return find_function(name);
}

/* Names become a parameter of type text[]; NIL is a null. */
static void
add_names(IloadOwnValues *values, List *names)
{
	Datum	   *elements = palloc(list_length(names) * sizeof(Datum));
	ArrayType  *array;
	ListCell   *lc;

	foreach(lc, names)
		elements[foreach_current_index(lc)] = CStringGetTextDatum(strVal(lfirst(lc)));
	array = construct_array(elements, list_length(names), TEXTOID, -1, false, TYPALIGN_INT);
	iload_own_values_add(values, TEXTARRAYOID, PointerGetDatum(array), names == NIL);
}

/* A job becomes parameters; what is no part of a command is null. */
static void
fill_values(IloadOwnValues *values, const IloadJob *job)
{
	const IloadOptions *options = &job->options;
	bool		is_query = job->kind == ILOAD_JOB_QUERY;

	iload_own_values_add_text(values, job->name);
	iload_own_values_add(values, REGCLASSOID, ObjectIdGetDatum(job->target), !is_query);
	iload_own_values_add_text(values, is_query ? job->text : NULL);
	iload_own_values_add_text(values, is_query ? NULL : job->text);
	iload_own_values_add_text(values, options->date_column);
	iload_own_values_add(values, INTERVALOID, IntervalPGetDatum(job->period), !is_query);
	iload_own_values_add_text(values, job->timezone);
	iload_own_values_add_text(values, job->datestyle);
	iload_own_values_add_text(values, job->search_path);
	iload_own_values_add_text(values, is_query ? iload_method_name(options->method) : NULL);
	iload_own_values_add_text(values, is_query ? iload_options_on_empty(options) : NULL);
	iload_own_values_add_text(values, options->audit);
	iload_own_values_add_text(values, is_query ? iload_options_if_running(options) : NULL);
	iload_own_values_add(values, BOOLOID, BoolGetDatum(options->create_partition), !is_query);
	add_names(values, options->ignore_columns);
	add_names(values, options->key);
	iload_own_values_add_text(values, options->version);
	iload_own_values_add(values, BOOLOID, BoolGetDatum(options->keep_previous), !is_query);
	Assert(values->n == JOB_NPARAMETERS);
}

/* Insert the row of a job; false if there is one of that name. */
static bool
insert_row(Oid schema, const IloadJob *job)
{
	IloadOwnValues values = {0};
	bool		inserted;

	SPI_connect();
	fill_values(&values, job);
	iload_own_values_add_text(&values, GetUserNameFromId(GetUserId(), false));
	iload_own_values_add(&values, TIMESTAMPTZOID, TimestampTzGetDatum(GetCurrentTimestamp()),
						 false);
	iload_own_table_execute(schema, JOB_TABLE,
							psprintf("INSERT INTO %s (" JOB_COLUMNS ", created_by, created_at)"
									 " VALUES (" JOB_PARAMETERS ", $19, $20)"
									 " ON CONFLICT (name) DO NOTHING",
									 iload_own_table_name(schema, JOB_TABLE)),
							&values, false, SPI_OK_INSERT);
	inserted = SPI_processed == 1;
	SPI_finish();
	return inserted;
}

static void
check_name(const char *name)
{
	if (name[0] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_NAME),
				 errmsg("name of a job must not be empty")));
	if (strchr(name, '(') != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_NAME),
				 errmsg("name of job \"%s\" must not contain a parenthesis", name),
				 errdetail("Such a name is the signature of a function.")));
}

/* Either target and query, or command. */
static void
check_kind(FunctionCallInfo fcinfo)
{
	bool		target = !PG_ARGISNULL(1);
	bool		query = !PG_ARGISNULL(2);
	bool		command = !PG_ARGISNULL(3);

	if (target != query || query == command)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a job needs either target and query, or command"),
				 errhint("Pass target and query for a job that loads a table, and command for SQL text that does its own writing.")));
}

/*
 * Check what replace_partition checks before it runs the query.  The date makes no
 * difference to that, if it is the start of every period: a Monday and the first day
 * of a year.
 *
 * Locks: ACCESS SHARE on the target, to the end of the transaction.
 */
static void
check_query(const IloadJob *job)
{
	Relation	target = iload_target_open(job->target, AccessShareLock);
	IloadSliceArgs args = {.by_date = true,.period = job->period};
	IloadSlice *slice;
	IloadColumns *columns;

	args.date = date2j(2001, 1, 1) - POSTGRES_EPOCH_JDATE;
	slice = iload_slice_create(target, job->options.date_column, &args);
	columns = iload_columns_create(target, slice->key->name, job->options.ignore_columns);
	if (job->options.method == ILOAD_METHOD_MERGE)
		(void) iload_merge_key_create(target, slice, job->text, job->options.key,
									  job->options.version, &columns);
	(void) iload_shape_query(target, slice, columns, job->text);
	if (job->options.audit != NULL)
		(void) iload_query_parse(job->options.audit, "audit");
	table_close(target, NoLock);
}

/* A key is for a merge, and a merge needs one; to it no result is empty. */
static void
check_merge_options(const IloadJob *job)
{
	const IloadOptions *options = &job->options;

	if (options->method == ILOAD_METHOD_MERGE && options->key == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a job with method \"merge\" needs option \"key\""),
				 errhint("Pass the columns that tell one row from another.")));
	if (options->method == ILOAD_METHOD_MERGE && options->on_empty != ILOAD_EMPTY_ERROR)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"on_empty\" is not for a job with method \"merge\""),
				 errhint("A merge deletes no rows: an empty result changes nothing.")));
	if (options->method != ILOAD_METHOD_MERGE && (options->key != NIL || options->version != NULL))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"%s\" is only for a job with method \"merge\"",
						options->key != NIL ? "key" : "version")));
}

/* Options that say how a slice is loaded have no meaning for a command. */
static void
check_no_options(const IloadJob *job)
{
	const IloadOptions *options = &job->options;
	const Interval *period = job->period;
	const char *given = NULL;

	if (options->date_column != NULL)
		given = "date_column";
	else if (period->month != 0 || period->day != 1 || period->time != 0)
		given = "period";
	else if (options->method != ILOAD_METHOD_AUTO)
		given = "method";
	else if (options->on_empty != ILOAD_EMPTY_ERROR)
		given = "on_empty";
	else if (options->audit != NULL)
		given = "audit";
	else if (options->if_running != ILOAD_RUNNING_WAIT)
		given = "if_running";
	else if (!options->create_partition)
		given = "create_partition";
	else if (options->ignore_columns != NIL)
		given = "ignore_columns";
	else if (options->key != NIL)
		given = "key";
	else if (options->version != NULL)
		given = "version";
	else if (options->keep_previous)
		given = "keep_previous";
	if (given != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"%s\" is not for a job with a command", given),
				 errhint("It says how a slice is loaded by target and query.")));
}

/*
 * Check a job in the environment in which it will run, that of the session but for
 * the option timezone, and pin that.
 *
 * Errors: whatever can be known to be wrong without a run.
 */
void
iload_job_check_and_pin(IloadJob *job)
{
	int			nestlevel = NewGUCNestLevel();

	iload_slice_set_timezone(job->options.timezone);
	job->timezone = GetConfigOptionByName("TimeZone", NULL, false);
	job->datestyle = GetConfigOptionByName("DateStyle", NULL, false);
	job->search_path = GetConfigOptionByName("search_path", NULL, false);
	if (job->kind == ILOAD_JOB_QUERY)
	{
		check_merge_options(job);
		check_query(job);
	}
	else
	{
		check_no_options(job);
		iload_command_check(job->text, psprintf("command of job \"%s\"", job->name));
	}
	AtEOXact_GUC(true, nestlevel);
}

/* A job is altered and dropped by who owns it, as any object. */
static void
check_owner(Oid schema, const char *name, const char *created_by)
{
	Oid			creator = get_role_oid(created_by, true);

	if ((OidIsValid(creator) && has_privs_of_role(GetUserId(), creator)) ||
		has_privs_of_role(GetUserId(), iload_own_table_owner(schema, JOB_TABLE)))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied for job \"%s\"", name),
			 errdetail("It was created by role \"%s\".", created_by),
			 errhint("Members of that role and of the extension's owner, and superusers, may alter and drop it.")));
}

/*
 * Lock the row of a registered job, which the caller must own, so that it stays the
 * same job to the end of the transaction; false if there is none.
 */
static bool
lock_row(Oid schema, const char *name)
{
	IloadOwnValues values = {0};
	bool		found;

	SPI_connect();
	iload_own_values_add_text(&values, name);
	iload_own_table_execute(schema, JOB_TABLE,
							psprintf("SELECT created_by FROM %s"
									 " WHERE name OPERATOR(pg_catalog.=) $1 FOR UPDATE",
									 iload_own_table_name(schema, JOB_TABLE)),
							&values, false, SPI_OK_SELECT);
	found = SPI_processed == 1;
	if (found)
		check_owner(schema, name,
					SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1));
	SPI_finish();
	return found;
}

/*
 * The registered job of a name, to be altered by its owner.  Errors: there is none,
 * the caller does not own it.
 */
IloadJob *
iload_job_lock(Oid schema, const char *name)
{
	if (!lock_row(schema, name))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("job \"%s\" does not exist", name)));
	return find_registered(schema, name, true);
}

/* Change the row of a job, which has been locked. */
void
iload_job_update(Oid schema, const IloadJob *job)
{
	IloadOwnValues values = {0};

	SPI_connect();
	fill_values(&values, job);
	iload_own_table_execute(schema, JOB_TABLE,
							psprintf("UPDATE %s SET (" JOB_COLUMNS ") = (" JOB_PARAMETERS ")"
									 " WHERE name OPERATOR(pg_catalog.=) $1",
									 iload_own_table_name(schema, JOB_TABLE)),
							&values, false, SPI_OK_UPDATE);
	SPI_finish();
}

/*
 * Register a job, in place of the caller's own of that name if "or_replace".  Two sessions
 * that do so at once wait for each other, and the second one fails or replaces.
 */
static void
register_job(Oid schema, const IloadJob *job, bool or_replace)
{
	for (;;)
	{
		if (or_replace && lock_row(schema, job->name))
		{
			iload_job_update(schema, job);
			return;
		}
		if (insert_row(schema, job))
			return;
		if (!or_replace)
			ereport(ERROR,
					(errcode(ERRCODE_DUPLICATE_OBJECT),
					 errmsg("job \"%s\" already exists", job->name),
					 errhint("Use alter_job, or pass or_replace => true.")));
	}
}

/*
 * create_job(name text, target regclass, query text, command text,
 * date_column text, period interval, timezone text, method text, on_empty text,
 * audit text, if_running text, create_partition boolean, ignore_columns text[],
 * key text[], version text, keep_previous boolean, or_replace boolean) returns void
 */
Datum
iload_create_job(PG_FUNCTION_ARGS)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "idempotent_load", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	IloadJob	job = {0};

	iload_argument_require(fcinfo, 0, "name");
	job.name = iload_argument_text(fcinfo, 0);
	check_name(job.name);
	check_kind(fcinfo);
	job.options.date_column = iload_argument_text(fcinfo, 4);
	job.period = iload_argument_period(fcinfo, 5);
	iload_options_read(fcinfo, 6, iload_job_methods, &job.options);
	job.options.key = iload_argument_names(fcinfo, 13, "key");
	job.options.version = iload_argument_text(fcinfo, 14);
	job.options.keep_previous = !PG_ARGISNULL(15) && PG_GETARG_BOOL(15);
	if (PG_ARGISNULL(3))
	{
		job.kind = ILOAD_JOB_QUERY;
		job.target = PG_GETARG_OID(1);
		job.text = iload_argument_text(fcinfo, 2);
	}
	else
	{
		job.kind = ILOAD_JOB_COMMAND;
		job.text = iload_argument_text(fcinfo, 3);
	}
	iload_job_check_and_pin(&job);
	register_job(get_func_namespace(fcinfo->flinfo->fn_oid), &job,
				 !PG_ARGISNULL(16) && PG_GETARG_BOOL(16));
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	PG_RETURN_VOID();
}

/* Drop a registered job; false if there is none. */
static bool
delete_row(Oid schema, const char *name)
{
	IloadOwnValues values = {0};

	if (!lock_row(schema, name))
		return false;
	SPI_connect();
	iload_own_values_add_text(&values, name);
	iload_own_table_execute(schema, JOB_TABLE,
							psprintf("DELETE FROM %s WHERE name OPERATOR(pg_catalog.=) $1",
									 iload_own_table_name(schema, JOB_TABLE)),
							&values, false, SPI_OK_DELETE);
	SPI_finish();
	return true;
}

/* drop_job(name text, if_exists boolean) returns void */
Datum
iload_drop_job(PG_FUNCTION_ARGS)
{
	bool		if_exists = !PG_ARGISNULL(1) && PG_GETARG_BOOL(1);
	char	   *name;

	iload_argument_require(fcinfo, 0, "name");
	name = iload_argument_text(fcinfo, 0);
	if (!delete_row(get_func_namespace(fcinfo->flinfo->fn_oid), name))
	{
		if (!if_exists)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_OBJECT),
					 errmsg("job \"%s\" does not exist", name)));
		ereport(NOTICE,
				(errmsg("job \"%s\" does not exist, skipping", name)));
	}
	PG_RETURN_VOID();
}
