/*
 * check.h
 *		One check of a job: it is run, and run again, and the results compared.
 */
#ifndef ILOAD_CHECK_H
#define ILOAD_CHECK_H

#include "trial.h"

extern IloadCheckResult *iload_check_job(Oid schema, const IloadJob *job, DateADT date,
										 const IloadCheckOptions *options);

#endif
