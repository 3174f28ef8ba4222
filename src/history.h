/*
 * history.h
 *		The table load_history: one row a load, in the load's transaction.
 */
#ifndef ILOAD_HISTORY_H
#define ILOAD_HISTORY_H

#include "slice.h"

/* What is known of a load when it is done. */
typedef struct IloadHistoryRow
{
	const IloadSlice *slice;
	const char *run_id;			/* or NULL */
	const char *query;			/* NULL where rows were adopted */
	const char *method;
	int64		rows;
	int64		rows_before;
	bool		before_unknown; /* then it is null */
	int64		inserted;
	int64		deleted;
	int64		updated;
	const char *fingerprint;
	TimestampTz started;
	TimestampTz finished;
} IloadHistoryRow;

extern bool iload_history_repeats(Oid schema, const IloadSlice *slice, const char *query);
extern bool iload_history_has_date(Oid schema, Oid target, DateADT date, const char *query,
								   const char *timezone);
extern void iload_history_insert(Oid schema, const IloadHistoryRow *row);

#endif
