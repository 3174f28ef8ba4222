/*
 * backfill_log.h
 *		The table backfills: what other sessions see of a backfill.
 */
#ifndef ILOAD_BACKFILL_LOG_H
#define ILOAD_BACKFILL_LOG_H

#include "backfill_task.h"

extern int64 iload_backfill_log_insert(const IloadBackfill *backfill, const IloadJob *job,
									   DateADT from, DateADT to, int workers);
extern void iload_backfill_log_update(const IloadBackfill *backfill, const char *state);
extern void iload_backfill_lock(int64 id);
extern void iload_backfill_unlock(int64 id);

#endif
