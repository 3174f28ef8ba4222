/*
 * compat.h
 *		Differences between the server's major versions, and nothing else.
 *
 * Each shim has the signature of the newest version and names the change in
 * the server that made it necessary.
 */
#ifndef ILOAD_COMPAT_H
#define ILOAD_COMPAT_H

#include "access/tupdesc.h"
#include "catalog/pg_class.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "pgstat.h"
#include "storage/lock.h"
#include "utils/acl.h"
#include "utils/backend_status.h"
#include "utils/regproc.h"
#include "utils/tuplesort.h"

#if PG_VERSION_NUM < 150000
#error "idempotent_load needs PostgreSQL 15 or later"
#endif

/* 16 replaced the pg_*_ownercheck functions by one (c727f511bd). */
static inline bool
iload_class_ownercheck(Oid relid, Oid roleid)
{
#if PG_VERSION_NUM >= 160000
	return object_ownercheck(RelationRelationId, relid, roleid);
#else
	return pg_class_ownercheck(relid, roleid);
#endif
}

/* 16 lets errors be caught softly (858e776c84). */
static inline List *
iload_string_to_name_list(const char *string)
{
#if PG_VERSION_NUM >= 160000
	return stringToQualifiedNameList(string, NULL);
#else
	return stringToQualifiedNameList(string);
#endif
}

/* 16 let the caller say whether the datum is copied (e1f3c8cdd8 and later). */
static inline bool
iload_tuplesort_getdatum(Tuplesortstate *state, bool forward, Datum *val, bool *isnull)
{
#if PG_VERSION_NUM >= 160000
	return tuplesort_getdatum(state, forward, false, val, isnull, NULL);
#else
	return tuplesort_getdatum(state, forward, val, isnull, NULL);
#endif
}

/* 17 names backends by their place in the proc array (024c521117, ab355e3a88). */
static inline VirtualTransactionId
iload_lock_vxid(const LockInstanceData *lock)
{
#if PG_VERSION_NUM >= 170000
	return lock->vxid;
#else
	VirtualTransactionId vxid;

	vxid.backendId = lock->backend;
	vxid.localTransactionId = lock->lxid;
	return vxid;
#endif
}

/* 16 renamed the function, as its argument is no backend ID (d7e39d72ca). */
static inline LocalPgBackendStatus *
iload_pgstat_get_local_beentry_by_index(int idx)
{
#if PG_VERSION_NUM >= 160000
	return pgstat_get_local_beentry_by_index(idx);
#else
	return pgstat_fetch_stat_local_beentry(idx);
#endif
}

/* 16 renamed the field (ca3187f87d). */
static inline Oid
iload_pgstat_table_id(const PgStat_TableStatus *table)
{
#if PG_VERSION_NUM >= 160000
	return table->id;
#else
	return table->t_id;
#endif
}

/* 18 dropped the parameter execute_once (3eea7a0c97). */
static inline void
iload_ExecutorRun(QueryDesc *desc, uint64 count)
{
#if PG_VERSION_NUM >= 180000
	ExecutorRun(desc, ForwardScanDirection, count);
#else
	ExecutorRun(desc, ForwardScanDirection, count, true);
#endif
}

/* 16 moved the rights that a query needs out of its range table (a61b1f7482). */
static inline List *
iload_query_check_as_users(Query *query)
{
	List	   *users = NIL;
	ListCell   *lc;

#if PG_VERSION_NUM >= 160000
	foreach(lc, query->rteperminfos)
	{
		Oid			user = lfirst_node(RTEPermissionInfo, lc)->checkAsUser;
#else
	foreach(lc, query->rtable)
	{
		Oid			user = lfirst_node(RangeTblEntry, lc)->checkAsUser;
#endif
		if (OidIsValid(user))
			users = list_append_unique_oid(users, user);
	}
	return users;
}

/*
 * Let the rights that are needed for "rte" of "from" be asked for by "moved", the one
 * entry of "to".
 */
static inline void
iload_rte_move_permissions(Query *from, RangeTblEntry *rte, Query *to, RangeTblEntry *moved)
{
#if PG_VERSION_NUM >= 160000
	if (rte->perminfoindex == 0)
		return;
	to->rteperminfos = list_make1(copyObject(list_nth(from->rteperminfos,
													  rte->perminfoindex - 1)));
	moved->perminfoindex = 1;
	rte->perminfoindex = 0;
#else
	(void) from;
	(void) to;
	(void) moved;
	rte->requiredPerms = 0;
	rte->checkAsUser = InvalidOid;
	rte->selectedCols = NULL;
#endif
}

/* 17 keeps the condition of MERGE apart from its FROM (0294df2f1f). */
static inline Node *
iload_merge_join_condition(Query *query)
{
#if PG_VERSION_NUM >= 170000
	return query->mergeJoinCondition;
#else
	(void) query;
	return NULL;
#endif
}

/* 18 lets Vars stand for the expressions of GROUP BY (247dea89f7). */
static inline List *
iload_rte_group_exprs(RangeTblEntry *rte)
{
#if PG_VERSION_NUM >= 180000
	return rte->rtekind == RTE_GROUP ? rte->groupexprs : NIL;
#else
	(void) rte;
	return NIL;
#endif
}

/* 18 keeps a compact copy of each attribute beside the form (5983a4cffc). */
static inline void
iload_attribute_changed(TupleDesc desc, int i)
{
#if PG_VERSION_NUM >= 180000
	populate_compact_attribute(desc, i);
#else
	(void) desc;
	(void) i;
#endif
}

#endif
