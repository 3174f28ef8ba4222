/*
 * patience.c
 *		Patience: how long a load waits to be alone with its leaves.
 *
 * An exchange of files is seen by every snapshot, also by one that is older, and
 * takes ACCESS EXCLUSIVE locks on the leaves.  So before it, two things are waited
 * for, together no longer than idempotent_load.swap_patience:
 *
 * The snapshots that are open when we look.  As for CREATE INDEX CONCURRENTLY the
 * set is fixed then, so newer ones cannot keep us waiting for ever.  Loads in READ
 * COMMITTED are not waited for: they would wait for each other; a load takes a new
 * snapshot after each wait, and what its query reads it has locked.
 *
 * The locks.  A request that waits stops all later readers, so it is made for a
 * short time only, again and again, with longer pauses in which readers go on.
 *
 * A transaction that has outlasted a load's patience is not waited for by later loads
 * of the session, but where they insist: each slice of a backfill beside a long
 * pg_dump would wait for nothing.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

#include "attempt.h"
#include "guc.h"
#include "lock.h"
#include "patience.h"
#include "progress.h"

/* milliseconds: a request for the locks, all of them, and the pause after it */
#define LOCK_TRY		50
#define LOCK_PAUSE		200
/* first pause between two looks at the snapshots, and the longest */
#define FIRST_LOOK		1
#define LONGEST_LOOK	100

/* Transactions that have outlasted a load of this session, the last ones; a ring. */
#define NOUTLASTED		16
static VirtualTransactionId outlasted[NOUTLASTED];
static int	next_outlasted = 0;

/* "target" is for the progress that is shown; for "insists", see above. */
void
iload_patience_begin(IloadPatience *patience, Oid target, bool insists)
{
	patience->target = target;
	patience->insists = insists;
	patience->left = iload_swap_patience;
}

/* Wait for some milliseconds; false where patience has run out. */
static bool
pause_for(IloadPatience *patience, long ms)
{
	TimestampTz start = GetCurrentTimestamp();

	if (patience->left <= 0)
		return false;
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 Min(ms, patience->left), PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	patience->left -= TimestampDifferenceMilliseconds(start, GetCurrentTimestamp());
	return true;
}

/* The transactions of this database that have a snapshot, but for vacuums. */
static VirtualTransactionId *
transactions_with_snapshot(int *n)
{
	return GetCurrentVirtualXIDs(InvalidTransactionId, true, false,
								 PROC_IS_AUTOVACUUM | PROC_IN_VACUUM | PROC_IN_SAFE_IC, n);
}

static bool
contains(const VirtualTransactionId *set, int n, VirtualTransactionId vxid)
{
	for (int i = 0; i < n; i++)
	{
		if (VirtualTransactionIdEquals(set[i], vxid))
			return true;
	}
	return false;
}

/* Keep of "set" those that are in "other" too, or where "keep" is false, not. */
static int
intersect(VirtualTransactionId *set, int n, const VirtualTransactionId *other, int nother,
		  bool keep)
{
	int			result = 0;

	for (int i = 0; i < n; i++)
	{
		if (contains(other, nother, set[i]) == keep)
			set[result++] = set[i];
	}
	return result;
}

/*
 * Keep of "set" the transactions that still have a snapshot and are no loads.  One
 * that had its snapshot already may become a load later.
 */
static int
still_waited_for(VirtualTransactionId *set, int n)
{
	int			nothers;
	VirtualTransactionId *others = transactions_with_snapshot(&nothers);

	n = intersect(set, n, others, nothers, true);
	if (n == 0)
		return 0;
	others = iload_lock_loads(&nothers);
	return intersect(set, n, others, nothers, false);
}

static void
remember_outlasted(const VirtualTransactionId *set, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (contains(outlasted, NOUTLASTED, set[i]))
			continue;
		outlasted[next_outlasted] = set[i];
		next_outlasted = (next_outlasted + 1) % NOUTLASTED;
	}
}

static bool
any_has_outlasted_us(const IloadPatience *patience, const VirtualTransactionId *set, int n)
{
	if (patience->insists)
		return false;
	for (int i = 0; i < n; i++)
	{
		if (contains(outlasted, NOUTLASTED, set[i]))
			return true;
	}
	return false;
}

static bool
any_waits_for_us(const VirtualTransactionId *set, int n)
{
	int			nwaiters;
	VirtualTransactionId *waiters;

	if (n == 0)
		return false;
	waiters = iload_lock_waiters(&nwaiters);
	for (int i = 0; i < n; i++)
	{
		if (contains(waiters, nwaiters, set[i]))
			return true;
	}
	return false;
}

/* A context for one look at snapshots and locks. */
static MemoryContext
look_context(void)
{
	return AllocSetContextCreate(CurrentMemoryContext, "idempotent_load patience",
								 ALLOCSET_DEFAULT_SIZES);
}

/* Has any transaction a snapshot that would have to be waited for? */
bool
iload_patience_is_needed(void)
{
	MemoryContext look = look_context();
	MemoryContext old = MemoryContextSwitchTo(look);
	int			n;
	VirtualTransactionId *set = transactions_with_snapshot(&n);

	n = still_waited_for(set, n);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(look);
	return n > 0;
}

/*
 * Wait until the transactions that have a snapshot now have given it up.  False
 * where patience ran out first, or where that would be in vain: one that waits for
 * us keeps its snapshot until we end, and one that has outlasted us before will do so
 * again.
 */
bool
iload_patience_snapshots(IloadPatience *patience)
{
	int			n;
	VirtualTransactionId *waited = transactions_with_snapshot(&n);
	MemoryContext look = look_context();
	long		ms = FIRST_LOOK;
	bool		waits = patience->left > 0;
	bool		in_vain = false;

	iload_progress_phase(patience->target, ILOAD_PHASE_WAITING_SNAPSHOTS, 0);
	for (;;)
	{
		MemoryContext old = MemoryContextSwitchTo(look);

		n = still_waited_for(waited, n);
		in_vain = any_has_outlasted_us(patience, waited, n) || any_waits_for_us(waited, n);
		MemoryContextSwitchTo(old);
		MemoryContextReset(look);
		if (n == 0 || in_vain)
			break;
		if (!pause_for(patience, ms))
		{
			/* not those that came when none was left */
			if (waits)
				remember_outlasted(waited, n);
			break;
		}
		ms = Min(ms * 2, LONGEST_LOOK);
	}
	MemoryContextDelete(look);
	pfree(waited);
	return n == 0;
}

/* Ask for ACCESS EXCLUSIVE locks on all relations of a list, for a short time. */
static void
ask_for_locks(void *arg)
{
	List	   *relids = arg;
	int			timeout = Max(LOCK_TRY / list_length(relids), 1);
	int			nestlevel = NewGUCNestLevel();
	ListCell   *lc;

	if (LockTimeout == 0 || LockTimeout > timeout)
		(void) set_config_option("lock_timeout", psprintf("%d", timeout),
								 PGC_USERSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
	foreach(lc, relids)
		LockRelationOid(lfirst_oid(lc), AccessExclusiveLock);
	AtEOXact_GUC(true, nestlevel);
}

/* False, and none of the locks, where the short time is not enough. */
static bool
try_lock(List *relids)
{
	ErrorData  *error = iload_attempt(ask_for_locks, relids);

	if (error == NULL)
		return true;
	if (error->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE &&
		error->sqlerrcode != ERRCODE_T_R_DEADLOCK_DETECTED)
		ReThrowError(error);
	FreeErrorData(error);
	return false;
}

/* Is it in vain to wait for those that hold a lock on one of "relids"? */
static bool
is_in_vain(const IloadPatience *patience, List *relids)
{
	MemoryContext look = look_context();
	MemoryContext old = MemoryContextSwitchTo(look);
	int			n;
	VirtualTransactionId *holders = iload_lock_holders(relids, &n);
	bool		result = any_has_outlasted_us(patience, holders, n) ||
	any_waits_for_us(holders, n);

	MemoryContextSwitchTo(old);
	MemoryContextDelete(look);
	return result;
}

static void
remember_holders(List *relids)
{
	int			n;
	VirtualTransactionId *holders = iload_lock_holders(relids, &n);

	remember_outlasted(holders, n);
	pfree(holders);
}

/*
 * Lock relations ACCESS EXCLUSIVE, in the order given; all of them, or none.  False
 * where patience ran out, or where it would be in vain: one that holds a lock on
 * them and waits for us would make it a deadlock, and one that has outlasted us before
 * will do so again.
 */
bool
iload_patience_lock(IloadPatience *patience, List *relids)
{
	bool		waits = patience->left > 0;

	iload_progress_phase(patience->target, ILOAD_PHASE_WAITING_LOCKS, 0);
	for (;;)
	{
		if (is_in_vain(patience, relids))
			return false;
		if (try_lock(relids))
			return true;
		/* the rollback of the try has ended what is shown */
		iload_progress_phase(patience->target, ILOAD_PHASE_WAITING_LOCKS, 0);
		patience->left -= LOCK_TRY;
		if (!pause_for(patience, LOCK_PAUSE))
		{
			if (waits)
				remember_holders(relids);
			return false;
		}
	}
}
