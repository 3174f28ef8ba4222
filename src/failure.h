/*
 * failure.h
 *		The table load_failures: one row for each load that a backfill saw fail.
 */
#ifndef ILOAD_FAILURE_H
#define ILOAD_FAILURE_H

#include "utils/date.h"

/* What is known of a load that has failed. */
typedef struct IloadFailure
{
	Oid			target;			/* InvalidOid for a command */
	const char *job;			/* or NULL */
	DateADT		date;			/* the logical date */
	const char *lower_bound;	/* or NULL: it had not been computed */
	const char *run_id;			/* or NULL */
	const ErrorData *error;
} IloadFailure;

extern void iload_failure_record(Oid schema, const IloadFailure *failure);

#endif
