/*
 * job_run.h
 *		One run of a job, for one date.
 */
#ifndef ILOAD_JOB_RUN_H
#define ILOAD_JOB_RUN_H

#include "utils/date.h"

#include "job.h"

extern IloadResult *iload_job_run(Oid schema, const IloadJob *job, DateADT date);

#endif
