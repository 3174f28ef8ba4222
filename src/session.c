/*
 * session.c
 *		What a job leaves in the session, and no rollback takes away.
 *
 * Reruns of a job come in other sessions.  What the first run has left in this one
 * would make a rerun fail, or do other things, for no fault of the job: prepared
 * statements, cursors, temporary relations that were to go at commit, advisory locks of the session.
 */
#include "postgres.h"

#include "catalog/dependency.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "commands/prepare.h"
#include "executor/spi.h"
#include "nodes/value.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/syscache.h"

#include "query.h"
#include "session.h"

/* More times than these an advisory lock is not given back. */
#define MAX_UNLOCKS 1000

#define SELECT_CURSORS \
	ILOAD_QUERY_MARK "SELECT name FROM pg_catalog.pg_cursors"

#define SELECT_STATEMENTS \
	ILOAD_QUERY_MARK "SELECT name FROM pg_catalog.pg_prepared_statements"

/* The locks of pg_advisory_lock(key) and pg_advisory_lock(key1, key2), as text. */
#define SELECT_LOCKS \
	ILOAD_QUERY_MARK "SELECT pg_catalog.format('%s %s %s %s', classid, objid, objsubid, mode)" \
	" FROM pg_catalog.pg_locks" \
	" WHERE locktype OPERATOR(pg_catalog.=) 'advisory' AND granted" \
	" AND pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()" \
	" AND objsubid OPERATOR(pg_catalog.<=) 2"

/* The call that gives one of these locks back, built from the parts of its text. */
#define UNLOCK_ONE \
	ILOAD_QUERY_MARK "SELECT CASE WHEN two AND share THEN pg_catalog.pg_advisory_unlock_shared(a, b)" \
	" WHEN two THEN pg_catalog.pg_advisory_unlock(a, b)" \
	" WHEN share THEN pg_catalog.pg_advisory_unlock_shared(k)" \
	" ELSE pg_catalog.pg_advisory_unlock(k) END" \
	" FROM (SELECT p[3] OPERATOR(pg_catalog.=) '2' AS two," \
	" p[4] OPERATOR(pg_catalog.=) 'ShareLock' AS share," \
	" ((p[1]::bigint OPERATOR(pg_catalog.<<) 32) OPERATOR(pg_catalog.|) p[2]::bigint) AS k," \
	" p[1]::bigint::bit(32)::integer AS a, p[2]::bigint::bit(32)::integer AS b" \
	" FROM pg_catalog.string_to_array($1, ' ') AS p) AS lock"

/* The first column of a query, a list of String in the current context. */
static List *
select_names(const char *text)
{
	MemoryContext context = CurrentMemoryContext;
	List	   *names = NIL;

	SPI_connect();
	if (SPI_execute(text, false, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not look at the session");
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		char	   *name = SPI_getvalue(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1);
		MemoryContext old = MemoryContextSwitchTo(context);

		names = lappend(names, makeString(pstrdup(name)));
		MemoryContextSwitchTo(old);
	}
	SPI_finish();
	return names;
}

/* See what the session has, in the current context. */
IloadSession *
iload_session_remember(void)
{
	IloadSession *session = palloc(sizeof(IloadSession));

	session->statements = select_names(SELECT_STATEMENTS);
	session->cursors = select_names(SELECT_CURSORS);
	session->locks = select_names(SELECT_LOCKS);
	return session;
}

/* Deallocate the prepared statements that were not there before. */
void
iload_session_deallocate(const IloadSession *session)
{
	List	   *statements = select_names(SELECT_STATEMENTS);
	ListCell   *lc;

	foreach(lc, statements)
	{
		if (!list_member(session->statements, lfirst(lc)))
			DropPreparedStatement(strVal(lfirst(lc)), false);
	}
}

/* Close the cursors that were not there before, as the end of the transaction would. */
void
iload_session_close_cursors(const IloadSession *session)
{
	List	   *cursors = select_names(SELECT_CURSORS);
	ListCell   *lc;

	foreach(lc, cursors)
	{
		Portal		portal = list_member(session->cursors, lfirst(lc)) ? NULL :
		GetPortalByName(strVal(lfirst(lc)));

		if (PortalIsValid(portal))
			PortalDrop(portal, false);
	}
}

/*
 * Give back the advisory locks that were not held before.  The transaction holds none
 * of them any more, so they are the session's, held once for each run.
 */
void
iload_session_unlock(const IloadSession *session)
{
	for (int i = 0; i < MAX_UNLOCKS; i++)
	{
		List	   *locks = list_difference(select_names(SELECT_LOCKS), session->locks);
		ListCell   *lc;

		if (locks == NIL)
			break;
		foreach(lc, locks)
		{
			Oid			type = TEXTOID;
			Datum		value = CStringGetTextDatum(strVal(lfirst(lc)));

			SPI_connect();
			if (SPI_execute_with_args(UNLOCK_ONE, 1, &type, &value, NULL, false, 1) != SPI_OK_SELECT)
				elog(ERROR, "could not give back an advisory lock");
			SPI_finish();
		}
	}
}

/*
 * Drop the temporary relations that a run has made, by OID, as the end of its session
 * would: whoever owns them.
 */
void
iload_session_drop_temporary(List *relations)
{
	ObjectAddresses *objects = new_object_addresses();
	ListCell   *lc;

	foreach(lc, relations)
	{
		ObjectAddress object;

		ObjectAddressSet(object, RelationRelationId, lfirst_oid(lc));
		if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(object.objectId)))
			add_exact_object_address(&object, objects);
	}
	performMultipleDeletions(objects, DROP_CASCADE,
							 PERFORM_DELETION_INTERNAL | PERFORM_DELETION_QUIETLY);
	free_object_addresses(objects);
}
