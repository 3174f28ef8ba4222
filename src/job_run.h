/*
 * job_run.h
 *		One run of a job, for one date.
 */
#ifndef ILOAD_JOB_RUN_H
#define ILOAD_JOB_RUN_H

#include "utils/date.h"

#include "job.h"

extern void iload_job_set_environment(const IloadJob *job);
extern IloadResult *iload_job_run(Oid schema, const IloadJob *job, DateADT date);

#endif
