/*
 * columns.h
 *		The columns of the target that a load supplies, and those it compares.
 */
#ifndef ILOAD_COLUMNS_H
#define ILOAD_COLUMNS_H

#include "access/tupdesc.h"
#include "nodes/pg_list.h"
#include "utils/relcache.h"

#include "row_hash.h"

/*
 * The spool, and everything that is read for a comparison, has one column for
 * each column of the target that is neither dropped nor generated, in the
 * target's order: the loaded columns.  Those that the caller did not ask to
 * ignore are compared.
 */
typedef struct IloadColumns
{
	TupleDesc	desc;			/* of the loaded columns */
	AttrNumber *attnums;		/* of each in the target */
	int			ncompared;
	AttrNumber *compared;		/* positions in "desc", from 1 */
} IloadColumns;

extern IloadColumns *iload_columns_create(Relation target, const char *key, List *ignored);
extern IloadColumns *iload_columns_restrict(const IloadColumns *columns, List *names);
extern char *iload_columns_list(const IloadColumns *columns, const char *alias);
extern AttrNumber *iload_columns_attnums(const IloadColumns *columns, Relation rel);
extern IloadRowHasher *iload_columns_hasher(const IloadColumns *columns);
extern IloadRowHasher *iload_columns_leaf_hasher(const IloadColumns *columns, Relation leaf);

#endif
