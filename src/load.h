/*
 * load.h
 *		One load: a slice of the target is made equal to a query's result.
 */
#ifndef ILOAD_LOAD_H
#define ILOAD_LOAD_H

#include "lock.h"
#include "method.h"

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
	List	   *key;			/* of String; method merge only */
	char	   *version;		/* likewise; or NULL */
	bool		keep_previous;	/* keep the rows that are replaced */
} IloadOptions;

typedef struct IloadResult
{
	IloadSlice *slice;
	IloadMethod method;
	uint64		rows;
	uint64		rows_before;
	bool		before_unknown; /* the rows before were not counted */
	uint64		inserted;
	uint64		deleted;
	uint64		updated;
	char	   *fingerprint;	/* NULL where skipped */
	TimestampTz started;
	TimestampTz finished;
} IloadResult;

extern IloadResult *iload_load(Oid schema, Oid target, const IloadSliceArgs *args,
							   const char *query, const IloadOptions *options);

#endif
