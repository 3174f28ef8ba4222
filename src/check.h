/*
 * check.h
 *		One check of a job: it is run, and run again, and the results compared.
 */
#ifndef ILOAD_CHECK_H
#define ILOAD_CHECK_H

#include "utils/date.h"

#include "cause.h"
#include "job.h"

typedef struct IloadCheckOptions
{
	bool		reruns[ILOAD_NRERUNS];
	List	   *ignore_columns; /* String: "column" or "table.column" */
	int			clock_shift;	/* seconds; 0: the usual ones */
	char	   *clock_shift_text;
	bool		stop_at_first;	/* violation */
} IloadCheckOptions;

/* What a rerun did otherwise than the first run. */
typedef struct IloadViolation
{
	IloadDifference *difference;	/* NULL where an error was raised */
	ErrorData  *error;
	IloadCause *cause;
} IloadViolation;

typedef struct IloadRerunResult
{
	IloadRerun	rerun;
	int			runs;
	const char *what;			/* the world that showed the violations, or
								 * NULL */
	List	   *violations;		/* IloadViolation; NIL: passed */
} IloadRerunResult;

typedef struct IloadCheckResult
{
	List	   *reruns;			/* IloadRerunResult */
	List	   *notes;			/* strings: what was not seen, or cannot be
								 * undone */
} IloadCheckResult;

extern IloadCheckResult *iload_check_job(Oid schema, const IloadJob *job, DateADT date,
										 const IloadCheckOptions *options);

#endif
