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
#include "partitioning/partbounds.h"
#include "partitioning/partdesc.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "partition.h"

typedef struct Template
{
	Oid			sibling;		/* the nearest one, or InvalidOid */
	Datum		lower;			/* its bounds; of a list, its first value */
	Datum		upper;
	bool		bounded;		/* both bounds are finite */
	bool		has_floor;		/* the end of the partition before the gap */
	Datum		floor;
	bool		has_ceiling;	/* the start of the partition after it */
	Datum		ceiling;
} Template;

/* A key value as a point in local time; false where it does not stand for one. */
static bool
time_of_value(const IloadKey *key, Datum value, Timestamp *result)
{
	DateADT		date;

	if (key->kind == ILOAD_KEY_TIMESTAMP)
		*result = DatumGetTimestamp(value);
	else if (key->kind == ILOAD_KEY_TIMESTAMPTZ)
		*result = DatumGetTimestamp(DirectFunctionCall1(timestamptz_timestamp, value));
	else if (iload_key_is_day(key, value, &date))
		*result = DatumGetTimestamp(DirectFunctionCall1(date_timestamp, DateADTGetDatum(date)));
	else
		return false;
	return !TIMESTAMP_NOT_FINITE(*result);
}

static Datum
value_of_time(const IloadKey *key, Timestamp value)
{
	if (key->kind == ILOAD_KEY_TIMESTAMP)
		return TimestampGetDatum(value);
	if (key->kind == ILOAD_KEY_TIMESTAMPTZ)
		return DirectFunctionCall1(timestamp_timestamptz, TimestampGetDatum(value));
	return iload_key_from_date(key,
							   DatumGetDateADT(DirectFunctionCall1(timestamp_date,
																   TimestampGetDatum(value))));
}

static int64
number_of_value(const IloadKey *key, Datum value)
{
	return key->type == INT8OID ? DatumGetInt64(value) : DatumGetInt32(value);
}

static Datum
value_of_number(const IloadKey *key, int64 value)
{
	if (key->type == INT8OID)
		return Int64GetDatum(value);
	if (value < PG_INT32_MIN || value > PG_INT32_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("integer out of range")));
	return Int32GetDatum((int32) value);
}

/* Months since year 0 of a timestamp; false unless it is the first of a month. */
static bool
month_number(Timestamp value, int64 *months)
{
	struct pg_tm tm;
	fsec_t		fsec;

	if (timestamp2tm(value, NULL, &tm, &fsec, NULL, NULL) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range")));
	*months = (int64) tm.tm_year * 12 + tm.tm_mon - 1;
	return tm.tm_mday == 1 && value % USECS_PER_DAY == 0;
}

static Timestamp
month_start(int64 months)
{
	return (date2j(months / 12, months % 12 + 1, 1) - POSTGRES_EPOCH_JDATE) * USECS_PER_DAY;
}

static int64
floor_div(int64 a, int64 b)
{
	return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/*
 * The bounds, aligned with the sibling's and as wide, between which "value"
 * lies.  False where the type gives no way to count.
 */
static bool
aligned_bounds(IloadKey *key, const Template *template, Datum value,
			   Datum *lower, Datum *upper)
{
	Timestamp	from,
				to,
				at;
	int64		from_month,
				to_month,
				at_month,
				width,
				start;

	if (time_of_value(key, template->lower, &from) &&
		time_of_value(key, template->upper, &to) &&
		time_of_value(key, value, &at))
	{
		bool		from_first = month_number(from, &from_month);
		bool		to_first = month_number(to, &to_month);

		if (from_first && to_first)
		{
			(void) month_number(at, &at_month);
			width = to_month - from_month;
			start = from_month + floor_div(at_month - from_month, width) * width;
			*lower = value_of_time(key, month_start(start));
			*upper = value_of_time(key, month_start(start + width));
		}
		else
		{
			width = to - from;
			start = from + floor_div(at - from, width) * width;
			*lower = value_of_time(key, start);
			*upper = value_of_time(key, start + width);
		}
		return true;
	}
	if (key->kind == ILOAD_KEY_INTEGER)
	{
		width = number_of_value(key, template->upper) - number_of_value(key, template->lower);
		start = number_of_value(key, template->lower) +
			floor_div(number_of_value(key, value) - number_of_value(key, template->lower), width) * width;
		*lower = value_of_number(key, start);
		*upper = value_of_number(key, start + width);
		return true;
	}
	return false;
}

static bool
partitioned_by_column(Relation rel, const char *column)
{
	PartitionKey part = RelationGetPartitionKey(rel);

	for (int i = 0; i < part->partnatts; i++)
	{
		if (part->partattrs[i] == get_attnum(RelationGetRelid(rel), column))
			return true;
	}
	return false;
}

/* Find the sibling next to "value" and the neighbours that bound the gap. */
static void
find_range_template(Relation parent, IloadKey *key, Datum value, Template *template)
{
	PartitionDesc desc = RelationGetPartitionDesc(parent, true);
	PartitionBoundInfo bounds = desc->boundinfo;

	for (int i = 1; bounds != NULL && i < bounds->ndatums; i++)
	{
		bool		has_lower = bounds->kind[i - 1][0] == PARTITION_RANGE_DATUM_VALUE;
		bool		has_upper = bounds->kind[i][0] == PARTITION_RANGE_DATUM_VALUE;
		Datum		lower = bounds->datums[i - 1][0];
		Datum		upper = bounds->datums[i][0];
		bool		before;

		if (bounds->indexes[i] < 0)
			continue;
		before = has_upper && iload_key_cmp(key, upper, value) <= 0;
		if (before)
		{
			template->has_floor = true;
			template->floor = upper;
		}
		else if (has_lower && !template->has_ceiling)
		{
			template->has_ceiling = true;
			template->ceiling = lower;
		}
		/* the last one before the gap, else the first one after it */
		if (has_lower && has_upper && (before || !template->bounded))
		{
			template->bounded = true;
			template->sibling = desc->oids[bounds->indexes[i]];
			template->lower = lower;
			template->upper = upper;
		}
	}
}

/*
 * A table without partitions, which is one itself, takes after another one on
 * its level.
 */
static void
find_cousin_template(Relation parent, IloadKey *key, Datum value, Template *template)
{
	Relation	grandparent;
	PartitionDesc desc;

	if (!parent->rd_rel->relispartition)
		return;
	grandparent = table_open(get_partition_parent(RelationGetRelid(parent), false),
							 AccessShareLock);
	desc = RelationGetPartitionDesc(grandparent, true);
	for (int i = desc->nparts - 1; i >= 0 && !template->bounded; i--)
	{
		Template	cousin = {0};
		Relation	rel;

		if (desc->is_leaf[i] || desc->oids[i] == RelationGetRelid(parent))
			continue;
		rel = table_open(desc->oids[i], AccessShareLock);
		if (partitioned_by_column(rel, key->name) &&
			RelationGetPartitionKey(rel)->strategy == PARTITION_STRATEGY_RANGE)
			find_range_template(rel, key, value, &cousin);
		template->bounded = cousin.bounded;
		template->sibling = cousin.sibling;
		template->lower = cousin.lower;
		template->upper = cousin.upper;
		table_close(rel, NoLock);
	}
	table_close(grandparent, NoLock);
}

static void
find_list_template(Relation parent, Template *template)
{
	PartitionDesc desc = RelationGetPartitionDesc(parent, true);
	PartitionBoundInfo bounds = desc->boundinfo;

	if (bounds == NULL || bounds->ndatums == 0)
		return;
	template->sibling = desc->oids[bounds->indexes[bounds->ndatums - 1]];
	template->lower = bounds->datums[bounds->ndatums - 1][0];
}

/* The text of a point in time by a format of to_char. */
static char *
format_time(Timestamp value, const char *format)
{
	return TextDatumGetCString(DirectFunctionCall2(timestamp_to_char,
												   TimestampGetDatum(value),
												   CStringGetTextDatum(format)));
}

/* Does a name end in a text?  Where that begins, or NULL. */
static const char *
ends_in(const char *name, const char *text)
{
	size_t		name_length = strlen(name);
	size_t		length = strlen(text);

	if (length >= name_length || strcmp(name + name_length - length, text) != 0)
		return NULL;
	return name + name_length - length;
}

/* Name after a sibling: its name with the end that tells its bound exchanged. */
static char *
name_after_sibling(IloadKey *key, const Template *template, Datum lower)
{
	static const char *const formats[] = {
		"YYYY_MM_DD_HH24MI", "YYYYMMDD_HH24MI", "YYYYMMDDHH24MI",
		"YYYY_MM_DD_HH24", "YYYYMMDD_HH24", "YYYYMMDDHH24",
		"YYYY_MM_DD", "YYYY-MM-DD", "YYYYMMDD",
		"YYYY_MM", "YYYY-MM", "YYYYMM", "YYYY\"m\"MM", "IYYY\"w\"IW",
		"MMDD", "MM_DD", "YYYY"
	};
	char	   *name;
	Timestamp	sibling_time,
				time;

	if (!OidIsValid(template->sibling))
		return NULL;
	name = get_rel_name(template->sibling);
	if (time_of_value(key, template->lower, &sibling_time) && time_of_value(key, lower, &time))
	{
		for (int i = 0; i < (int) lengthof(formats); i++)
		{
			const char *end = ends_in(name, format_time(sibling_time, formats[i]));

			if (end != NULL)
				return psprintf("%.*s%s", (int) (end - name), name,
								format_time(time, formats[i]));
		}
	}
	else
	{
		const char *end = ends_in(name, iload_key_out(key, template->lower));

		if (end != NULL)
			return psprintf("%.*s%s", (int) (end - name), name, iload_key_out(key, lower));
	}
	return NULL;
}

/* A name of our own making, no longer than a name may be. */
static char *
name_after_parent(Relation parent, IloadKey *key, Datum lower)
{
	Timestamp	time;
	const char *suffix;

	if (time_of_value(key, lower, &time))
		suffix = format_time(time, time % USECS_PER_DAY == 0 ? "YYYYMMDD" : "YYYYMMDD_HH24MI");
	else
		suffix = iload_key_out(key, lower);
	return makeObjectName(RelationGetRelationName(parent), suffix, NULL);
}

/* The name, or where that is taken, one that is free. */
static char *
free_name(char *name, Oid namespace)
{
	if (!OidIsValid(get_relname_relid(name, namespace)))
		return name;
	return ChooseRelationName(name, NULL, "part", namespace, false);
}

static char *
new_name(Relation parent, IloadKey *key, const Template *template, Datum lower)
{
	Oid			namespace = RelationGetNamespace(parent);
	char	   *name = name_after_sibling(key, template, lower);

	if (name != NULL && strlen(name) < NAMEDATALEN &&
		!OidIsValid(get_relname_relid(name, namespace)))
		return name;
	return free_name(name_after_parent(parent, key, lower), namespace);
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
	Oid			tablespace = parent->rd_rel->reltablespace;
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
	if (OidIsValid(sibling))
	{
		tablespace = form->reltablespace;
		if (form->relkind == RELKIND_PARTITIONED_TABLE)
			appendStringInfo(&text, " PARTITION BY %s", partition_by(sibling));
		reloptions = SysCacheGetAttr(RELOID, tup, Anum_pg_class_reloptions, &isnull);
		if (!isnull && form->relkind == RELKIND_RELATION)
			append_reloptions(&text, reloptions);
	}
	if (OidIsValid(tablespace))
		appendStringInfo(&text, " TABLESPACE %s",
						 quote_identifier(get_tablespace_name(tablespace)));
	ReleaseSysCache(tup);
	execute(text.data);
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
	for (int i = 0; i < desc->nparts && !partitioned_by_column(rel, column); i++)
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

static char *
quoted_value(const IloadKey *key, Datum value)
{
	return quote_literal_cstr(iload_key_out(key, value));
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
	appendStringInfo(&text, "SELECT FROM %s AS t WHERE %s"
					 " AND t.tableoid OPERATOR(pg_catalog.=) ANY ('{",
					 slice->qualified_name, range);
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

/* "t.key op 'value'::type" */
static char *
condition(const IloadKey *key, const char *op, Datum value)
{
	return psprintf("t.%s %s %s::%s", quote_identifier(key->name), op,
					quoted_value(key, value), format_type_be_qualified(key->type));
}

/*
 * Create one table and attach it, as the owner of its parent.  Everything that
 * needs the parent open comes before ATTACH, which wants it not to be in use.
 */
static void
create_one(IloadGap *gap, IloadSlice *slice, const Template *template,
		   Datum lower, const char *bound)
{
	Relation	parent = table_open(gap->parent, NoLock);
	Oid			namespace = RelationGetNamespace(parent);
	char	   *schema = get_namespace_name(namespace);
	char	   *name = new_name(parent, slice->key, template, lower);
	char	   *qualified = quote_qualified_identifier(schema, name);
	char	   *parent_name = quote_qualified_identifier(schema, RelationGetRelationName(parent));
	Oid			user;
	int			context;

	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(parent->rd_rel->relowner, context | SECURITY_LOCAL_USERID_CHANGE);
	create_table(parent, template->sibling, qualified);
	table_close(parent, NoLock);
	if (OidIsValid(template->sibling) &&
		get_rel_relkind(template->sibling) == RELKIND_PARTITIONED_TABLE)
		copy_partitions(template->sibling, namespace, name, slice->key->name);
	execute(psprintf("ALTER TABLE %s ATTACH PARTITION %s %s", parent_name, qualified, bound));
	SetUserIdAndSecContext(user, context);
	CommandCounterIncrement();
}

static bool
create_for_value(IloadSlice *slice, IloadGap *gap)
{
	IloadKey   *key = slice->key;
	Relation	parent;
	Template	template = {0};

	if (default_holds(slice, gap, condition(key, key->op_eq, gap->lower)))
		return false;
	parent = table_open(gap->parent, NoLock);
	find_list_template(parent, &template);
	table_close(parent, NoLock);
	create_one(gap, slice, &template, gap->lower,
			   psprintf("FOR VALUES IN (%s)", quoted_value(key, gap->lower)));
	return true;
}

/* The bounds of the partition that "at", in the gap, is to go to. */
static void
find_bounds(IloadKey *key, IloadGap *gap, Datum at, Template *template,
			Datum *lower, Datum *upper)
{
	Relation	parent = table_open(gap->parent, NoLock);

	find_range_template(parent, key, at, template);
	if (!template->bounded)
		find_cousin_template(parent, key, at, template);
	table_close(parent, NoLock);
	if (!template->bounded || !aligned_bounds(key, template, at, lower, upper))
	{
		*lower = at;
		*upper = gap->upper;
	}
	if (template->has_floor && iload_key_cmp(key, *lower, template->floor) < 0)
		*lower = template->floor;
	if (template->has_ceiling && iload_key_cmp(key, *upper, template->ceiling) > 0)
		*upper = template->ceiling;
}

/* Create as many partitions, side by side, as the gap needs. */
static bool
create_for_range(IloadSlice *slice, IloadGap *gap)
{
	IloadKey   *key = slice->key;
	Datum		at = gap->lower;
	bool		made = false;

	do
	{
		Template	template = {0};
		Datum		lower,
					upper;

		CHECK_FOR_INTERRUPTS();
		find_bounds(key, gap, at, &template, &lower, &upper);
		/* what the cache holds of the bounds goes away when one is attached */
		at = datumCopy(upper, key->typbyval, key->typlen);
		if (default_holds(slice, gap, psprintf("%s AND %s", condition(key, key->op_ge, lower),
											   condition(key, key->op_lt, upper))))
			continue;
		create_one(gap, slice, &template, lower,
				   psprintf("FOR VALUES FROM (%s) TO (%s)",
							quoted_value(key, lower), quoted_value(key, upper)));
		made = true;
	} while (iload_key_cmp(key, at, gap->upper) < 0);
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
				 errhint("Create the partition first.")));
	if (!iload_class_ownercheck(gap->parent, GetUserId()))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("table \"%s\" has no partition for slice %s", name, iload_slice_text(slice)),
				 errdetail("Only its owner can create one."),
				 errhint("Let the owner create the partition first.")));
	return by_list ? create_for_value(slice, gap) : create_for_range(slice, gap);
}
