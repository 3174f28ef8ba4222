/*
 * backfill_pace.h
 *		How fast a backfill goes: pauses, and standbys that are behind.
 */
#ifndef ILOAD_BACKFILL_PACE_H
#define ILOAD_BACKFILL_PACE_H

#include "backfill_task.h"

extern void iload_backfill_pace(const IloadBackfill *backfill);
extern void iload_backfill_check_client(void);
extern void iload_backfill_wait(long milliseconds);

#endif
