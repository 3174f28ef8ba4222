/*
 * merge.h
 *		The method merge: staged rows are put into the slice by key.
 */
#ifndef ILOAD_MERGE_H
#define ILOAD_MERGE_H

#include "live.h"
#include "merge_key.h"
#include "rewrite.h"
#include "stage.h"

extern void iload_merge_find(IloadStage *stage, IloadLive *live, const IloadMergeKey *key,
							 Snapshot snapshot, IloadRewrite *rewrite);
extern void iload_merge_apply(IloadRewrite *rewrite, IloadStage *stage);

#endif
