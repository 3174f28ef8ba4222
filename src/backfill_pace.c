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
#include "tcop/tcopprot.h"
#include "utils/timestamp.h"

#include "backfill_pace.h"
#include "lag.h"

/* Of libpq/libpq.h, which needs the headers of OpenSSL and GSSAPI; these may be missing. */
extern bool pq_check_connection(void);

/* How often standbys, and whether others have failed, are looked at, in milliseconds. */
#define LOOK_INTERVAL 500

/*
 * End the session if its client is gone, where the system can tell; and serve other
 * interrupts.  The server itself would notice when it next has something to say, which
 * may be after the last slice.  For the leader; nothing in a worker.
 */
void
iload_backfill_check_client(void)
{
	if (whereToSendOutput == DestRemote && WaitEventSetCanReportClosed() &&
		!pq_check_connection())
	{
		ClientConnectionLost = true;
		InterruptPending = true;
	}
	CHECK_FOR_INTERRUPTS();
}

/*
 * Wait for so long, or until somebody sets our latch.  Serves interrupts, and looks
 * whether the client is there.
 */
void
iload_backfill_wait(long milliseconds)
{
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, milliseconds,
					 PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	iload_backfill_check_client();
}

/* Is there no slice to wait for? */
static bool
no_more(const IloadBackfill *backfill)
{
	return pg_atomic_read_u32((pg_atomic_uint32 *) &backfill->stop) != 0 ||
		pg_atomic_read_u32((pg_atomic_uint32 *) &backfill->next) >= (uint32) backfill->ntasks;
}

static void
pause_between(const IloadBackfill *backfill)
{
	TimestampTz end = GetCurrentTimestamp() + backfill->pause;

	while (!no_more(backfill))
	{
		long		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), end);

		if (left <= 0)
			return;
		iload_backfill_wait(Min(left, LOOK_INTERVAL));
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

/* Wait as long as the backfill is to wait before the next slice, if there is one. */
void
iload_backfill_pace(const IloadBackfill *backfill)
{
	if (backfill->pause > 0)
		pause_between(backfill);
	if (backfill->lag_bytes == 0 && backfill->lag_time == 0)
		return;
	while (!no_more(backfill) && standbys_are_behind(backfill))
		iload_backfill_wait(LOOK_INTERVAL);
}
