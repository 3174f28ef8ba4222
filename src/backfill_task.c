/*
 * backfill_task.c
 *		The slices of a backfill, which its leader and its workers share.
 *
 * A slice is one run of the job in a transaction of its own.  The run is a
 * subtransaction within it, so that its failure can be put on record in the same
 * transaction.  Whoever listens to the channel "idempotent_load" is told at its commit.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "commands/async.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/json.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "attempt.h"
#include "backfill_task.h"
#include "constraints.h"
#include "failure.h"
#include "history.h"
#include "job_run.h"
#include "method.h"
#include "target.h"

/* Claim the next slice; NULL where there is none, or no more are to be done. */
IloadTask *
iload_task_claim(IloadBackfill *backfill)
{
	uint32		n;

	if (pg_atomic_read_u32(&backfill->stop) != 0)
		return NULL;
	n = pg_atomic_fetch_add_u32(&backfill->next, 1);
	if (n >= (uint32) backfill->ntasks)
		return NULL;
	backfill->tasks[n].pid = MyProcPid;
	pg_write_barrier();
	pg_atomic_write_u32(&backfill->tasks[n].state, ILOAD_TASK_RUNNING);
	return &backfill->tasks[n];
}

IloadTaskState
iload_task_state(const IloadTask *task)
{
	IloadTaskState state = pg_atomic_read_u32((pg_atomic_uint32 *) &task->state);

	/* the other fields were written before */
	pg_read_barrier();
	return state;
}

/* The slice is committed: tell its state, and stop the others if it has failed. */
void
iload_task_finish(IloadBackfill *backfill, IloadTask *task, IloadTaskState state)
{
	pg_write_barrier();
	pg_atomic_write_u32(&task->state, state);
	if (state == ILOAD_TASK_FAILED && backfill->stop_on_error)
		pg_atomic_write_u32(&backfill->stop, 1);
}

/* The date in ISO style, whatever the DateStyle. */
char *
iload_task_date(const IloadTask *task)
{
	return JsonEncodeDateTime(NULL, DateADTGetDatum(task->date), DATEOID, NULL);
}

/* A run of a slice. */
typedef struct TaskRun
{
	const IloadBackfill *backfill;
	const IloadJob *job;
	IloadTask  *task;
} TaskRun;

static void
run_task(void *arg)
{
	TaskRun    *run = arg;
	IloadTask  *task = run->task;
	IloadResult *result = iload_job_run(run->backfill->schema, run->job, task->date);

	/* an error at the commit could not be put on record */
	iload_constraints_check();
	task->is_load = result != NULL;
	if (result == NULL)
		return;
	task->method = result->method;
	task->rows = result->rows;
	task->inserted = result->inserted;
	task->deleted = result->deleted;
	task->updated = result->updated;
}

/* Tell who listens that the slice has changed. */
static void
notify(const IloadBackfill *backfill, const IloadJob *job, const IloadTask *task)
{
	StringInfoData payload;

	if (task->is_load && task->inserted + task->deleted + task->updated == 0)
		return;
	initStringInfo(&payload);
	appendStringInfo(&payload, "{\"event\":\"slice\",\"backfill\":" INT64_FORMAT ",\"job\":",
					 backfill->id);
	escape_json(&payload, job->name);
	appendStringInfo(&payload, ",\"date\":\"%s\"", iload_task_date(task));
	if (task->is_load)
		appendStringInfo(&payload, ",\"method\":\"%s\",\"rows\":" UINT64_FORMAT ",\"inserted\":"
						 UINT64_FORMAT ",\"deleted\":" UINT64_FORMAT ",\"updated\":" UINT64_FORMAT,
						 iload_method_name(task->method), task->rows, task->inserted, task->deleted,
						 task->updated);
	appendStringInfoChar(&payload, '}');
	Async_Notify("idempotent_load", payload.data);
}

/* Was the slice last loaded by this very query, and by this definition? */
static bool
is_done(const IloadBackfill *backfill, const IloadJob *job, const IloadTask *task)
{
	return job->kind == ILOAD_JOB_QUERY &&
		iload_history_has_date(backfill->schema, job->target, task->date, job->text,
							   job->timezone);
}

/*
 * Keep the error of a slice for the leader, and for good, in the present transaction.
 * Needs an active snapshot.
 */
void
iload_task_fail(const IloadBackfill *backfill, const IloadJob *job, IloadTask *task,
				const ErrorData *error)
{
	IloadFailure failure = {
		.target = job->kind == ILOAD_JOB_QUERY ? job->target : InvalidOid,
		.job = job->name,
		.date = task->date,
		.run_id = job->options.run_id,
		.error = error
	};

	task->sqlstate = error->sqlerrcode;
	strlcpy(task->message, error->message,
			pg_mbcliplen(error->message, strlen(error->message), sizeof(task->message) - 1) + 1);
	iload_error_fields_get(error, &task->fields);
	iload_failure_record(backfill->schema, &failure);
}

/*
 * Run the job for a slice, in the present transaction, which the caller commits.  A
 * failure is put on record; a cancel is an error.
 */
IloadTaskState
iload_task_run(const IloadBackfill *backfill, const IloadJob *job, IloadTask *task)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "idempotent_load slice",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	TaskRun		run = {backfill, job, task};
	IloadTaskState state = ILOAD_TASK_DONE;
	ErrorData  *error;

	PushActiveSnapshot(GetTransactionSnapshot());
	if (backfill->resume && is_done(backfill, job, task))
		state = ILOAD_TASK_SKIPPED;
	else
	{
		error = iload_attempt(run_task, &run);
		if (error == NULL)
			notify(backfill, job, task);
		else
		{
			state = ILOAD_TASK_FAILED;
			iload_task_fail(backfill, job, task, error);
		}
	}
	PopActiveSnapshot();
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return state;
}
