/*
 * partition.c
 *		Making the partitions that a slice lacks.
 *
 * A new partition is as wide as its nearest sibling, aligned with it, cut where
 * other partitions begin, named after it and partitioned further as it is.
 *
 * It is made as a table of its own and then attached, for that takes only SHARE
 * UPDATE EXCLUSIVE on the parent (and ACCESS EXCLUSIVE on its default
 * partition, which is searched), where CREATE TABLE ... PARTITION OF would lock
 * out all readers of the parent until the load commits.  It belongs to the
 * parent's owner, whose rights the caller must have.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "commands/tablespace.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "partitioning/partdesc.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/partcache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "compat.h"
#include "error_fields.h"
#include "partition.h"
#include "query.h"
#include "sibling.h"

/* No load makes more than this side by side: a month of hours, and some. */
#define MAX_NEW_PARTITIONS	1000

/* The name, or where that is taken, one that is free. */
static char *
free_name(char *name, Oid namespace)
{
	if (!OidIsValid(get_relname_relid(name, namespace)))
		return name;
	return ChooseRelationName(name, NULL, "part", namespace, false);
}

static char *
new_name(Relation parent, IloadKey *key, const IloadSibling *sibling, Datum lower)
{
	Oid			namespace = RelationGetNamespace(parent);
	char	   *name = iload_sibling_name(key, sibling, lower);

	if (name != NULL && strlen(name) < NAMEDATALEN &&
		!OidIsValid(get_relname_relid(name, namespace)))
		return name;
	name = makeObjectName(RelationGetRelationName(parent),
						  iload_sibling_suffix(key, lower), NULL);
	return free_name(name, namespace);
}

static void
execute(const char *text)
{
	SPI_connect();
	if (SPI_execute(text, false, 0) != SPI_OK_UTILITY)
		elog(ERROR, "statement failed: %s", text);
	SPI_finish();
}

/* How a partitioned table is partitioned, as SQL text. */
static char *
partition_by(Oid relid)
{
	Datum		keydef = OidFunctionCall1(F_PG_GET_PARTKEYDEF, ObjectIdGetDatum(relid));

	return TextDatumGetCString(keydef);
}

/* Storage parameters, "name=value" each, as " WITH (name='value', ...)". */
static void
append_reloptions(StringInfo sql, Datum reloptions)
{
	Datum	   *options;
	int			n;

	deconstruct_array(DatumGetArrayTypeP(reloptions), TEXTOID, -1, false, TYPALIGN_INT,
					  &options, NULL, &n);
	for (int i = 0; i < n; i++)
	{
		char	   *name = TextDatumGetCString(options[i]);
		char	   *value = strchr(name, '=');

		if (value == NULL)
			elog(ERROR, "unexpected storage parameter \"%s\"", name);
		*value++ = '\0';
		appendStringInfo(sql, "%s%s=%s", i == 0 ? " WITH (" : ", ", quote_identifier(name),
						 quote_literal_cstr(value));
	}
	if (n > 0)
		appendStringInfoChar(sql, ')');
}

/*
 * Create a table with the columns of "parent", stored, or partitioned further,
 * as "sibling" is; that may be InvalidOid.
 */
static void
create_table(Relation parent, Oid sibling, const char *qualified)
{
	StringInfoData text;
	Oid			tablespace;
	HeapTuple	tup = SearchSysCache1(RELOID,
									  ObjectIdGetDatum(OidIsValid(sibling) ? sibling :
													   RelationGetRelid(parent)));
	Form_pg_class form;
	Datum		reloptions;
	bool		isnull;

	if (!HeapTupleIsValid(tup))
		elog(ERROR, "cache lookup failed for relation %u", sibling);
	form = (Form_pg_class) GETSTRUCT(tup);
	initStringInfo(&text);
	appendStringInfo(&text,
					 "CREATE %sTABLE %s (LIKE %s INCLUDING DEFAULTS INCLUDING GENERATED"
					 " INCLUDING CONSTRAINTS INCLUDING STORAGE INCLUDING COMPRESSION)",
					 form->relpersistence == RELPERSISTENCE_UNLOGGED ? "UNLOGGED " : "",
					 qualified,
					 quote_qualified_identifier(get_namespace_name(RelationGetNamespace(parent)),
												RelationGetRelationName(parent)));
	if (OidIsValid(sibling) && form->relkind == RELKIND_PARTITIONED_TABLE)
		appendStringInfo(&text, " PARTITION BY %s", partition_by(sibling));
	if (OidIsValid(sibling) && form->relkind == RELKIND_RELATION)
	{
		appendStringInfo(&text, " USING %s", quote_identifier(get_am_name(form->relam)));
		reloptions = SysCacheGetAttr(RELOID, tup, Anum_pg_class_reloptions, &isnull);
		if (!isnull)
			append_reloptions(&text, reloptions);
	}

	/*
	 * of what is stored, always named, or the session's default would be
	 * taken
	 */
	tablespace = form->reltablespace;
	if (!OidIsValid(tablespace) && form->relkind == RELKIND_RELATION)
		tablespace = MyDatabaseTableSpace;
	if (OidIsValid(tablespace))
		appendStringInfo(&text, " TABLESPACE %s",
						 quote_identifier(get_tablespace_name(tablespace)));
	execute(text.data);
	if (form->relreplident == REPLICA_IDENTITY_FULL)
		execute(psprintf("ALTER TABLE %s REPLICA IDENTITY FULL", qualified));
	else if (form->relreplident == REPLICA_IDENTITY_NOTHING)
		execute(psprintf("ALTER TABLE %s REPLICA IDENTITY NOTHING", qualified));
	ReleaseSysCache(tup);
}

/* The bound of a partition as SQL text. */
static char *
bound_text(Oid relid)
{
	HeapTuple	tup = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Datum		bound;
	bool		isnull;

	if (!HeapTupleIsValid(tup))
		elog(ERROR, "cache lookup failed for relation %u", relid);
	bound = SysCacheGetAttr(RELOID, tup, Anum_pg_class_relpartbound, &isnull);
	if (isnull)
		elog(ERROR, "relation %u is not a partition", relid);
	bound = DirectFunctionCall2(pg_get_expr, bound, ObjectIdGetDatum(relid));
	ReleaseSysCache(tup);
	return TextDatumGetCString(bound);
}

/*
 * Give the new table "name" the partitions that "sibling" has, unless those are
 * by the key itself, whose bounds differ: those are made by the next search for
 * gaps.
 */
static void
copy_partitions(Oid sibling, Oid namespace, const char *name, const char *column)
{
	Relation	rel;
	PartitionDesc desc;
	char	   *schema = get_namespace_name(namespace);
	char	   *parent_qualified = quote_qualified_identifier(schema, name);
	const char *sibling_name = get_rel_name(sibling);

	check_stack_depth();
	rel = table_open(sibling, AccessShareLock);
	desc = RelationGetPartitionDesc(rel, true);
	for (int i = 0; i < desc->nparts && !iload_partitioned_by_column(rel, column); i++)
	{
		const char *child_name = get_rel_name(desc->oids[i]);
		size_t		length = strlen(sibling_name);
		char	   *new_child;
		char	   *qualified;

		new_child = strncmp(child_name, sibling_name, length) == 0 ?
			makeObjectName(name, child_name[length] == '_' ? child_name + length + 1 :
						   child_name + length, NULL) :
			makeObjectName(name, psprintf("%d", i), NULL);
		new_child = free_name(new_child, namespace);
		qualified = quote_qualified_identifier(schema, new_child);
		create_table(rel, desc->oids[i], qualified);
		if (!desc->is_leaf[i])
			copy_partitions(desc->oids[i], namespace, new_child, column);
		execute(psprintf("ALTER TABLE %s ATTACH PARTITION %s %s",
						 parent_qualified, qualified, bound_text(desc->oids[i])));
	}
	table_close(rel, NoLock);
}

/*
 * Does the default partition hold rows that a new partition would have to take?
 * Then that cannot be attached.  Asked through the target, with the caller's
 * rights; "range" is about the key.
 */
static bool
default_holds(IloadSlice *slice, IloadGap *gap, const char *range)
{
	StringInfoData text;
	bool		found;
	ListCell   *lc;

	if (!OidIsValid(gap->default_leaf))
		return false;
	initStringInfo(&text);
	appendStringInfo(&text, ILOAD_QUERY_MARK "SELECT FROM %s AS t WHERE %s"
					 " AND t.tableoid OPERATOR(pg_catalog.=) ANY ('{",
					 iload_slice_table(slice), range);
	foreach(lc, find_all_inheritors(gap->default_leaf, AccessShareLock, NULL))
		appendStringInfo(&text, "%s%u", foreach_current_index(lc) > 0 ? "," : "", lfirst_oid(lc));
	appendStringInfoString(&text, "}'::pg_catalog.oid[]) LIMIT 1");

	SPI_connect();
	if (SPI_execute(text.data, false, 0) != SPI_OK_SELECT)
		elog(ERROR, "statement failed: %s", text.data);
	found = SPI_processed > 0;
	SPI_finish();
	return found;
}

/*
 * Create one table and attach it, as the owner of its parent.  Everything that
 * needs the parent open comes before ATTACH, which wants it not to be in use.
 */
static void
create_one(IloadGap *gap, IloadSlice *slice, const IloadSibling *sibling,
		   Datum lower, const char *bound)
{
	Relation	parent = table_open(gap->parent, NoLock);
	Oid			namespace = RelationGetNamespace(parent);
	char	   *schema = get_namespace_name(namespace);
	char	   *name = new_name(parent, slice->key, sibling, lower);
	char	   *qualified = quote_qualified_identifier(schema, name);
	char	   *parent_name = quote_qualified_identifier(schema, RelationGetRelationName(parent));
	Oid			user;
	int			context;

	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(parent->rd_rel->relowner, context | SECURITY_LOCAL_USERID_CHANGE);
	create_table(parent, sibling->relid, qualified);
	table_close(parent, NoLock);
	if (OidIsValid(sibling->relid) &&
		get_rel_relkind(sibling->relid) == RELKIND_PARTITIONED_TABLE)
		copy_partitions(sibling->relid, namespace, name, slice->key->name);
	execute(psprintf("ALTER TABLE %s ATTACH PARTITION %s %s", parent_name, qualified, bound));
	SetUserIdAndSecContext(user, context);
	CommandCounterIncrement();
}

static bool
create_for_value(IloadSlice *slice, IloadGap *gap)
{
	IloadKey   *key = slice->key;
	IloadSibling sibling;

	if (default_holds(slice, gap, iload_key_condition(key, key->op_eq, gap->lower)))
		return false;
	iload_sibling_of_value(key, gap->parent, &sibling);
	create_one(gap, slice, &sibling, gap->lower,
			   psprintf("FOR VALUES IN (%s)", iload_key_literal(key, gap->lower)));
	return true;
}

/*
 * Create the partition for "at", in the gap, unless the default partition holds
 * rows of it.  "end" is set to its upper bound, in the context "result".
 */
static bool
create_for_bound(IloadSlice *slice, IloadGap *gap, Datum at, MemoryContext result, Datum *end)
{
	IloadKey   *key = slice->key;
	IloadSibling sibling;
	Datum		lower,
				upper;
	MemoryContext old;

	iload_sibling_of_range(key, gap, at, &sibling, &lower, &upper);
	old = MemoryContextSwitchTo(result);
	*end = datumCopy(upper, key->typbyval, key->typlen);
	MemoryContextSwitchTo(old);

	if (default_holds(slice, gap, psprintf("%s AND %s", iload_key_condition(key, key->op_ge, lower),
										   iload_key_condition(key, key->op_lt, upper))))
		return false;
	create_one(gap, slice, &sibling, lower,
			   psprintf("FOR VALUES FROM (%s) TO (%s)",
						iload_key_literal(key, lower), iload_key_literal(key, upper)));
	return true;
}

/* Refuse a gap that needs more partitions than anybody can have meant. */
static void
check_number(IloadSlice *slice, IloadGap *gap)
{
	Datum		at = gap->lower;
	Datum		lower;
	IloadSibling sibling;

	for (int n = 0; iload_key_cmp(slice->key, at, gap->upper) < 0; n++)
	{
		if (n == MAX_NEW_PARTITIONS)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("slice %s of table \"%s\" needs more than %d new partitions",
							iload_slice_text(slice), slice->table_name, MAX_NEW_PARTITIONS),
					 errhint("Create them first, or load smaller slices."),
					 iload_errtable(slice->target)));
		iload_sibling_of_range(slice->key, gap, at, &sibling, &lower, &at);
	}
}

/*
 * Create as many partitions, side by side, as the gap needs.  Whoever attaches
 * one and looks at the bounds again gets all of them read anew, into the current
 * context, so each turn has its own.
 */
static bool
create_for_range(IloadSlice *slice, IloadGap *gap)
{
	Datum		at = gap->lower;
	bool		made = false;
	MemoryContext turn = AllocSetContextCreate(CurrentMemoryContext,
											   "idempotent_load new partition",
											   ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(turn);

	check_number(slice, gap);
	while (iload_key_cmp(slice->key, at, gap->upper) < 0)
	{
		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(turn);
		made = create_for_bound(slice, gap, at, old, &at) || made;
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(turn);
	return made;
}

/*
 * Make the partitions that fill "gap", as far as its default partition, if it
 * has one, does not hold rows of theirs.  Returns whether one was made.
 *
 * The caller holds the slice lock, and SHARE UPDATE EXCLUSIVE on the table that
 * the gap is in, and has no relation open that is partitioned.
 * Errors: the caller has not the rights of the owner of the partitioned table;
 * it is partitioned in a way that bounds cannot be found for; and those of
 * CREATE TABLE and ALTER TABLE ... ATTACH PARTITION.
 */
bool
iload_partition_create(IloadSlice *slice, IloadGap *gap)
{
	Relation	parent = table_open(gap->parent, NoLock);
	PartitionKey part = RelationGetPartitionKey(parent);
	bool		by_list = part->strategy == PARTITION_STRATEGY_LIST;
	bool		possible = part->partnatts == 1 && (by_list || !gap->single);
	char	   *name = pstrdup(RelationGetRelationName(parent));

	table_close(parent, NoLock);
	if (OidIsValid(gap->default_leaf) &&
		(!possible || !iload_class_ownercheck(gap->parent, GetUserId())))
		return false;
	if (!possible)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" has no partition for slice %s", name, iload_slice_text(slice)),
				 errdetail("The bounds of a new one cannot be told from the slice."),
				 errhint("Create the partition first."),
				 iload_errtable(gap->parent)));
	if (!iload_class_ownercheck(gap->parent, GetUserId()))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("table \"%s\" has no partition for slice %s", name, iload_slice_text(slice)),
				 errdetail("Only its owner can create one."),
				 errhint("Let the owner create the partition first."),
				 iload_errtable(gap->parent)));
	return by_list ? create_for_value(slice, gap) : create_for_range(slice, gap);
}
