/*
 * merge_key.h
 *		The key of a merge, which tells rows apart, and the version.
 */
#ifndef ILOAD_MERGE_KEY_H
#define ILOAD_MERGE_KEY_H

#include "executor/tuptable.h"
#include "utils/relcache.h"
#include "utils/typcache.h"

#include "columns.h"
#include "slice.h"

/* Columns of a key; which of them are null is a mask of so many bits. */
#define ILOAD_MERGE_KEY_MAX	32

/* A column of the key, or the version; compared as its type compares values. */
typedef struct IloadMergeColumn
{
	AttrNumber	position;		/* among the loaded columns, from 1 */
	const char *name;			/* quoted where it has to be */
	Form_pg_attribute att;		/* of the loaded columns */
	TypeCacheEntry *type;
	char	   *op_eq;			/* OPERATOR(schema.=), ready for SQL text */
	char	   *op_gt;
} IloadMergeColumn;

typedef struct IloadMergeKey
{
	int			ncolumns;
	IloadMergeColumn *columns;
	IloadMergeColumn *version;	/* or NULL */
	MemoryContext scratch;		/* reset for each value or row */
} IloadMergeKey;

extern IloadMergeKey *iload_merge_key_create(Relation target, IloadSlice *slice,
											 const char *query, List *names,
											 const char *version, IloadColumns **columns);
extern bool iload_merge_key_has(const IloadMergeKey *key, AttrNumber position);
extern uint64 iload_merge_key_hash(const IloadMergeKey *key, TupleTableSlot *row);
extern bool iload_merge_key_same_value(const IloadMergeKey *key, const IloadMergeColumn *column,
									   AttrNumber attnum, TupleTableSlot *a, TupleTableSlot *b);
extern char *iload_merge_key_condition(const IloadMergeKey *key, const char *other,
									   uint32 nulls);
extern char *iload_merge_key_text(const IloadMergeKey *key, TupleTableSlot *row);

#endif
