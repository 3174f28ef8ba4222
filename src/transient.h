/*
 * transient.h
 *		Transient heaps: new files for the leaves of a slice.
 */
#ifndef ILOAD_TRANSIENT_H
#define ILOAD_TRANSIENT_H

#include "executor/tuptable.h"

#include "columns.h"
#include "leaf.h"
#include "query.h"

/* The new file of one leaf. */
typedef struct IloadTransient
{
	Oid			leaf;
	Oid			heap;
	uint64		rows;
	struct TransientFill *fill; /* while it is being filled */
} IloadTransient;

typedef struct IloadTransients
{
	IloadColumns *columns;
	List	   *heaps;			/* of IloadTransient, in the order of the
								 * leaves */
	struct TransientRouter *router; /* while they are being filled */
} IloadTransients;

extern bool iload_transients_call_functions(IloadLeaves *leaves);
extern IloadTransients *iload_transients_begin(Relation target, IloadLeaves *leaves,
											   IloadColumns *columns);
extern void iload_transients_put(IloadTransients *transients, TupleTableSlot *row);
extern void iload_transients_finish(IloadTransients *transients);
extern void iload_transients_scan(IloadTransients *transients, IloadRowFunction function,
								  void *arg);
extern void iload_transients_drop(IloadTransients *transients);

#endif
