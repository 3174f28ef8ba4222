/*
 * backfill_preview.h
 *		What a backfill would change in a slice.
 */
#ifndef ILOAD_BACKFILL_PREVIEW_H
#define ILOAD_BACKFILL_PREVIEW_H

#include "backfill_task.h"

extern void iload_backfill_preview(const IloadJob *job, const IloadTask *task);

#endif
