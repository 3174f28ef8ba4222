/*
 * root.c
 *		The table that a partition belongs to in the end.
 */
#include "postgres.h"

#include "catalog/partition.h"
#include "nodes/pg_list.h"
#include "utils/lsyscache.h"

#include "root.h"

/* The topmost ancestor of a table, which is the table itself if it is no partition. */
Oid
iload_root(Oid relid)
{
	return get_rel_relispartition(relid) ? llast_oid(get_partition_ancestors(relid)) : relid;
}
