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
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "commands/tablespace.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "partitioning/partbounds.h"
#include "partitioning/partdesc.h"
#include "utils/acl.h"
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
		"YYYY_MM", "YYYY-MM", "YYYYMM", "YYYY\"m\"MM", "YYYY\"w\"IW",
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

/* Create a table like "parent", partitioned like "sibling" if that is. */
static void
create_table(Relation parent, Oid sibling, const char *qualified)
{
	StringInfoData text;
	Oid			tablespace = parent->rd_rel->reltablespace;

	initStringInfo(&text);
	appendStringInfo(&text,
					 "CREATE TABLE %s (LIKE %s INCLUDING DEFAULTS INCLUDING GENERATED"
					 " INCLUDING CONSTRAINTS INCLUDING STORAGE INCLUDING COMPRESSION)",
					 qualified,
					 quote_qualified_identifier(get_namespace_name(RelationGetNamespace(parent)),
												RelationGetRelationName(parent)));
	if (OidIsValid(sibling) && get_rel_relkind(sibling) == RELKIND_PARTITIONED_TABLE)
		appendStringInfo(&text, " PARTITION BY %s", partition_by(sibling));
	if (OidIsValid(tablespace))
		appendStringInfo(&text, " TABLESPACE %s",
						 quote_identifier(get_tablespace_name(tablespace)));
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

/*
 * Create one table and attach it.  Everything that needs "parent" open comes
 * before ATTACH, which wants the parent not to be in use.
 */
static void
create_one(Oid parent_oid, IloadSlice *slice, const Template *template,
		   Datum lower, const char *bound)
{
	Relation	parent = table_open(parent_oid, NoLock);
	Oid			namespace = RelationGetNamespace(parent);
	char	   *schema = get_namespace_name(namespace);
	char	   *name = new_name(parent, slice->key, template, lower);
	char	   *qualified = quote_qualified_identifier(schema, name);
	char	   *parent_name = quote_qualified_identifier(schema, RelationGetRelationName(parent));

	create_table(parent, template->sibling, qualified);
	table_close(parent, NoLock);
	if (OidIsValid(template->sibling) &&
		get_rel_relkind(template->sibling) == RELKIND_PARTITIONED_TABLE)
		copy_partitions(template->sibling, namespace, name, slice->key->name);
	execute(psprintf("ALTER TABLE %s ATTACH PARTITION %s %s", parent_name, qualified, bound));
	CommandCounterIncrement();
}

static char *
quoted_value(const IloadKey *key, Datum value)
{
	return quote_literal_cstr(iload_key_out(key, value));
}

static void
create_for_value(IloadSlice *slice, IloadGap *gap)
{
	Relation	parent = table_open(gap->parent, NoLock);
	Template	template = {0};

	find_list_template(parent, &template);
	table_close(parent, NoLock);
	create_one(gap->parent, slice, &template, gap->lower,
			   psprintf("FOR VALUES IN (%s)", quoted_value(slice->key, gap->lower)));
}

/* Create as many partitions, side by side, as the gap needs. */
static void
create_for_range(IloadSlice *slice, IloadGap *gap)
{
	IloadKey   *key = slice->key;
	Datum		at = gap->lower;

	do
	{
		Relation	parent = table_open(gap->parent, NoLock);
		Template	template = {0};
		Datum		lower = gap->lower;
		Datum		upper = gap->upper;

		CHECK_FOR_INTERRUPTS();
		find_range_template(parent, key, at, &template);
		table_close(parent, NoLock);
		if (!template.bounded || !aligned_bounds(key, &template, at, &lower, &upper))
		{
			lower = at;
			upper = gap->upper;
		}
		if (template.has_floor && iload_key_cmp(key, lower, template.floor) < 0)
			lower = template.floor;
		if (template.has_ceiling && iload_key_cmp(key, upper, template.ceiling) > 0)
			upper = template.ceiling;
		/* what the cache holds of the bounds goes away when one is attached */
		at = datumCopy(upper, key->typbyval, key->typlen);
		create_one(gap->parent, slice, &template, lower,
				   psprintf("FOR VALUES FROM (%s) TO (%s)",
							quoted_value(key, lower), quoted_value(key, upper)));
	} while (iload_key_cmp(key, at, gap->upper) < 0);
}

/*
 * Make the partitions that fill "gap".
 *
 * The caller holds the slice lock and has no relation open that is partitioned.
 * Errors: the caller has not the rights of the owner of the partitioned table;
 * it is partitioned in a way that bounds cannot be found for; and those of
 * CREATE TABLE and ALTER TABLE ... ATTACH PARTITION.
 */
void
iload_partition_create(IloadSlice *slice, IloadGap *gap)
{
	Relation	parent = table_open(gap->parent, ShareUpdateExclusiveLock);
	PartitionKey part = RelationGetPartitionKey(parent);
	bool		by_list = part->strategy == PARTITION_STRATEGY_LIST;
	bool		possible = part->partnatts == 1 && (by_list || !gap->single);
	char	   *name = pstrdup(RelationGetRelationName(parent));
	Oid			owner = parent->rd_rel->relowner;
	Oid			user;
	int			context;

	table_close(parent, NoLock);
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

	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(owner, context | SECURITY_LOCAL_USERID_CHANGE);
	if (by_list)
		create_for_value(slice, gap);
	else
		create_for_range(slice, gap);
	SetUserIdAndSecContext(user, context);
}
