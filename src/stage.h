/*
 * stage.h
 *		The stage: the query's rows, spooled, checked and fingerprinted.
 */
#ifndef ILOAD_STAGE_H
#define ILOAD_STAGE_H

#include "utils/queryenvironment.h"
#include "utils/relcache.h"
#include "utils/snapshot.h"
#include "utils/tuplestore.h"

#include "columns.h"
#include "fingerprint.h"
#include "sketch.h"
#include "slice.h"
#include "transient.h"

/* The name of the spooled rows in a query, see iload_stage_environment. */
#define ILOAD_STAGE_NAME "staged"

typedef struct IloadStage
{
	Relation	target;			/* as given; not owned */
	IloadSlice *slice;
	IloadColumns *columns;
	const char *query;
	PlannedStmt *plan;
	bool		repeatable;		/* no volatile functions */
	Tuplestorestate *spool;		/* rows of the loaded columns; NULL where they
								 * went straight into new files */
	IloadTransients *transients;	/* these files, or NULL */
	uint64		size;			/* bytes of the rows */
	IloadFingerprint fingerprint;	/* of the compared columns */
	IloadSketch *sketch;		/* the same rows; the stored ones come to it
								 * when the slice is compared */
} IloadStage;

extern IloadStage *iload_stage_create(Relation target, IloadSlice *slice,
									  IloadColumns *columns, const char *query,
									  Snapshot snapshot);
extern bool iload_stage_can_probe(const IloadStage *stage);
extern void iload_stage_probe(IloadStage *stage, Snapshot snapshot);
extern void iload_stage_run(IloadStage *stage, Snapshot snapshot, IloadLeaves *leaves,
							Size min_size);
extern void iload_stage_fill(IloadStage *stage, IloadTransients *transients);
extern void iload_stage_unload(IloadStage *stage);
extern bool iload_stage_has_key(IloadStage *stage, bool single, Datum lower, Datum upper);
extern QueryEnvironment *iload_stage_environment(IloadStage *stage);
extern void iload_stage_end(IloadStage *stage);

#endif
