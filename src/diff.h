/*
 * diff.h
 *		The method diff: only rows that differ are deleted and inserted.
 */
#ifndef ILOAD_DIFF_H
#define ILOAD_DIFF_H

#include "live.h"
#include "rewrite.h"
#include "stage.h"

extern void iload_diff_apply(IloadStage *stage, IloadLive *live, Snapshot snapshot,
							 IloadRewrite *rewrite);

#endif
