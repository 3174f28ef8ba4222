/*
 * sibling.c
 *		The sibling that a new partition takes after.
 *
 * A new partition is as wide as its nearest sibling, aligned with it, cut where
 * other partitions begin, and named after it.  Here is found which sibling that
 * is, and what follows from it; partition.c makes the table.  The caller holds a
 * lock on the parent that keeps others from attaching partitions.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/partition.h"
#include "catalog/pg_type.h"
#include "common/int.h"
#include "partitioning/partbounds.h"
#include "partitioning/partdesc.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/datum.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "sibling.h"

/*
 * A key value as a point in local time, for names; false where it does not
 * stand for one.
 */
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

/* The day in which a key value lies; false where it does not stand for one. */
static bool
day_of_value(const IloadKey *key, Datum value, DateADT *date)
{
	if (key->kind == ILOAD_KEY_TIMESTAMP)
		*date = DatumGetDateADT(DirectFunctionCall1(timestamp_date, value));
	else if (key->kind == ILOAD_KEY_TIMESTAMPTZ)
		*date = DatumGetDateADT(DirectFunctionCall1(timestamptz_date, value));
	else if (!iload_key_is_day(key, value, date))
		return false;
	return !DATE_NOT_FINITE(*date);
}

/* Is a key value the very first one of its day? */
static bool
starts_day(IloadKey *key, Datum value, DateADT *date)
{
	return day_of_value(key, value, date) &&
		iload_key_cmp(key, value, iload_key_from_date(key, *date)) == 0;
}

/* A key value as a number that differences can be taken of; false if it is none. */
static bool
number_of_value(const IloadKey *key, Datum value, int64 *number)
{
	switch (key->kind)
	{
		case ILOAD_KEY_TIMESTAMP:
		case ILOAD_KEY_TIMESTAMPTZ:
			*number = DatumGetTimestamp(value);
			return !TIMESTAMP_NOT_FINITE(*number);
		case ILOAD_KEY_INTEGER:
			*number = iload_key_integer(key, value);
			return true;
		default:
			return false;
	}
}

static Datum
value_of_number(const IloadKey *key, int64 number)
{
	return key->type == INT4OID ? Int32GetDatum((int32) number) : Int64GetDatum(number);
}

static int64
floor_div(int64 a, int64 b)
{
	return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* Months since the year 0 of a date; false unless it is the first of a month. */
static bool
month_number(DateADT date, int64 *months)
{
	int			year,
				month,
				day;

	j2date(date + POSTGRES_EPOCH_JDATE, &year, &month, &day);
	*months = (int64) year * 12 + month - 1;
	return day == 1;
}

static DateADT
month_start(int64 months)
{
	return date2j(months / 12, months % 12 + 1, 1) - POSTGRES_EPOCH_JDATE;
}

/*
 * Bounds that are whole months, or else whole days, from those of the sibling,
 * between which the day "at" lies.
 */
static void
aligned_days(IloadKey *key, DateADT from, DateADT to, DateADT at, Datum *lower, Datum *upper)
{
	int64		from_month,
				to_month,
				at_month;
	bool		from_first = month_number(from, &from_month);
	bool		to_first = month_number(to, &to_month);
	int64		width = to - from;
	int64		start = from + floor_div((int64) at - from, width) * width;
	DateADT		first = start;
	DateADT		end = start + width;

	if (from_first && to_first)
	{
		(void) month_number(at, &at_month);
		width = to_month - from_month;
		start = from_month + floor_div(at_month - from_month, width) * width;
		first = month_start(start);
		end = month_start(start + width);
	}
	*lower = iload_key_from_date(key, first);
	*upper = iload_key_from_date(key, end);
}

/*
 * The bounds, aligned with the sibling's and as wide, between which "value"
 * lies.  Days and months are counted as such, for days differ in length; other
 * spans by the difference of their ends.  False where the type gives no way to
 * count, or the bounds would leave it.
 */
static bool
aligned_bounds(IloadKey *key, const IloadSibling *sibling, Datum value,
			   Datum *lower, Datum *upper)
{
	DateADT		from_day,
				to_day,
				at_day;
	int64		from,
				to,
				at,
				width,
				offset,
				start,
				end;

	if (starts_day(key, sibling->lower, &from_day) &&
		starts_day(key, sibling->upper, &to_day) &&
		day_of_value(key, value, &at_day))
	{
		aligned_days(key, from_day, to_day, at_day, lower, upper);
		return true;
	}
	if (!number_of_value(key, sibling->lower, &from) ||
		!number_of_value(key, sibling->upper, &to) ||
		!number_of_value(key, value, &at) ||
		pg_sub_s64_overflow(to, from, &width) ||
		pg_sub_s64_overflow(at, from, &offset) ||
		pg_add_s64_overflow(from, floor_div(offset, width) * width, &start) ||
		pg_add_s64_overflow(start, width, &end))
		return false;
	if (key->type == INT4OID && (start < PG_INT32_MIN || end > PG_INT32_MAX))
		return false;
	*lower = value_of_number(key, start);
	*upper = value_of_number(key, end);
	return true;
}

/* Is a column one of those that a table is partitioned by? */
bool
iload_partitioned_by_column(Relation rel, const char *column)
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
 * Keep the bounds beyond the cache, which may drop what it has of a table as
 * soon as that is closed.
 */
static void
copy_bounds(const IloadKey *key, IloadSibling *sibling)
{
	if (sibling->bounded)
	{
		sibling->lower = datumCopy(sibling->lower, key->typbyval, key->typlen);
		sibling->upper = datumCopy(sibling->upper, key->typbyval, key->typlen);
	}
	if (sibling->has_floor)
		sibling->floor = datumCopy(sibling->floor, key->typbyval, key->typlen);
	if (sibling->has_ceiling)
		sibling->ceiling = datumCopy(sibling->ceiling, key->typbyval, key->typlen);
}

/* Find the sibling next to "value" and the neighbours that bound the gap. */
static void
look_among_siblings(Relation parent, IloadKey *key, Datum value, IloadSibling *sibling)
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
			sibling->has_floor = true;
			sibling->floor = upper;
		}
		else if (has_lower && !sibling->has_ceiling)
		{
			sibling->has_ceiling = true;
			sibling->ceiling = lower;
		}
		/* the last one before the gap, else the first one after it */
		if (has_lower && has_upper && (before || !sibling->bounded))
		{
			sibling->bounded = true;
			sibling->relid = desc->oids[bounds->indexes[i]];
			sibling->lower = lower;
			sibling->upper = upper;
		}
	}
	copy_bounds(key, sibling);
}

/*
 * A table without partitions, which is one itself, takes after another one on
 * its level.
 */
static void
look_among_cousins(Relation parent, IloadKey *key, Datum value, IloadSibling *sibling)
{
	Relation	grandparent;
	PartitionDesc desc;

	if (!parent->rd_rel->relispartition)
		return;
	grandparent = table_open(get_partition_parent(RelationGetRelid(parent), false),
							 AccessShareLock);
	desc = RelationGetPartitionDesc(grandparent, true);
	for (int i = desc->nparts - 1; i >= 0 && !sibling->bounded; i--)
	{
		IloadSibling cousin = {0};
		Relation	rel;

		if (desc->is_leaf[i] || desc->oids[i] == RelationGetRelid(parent))
			continue;
		rel = table_open(desc->oids[i], AccessShareLock);
		if (iload_partitioned_by_column(rel, key->name) &&
			RelationGetPartitionKey(rel)->strategy == PARTITION_STRATEGY_RANGE)
			look_among_siblings(rel, key, value, &cousin);
		sibling->bounded = cousin.bounded;
		sibling->relid = cousin.relid;
		sibling->lower = cousin.lower;
		sibling->upper = cousin.upper;
		table_close(rel, NoLock);
	}
	table_close(grandparent, NoLock);
}

/*
 * What a new partition for "at", in "gap", takes after, and its bounds.  They are
 * those of the sibling shifted, cut where other partitions begin; without a
 * sibling to count by, the rest of the gap.
 */
void
iload_sibling_of_range(IloadKey *key, const IloadGap *gap, Datum at,
					   IloadSibling *sibling, Datum *lower, Datum *upper)
{
	Relation	parent = table_open(gap->parent, NoLock);

	memset(sibling, 0, sizeof(IloadSibling));
	look_among_siblings(parent, key, at, sibling);
	if (!sibling->bounded)
		look_among_cousins(parent, key, at, sibling);
	table_close(parent, NoLock);
	if (!sibling->bounded || !aligned_bounds(key, sibling, at, lower, upper))
	{
		*lower = at;
		*upper = gap->upper;
	}
	if (sibling->has_floor && iload_key_cmp(key, *lower, sibling->floor) < 0)
		*lower = sibling->floor;
	if (sibling->has_ceiling && iload_key_cmp(key, *upper, sibling->ceiling) > 0)
		*upper = sibling->ceiling;
}

/* What a new partition for one value, of a table partitioned by lists, takes after. */
void
iload_sibling_of_value(const IloadKey *key, Oid parent, IloadSibling *sibling)
{
	Relation	rel = table_open(parent, NoLock);
	PartitionDesc desc = RelationGetPartitionDesc(rel, true);
	PartitionBoundInfo bounds = desc->boundinfo;

	memset(sibling, 0, sizeof(IloadSibling));
	if (bounds != NULL && bounds->ndatums > 0)
	{
		sibling->relid = desc->oids[bounds->indexes[bounds->ndatums - 1]];
		sibling->lower = datumCopy(bounds->datums[bounds->ndatums - 1][0],
								   key->typbyval, key->typlen);
	}
	table_close(rel, NoLock);
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

/*
 * A name for a new partition with the lower bound "lower": the sibling's, with
 * the end that tells its bound exchanged; NULL where it has no such end.
 */
char *
iload_sibling_name(IloadKey *key, const IloadSibling *sibling, Datum lower)
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

	if (!OidIsValid(sibling->relid))
		return NULL;
	name = get_rel_name(sibling->relid);
	if (time_of_value(key, sibling->lower, &sibling_time) && time_of_value(key, lower, &time))
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
		const char *end = ends_in(name, iload_key_out(key, sibling->lower));

		if (end != NULL)
			return psprintf("%.*s%s", (int) (end - name), name, iload_key_out(key, lower));
	}
	return NULL;
}

/* What tells the bound "lower" in a name of our own making. */
char *
iload_sibling_suffix(IloadKey *key, Datum lower)
{
	Timestamp	time;

	if (!time_of_value(key, lower, &time))
		return iload_key_out(key, lower);
	return format_time(time, time % USECS_PER_DAY == 0 ? "YYYYMMDD" : "YYYYMMDD_HH24MI");
}
