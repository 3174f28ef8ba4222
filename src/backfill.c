/*
 * backfill.c
 *		The procedure backfill: a job for each date of a range, with a commit a slice.
 *
 * The leader is the session that calls it.  It runs the slices itself, or waits for its
 * workers to run them, and tells about each: to the caller as a notice, to other sessions
 * in the table backfills, and to who listens.
 *
 * What must outlive the commits lives in the context of the procedure's SPI level.
 * While waiting, the leader is in a transaction that has neither an ID nor a snapshot.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "commands/async.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/procarray.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/json.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "argument.h"
#include "backfill_log.h"
#include "backfill_pace.h"
#include "backfill_preview.h"
#include "backfill_task.h"
#include "backfill_worker.h"
#include "lag.h"
#include "method.h"

PG_FUNCTION_INFO_V1(iload_backfill);

/* More slices than these are a mistake in the dates. */
#define MAX_TASKS	100000
/* The row in the table is brought up to date so often, in milliseconds. */
#define LOG_INTERVAL 1000
/* Dates that an error message lists. */
#define MAX_LISTED	10

/* The arguments. */
typedef struct BackfillArgs
{
	char	   *job;
	DateADT		from;
	DateADT		to;
	int			workers;
	int64		pause;			/* microseconds */
	bool		newest_first;
	bool		stop_on_error;
	bool		dry_run;
	int64		lag_bytes;
	int64		lag_time;
	bool		resume;
	char	   *run_id;			/* or NULL */
} BackfillArgs;

/* A backfill that is going on, as its leader knows it. */
typedef struct Leader
{
	const BackfillArgs *args;
	IloadJob   *job;
	IloadBackfill *backfill;
	IloadWorkers *workers;		/* NULL where it runs the slices itself */
	bool		locked;			/* see backfill_log.c */
	TimestampTz started;
	TimestampTz logged;
} Leader;

/*
 * A backfill commits, so it cannot be called where somebody else is to decide on that: a
 * caller within the server, or a client that has sent statements before it in one pipeline,
 * which are one transaction with it.  Said before any work.
 */
static void
check_may_commit(FunctionCallInfo fcinfo)
{
	CallContext *context = (CallContext *) fcinfo->context;

	if (context != NULL && IsA(context, CallContext) && !context->atomic &&
		(MyXactFlags & XACT_FLAGS_PIPELINING) == 0)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
			 errmsg("backfill cannot run inside a transaction block"),
			 errdetail("It commits after each slice."),
			 errhint("Use autocommit, and CALL it as the only statement: not in a function, nor in a procedure with SET or SECURITY DEFINER.")));
}

static int64
microseconds(const Interval *interval)
{
	return interval->time +
		(interval->day + (int64) interval->month * DAYS_PER_MONTH) * USECS_PER_DAY;
}

static BackfillArgs *
read_args(FunctionCallInfo fcinfo)
{
	static const char *const firsts[] = {"oldest", "newest", NULL};
	static const char *const on_errors[] = {"stop", "continue", NULL};
	BackfillArgs *args = palloc0(sizeof(BackfillArgs));

	iload_argument_require(fcinfo, 0, "job");
	iload_argument_require(fcinfo, 1, "from_date");
	iload_argument_require(fcinfo, 2, "to_date");
	args->job = iload_argument_text(fcinfo, 0);
	args->from = PG_GETARG_DATEADT(1);
	args->to = PG_GETARG_DATEADT(2);
	args->workers = PG_ARGISNULL(3) ? 1 : PG_GETARG_INT32(3);
	args->pause = PG_ARGISNULL(4) ? 0 : microseconds(PG_GETARG_INTERVAL_P(4));
	args->newest_first = iload_argument_word("first", iload_argument_text(fcinfo, 5), firsts) == 1;
	args->stop_on_error = iload_argument_word("on_error", iload_argument_text(fcinfo, 6), on_errors) == 0;
	args->dry_run = !PG_ARGISNULL(7) && PG_GETARG_BOOL(7);
	iload_lag_parse(iload_argument_text(fcinfo, 8), &args->lag_bytes, &args->lag_time);
	args->resume = !PG_ARGISNULL(9) && PG_GETARG_BOOL(9);
	args->run_id = iload_argument_text(fcinfo, 10);
	if (DATE_NOT_FINITE(args->from) || DATE_NOT_FINITE(args->to) || args->from > args->to)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("from_date must not be after to_date, and both must be finite"),
				 errdetail("Both dates are part of the range.")));
	if (args->pause < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("pause must not be negative")));
	if (args->workers < 1 || args->workers > max_worker_processes)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("workers must be between 1 and max_worker_processes (%d)", max_worker_processes)));
	return args;
}

/* The first day of the slice after the one that begins at a date. */
static DateADT
next_date(DateADT date, Interval *period)
{
	Datum		end;

	if (period == NULL)
		return date + 1;
	end = DirectFunctionCall2(date_pl_interval, DateADTGetDatum(date), IntervalPGetDatum(period));
	return DatumGetDateADT(DirectFunctionCall1(timestamp_date, end));
}

/* The dates of the slices, oldest first. */
static List *
list_dates(const Leader *leader)
{
	Interval   *period = leader->job->kind == ILOAD_JOB_QUERY ? leader->job->period : NULL;
	List	   *dates = NIL;
	DateADT		date = leader->args->from;

	while (date <= leader->args->to)
	{
		DateADT		next = next_date(date, period);

		if (next <= date)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("cannot backfill job \"%s\", whose period is less than a day",
							leader->job->name)));
		dates = lappend_int(dates, date);
		if (list_length(dates) > MAX_TASKS)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("cannot backfill more than %d slices at once", MAX_TASKS)));
		date = next;
	}
	return dates;
}

/* Allocate the backfill, in shared memory if there are to be workers, and fill it in. */
static void
prepare(Leader *leader, Oid schema)
{
	const BackfillArgs *args = leader->args;
	List	   *dates = list_dates(leader);
	int			n = list_length(dates);
	IloadBackfill *backfill;

	if (args->workers > 1 && !args->dry_run)
	{
		leader->workers = iload_workers_prepare(n, leader->job->name, args->run_id);
		backfill = dsm_segment_address(leader->workers->segment);
	}
	else
		backfill = palloc0(offsetof(IloadBackfill, tasks) + n * sizeof(IloadTask));
	leader->backfill = backfill;
	backfill->schema = schema;
	backfill->resume = args->resume;
	backfill->stop_on_error = args->stop_on_error;
	backfill->pause = args->pause;
	backfill->lag_bytes = args->lag_bytes;
	backfill->lag_time = args->lag_time;
	pg_atomic_init_u32(&backfill->next, 0);
	pg_atomic_init_u32(&backfill->stop, 0);
	backfill->ntasks = n;
	for (int i = 0; i < n; i++)
	{
		IloadTask  *task = &backfill->tasks[i];

		memset(task, 0, sizeof(IloadTask));
		pg_atomic_init_u32(&task->state, ILOAD_TASK_WAITING);
		task->date = list_nth_int(dates, args->newest_first ? n - 1 - i : i);
	}
}

static int
count_tasks(const Leader *leader, IloadTaskState state)
{
	int			n = 0;

	for (int i = 0; i < leader->backfill->ntasks; i++)
		n += iload_task_state(&leader->backfill->tasks[i]) == state;
	return n;
}

/* How many slices have come to an end. */
static int
count_ended(const Leader *leader)
{
	return count_tasks(leader, ILOAD_TASK_DONE) + count_tasks(leader, ILOAD_TASK_SKIPPED) +
		count_tasks(leader, ILOAD_TASK_FAILED);
}

static bool
all_ended(const Leader *leader)
{
	return count_ended(leader) == leader->backfill->ntasks;
}

/* "18 of 30, about 12 s left" */
static char *
progress_text(const Leader *leader)
{
	int			ended = count_ended(leader);
	int			left = leader->backfill->ntasks - ended;
	double		elapsed = (GetCurrentTimestamp() - leader->started) / (double) USECS_PER_SEC;

	return psprintf("%d of %d, about %.0f s left", ended, leader->backfill->ntasks,
					elapsed / ended * left);
}

/* Tell the caller of a slice that has ended. */
static void
report_task(Leader *leader, IloadTask *task)
{
	char	   *date = iload_task_date(task);
	char	   *progress = progress_text(leader);

	task->reported = true;
	switch (iload_task_state(task))
	{
		case ILOAD_TASK_FAILED:
			ereport(WARNING,
					(errmsg("%s: failed: %s (%s)", date, task->message, progress)));
			break;
		case ILOAD_TASK_SKIPPED:
			ereport(NOTICE,
					(errmsg("%s: done before (%s)", date, progress)));
			break;
		default:
			if (task->is_load)
				ereport(NOTICE,
						(errmsg("%s: " UINT64_FORMAT " rows, %s, inserted " UINT64_FORMAT
								", deleted " UINT64_FORMAT ", updated " UINT64_FORMAT " (%s)",
								date, task->rows, iload_method_name(task->method),
								task->inserted, task->deleted, task->updated, progress)));
			else
				ereport(NOTICE,
						(errmsg("%s: done (%s)", date, progress)));
			break;
	}
}

/* Tell who listens that the backfill starts, or has ended. */
static void
notify(const Leader *leader, const char *event)
{
	StringInfoData payload;

	initStringInfo(&payload);
	appendStringInfo(&payload, "{\"event\":\"%s\",\"backfill\":" INT64_FORMAT ",\"job\":",
					 event, leader->backfill->id);
	escape_json(&payload, leader->job->name);
	appendStringInfo(&payload, ",\"total\":%d,\"done\":%d,\"failed\":%d}",
					 leader->backfill->ntasks,
					 count_tasks(leader, ILOAD_TASK_DONE) + count_tasks(leader, ILOAD_TASK_SKIPPED),
					 count_tasks(leader, ILOAD_TASK_FAILED));
	Async_Notify("idempotent_load", payload.data);
}

/* Bring the row in the table up to date, in the present transaction. */
static void
update_log(Leader *leader, const char *state)
{
	PushActiveSnapshot(GetTransactionSnapshot());
	iload_backfill_log_update(leader->backfill, state);
	PopActiveSnapshot();
	leader->logged = GetCurrentTimestamp();
}

static bool
log_is_due(const Leader *leader)
{
	return TimestampDifferenceExceeds(leader->logged, GetCurrentTimestamp(), LOG_INTERVAL);
}

/* Make the row in the table, and hold the lock that says that it is true. */
static void
start(Leader *leader)
{
	IloadBackfill *backfill = leader->backfill;

	PushActiveSnapshot(GetTransactionSnapshot());
	backfill->id = iload_backfill_log_insert(backfill, leader->job, leader->args->from,
											 leader->args->to, leader->args->workers);
	PopActiveSnapshot();
	notify(leader, "start");
	iload_backfill_lock(backfill->id);
	leader->locked = true;
	SPI_commit();
	leader->started = leader->logged = GetCurrentTimestamp();
}

/* Run the slices in this session. */
static void
run_alone(Leader *leader)
{
	IloadBackfill *backfill = leader->backfill;
	IloadTask  *task;

	while ((task = iload_task_claim(backfill)) != NULL)
	{
		IloadTaskState state = iload_task_run(backfill, leader->job, task);

		/* nobody else reads it here, and the row is to count this slice too */
		iload_task_finish(backfill, task, state);
		update_log(leader, "running");
		SPI_commit();
		report_task(leader, task);
		if (state != ILOAD_TASK_SKIPPED)
		{
			iload_backfill_pace(backfill);

			/*
			 * standbys were looked at with a snapshot that is not the next
			 * slice's
			 */
			SPI_commit();
		}
		iload_backfill_check_client();
	}
}

static void
report_ended(Leader *leader)
{
	for (int i = 0; i < leader->backfill->ntasks; i++)
	{
		IloadTask  *task = &leader->backfill->tasks[i];

		if (!task->reported && iload_task_state(task) > ILOAD_TASK_RUNNING)
			report_task(leader, task);
	}
}

/* Has a worker begun a slice that, since it was ended by somebody, it will not finish? */
static bool
is_orphan(const IloadTask *task)
{
	return iload_task_state(task) == ILOAD_TASK_RUNNING &&
		BackendPidGetProc(task->pid) == NULL &&
	/* it may have finished the slice, and ended, since */
		iload_task_state(task) == ILOAD_TASK_RUNNING;
}

/* Such slices have failed.  Commits. */
static void
fail_orphans(Leader *leader)
{
	ErrorData	error = {
		.sqlerrcode = ERRCODE_ADMIN_SHUTDOWN,
		.message = "the worker ended before the slice was done",
		.hint = "The server's log tells why."
	};

	for (int i = 0; i < leader->backfill->ntasks; i++)
	{
		IloadTask  *task = &leader->backfill->tasks[i];

		if (!is_orphan(task))
			continue;
		PushActiveSnapshot(GetTransactionSnapshot());
		iload_task_fail(leader->backfill, leader->job, task, &error);
		PopActiveSnapshot();
		SPI_commit();
		iload_task_finish(leader->backfill, task, ILOAD_TASK_FAILED);
	}
}

/* Let workers run the slices, and tell of each. */
static void
run_workers(Leader *leader)
{
	IloadBackfill *backfill = leader->backfill;

	iload_workers_start(leader->workers, backfill, Min(leader->args->workers, backfill->ntasks));
	while (iload_workers_are_running(leader->workers))
	{
		iload_backfill_wait(LOG_INTERVAL);
		fail_orphans(leader);
		report_ended(leader);
		if (log_is_due(leader))
		{
			update_log(leader, "running");
			SPI_commit();
		}
	}
	fail_orphans(leader);
	report_ended(leader);
}

/* Tell what would change, and write nothing. */
static void
run_dry(Leader *leader)
{
	if (leader->job->kind != ILOAD_JOB_QUERY)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("job \"%s\" has no query, so it cannot be run dry", leader->job->name),
				 errdetail("Of a command it is not known beforehand what it will write.")));
	if (leader->job->options.method == ILOAD_METHOD_MERGE)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("job \"%s\" merges, so it cannot be run dry", leader->job->name),
				 errdetail("A preview compares the slice with the query's rows alone.")));
	for (int i = 0; i < leader->backfill->ntasks; i++)
	{
		iload_backfill_preview(leader->job, &leader->backfill->tasks[i]);
		iload_backfill_check_client();
	}
}

/* The dates of the slices in a state, as a list for a message. */
static char *
dates_text(const Leader *leader, IloadTaskState state)
{
	StringInfoData text;
	int			n = 0;

	initStringInfo(&text);
	for (int i = 0; i < leader->backfill->ntasks; i++)
	{
		const IloadTask *task = &leader->backfill->tasks[i];

		if (iload_task_state(task) != state)
			continue;
		if (n < MAX_LISTED)
			appendStringInfo(&text, "%s%s", n > 0 ? ", " : "", iload_task_date(task));
		n++;
	}
	if (n > MAX_LISTED)
		appendStringInfo(&text, " and %d more", n - MAX_LISTED);
	return n == 0 ? pstrdup("none") : text.data;
}

/* "Done: 18 of 30 slices. Failed: 2026-08-19. Left: ..." */
static char *
outcome_text(const Leader *leader)
{
	return psprintf("Done: %d of %d slices. Failed: %s. Left: %s.",
					count_tasks(leader, ILOAD_TASK_DONE) + count_tasks(leader, ILOAD_TASK_SKIPPED),
					leader->backfill->ntasks,
					dates_text(leader, ILOAD_TASK_FAILED), dates_text(leader, ILOAD_TASK_WAITING));
}

/*
 * Where slices have failed, or were left by workers that ended, that is an error at last,
 * so that the caller notices.
 */
static void
raise_failure(const Leader *leader)
{
	const IloadTask *failed = NULL;

	for (int i = 0; i < leader->backfill->ntasks && failed == NULL; i++)
	{
		if (iload_task_state(&leader->backfill->tasks[i]) == ILOAD_TASK_FAILED)
			failed = &leader->backfill->tasks[i];
	}
	if (failed == NULL && all_ended(leader))
		return;
	if (failed == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_ADMIN_SHUTDOWN),
				 errmsg("the workers of the backfill of job \"%s\" ended before all slices were done",
						leader->job->name),
				 errdetail("%s", outcome_text(leader)),
				 errhint("The server's log tells why.")));
	ereport(ERROR,
			(errcode(failed->sqlstate),
			 errmsg("backfill of job \"%s\" failed at %s: %s", leader->job->name,
					iload_task_date(failed), failed->message),
			 errdetail("%s", outcome_text(leader)),
			 errhint("Slices that are done stay done. Mend the cause and call it again; with resume => true these are skipped."),
			 iload_errfields(&failed->fields)));
}

/* All slices have ended, or no more are run. */
static void
end(Leader *leader)
{
	bool		failed = count_tasks(leader, ILOAD_TASK_FAILED) > 0 || !all_ended(leader);

	update_log(leader, failed ? "failed" : "done");
	notify(leader, "end");
	SPI_commit();
}

static void
run_slices(Leader *leader)
{
	start(leader);
	if (leader->workers == NULL)
		run_alone(leader);
	else
		run_workers(leader);
	end(leader);
	raise_failure(leader);
}

/* However it ends, no worker and no lock is left. */
static void
clean_up(Leader *leader)
{
	/* the backfill itself may be gone with the workers' memory */
	if (leader->locked)
		iload_backfill_unlock(leader->backfill->id);
	if (leader->workers != NULL)
		iload_workers_end(leader->workers);
}

static void
run(Leader *leader)
{
	PG_TRY();
	{
		run_slices(leader);
	}
	PG_CATCH();
	{
		clean_up(leader);
		PG_RE_THROW();
	}
	PG_END_TRY();
	clean_up(leader);
}

/*
 * backfill(job text, from_date date, to_date date, workers integer, pause interval,
 * first text, on_error text, dry_run boolean, max_lag text, resume boolean,
 * run_id text)
 */
Datum
iload_backfill(PG_FUNCTION_ARGS)
{
	Oid			schema = get_func_namespace(fcinfo->flinfo->fn_oid);
	Leader	   *leader;
	BackfillArgs *args;

	if (PG_ARGISNULL(7) || !PG_GETARG_BOOL(7))
		check_may_commit(fcinfo);
	SPI_connect_ext(SPI_OPT_NONATOMIC);
	args = read_args(fcinfo);
	leader = palloc0(sizeof(Leader));
	leader->args = args;

	/* the caller's snapshot may be older than what his procedure has done */
	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
	leader->job = iload_job_find(schema, args->job);
	leader->job->options.run_id = args->run_id;
	PopActiveSnapshot();
	prepare(leader, schema);
	if (args->dry_run)
		run_dry(leader);
	else
		run(leader);
	SPI_finish();
	PG_RETURN_VOID();
}
