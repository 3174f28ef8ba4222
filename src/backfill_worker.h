/*
 * backfill_worker.h
 *		The workers of a backfill.
 */
#ifndef ILOAD_BACKFILL_WORKER_H
#define ILOAD_BACKFILL_WORKER_H

#include "storage/dsm.h"

#include "backfill_task.h"

/* The workers, as their leader knows them. */
typedef struct IloadWorkers
{
	dsm_segment *segment;
	int			n;
	struct BackgroundWorkerHandle **handles;
} IloadWorkers;

extern IloadWorkers *iload_workers_prepare(int ntasks, const char *job, const char *run_id);
extern void iload_workers_start(IloadWorkers *workers, IloadBackfill *backfill, int n);
extern bool iload_workers_are_running(IloadWorkers *workers);
extern void iload_workers_end(IloadWorkers *workers);

#endif
