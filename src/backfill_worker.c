/*
 * backfill_worker.c
 *		The workers of a backfill.
 *
 * Leader and workers share a segment of dynamic memory: the tasks, and behind them the
 * name of the job and the leader's settings.  A worker claims one task after the other,
 * each in a transaction of its own, as the leader's user and with its settings, and wakes
 * the leader after each.
 *
 * A worker ends with its leader: when the leader detaches from the segment, in whatever
 * way it ends, it has the postmaster terminate its workers.
 */
#include "postgres.h"

#include "access/xact.h"
#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"

#include "backfill_pace.h"
#include "backfill_worker.h"

extern PGDLLEXPORT void iload_backfill_worker_main(Datum arg);

/*
 * Make the segment for a backfill, and attach it for the leader.  It stays attached over
 * the ends of transactions, until iload_workers_end.
 *
 * A leader that is terminated loses its other contexts before the segment, so what it
 * knows of its workers is in TopMemoryContext.
 */
IloadWorkers *
iload_workers_prepare(int ntasks, const char *job, const char *run_id)
{
	Size		job_offset = offsetof(IloadBackfill, tasks) + ntasks * sizeof(IloadTask);
	Size		run_id_offset = job_offset + strlen(job) + 1;
	Size		gucs_offset = MAXALIGN(run_id_offset + (run_id != NULL ? strlen(run_id) + 1 : 0));
	Size		gucs_size = EstimateGUCStateSpace();
	IloadWorkers *workers = MemoryContextAllocZero(TopMemoryContext, sizeof(IloadWorkers));
	IloadBackfill *backfill;

	workers->segment = dsm_create(gucs_offset + gucs_size, 0);
	dsm_pin_mapping(workers->segment);
	backfill = dsm_segment_address(workers->segment);
	memset(backfill, 0, offsetof(IloadBackfill, tasks));
	backfill->database = MyDatabaseId;
	backfill->authenticated_user = GetAuthenticatedUserId();
	GetUserIdAndSecContext(&backfill->user, &backfill->security_context);
	backfill->leader = MyProc;
	backfill->job_offset = job_offset;
	backfill->gucs_offset = gucs_offset;
	strcpy((char *) backfill + job_offset, job);
	if (run_id != NULL)
	{
		backfill->run_id_offset = run_id_offset;
		strcpy((char *) backfill + run_id_offset, run_id);
	}
	SerializeGUCState(gucs_size, (char *) backfill + gucs_offset);
	return workers;
}

/* The leader is about to be gone from the segment. */
static void
terminate_workers(dsm_segment *segment, Datum arg)
{
	IloadWorkers *workers = (IloadWorkers *) DatumGetPointer(arg);

	for (int i = 0; i < workers->n; i++)
		TerminateBackgroundWorker(workers->handles[i]);
}

/*
 * Start up to "n" workers.
 *
 * Errors: not even one could be started.
 */
void
iload_workers_start(IloadWorkers *workers, IloadBackfill *backfill, int n)
{
	BackgroundWorker worker = {0};
	MemoryContext old;

	snprintf(worker.bgw_name, BGW_MAXLEN, "idempotent_load backfill of \"%s\"",
			 (char *) backfill + backfill->job_offset);
	snprintf(worker.bgw_type, BGW_MAXLEN, "idempotent_load backfill");
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker.bgw_library_name, "idempotent_load", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "iload_backfill_worker_main", sizeof(worker.bgw_function_name));
	worker.bgw_main_arg = UInt32GetDatum(dsm_segment_handle(workers->segment));
	worker.bgw_notify_pid = MyProcPid;

	old = MemoryContextSwitchTo(TopMemoryContext);
	workers->handles = palloc(n * sizeof(BackgroundWorkerHandle *));
	on_dsm_detach(workers->segment, terminate_workers, PointerGetDatum(workers));
	while (workers->n < n &&
		   RegisterDynamicBackgroundWorker(&worker, &workers->handles[workers->n]))
		workers->n++;
	MemoryContextSwitchTo(old);
	if (workers->n == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("could not start a worker for the backfill"),
				 errhint("You might need to increase max_worker_processes, or use workers => 1.")));
	if (workers->n < n)
		ereport(WARNING,
				(errmsg("backfill has %d workers instead of %d", workers->n, n),
				 errhint("You might need to increase max_worker_processes.")));
}

bool
iload_workers_are_running(IloadWorkers *workers)
{
	for (int i = 0; i < workers->n; i++)
	{
		pid_t		pid;

		if (GetBackgroundWorkerPid(workers->handles[i], &pid) != BGWH_STOPPED)
			return true;
	}
	return false;
}

/* Terminate the workers that are still there, wait for their end, and free the segment. */
void
iload_workers_end(IloadWorkers *workers)
{
	/* first, since the wait can be interrupted; it terminates them */
	dsm_detach(workers->segment);
	for (int i = 0; i < workers->n; i++)
		(void) WaitForBackgroundWorkerShutdown(workers->handles[i]);
	for (int i = 0; i < workers->n; i++)
		pfree(workers->handles[i]);
	if (workers->handles != NULL)
		pfree(workers->handles);
	pfree(workers);
}

/* Take on the leader's user and settings, and find the job. */
static IloadJob *
prepare_worker(IloadBackfill *backfill)
{
	IloadJob   *job;
	MemoryContext old;

	BackgroundWorkerInitializeConnectionByOid(backfill->database, backfill->authenticated_user, 0);
	StartTransactionCommand();
	RestoreGUCState((char *) backfill + backfill->gucs_offset);
	CommitTransactionCommand();
	SetUserIdAndSecContext(backfill->user, backfill->security_context);

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	old = MemoryContextSwitchTo(TopMemoryContext);
	job = iload_job_find(backfill->schema, (char *) backfill + backfill->job_offset);
	MemoryContextSwitchTo(old);
	if (backfill->run_id_offset != 0)
		job->options.run_id = (char *) backfill + backfill->run_id_offset;
	PopActiveSnapshot();
	CommitTransactionCommand();
	return job;
}

static IloadTaskState
work(IloadBackfill *backfill, const IloadJob *job, IloadTask *task)
{
	IloadTaskState state;

	StartTransactionCommand();
	pgstat_report_activity(STATE_RUNNING, psprintf("backfill of job \"%s\": %s", job->name,
												   iload_task_date(task)));
	state = iload_task_run(backfill, job, task);
	CommitTransactionCommand();
	iload_task_finish(backfill, task, state);
	SetLatch(&backfill->leader->procLatch);
	pgstat_report_activity(STATE_IDLE, NULL);
	pgstat_report_stat(false);
	return state;
}

/* The process of a worker; the argument is the handle of the segment. */
void
iload_backfill_worker_main(Datum arg)
{
	dsm_segment *segment;
	IloadBackfill *backfill;
	IloadJob   *job;
	IloadTask  *task;

	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	CurrentResourceOwner = ResourceOwnerCreate(NULL, "idempotent_load backfill");
	segment = dsm_attach(DatumGetUInt32(arg));
	if (segment == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the leader of the backfill is gone")));
	dsm_pin_mapping(segment);
	backfill = dsm_segment_address(segment);

	job = prepare_worker(backfill);
	while ((task = iload_task_claim(backfill)) != NULL)
	{
		if (work(backfill, job, task) != ILOAD_TASK_SKIPPED)
			iload_backfill_pace(backfill);
	}
	dsm_detach(segment);
}
