/*
 * target.c
 *		The target: the table whose slices are loaded.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/transam.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "error_fields.h"
#include "target.h"

static void
check_kind(Oid relid)
{
	char		kind = get_rel_relkind(relid);
	const char *name = get_rel_name(relid);

	if (name == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid)));
	if (kind != RELKIND_RELATION && kind != RELKIND_PARTITIONED_TABLE &&
		kind != RELKIND_FOREIGN_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" cannot be the target of a load", name),
				 errdetail_relkind_not_supported(kind),
				 errhint("A target is a table, a partitioned table or a foreign table."),
				 iload_errtable(relid)));
	if (relid < FirstUnpinnedObjectId)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied: \"%s\" is a system catalog", name),
				 iload_errtable(relid)));
}

/*
 * To read needs SELECT; to load, all that the SQL needs which a load replaces,
 * whatever the method.
 */
#define READ_RIGHTS		ACL_SELECT
#define LOAD_RIGHTS		(ACL_SELECT | ACL_INSERT | ACL_DELETE)
#define MERGE_RIGHTS	(ACL_SELECT | ACL_INSERT | ACL_UPDATE)

static void
check_privileges(Oid relid, AclMode needed)
{
	static const struct
	{
		AclMode		mode;
		const char *name;
	}			modes[] = {
		{ACL_SELECT, "SELECT"}, {ACL_INSERT, "INSERT"}, {ACL_UPDATE, "UPDATE"},
		{ACL_DELETE, "DELETE"}
	};
	StringInfoData missing;

	initStringInfo(&missing);
	for (int i = 0; i < (int) lengthof(modes); i++)
	{
		if ((modes[i].mode & needed) != 0 &&
			pg_class_aclcheck(relid, GetUserId(), modes[i].mode) != ACLCHECK_OK)
			appendStringInfo(&missing, "%s%s", missing.len > 0 ? ", " : "", modes[i].name);
	}
	if (missing.len > 0)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for table %s", get_rel_name(relid)),
				 needed == READ_RIGHTS ?
				 errdetail("Role \"%s\" lacks %s.",
						   GetUserNameFromId(GetUserId(), false), missing.data) :
				 errdetail("A %s needs SELECT, INSERT and %s on its target; role \"%s\" lacks %s.",
						   needed == MERGE_RIGHTS ? "merge" : "load",
						   needed == MERGE_RIGHTS ? "UPDATE" : "DELETE",
						   GetUserNameFromId(GetUserId(), false), missing.data),
				 iload_errtable(relid)));
}

/* What was checked before the wait for the lock is checked again after it. */
static Relation
open_target(Oid relid, LOCKMODE lockmode, AclMode needed)
{
	Relation	target;

	check_kind(relid);
	check_privileges(relid, needed);
	LockRelationOid(relid, lockmode);
	check_kind(relid);
	check_privileges(relid, needed);
	target = table_open(relid, NoLock);
	if (RELATION_IS_OTHER_TEMP(target))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("temporary table \"%s\" of another session cannot be the target of a load",
						RelationGetRelationName(target)),
				 errtable(target)));
	return target;
}

/*
 * Open the target, which the caller must have the right to load, with the lock
 * that INSERT and DELETE take (ROW EXCLUSIVE), or to read, with that of SELECT
 * (ACCESS SHARE).
 */
Relation
iload_target_open(Oid relid, LOCKMODE lockmode)
{
	return open_target(relid, lockmode, lockmode == AccessShareLock ? READ_RIGHTS : LOAD_RIGHTS);
}

/* The same, with ROW EXCLUSIVE, for a merge, which updates instead of deleting. */
Relation
iload_target_open_for_merge(Oid relid)
{
	return open_target(relid, RowExclusiveLock, MERGE_RIGHTS);
}
