/*
 * load.h
 *		One load: a slice of the target is made equal to a query's result.
 */
#ifndef ILOAD_LOAD_H
#define ILOAD_LOAD_H

#include "lock.h"

typedef enum IloadMethod
{
	ILOAD_METHOD_AUTO,
	ILOAD_METHOD_DIFF,
	ILOAD_METHOD_DELETE,
	ILOAD_METHOD_NONE,			/* only as an outcome */
	ILOAD_METHOD_SKIPPED		/* likewise: another load was running */
} IloadMethod;

/* What to do where the result is empty and the slice is not. */
typedef enum IloadOnEmpty
{
	ILOAD_EMPTY_ERROR,
	ILOAD_EMPTY_REPLACE,
	ILOAD_EMPTY_KEEP
} IloadOnEmpty;

typedef struct IloadOptions
{
	char	   *date_column;	/* or NULL */
	char	   *timezone;		/* or NULL: the session's */
	IloadMethod method;
	IloadOnEmpty on_empty;
	char	   *audit;			/* or NULL */
	IloadIfRunning if_running;
	bool		create_partition;
	List	   *ignore_columns; /* of String */
	char	   *run_id;			/* or NULL */
} IloadOptions;

/* Which slice, as the caller gave it. */
typedef struct IloadSliceArgs
{
	bool		by_date;
	DateADT		date;			/* by_date */
	Interval   *period;			/* by_date */
	char	   *lower;			/* else */
	char	   *upper;			/* else; NULL for the one value "lower" */
} IloadSliceArgs;

typedef struct IloadResult
{
	IloadSlice *slice;
	IloadMethod method;
	uint64		rows;
	uint64		rows_before;
	uint64		inserted;
	uint64		deleted;
	char	   *fingerprint;	/* NULL where skipped */
	TimestampTz started;
	TimestampTz finished;
} IloadResult;

extern const char *iload_method_name(IloadMethod method);
extern IloadResult *iload_load(Oid schema, Oid target, const IloadSliceArgs *args,
							   const char *query, const IloadOptions *options);

#endif
