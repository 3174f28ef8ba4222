/*
 * merge_key.c
 *		The key of a merge, which tells rows apart, and the version.
 *
 * Two rows are versions of one where each column of the key is equal as its type
 * has it (numeric 1.0 equals 1.00), or null in both.  So a type of a key or version
 * needs an order; where it can also be hashed, rows are told apart with less work.
 *
 * Everything is allocated in the context that is current when the key is made.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "nodes/value.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "errcodes.h"
#include "merge_key.h"
#include "shape.h"

/* The position of a column among the loaded ones, which are those of the query. */
static AttrNumber
find_position(Relation target, const IloadColumns *columns, const char *option, const char *name)
{
	for (int i = 0; i < columns->desc->natts; i++)
	{
		if (strcmp(NameStr(TupleDescAttr(columns->desc, i)->attname), name) == 0)
			return i + 1;
	}
	if (get_attnum(RelationGetRelid(target), name) <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of table \"%s\" does not exist",
						name, RelationGetRelationName(target)),
				 errdetail("It is named in %s.", option),
				 errtable(target)));
	ereport(ERROR,
			(errcode(ERRCODE_ILOAD_QUERY_SHAPE),
			 errmsg("query lacks the column \"%s\" of table \"%s\"",
					name, RelationGetRelationName(target)),
			 errdetail("It is named in %s.", option),
			 errtablecolname(target, name)));
}

static bool
is_compared(const IloadColumns *columns, AttrNumber position)
{
	for (int i = 0; i < columns->ncompared; i++)
	{
		if (columns->compared[i] == position)
			return true;
	}
	return false;
}

static void
describe_column(IloadMergeColumn *column, Relation target, const IloadColumns *columns,
				const char *option, const char *name)
{
	column->position = find_position(target, columns, option, name);
	if (!is_compared(columns, column->position))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("column \"%s\" of table \"%s\" cannot be ignored",
						name, RelationGetRelationName(target)),
				 errdetail("It is named in both %s and ignore_columns.", option),
				 errtablecolname(target, name)));
	column->name = quote_identifier(pstrdup(name));
	column->att = TupleDescAttr(columns->desc, column->position - 1);
	column->type = lookup_type_cache(column->att->atttypid,
									 TYPECACHE_EQ_OPR_FINFO | TYPECACHE_LT_OPR |
									 TYPECACHE_GT_OPR | TYPECACHE_HASH_EXTENDED_PROC_FINFO);
	if (!OidIsValid(column->type->lt_opr) || !OidIsValid(column->type->eq_opr))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("column \"%s\" of type %s cannot be named in %s",
						name, format_type_be(column->att->atttypid), option),
				 errdetail("The type has no default btree operator class."),
				 errtablecolname(target, name)));
	column->op_eq = iload_operator_text(column->type->eq_opr);
	column->op_gt = iload_operator_text(column->type->gt_opr);
}

static void
check_names(List *names, const char *version)
{
	ListCell   *lc;

	if (names == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("key of a merge must name at least one column")));
	if (list_length(names) > ILOAD_MERGE_KEY_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_TOO_MANY_COLUMNS),
				 errmsg("key of a merge cannot have more than %d columns", ILOAD_MERGE_KEY_MAX)));
	foreach(lc, names)
	{
		if (version != NULL && strcmp(strVal(lfirst(lc)), version) == 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("version column \"%s\" cannot be a part of the key", version)));
		for (int i = 0; i < foreach_current_index(lc); i++)
		{
			if (equal(list_nth(names, i), lfirst(lc)))
				ereport(ERROR,
						(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						 errmsg("column \"%s\" is named twice in the key",
								strVal(lfirst(lc)))));
		}
	}
}

/*
 * The key of columns "names", a list of String, and the version column or NULL.  A
 * merge loads the columns that the query gives and no others: "columns", those that
 * can be loaded, becomes them.
 *
 * Errors: a query of another shape, or without these columns; a type without order.
 */
IloadMergeKey *
iload_merge_key_create(Relation target, IloadSlice *slice, const char *query,
					   List *names, const char *version, IloadColumns **columns)
{
	IloadMergeKey *key = palloc0(sizeof(IloadMergeKey));
	ListCell   *lc;

	check_names(names, version);
	*columns = iload_columns_restrict(*columns,
									  iload_shape_names(target, slice, *columns, query));
	key->scratch = AllocSetContextCreate(CurrentMemoryContext, "idempotent_load merge key",
										 ALLOCSET_SMALL_SIZES);
	key->ncolumns = list_length(names);
	key->columns = palloc0(key->ncolumns * sizeof(IloadMergeColumn));
	foreach(lc, names)
		describe_column(&key->columns[foreach_current_index(lc)], target, *columns,
						"key", strVal(lfirst(lc)));
	if (version != NULL)
	{
		key->version = palloc0(sizeof(IloadMergeColumn));
		describe_column(key->version, target, *columns, "version", version);
	}
	return key;
}

/* Is the loaded column at a position a part of the key? */
bool
iload_merge_key_has(const IloadMergeKey *key, AttrNumber position)
{
	for (int i = 0; i < key->ncolumns; i++)
	{
		if (key->columns[i].position == position)
			return true;
	}
	return false;
}

/*
 * A hash of the key in a row of the loaded columns: equal keys have equal hashes.
 * Columns of a type that cannot be hashed count for nothing.
 */
uint64
iload_merge_key_hash(const IloadMergeKey *key, TupleTableSlot *row)
{
	MemoryContext old = MemoryContextSwitchTo(key->scratch);
	uint64		hash = 0;

	for (int i = 0; i < key->ncolumns; i++)
	{
		const IloadMergeColumn *column = &key->columns[i];
		bool		isnull;
		Datum		value = slot_getattr(row, column->position, &isnull);
		uint64		part = 0;

		if (!isnull && OidIsValid(column->type->hash_extended_proc))
			part = DatumGetUInt64(FunctionCall2Coll(&column->type->hash_extended_proc_finfo,
													column->att->attcollation, value,
													UInt64GetDatum(0)));
		hash = hash_combine64(hash, part);
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(key->scratch);
	return hash;
}

/* Have two rows the same value, or null, in "attnum", which holds a column of the key? */
bool
iload_merge_key_same_value(const IloadMergeKey *key, const IloadMergeColumn *column,
						   AttrNumber attnum, TupleTableSlot *a, TupleTableSlot *b)
{
	MemoryContext old;
	bool		null_a,
				null_b,
				same;
	Datum		value_a = slot_getattr(a, attnum, &null_a);
	Datum		value_b = slot_getattr(b, attnum, &null_b);

	if (null_a || null_b)
		return null_a && null_b;
	old = MemoryContextSwitchTo(key->scratch);
	same = DatumGetBool(FunctionCall2Coll(&column->type->eq_opr_finfo,
										  column->att->attcollation, value_a, value_b));
	MemoryContextSwitchTo(old);
	MemoryContextReset(key->scratch);
	return same;
}

/*
 * SQL text that is true where the key in the target "t" is that in "other", whose
 * columns go by k1, k2 and so on.  Columns whose bit in "nulls" is set are null in
 * both.
 */
char *
iload_merge_key_condition(const IloadMergeKey *key, const char *other, uint32 nulls)
{
	StringInfoData text;

	initStringInfo(&text);
	for (int i = 0; i < key->ncolumns; i++)
	{
		const IloadMergeColumn *column = &key->columns[i];

		if (i > 0)
			appendStringInfoString(&text, " AND ");
		if ((nulls >> i & 1) != 0)
			appendStringInfo(&text, "t.%s IS NULL AND %s.k%d IS NULL", column->name, other, i + 1);
		else
			appendStringInfo(&text, "t.%s %s %s.k%d", column->name, column->op_eq, other, i + 1);
	}
	return text.data;
}

/* The key in a row of the loaded columns, for messages: "(a, b)=(1, null)". */
char *
iload_merge_key_text(const IloadMergeKey *key, TupleTableSlot *row)
{
	StringInfoData names,
				values;

	initStringInfo(&names);
	initStringInfo(&values);
	for (int i = 0; i < key->ncolumns; i++)
	{
		const IloadMergeColumn *column = &key->columns[i];
		const char *comma = i > 0 ? ", " : "";
		bool		isnull;
		Datum		value = slot_getattr(row, column->position, &isnull);
		Oid			output;
		bool		varlena;

		getTypeOutputInfo(column->att->atttypid, &output, &varlena);
		appendStringInfo(&names, "%s%s", comma, column->name);
		appendStringInfo(&values, "%s%s", comma,
						 isnull ? "null" : OidOutputFunctionCall(output, value));
	}
	return psprintf("(%s)=(%s)", names.data, values.data);
}
