/*
 * root.c
 *		The table that a partition belongs to in the end, and a table's name.
 */
#include "postgres.h"

#include "catalog/partition.h"
#include "nodes/pg_list.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "root.h"

/* The topmost ancestor of a table, which is the table itself if it is no partition. */
Oid
iload_root(Oid relid)
{
	return get_rel_relispartition(relid) ? llast_oid(get_partition_ancestors(relid)) : relid;
}

/* A table's name in SQL text and messages, qualified and quoted; NULL where it is gone. */
char *
iload_table_name(Oid relid)
{
	char	   *name = get_rel_name(relid);

	if (name == NULL)
		return NULL;
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)), name);
}
