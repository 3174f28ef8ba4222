/*
 * duplicates.h
 *		Staged rows with the same key, of which a merge writes one.
 */
#ifndef ILOAD_DUPLICATES_H
#define ILOAD_DUPLICATES_H

#include "utils/tuplesort.h"

#include "merge_key.h"
#include "stage.h"

/* Rows of the spool that are not to be written, by their ordinals. */
typedef struct IloadDuplicates
{
	Tuplesortstate *ordinals;	/* NULL if there are none */
	int64		next;			/* -1 behind the last one */
} IloadDuplicates;

extern void iload_duplicates_find(IloadDuplicates *duplicates, IloadStage *stage,
								  const IloadMergeKey *key, IloadRowHasher *hasher);
extern bool iload_duplicates_skip(IloadDuplicates *duplicates, int64 ordinal);
extern void iload_duplicates_end(IloadDuplicates *duplicates);

#endif
