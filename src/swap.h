/*
 * swap.h
 *		The method swap: new files take the place of the leaves' files.
 */
#ifndef ILOAD_SWAP_H
#define ILOAD_SWAP_H

#include "live.h"
#include "stage.h"

extern char *iload_swap_apply(Relation target, IloadStage *stage, IloadLive *live,
							  Snapshot snapshot, bool insists);

#endif
