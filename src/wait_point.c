/*
 * wait_point.c
 *		Named steps of a load at which a test can stop it.
 *
 * Races and crashes are tested by making them certain, not by sleeping.  When
 * the setting idempotent_load.wait_point names the step that a load has come
 * to, the load takes and gives back the advisory lock
 * (hashtext('idempotent_load'), hashtext(step)) in share mode.  A test holds
 * that lock exclusively, sees the load waiting in pg_locks, and kills it or
 * lets it go.  Without the setting a step costs one comparison.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/lock.h"

#include "guc.h"
#include "wait_point.h"

/* field 4 of the lock tag by which the server marks locks on two int4 keys */
#define ADVISORY_TWO_KEYS	2

static uint32
hash_name(const char *name)
{
	return DatumGetUInt32(hash_any((const unsigned char *) name, strlen(name)));
}

/*
 * Come to the step "name".  Waits, and can be cancelled or fail like any wait
 * for a heavyweight lock, only if the session asked for it.
 */
void
iload_wait_point(const char *name)
{
	LOCKTAG		tag;

	if (likely(iload_wait_point_name[0] == '\0') ||
		strcmp(iload_wait_point_name, name) != 0)
		return;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, hash_name("idempotent_load"),
						 hash_name(name), ADVISORY_TWO_KEYS);
	(void) LockAcquire(&tag, ShareLock, false, false);
	(void) LockRelease(&tag, ShareLock, false);
}
