/*
 * backfill_pace.c
 *		How fast a backfill goes: pauses, and standbys that are behind.
 *
 * Called between slices.  No snapshot is held while waiting: it would keep the loads of
 * others waiting.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "utils/timestamp.h"

#include "backfill_pace.h"
#include "lag.h"

/* How often standbys are looked at, in milliseconds. */
#define LAG_INTERVAL 500

/* Wait for so long, or until somebody sets our latch.  Serves interrupts. */
void
iload_backfill_wait(long milliseconds)
{
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, milliseconds,
					 PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}

static void
pause_for(int64 microseconds)
{
	TimestampTz end = GetCurrentTimestamp() + microseconds;

	for (;;)
	{
		long		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), end);

		if (left <= 0)
			return;
		iload_backfill_wait(left);
	}
}

/* In a transaction of its own, unless there is one. */
static bool
standbys_are_behind(const IloadBackfill *backfill)
{
	bool		within = IsTransactionState();
	bool		behind;

	if (!within)
		StartTransactionCommand();
	behind = iload_lag_exceeds(backfill->lag_bytes, backfill->lag_time);
	if (!within)
		CommitTransactionCommand();
	return behind;
}

/* Wait as long as the backfill is to wait after a slice, unless it is to stop. */
void
iload_backfill_pace(const IloadBackfill *backfill)
{
	if (pg_atomic_read_u32((pg_atomic_uint32 *) &backfill->stop) != 0)
		return;
	if (backfill->pause > 0)
		pause_for(backfill->pause);
	if (backfill->lag_bytes == 0 && backfill->lag_time == 0)
		return;
	while (standbys_are_behind(backfill))
		iload_backfill_wait(LAG_INTERVAL);
}
