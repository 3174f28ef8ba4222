/*
 * cause.h
 *		Why a rerun gave another result.
 */
#ifndef ILOAD_CAUSE_H
#define ILOAD_CAUSE_H

#include "difference.h"
#include "observe.h"
#include "rerun.h"

/* What is known when the cause is looked for. */
typedef struct IloadEvidence
{
	IloadRerun	rerun;
	const IloadDifference *difference;	/* NULL where the rerun raised an
										 * error */
	const ErrorData *error;
	const IloadObservation *run;	/* the rerun */
	bool		clock;			/* without the moved clock there is no
								 * difference */
} IloadEvidence;

typedef struct IloadCause
{
	const char *name;			/* a word, see doc/reference.md */
	char	   *source;			/* which statement or call, where known; a
								 * sentence */
	char	   *hint;
} IloadCause;

extern bool iload_cause_stands_still(const IloadCall *call);
extern IloadCause *iload_cause_of_call(const IloadCall *call);
extern bool iload_cause_is_known(const IloadCause *cause);
extern IloadCause *iload_cause_find(const IloadEvidence *evidence);

#endif
