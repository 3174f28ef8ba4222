/*
 * backfill_task.h
 *		The slices of a backfill, which its leader and its workers share.
 */
#ifndef ILOAD_BACKFILL_TASK_H
#define ILOAD_BACKFILL_TASK_H

#include "port/atomics.h"
#include "storage/proc.h"
#include "utils/date.h"

#include "error_fields.h"
#include "job.h"

typedef enum IloadTaskState
{
	ILOAD_TASK_WAITING,
	ILOAD_TASK_RUNNING,
	ILOAD_TASK_DONE,
	ILOAD_TASK_SKIPPED,			/* it was done before, and is not to be done
								 * again */
	ILOAD_TASK_FAILED
} IloadTaskState;

/*
 * One slice.  Who has claimed it writes the other fields and, after them, the state;
 * "reported" is the leader's.
 */
typedef struct IloadTask
{
	pg_atomic_uint32 state;		/* IloadTaskState */
	bool		reported;
	DateADT		date;
	int			pid;			/* who has claimed it */
	bool		is_load;		/* of a query, so that the rest is known */
	IloadMethod method;
	uint64		rows;
	uint64		inserted;
	uint64		deleted;
	uint64		updated;
	int			sqlstate;		/* FAILED */
	char		message[256];
	IloadErrorFields fields;
} IloadTask;

/*
 * A backfill, in shared memory where there are workers.  Written by the leader before
 * they start; afterwards only the atomics are, and the tasks by who has claimed them.
 */
typedef struct IloadBackfill
{
	Oid			schema;			/* of the extension */
	int64		id;				/* in the table backfills */
	int64		pause;			/* microseconds between slices */
	int64		lag_bytes;		/* that a standby may be behind; 0: any */
	int64		lag_time;		/* microseconds; 0: any */
	bool		resume;			/* skip slices that are done */
	bool		stop_on_error;

	/* of the leader, for workers */
	Oid			database;
	Oid			authenticated_user;
	Oid			user;
	int			security_context;
	PGPROC	   *leader;
	Size		job_offset;		/* name of the job, from the start */
	Size		run_id_offset;	/* 0: none */
	Size		gucs_offset;

	pg_atomic_uint32 next;		/* task to be claimed */
	pg_atomic_uint32 stop;		/* no more are claimed */
	int			ntasks;
	IloadTask	tasks[FLEXIBLE_ARRAY_MEMBER];
} IloadBackfill;

extern IloadTask *iload_task_claim(IloadBackfill *backfill);
extern IloadTaskState iload_task_run(const IloadBackfill *backfill, const IloadJob *job,
									 IloadTask *task);
extern void iload_task_fail(const IloadBackfill *backfill, const IloadJob *job, IloadTask *task,
							const ErrorData *error);
extern void iload_task_finish(IloadBackfill *backfill, IloadTask *task, IloadTaskState state);
extern IloadTaskState iload_task_state(const IloadTask *task);
extern char *iload_task_date(const IloadTask *task);

#endif
