/*
 * live.h
 *		The slice as it is stored now, read for comparison.
 */
#ifndef ILOAD_LIVE_H
#define ILOAD_LIVE_H

#include "storage/itemptr.h"
#include "utils/snapshot.h"

#include "columns.h"
#include "fingerprint.h"
#include "leaf.h"
#include "sketch.h"
#include "slice.h"

typedef struct IloadLive
{
	IloadSlice *slice;
	IloadLeaves *leaves;
	IloadColumns *columns;
	bool		direct;			/* leaves are scanned as heaps */
	char	   *no_ctids;		/* why rows cannot be named by ctid, or NULL */
} IloadLive;

/* What is told of each row: the leaf and the place in it, where known. */
typedef void (*IloadLiveFunction) (Oid leaf, ItemPointer tid, IloadRowHash hash, void *arg);

extern IloadLive *iload_live_create(Relation target, IloadSlice *slice,
									IloadLeaves *leaves, IloadColumns *columns);
extern double iload_live_expected_rows(IloadLive *live);
extern bool iload_live_is_empty(IloadLive *live, Snapshot snapshot);
extern void iload_live_scan(IloadLive *live, Snapshot snapshot,
							IloadLiveFunction function, void *arg);
extern IloadFingerprint iload_live_fingerprint(IloadLive *live, Snapshot snapshot,
											   IloadSketch *sketch);

#endif
