/*
 * slice.h
 *		The slice: the half-open span of the key column that one load replaces.
 */
#ifndef ILOAD_SLICE_H
#define ILOAD_SLICE_H

#include "nodes/params.h"
#include "utils/timestamp.h"

#include "key.h"

/* Which slice, as the caller gave it. */
typedef struct IloadSliceArgs
{
	bool		by_date;
	DateADT		date;			/* by_date */
	Interval   *period;			/* by_date */
	char	   *lower;			/* else */
	char	   *upper;			/* else; NULL for the one value "lower" */
} IloadSliceArgs;

typedef struct IloadSlice
{
	Oid			target;
	Oid			root;			/* topmost ancestor, or the target itself */
	char	   *table_name;		/* for messages */
	IloadKey   *key;

	Datum		lower;			/* first value inside */
	Datum		upper;			/* first value outside; not set where single */
	bool		single;			/* the one value "lower" */
	char	   *lower_text;		/* as recorded, see iload_key_out */
	char	   *upper_text;		/* NULL where single */
	char	   *timezone;		/* in which the bounds were computed */

	bool		by_date;		/* a calendar period, else bounds as given */
	DateADT		date;			/* by_date: its first day */
	DateADT		upper_date;		/* by_date: the first day after it */
	Interval   *period;			/* by_date */

	Oid			param_type;		/* of $1 and $2 in the user's query */
	Datum		params[2];
	bool		param_nulls[2];
} IloadSlice;

/* see iload_slice_param_types */
#define ILOAD_SLICE_NPARAMS 4

extern DateADT iload_period_start(DateADT date, Interval *period);
extern DateADT iload_period_end(DateADT date, Interval *period);
extern IloadSlice *iload_slice_create(Relation target, const char *column,
									  const IloadSliceArgs *args);
extern void iload_slice_set_timezone(const char *timezone);
extern bool iload_slice_contains(IloadSlice *slice, Datum value);
extern char *iload_slice_table(const IloadSlice *slice);
extern char *iload_slice_text(const IloadSlice *slice);
extern char *iload_slice_predicate(const IloadSlice *slice, const char *alias);
extern char *iload_slice_literal_predicate(const IloadSlice *slice);
extern void iload_slice_param_types(const IloadSlice *slice, Oid *types);
extern ParamListInfo iload_slice_params(const IloadSlice *slice);

#endif
