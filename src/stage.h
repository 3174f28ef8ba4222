/*
 * stage.h
 *		The stage: the query's rows, spooled, checked and fingerprinted.
 */
#ifndef ILOAD_STAGE_H
#define ILOAD_STAGE_H

#include "utils/relcache.h"
#include "utils/snapshot.h"
#include "utils/tuplestore.h"

#include "columns.h"
#include "fingerprint.h"
#include "sketch.h"
#include "slice.h"

typedef struct IloadStage
{
	IloadColumns *columns;
	Tuplestorestate *spool;		/* rows of the loaded columns */
	IloadFingerprint fingerprint;	/* of the compared columns */
	IloadSketch *sketch;		/* the same rows; the stored ones come to it
								 * when the slice is compared */
} IloadStage;

extern IloadStage *iload_stage_run(Relation target, IloadSlice *slice,
								   IloadColumns *columns, const char *query,
								   Snapshot snapshot);
extern bool iload_stage_has_key(IloadStage *stage, IloadSlice *slice, bool single,
								Datum lower, Datum upper);
extern void iload_stage_end(IloadStage *stage);

#endif
