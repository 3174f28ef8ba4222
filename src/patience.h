/*
 * patience.h
 *		Patience: how long a load waits to be alone with its leaves.
 */
#ifndef ILOAD_PATIENCE_H
#define ILOAD_PATIENCE_H

#include "nodes/pg_list.h"

typedef struct IloadPatience
{
	Oid			target;
	bool		insists;		/* wait also for whom that was in vain before */
	long		left;			/* milliseconds */
} IloadPatience;

extern void iload_patience_begin(IloadPatience *patience, Oid target, bool insists);
extern bool iload_patience_is_needed(void);
extern bool iload_patience_snapshots(IloadPatience *patience);
extern bool iload_patience_lock(IloadPatience *patience, List *relids);

#endif
