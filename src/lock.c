/*
 * lock.c
 *		The slice lock: one load of a slice at a time.
 *
 * Heavyweight locks that last until the transaction ends, so nothing is left
 * behind by an error, a cancel or a lost connection, they obey lock_timeout,
 * deadlocks are found, and PREPARE TRANSACTION keeps them.  Their tags lie in
 * the space of advisory locks, marked by a number of our own in objsubid, where
 * no advisory lock function of SQL can reach them:
 *
 *		classid   OID of the topmost table
 *		objid     the unit: a day, a number, or the hash of a value
 *		objsubid  ILOAD_LOCK_UNIT; ILOAD_LOCK_SPAN for a hash of the bounds,
 *				  ILOAD_LOCK_TARGET for the table as a whole, ILOAD_LOCK_ZONE for
 *				  a bit of the time zone, ILOAD_LOCK_SNAPSHOT, see below
 *
 * A slice of few units takes the lock of the table in a mode that is shared
 * with its like, and each of its units exclusively.  A slice of many units, or
 * one whose units cannot be counted, takes the lock of the table exclusively,
 * after one for its very bounds.  So loads of different days do not wait for
 * each other, overlapping ones do, and the number of locks is bounded.
 *
 * On a timestamptz key the days of one time zone overlap those of another, so
 * loads in different zones must wait for each other, while those in the same
 * zone must not.  Each bit of a hash of the zone's name is a lock, taken in one
 * of two modes that are shared with themselves and exclude each other: two
 * zones differ in at least one bit, as all names of today do.
 *
 * What the caller wants done where another load is running concerns loads of
 * the same units or bounds.  For the locks of the table and of the zone, which
 * loads of other slices hold too, it always waits.
 *
 * A load whose transaction has one snapshot for good says so by a lock that
 * excludes nobody; see iload_lock_loads.
 *
 * That one comes first, then the lock of the bounds, the table's, the bits, and
 * the units in the order of the key: one order, for all.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/typcache.h"

#include "compat.h"
#include "errcodes.h"
#include "error_fields.h"
#include "lock.h"

#define ILOAD_LOCK_TARGET	0x494C
#define ILOAD_LOCK_UNIT		0x494D
#define ILOAD_LOCK_ZONE		0x494E
#define ILOAD_LOCK_SPAN		0x494F
#define ILOAD_LOCK_SNAPSHOT 0x4950

/* A slice of more units than this locks the table as a whole: two months. */
#define MAX_UNITS			62
#define ZONE_BITS			20

typedef struct SliceLock
{
	LOCKTAG		tag;
	LOCKMODE	mode;
} SliceLock;

/* The calendar day of a value of a date or timestamp type. */
static DateADT
day_of(const IloadKey *key, Datum value)
{
	switch (key->kind)
	{
		case ILOAD_KEY_TIMESTAMP:
			return DatumGetDateADT(DirectFunctionCall1(timestamp_date, value));
		case ILOAD_KEY_TIMESTAMPTZ:
			return DatumGetDateADT(DirectFunctionCall1(timestamptz_date, value));
		default:
			return DatumGetDateADT(value);
	}
}

static uint32
hash_of(const IloadKey *key, Datum value)
{
	TypeCacheEntry *entry = lookup_type_cache(key->type, TYPECACHE_HASH_PROC_FINFO);

	if (!OidIsValid(entry->hash_proc))
		return 0;
	return DatumGetUInt32(FunctionCall1Coll(&entry->hash_proc_finfo, key->collation, value));
}

/*
 * Units of the whole numbers, days among them, from "first" up to, not
 * including, "end", in "units"; their number, or 0 where they are too many.
 */
static int
units_of_span(int64 first, int64 end, uint32 *units)
{
	/* the span of two bigints may be wider than a bigint */
	uint64		n = (uint64) end - (uint64) first;

	if (n > MAX_UNITS)
		return 0;
	for (uint64 i = 0; i < n; i++)
		units[i] = (uint32) ((uint64) first + i);
	return (int) n;
}

static int
unit_of_number(int64 number, uint32 *units)
{
	units[0] = (uint32) number;
	return 1;
}

/*
 * Units of a calendar period on an integer or text key: the number yyyymmdd or
 * the hash of yyyy-mm-dd of each day, as a slice of that one value has it.
 */
static int
units_of_days(IloadSlice *slice, uint32 *units)
{
	IloadKey   *key = slice->key;
	int			n = slice->upper_date - slice->date;

	if (n > MAX_UNITS)
		return 0;
	for (int i = 0; i < n; i++)
	{
		Datum		value = iload_key_from_date(key, slice->date + i);

		units[i] = key->kind == ILOAD_KEY_INTEGER ?
			(uint32) iload_key_integer(key, value) : hash_of(key, value);
	}
	return n;
}

/* The units that the slice consists of; 0 stands for the table as a whole. */
static int
slice_units(IloadSlice *slice, uint32 *units)
{
	IloadKey   *key = slice->key;

	switch (key->kind)
	{
		case ILOAD_KEY_DATE:
		case ILOAD_KEY_TIMESTAMP:
		case ILOAD_KEY_TIMESTAMPTZ:
			{
				DateADT		first = day_of(key, slice->lower);
				DateADT		last;

				if (slice->single)
					return unit_of_number(first, units);
				last = day_of(key, slice->upper);
				if (DATE_NOT_FINITE(first) || DATE_NOT_FINITE(last))
					return 0;
				/* an upper bound past midnight takes part of its day */
				if (iload_key_cmp(key, slice->upper, iload_key_from_date(key, last)) > 0)
					last++;
				return units_of_span(first, last, units);
			}
		case ILOAD_KEY_INTEGER:
			if (slice->by_date)
				return units_of_days(slice, units);
			if (slice->single)
				return unit_of_number(iload_key_integer(key, slice->lower), units);
			return units_of_span(iload_key_integer(key, slice->lower),
								 iload_key_integer(key, slice->upper), units);
		case ILOAD_KEY_TEXT:
			if (slice->by_date)
				return units_of_days(slice, units);
			/* FALLTHROUGH */
		case ILOAD_KEY_OTHER:
			if (!slice->single)
				return 0;
			units[0] = hash_of(key, slice->lower);
			return 1;
	}
	return 0;
}

/* The names of the lock modes that exclude "mode", as an array. */
static Datum
conflicting_modes(LOCKMODE mode)
{
	Datum		names[MaxLockMode];
	int			n = 0;

	for (LOCKMODE other = AccessShareLock; other <= MaxLockMode; other++)
	{
		if (DoLockModesConflict(mode, other))
			names[n++] = CStringGetTextDatum(GetLockmodeName(USER_LOCKMETHOD, other));
	}
	return PointerGetDatum(construct_array(names, n, TEXTOID, -1, false, TYPALIGN_INT));
}

/*
 * A list in text of the other processes that hold a lock in the way, or NULL
 * where there is none; only of those for which "condition" holds, SQL text about
 * their row "a" in pg_stat_activity.
 */
static char *
lock_holders(const SliceLock *lock, const char *condition)
{
	const LOCKTAG *tag = &lock->tag;
	Oid			types[] = {OIDOID, OIDOID, INT8OID, INT4OID, TEXTARRAYOID};
	Datum		values[5];
	MemoryContext caller = CurrentMemoryContext;
	char	   *pids = NULL;

	values[0] = ObjectIdGetDatum(tag->locktag_field1);
	values[1] = ObjectIdGetDatum(tag->locktag_field2);
	values[2] = Int64GetDatum((int64) tag->locktag_field3);
	values[3] = Int32GetDatum(tag->locktag_field4);
	values[4] = conflicting_modes(lock->mode);

	SPI_connect();
	if (SPI_execute_with_args(psprintf("SELECT pg_catalog.string_agg(CASE WHEN %s"
									   " THEN a.pid::pg_catalog.text END, ', ')"
									   " FROM pg_catalog.pg_locks l"
									   " JOIN pg_catalog.pg_stat_activity a"
									   " ON a.pid OPERATOR(pg_catalog.=) l.pid"
									   " WHERE l.locktype OPERATOR(pg_catalog.=) 'advisory'"
									   " AND l.granted"
									   " AND l.pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()"
									   " AND l.database OPERATOR(pg_catalog.=) $1"
									   " AND l.classid OPERATOR(pg_catalog.=) $2"
									   " AND l.objid::pg_catalog.int8 OPERATOR(pg_catalog.=) $3"
									   " AND l.objsubid OPERATOR(pg_catalog.=) $4"
									   " AND l.mode OPERATOR(pg_catalog.=) ANY ($5)", condition),
							  5, types, values, NULL, false, 0) == SPI_OK_SELECT &&
		SPI_processed == 1)
	{
		char	   *list = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);

		if (list != NULL)
			pids = MemoryContextStrdup(caller, list);
	}
	SPI_finish();
	return pids;
}

/*
 * End the transactions of the processes that hold a lock.  One that runs a
 * statement is asked to cancel it; one that sits in its transaction doing
 * nothing would not notice, so its connection is ended.  The server's functions
 * decide who may do that, and raise the error.
 */
static void
cancel_holders(const SliceLock *lock)
{
	(void) lock_holders(lock,
						"CASE WHEN pg_catalog.starts_with(a.state, 'idle in transaction')"
						" THEN pg_catalog.pg_terminate_backend(a.pid)"
						" ELSE pg_catalog.pg_cancel_backend(a.pid) END");
}

/* Take one lock; false where it is not to be had and the caller wants to skip. */
static bool
lock_one(IloadSlice *slice, SliceLock *lock, IloadIfRunning if_running)
{
	uint16		space = lock->tag.locktag_field4;
	char	   *pids;

	if (if_running == ILOAD_RUNNING_WAIT ||
		space == ILOAD_LOCK_TARGET || space == ILOAD_LOCK_ZONE)
	{
		(void) LockAcquire(&lock->tag, lock->mode, false, false);
		return true;
	}
	if (LockAcquire(&lock->tag, lock->mode, false, true) != LOCKACQUIRE_NOT_AVAIL)
		return true;

	switch (if_running)
	{
		case ILOAD_RUNNING_SKIP:
			return false;
		case ILOAD_RUNNING_CANCEL:
			cancel_holders(lock);
			(void) LockAcquire(&lock->tag, lock->mode, false, false);
			return true;
		default:
			break;
	}
	pids = lock_holders(lock, "true");
	ereport(ERROR,
			(errcode(ERRCODE_ILOAD_SLICE_BUSY),
			 errmsg("another load of slice %s of table \"%s\" is running",
					iload_slice_text(slice), slice->table_name),
			 pids != NULL ? errdetail("It runs in process %s.", pids) :
			 errdetail("It has just ended, is a prepared transaction, or waits itself for yet another one."),
			 pids != NULL ? errhint("Wait for it with if_running => 'wait', or end it with if_running => 'cancel'.") :
			 errhint("Wait for it with if_running => 'wait'."),
			 iload_errtable(slice->target)));
}

static uint32
hash_name(const char *name)
{
	return DatumGetUInt32(hash_any((const unsigned char *) name, strlen(name)));
}

static void
add_lock(SliceLock *locks, int *n, const IloadSlice *slice, uint16 space, uint32 unit,
		 LOCKMODE mode)
{
	SET_LOCKTAG_ADVISORY(locks[*n].tag, MyDatabaseId, slice->root, unit, space);
	locks[*n].mode = mode;
	(*n)++;
}

/* The locks that a slice needs, in the order in which they are taken. */
static int
slice_locks(IloadSlice *slice, SliceLock *locks)
{
	uint32		units[MAX_UNITS];
	int			nunits = slice_units(slice, units);
	int			n = 0;

	if (IsolationUsesXactSnapshot())
		add_lock(locks, &n, slice, ILOAD_LOCK_SNAPSHOT, 0, AccessShareLock);
	if (nunits == 0)
	{
		add_lock(locks, &n, slice, ILOAD_LOCK_SPAN, hash_name(iload_slice_text(slice)),
				 ExclusiveLock);
		add_lock(locks, &n, slice, ILOAD_LOCK_TARGET, 0, ExclusiveLock);
		return n;
	}
	add_lock(locks, &n, slice, ILOAD_LOCK_TARGET, 0, RowExclusiveLock);
	if (slice->key->kind == ILOAD_KEY_TIMESTAMPTZ)
	{
		uint32		zone = hash_name(slice->timezone);

		for (int bit = 0; bit < ZONE_BITS; bit++)
			add_lock(locks, &n, slice, ILOAD_LOCK_ZONE, bit,
					 (zone >> bit) & 1 ? ShareLock : RowExclusiveLock);
	}
	for (int i = 0; i < nunits; i++)
		add_lock(locks, &n, slice, ILOAD_LOCK_UNIT, units[i], ExclusiveLock);
	return n;
}

/*
 * Lock the slice until the end of the transaction.  Returns false, with none
 * of the locks that it took kept, only where "if_running" is skip and another
 * transaction holds one.
 *
 * May wait.  Errors: slice busy (fail), no right to cancel the other session
 * (cancel), and those of any wait for a lock.
 */
bool
iload_lock_slice(IloadSlice *slice, IloadIfRunning if_running)
{
	SliceLock	locks[2 + ZONE_BITS + MAX_UNITS];
	int			n = slice_locks(slice, locks);

	for (int i = 0; i < n; i++)
	{
		if (lock_one(slice, &locks[i], if_running))
			continue;
		while (--i >= 0)
			(void) LockRelease(&locks[i].tag, locks[i].mode, false);
		return false;
	}
	return true;
}

/* Is it a lock of ours, in this database? */
static bool
is_slice_lock(const LOCKTAG *tag)
{
	return tag->locktag_type == LOCKTAG_ADVISORY && tag->locktag_field1 == MyDatabaseId &&
		tag->locktag_field4 >= ILOAD_LOCK_TARGET && tag->locktag_field4 <= ILOAD_LOCK_SNAPSHOT;
}

/*
 * The process that a parallel worker works for, or the process itself.  As in
 * pg_stat_activity it is looked at without a lock, and may just have ended.
 */
static int
leader_of(int pid)
{
	PGPROC	   *proc = BackendPidGetProc(pid);
	PGPROC	   *leader = proc != NULL ? proc->lockGroupLeader : NULL;

	return leader != NULL ? leader->pid : pid;
}

/*
 * The transactions, "*n" of them, that have run or wait to run a load in this
 * database and take a new snapshot for each statement; their parallel workers
 * among them.  The array lives in the current context.
 */
VirtualTransactionId *
iload_lock_loads(int *n)
{
	LockData   *data = GetLockStatusData();
	VirtualTransactionId *vxids = palloc((data->nelements + 1) * sizeof(VirtualTransactionId));
	List	   *loads = NIL;
	List	   *keepers = NIL;

	*n = 0;
	for (int i = 0; i < data->nelements; i++)
	{
		LockInstanceData *lock = &data->locks[i];

		if (!is_slice_lock(&lock->locktag))
			continue;
		if (lock->locktag.locktag_field4 == ILOAD_LOCK_SNAPSHOT)
			keepers = list_append_unique_int(keepers, lock->pid);
		else
			loads = list_append_unique_int(loads, lock->pid);
	}
	loads = list_difference_int(loads, keepers);
	for (int i = 0; i < data->nelements && loads != NIL; i++)
	{
		LockInstanceData *lock = &data->locks[i];

		if (list_member_int(loads, leader_of(lock->pid)))
			vxids[(*n)++] = iload_lock_vxid(lock);
	}
	return vxids;
}

/* The processes that a process waits for, as a list of integers. */
static List *
blocking_pids(int pid)
{
	List	   *pids = NIL;
	Datum	   *elements;
	int			n;

	deconstruct_array(DatumGetArrayTypeP(DirectFunctionCall1(pg_blocking_pids, Int32GetDatum(pid))),
					  INT4OID, sizeof(int32), true, TYPALIGN_INT, &elements, NULL, &n);
	for (int i = 0; i < n; i++)
		pids = lappend_int(pids, DatumGetInt32(elements[i]));
	return pids;
}

/* Does a process wait for a lock of this session, directly or through others? */
static bool
waits_for_us(int pid)
{
	List	   *pids = list_make1_int(pid);

	/* the list grows while it is walked */
	for (int i = 0; i < list_length(pids); i++)
	{
		pids = list_concat_unique_int(pids, blocking_pids(list_nth_int(pids, i)));
		if (list_member_int(pids, MyProcPid))
			return true;
	}
	return false;
}

/*
 * The transactions, "*n" of them, that wait for a lock of this session, directly or
 * through others.  The array, and what is left over, are in the current context.
 */
VirtualTransactionId *
iload_lock_waiters(int *n)
{
	LockData   *data = GetLockStatusData();
	VirtualTransactionId *vxids = palloc((data->nelements + 1) * sizeof(VirtualTransactionId));

	*n = 0;
	for (int i = 0; i < data->nelements; i++)
	{
		LockInstanceData *lock = &data->locks[i];

		if (lock->waitLockMode != NoLock && lock->pid != MyProcPid && waits_for_us(lock->pid))
			vxids[(*n)++] = iload_lock_vxid(lock);
	}
	return vxids;
}

/*
 * The other transactions, "*n" of them, that hold a lock on one of "relids".  The array
 * lives in the current context.
 */
VirtualTransactionId *
iload_lock_holders(List *relids, int *n)
{
	LockData   *data = GetLockStatusData();
	VirtualTransactionId *vxids = palloc((data->nelements + 1) * sizeof(VirtualTransactionId));

	*n = 0;
	for (int i = 0; i < data->nelements; i++)
	{
		LockInstanceData *lock = &data->locks[i];

		if (lock->locktag.locktag_type == LOCKTAG_RELATION && lock->holdMask != 0 &&
			lock->pid != MyProcPid &&
			lock->locktag.locktag_field1 == MyDatabaseId &&
			list_member_oid(relids, lock->locktag.locktag_field2))
			vxids[(*n)++] = iload_lock_vxid(lock);
	}
	return vxids;
}
