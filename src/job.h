/*
 * job.h
 *		Jobs: named loads and commands, and functions that take a date.
 */
#ifndef ILOAD_JOB_H
#define ILOAD_JOB_H

#include "load.h"

typedef enum IloadJobKind
{
	ILOAD_JOB_QUERY,			/* loads a slice */
	ILOAD_JOB_COMMAND,			/* SQL text, one or more statements */
	ILOAD_JOB_FUNCTION			/* a function or procedure, in no table */
} IloadJobKind;

typedef struct IloadJob
{
	IloadJobKind kind;
	char	   *name;			/* of a function, its signature,
								 * schema-qualified */
	char	   *text;			/* the query or command; NULL for a function */
	Oid			target;			/* query jobs only, as are options and period */
	Oid			function;		/* a function or procedure */
	IloadOptions options;
	Interval   *period;

	/* the environment that is pinned; NULL for a function: the session's */
	char	   *timezone;
	char	   *datestyle;
	char	   *search_path;
} IloadJob;

extern IloadJob *iload_job_find(Oid schema, const char *name);
extern IloadJob *iload_job_lock(Oid schema, const char *name);
extern void iload_job_check_and_pin(IloadJob *job);
extern void iload_job_update(Oid schema, const IloadJob *job);

#endif
