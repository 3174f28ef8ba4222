/*
 * columns.c
 *		The columns of the target that a load supplies, and those it compares.
 *
 * Generated columns are left out of both: the server computes them from the
 * others when a row is stored.  Partitions may number their columns in their
 * own way, so everything is kept by the target's order and mapped by name.
 */
#include "postgres.h"

#include "nodes/value.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "columns.h"

static bool
is_named(List *names, const char *name)
{
	ListCell   *lc;

	foreach(lc, names)
	{
		if (strcmp(strVal(lfirst(lc)), name) == 0)
			return true;
	}
	return false;
}

/*
 * Each ignored name must be a column, or a misspelt one would be compared; and
 * not the key, which says to which slice a row belongs.
 */
static void
check_ignored(Relation target, const char *key, List *ignored)
{
	ListCell   *lc;

	foreach(lc, ignored)
	{
		if (get_attnum(RelationGetRelid(target), strVal(lfirst(lc))) <= 0)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("column \"%s\" of table \"%s\" does not exist",
							strVal(lfirst(lc)), RelationGetRelationName(target)),
					 errdetail("It is named in ignore_columns."),
					 errtable(target)));
		if (strcmp(strVal(lfirst(lc)), key) == 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("key column \"%s\" of table \"%s\" cannot be ignored",
							key, RelationGetRelationName(target)),
					 errdetail("It is named in ignore_columns."),
					 errtablecolname(target, key)));
	}
}

/*
 * The columns of "target", whose key column is "key".  Those named in "ignored",
 * a list of String nodes, are not compared.  Allocates in the current context.
 */
IloadColumns *
iload_columns_create(Relation target, const char *key, List *ignored)
{
	TupleDesc	desc = RelationGetDescr(target);
	IloadColumns *columns = palloc0(sizeof(IloadColumns));
	int			n = 0;

	check_ignored(target, key, ignored);
	columns->attnums = palloc(desc->natts * sizeof(AttrNumber));
	columns->compared = palloc(desc->natts * sizeof(AttrNumber));
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!att->attisdropped && att->attgenerated == '\0')
			columns->attnums[n++] = att->attnum;
	}
	if (n == 0)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("table \"%s\" has no column that can be loaded",
						RelationGetRelationName(target)),
				 errtable(target)));

	columns->desc = CreateTemplateTupleDesc(n);
	for (int i = 0; i < n; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, columns->attnums[i] - 1);

		TupleDescInitEntry(columns->desc, i + 1, NameStr(att->attname),
						   att->atttypid, att->atttypmod, att->attndims);
		TupleDescInitEntryCollation(columns->desc, i + 1, att->attcollation);
		if (!is_named(ignored, NameStr(att->attname)))
			columns->compared[columns->ncompared++] = i + 1;
	}
	return columns;
}

/*
 * Of these columns, those named in "names", a list of String nodes.  Allocates in the
 * current context.
 */
IloadColumns *
iload_columns_restrict(const IloadColumns *columns, List *names)
{
	IloadColumns *result = palloc0(sizeof(IloadColumns));
	int			natts = columns->desc->natts;
	AttrNumber *positions = palloc0(natts * sizeof(AttrNumber));	/* new ones */
	int			n = 0;

	result->desc = CreateTemplateTupleDesc(list_length(names));
	result->attnums = palloc(list_length(names) * sizeof(AttrNumber));
	result->compared = palloc(list_length(names) * sizeof(AttrNumber));
	for (int i = 0; i < natts; i++)
	{
		if (!is_named(names, NameStr(TupleDescAttr(columns->desc, i)->attname)))
			continue;
		result->attnums[n++] = columns->attnums[i];
		TupleDescCopyEntry(result->desc, n, columns->desc, i + 1);
		positions[i] = n;
	}
	Assert(n == list_length(names));
	for (int i = 0; i < columns->ncompared; i++)
	{
		AttrNumber	position = positions[columns->compared[i] - 1];

		if (position > 0)
			result->compared[result->ncompared++] = position;
	}
	return result;
}

/* The loaded columns as SQL text, "alias.a, alias.b", or without an alias. */
char *
iload_columns_list(const IloadColumns *columns, const char *alias)
{
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; i < columns->desc->natts; i++)
	{
		if (i > 0)
			appendStringInfoString(&list, ", ");
		if (alias != NULL)
			appendStringInfo(&list, "%s.", alias);
		appendStringInfoString(&list,
							   quote_identifier(NameStr(TupleDescAttr(columns->desc, i)->attname)));
	}
	return list.data;
}

/* A hasher of the compared columns for rows that have the loaded columns. */
IloadRowHasher *
iload_columns_hasher(const IloadColumns *columns)
{
	return iload_row_hasher_create(columns->desc, columns->ncompared, columns->compared);
}

/*
 * The numbers of the loaded columns in "rel", which is the target or a leaf.
 * Allocates in the current context.
 */
AttrNumber *
iload_columns_attnums(const IloadColumns *columns, Relation rel)
{
	AttrNumber *attnums = palloc(columns->desc->natts * sizeof(AttrNumber));

	for (int i = 0; i < columns->desc->natts; i++)
		attnums[i] = get_attnum(RelationGetRelid(rel),
								NameStr(TupleDescAttr(columns->desc, i)->attname));
	return attnums;
}

/* A hasher of the compared columns for tuples as they are stored in a leaf. */
IloadRowHasher *
iload_columns_leaf_hasher(const IloadColumns *columns, Relation leaf)
{
	AttrNumber *loaded = iload_columns_attnums(columns, leaf);
	AttrNumber *attnums = palloc(columns->ncompared * sizeof(AttrNumber));

	for (int i = 0; i < columns->ncompared; i++)
		attnums[i] = loaded[columns->compared[i] - 1];
	return iload_row_hasher_create(RelationGetDescr(leaf), columns->ncompared, attnums);
}
