/*
 * preview.h
 *		The preview of a load: measures of the slice, and of the query's rows.
 */
#ifndef ILOAD_PREVIEW_H
#define ILOAD_PREVIEW_H

#include "load.h"

/* The number of rows, or the sum of a column; all values are numeric. */
typedef struct IloadMeasure
{
	char	   *name;
	Datum		live;			/* of the slice as it is */
	Datum		staged;			/* of the query's rows */
	Datum		difference;		/* staged less live */
	Datum		share;			/* of the difference in live */
	bool		no_share;		/* live is zero */
} IloadMeasure;

extern List *iload_preview(Oid target, const IloadSliceArgs *args, const char *query,
						   const IloadOptions *options);

#endif
