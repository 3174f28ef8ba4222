/*
 * rewrite.h
 *		Writing to the target by SQL: DELETE, UPDATE and INSERT.
 */
#ifndef ILOAD_REWRITE_H
#define ILOAD_REWRITE_H

#include "nodes/bitmapset.h"
#include "utils/tuplestore.h"

#include "columns.h"
#include "leaf.h"
#include "slice.h"

/* What is to be written, and what was. */
typedef struct IloadRewrite
{
	IloadSlice *slice;
	IloadLeaves *leaves;
	IloadColumns *columns;

	Tuplestorestate *doomed;	/* rows to delete, see
								 * iload_rewrite_doomed_desc; NULL for all
								 * rows of the slice */
	uint64		ndoomed;
	Tuplestorestate *changed;	/* rows to update: where each one lies, and
								 * its loaded columns, see
								 * iload_rewrite_changed_desc */
	uint64		nchanged;
	Bitmapset  *set;			/* which of them are set, by position */
	const char *changed_key;	/* SQL text that finds the row of "t" for one
								 * of "u", or NULL: by its place */
	Tuplestorestate *fresh;		/* rows to insert, of the loaded columns */
	uint64		nfresh;

	uint64		deleted;		/* set by iload_rewrite_apply */
	uint64		updated;
	uint64		inserted;
} IloadRewrite;

extern TupleDesc iload_rewrite_doomed_desc(void);
extern TupleDesc iload_rewrite_changed_desc(const IloadColumns *columns);
extern void iload_rewrite_apply(IloadRewrite *rewrite);

#endif
