/*
 * key.c
 *		The key column: which it is, and its values.
 *
 * A load replaces a span of the key column.  Here is decided which column that
 * is, never by guessing, and how a day is written in its type.  All values are
 * compared by the default btree operator class of the type and by the column's
 * collation, in C and in the SQL that is built from a slice alike.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/stratnum.h"
#include "catalog/pg_am.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "partitioning/partbounds.h"
#include "partitioning/partdesc.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

#include "key.h"

static IloadKeyKind
kind_of_type(Oid type)
{
	switch (type)
	{
		case DATEOID:
			return ILOAD_KEY_DATE;
		case TIMESTAMPOID:
			return ILOAD_KEY_TIMESTAMP;
		case TIMESTAMPTZOID:
			return ILOAD_KEY_TIMESTAMPTZ;
		case INT4OID:
		case INT8OID:
			return ILOAD_KEY_INTEGER;
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
			return ILOAD_KEY_TEXT;
		default:
			return ILOAD_KEY_OTHER;
	}
}

static bool
is_temporal(IloadKeyKind kind)
{
	return kind == ILOAD_KEY_DATE || kind == ILOAD_KEY_TIMESTAMP ||
		kind == ILOAD_KEY_TIMESTAMPTZ;
}

/* SQL text that means an operator whatever the search_path. */
char *
iload_operator_text(Oid operator)
{
	HeapTuple	tup = SearchSysCache1(OPEROID, ObjectIdGetDatum(operator));
	Form_pg_operator form;
	char	   *text;

	if (!HeapTupleIsValid(tup))
		elog(ERROR, "cache lookup failed for operator %u", operator);
	form = (Form_pg_operator) GETSTRUCT(tup);
	text = psprintf("OPERATOR(%s.%s)",
					quote_identifier(get_namespace_name(form->oprnamespace)),
					NameStr(form->oprname));

	ReleaseSysCache(tup);
	return text;
}

static char *
strategy_text(const IloadKey *key, StrategyNumber strategy)
{
	Oid			optype = get_opclass_input_type(key->opclass);

	return iload_operator_text(get_opfamily_member(key->opfamily, optype, optype, strategy));
}

/* The key's type as SQL text, without a length that would cut values. */
static char *
type_text(const IloadKey *key)
{
	return format_type_extended(key->type, -1,
								FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY);
}

/* The key for one column; raises an error where its type has no order. */
static IloadKey *
make_key(Relation target, AttrNumber attnum)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(target), attnum - 1);
	IloadKey   *key = palloc0(sizeof(IloadKey));
	TypeCacheEntry *entry;

	key->attnum = attnum;
	key->name = pstrdup(NameStr(att->attname));
	key->type = getBaseType(att->atttypid);
	key->kind = kind_of_type(key->type);
	key->collation = att->attcollation;
	get_typlenbyval(key->type, &key->typlen, &key->typbyval);

	key->opclass = GetDefaultOpClass(key->type, BTREE_AM_OID);
	entry = lookup_type_cache(key->type, TYPECACHE_CMP_PROC_FINFO);
	if (!OidIsValid(key->opclass) || !OidIsValid(entry->cmp_proc))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" of table \"%s\" cannot be the key column",
						key->name, RelationGetRelationName(target)),
				 errdetail("Its type %s has no order.", format_type_be(att->atttypid)),
				 errtablecol(target, attnum)));
	if (att->attgenerated != '\0')
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("generated column \"%s\" of table \"%s\" cannot be the key column",
						key->name, RelationGetRelationName(target)),
				 errdetail("The query cannot supply a generated column, so its rows have no key before they are stored."),
				 errtablecol(target, attnum)));

	key->opfamily = get_opclass_family(key->opclass);
	key->optype = get_opclass_input_type(key->opclass);
	key->cast = "";
	if (IsPolymorphicType(key->optype))
	{
		key->optype = key->type;
		/* such operators do not look through a domain */
		if (att->atttypid != key->type)
			key->cast = psprintf("::%s", type_text(key));
	}
	fmgr_info(entry->cmp_proc, &key->cmp);
	key->op_lt = strategy_text(key, BTLessStrategyNumber);
	key->op_ge = strategy_text(key, BTGreaterEqualStrategyNumber);
	key->op_eq = strategy_text(key, BTEqualStrategyNumber);
	return key;
}

/* The names of the date and timestamp columns, quoted, and how many they are. */
static char *
list_temporal_columns(Relation target, int *count, AttrNumber *last)
{
	TupleDesc	desc = RelationGetDescr(target);
	StringInfoData names;

	initStringInfo(&names);
	*count = 0;
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped || !is_temporal(kind_of_type(getBaseType(att->atttypid))))
			continue;
		appendStringInfo(&names, "%s\"%s\"", *count > 0 ? ", " : "", NameStr(att->attname));
		*last = att->attnum;
		(*count)++;
	}
	return names.data;
}

/*
 * Do the bounds of the partitions of "target" look like days?  An integer or
 * text column may hold anything; only where the first bound found is a day, or
 * where there is none yet, is the partition column taken for a day unasked.
 */
static bool
bounds_are_days(Relation target, const IloadKey *key)
{
	PartitionBoundInfo bounds = RelationGetPartitionDesc(target, true)->boundinfo;
	DateADT		date;

	if (bounds == NULL)
		return true;
	for (int i = 0; i < bounds->ndatums; i++)
	{
		if (bounds->kind != NULL &&
			bounds->kind[i][0] != PARTITION_RANGE_DATUM_VALUE)
			continue;
		return iload_key_is_day(key, bounds->datums[i][0], &date);
	}
	return true;
}

/* The column that "target" is partitioned by, or NULL where that is not one. */
static IloadKey *
partition_key(Relation target, bool by_date)
{
	PartitionKey part = RelationGetPartitionKey(target);
	IloadKey   *key;

	if (part->partnatts != 1 || part->partattrs[0] == 0)
		return NULL;
	key = make_key(target, part->partattrs[0]);
	if (is_temporal(key->kind))
		return key;
	if (part->strategy == PARTITION_STRATEGY_HASH)
		return NULL;
	if (by_date && (key->kind == ILOAD_KEY_OTHER || !bounds_are_days(target, key)))
		return NULL;
	return key;
}

/* The key for the column that the caller named. */
static IloadKey *
named_key(Relation target, const char *column, bool by_date)
{
	AttrNumber	attnum = get_attnum(RelationGetRelid(target), column);
	AttrNumber	last;
	int			count;
	char	   *names;
	IloadKey   *key;

	if (attnum <= 0)
	{
		names = list_temporal_columns(target, &count, &last);
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of table \"%s\" does not exist",
						column, RelationGetRelationName(target)),
				 count == 0 ? errdetail("The table has no column of type date, timestamp or timestamptz.")
				 : errdetail("Its columns of type date, timestamp or timestamptz: %s.", names),
				 errtable(target)));
	}
	key = make_key(target, attnum);
	if (by_date && key->kind == ILOAD_KEY_OTHER)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" of table \"%s\" does not hold days",
						column, RelationGetRelationName(target)),
				 errdetail("Its type is %s.", format_type_be(key->type)),
				 errhint("A key column is of type date, timestamp, timestamptz, integer or bigint (yyyymmdd), or text (yyyy-mm-dd). Use replace_slice for other slices."),
				 errtablecol(target, attnum)));
	return key;
}

/*
 * The key column of "target": the one named "column", if that is not NULL;
 * else the partition column; else the only column of a date or timestamp type.
 * "by_date" says that slices are calendar days.  Several candidates, or none,
 * are an error that lists them.
 *
 * Allocates in the current context.  The caller holds a lock on "target".
 */
IloadKey *
iload_key_find(Relation target, const char *column, bool by_date)
{
	IloadKey   *key;
	AttrNumber	last = InvalidAttrNumber;
	int			count;
	char	   *names;

	if (column != NULL)
		return named_key(target, column, by_date);

	if (target->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
	{
		key = partition_key(target, by_date);
		if (key != NULL)
			return key;
	}

	names = list_temporal_columns(target, &count, &last);
	if (count == 1)
		return make_key(target, last);
	ereport(ERROR,
			(errcode(ERRCODE_AMBIGUOUS_COLUMN),
			 errmsg("cannot tell the key column of table \"%s\"",
					RelationGetRelationName(target)),
			 count == 0 ? errdetail("It is not partitioned by one column that could be it, and has no column of type date, timestamp or timestamptz.")
			 : errdetail("It is not partitioned by one column that could be it, and has several columns of type date, timestamp or timestamptz: %s.", names),
			 errhint("Name the column with date_column => '...'."),
			 errtable(target)));
}

/*
 * Year, month and day of a date that is to be written with four digits for the
 * year.  The first day after the year 9999 can be written as a number too, and
 * is the upper bound of its last day.
 */
static void
date_parts(const IloadKey *key, DateADT date, int *year, int *month, int *day)
{
	int			last_year = key->kind == ILOAD_KEY_INTEGER ? 10000 : 9999;

	j2date(date + POSTGRES_EPOCH_JDATE, year, month, day);
	if (*year < 1 || *year > last_year)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("date out of range for the key column"),
				 errdetail("Only the years 1 to 9999 can be written as yyyymmdd or yyyy-mm-dd, and the end of a slice must be written too.")));
}

/*
 * The first instant of a day in the session's TimeZone.  The server's cast
 * takes midnight; where the clocks are set back over it, so that there are two,
 * it takes the second.  Then the first instant is searched for in the hours
 * before, in which the local date does not go back.
 */
static TimestampTz
first_instant(DateADT date)
{
	TimestampTz high = DatumGetTimestampTz(DirectFunctionCall1(date_timestamptz,
															   DateADTGetDatum(date)));
	TimestampTz low = high - 3 * USECS_PER_HOUR;

	while (high - low > 1)
	{
		TimestampTz middle = low + (high - low) / 2;
		Datum		local = DirectFunctionCall1(timestamptz_date, TimestampTzGetDatum(middle));

		if (DatumGetDateADT(local) >= date)
			high = middle;
		else
			low = middle;
	}
	return high;
}

/*
 * The first value of a day in the key's type.  For timestamptz this is the
 * first instant of the day in the session's TimeZone, also where midnight does
 * not exist, or comes twice.  "date" must be finite.
 */
Datum
iload_key_from_date(const IloadKey *key, DateADT date)
{
	int			year,
				month,
				day;

	switch (key->kind)
	{
		case ILOAD_KEY_DATE:
			return DateADTGetDatum(date);
		case ILOAD_KEY_TIMESTAMP:
			return DirectFunctionCall1(date_timestamp, DateADTGetDatum(date));
		case ILOAD_KEY_TIMESTAMPTZ:
			return TimestampTzGetDatum(first_instant(date));
		case ILOAD_KEY_INTEGER:
			date_parts(key, date, &year, &month, &day);
			if (key->type == INT8OID)
				return Int64GetDatum((int64) year * 10000 + month * 100 + day);
			return Int32GetDatum(year * 10000 + month * 100 + day);
		case ILOAD_KEY_TEXT:
			date_parts(key, date, &year, &month, &day);
			return CStringGetTextDatum(psprintf("%04d-%02d-%02d", year, month, day));
		case ILOAD_KEY_OTHER:
			break;
	}
	elog(ERROR, "key column \"%s\" does not hold days", key->name);
	return (Datum) 0;
}

/* The date of a year, month and day, or false where there is no such day. */
static bool
parts_to_date(int64 year, int month, int day, DateADT *date)
{
	if (year < 1 || year > 9999 || month < 1 || month > 12 ||
		day < 1 || day > day_tab[isleap(year)][month - 1])
		return false;
	*date = date2j((int) year, month, day) - POSTGRES_EPOCH_JDATE;
	return true;
}

/* A value of an integer key, whatever its width. */
int64
iload_key_integer(const IloadKey *key, Datum value)
{
	return key->type == INT8OID ? DatumGetInt64(value) : DatumGetInt32(value);
}

/*
 * Is the value one that a day can have?  Always so for date and timestamps;
 * an integer must be a true yyyymmdd, text a true yyyy-mm-dd.  On true, and
 * for those two and date, "date" is set to the day.
 */
bool
iload_key_is_day(const IloadKey *key, Datum value, DateADT *date)
{
	if (key->kind == ILOAD_KEY_INTEGER)
	{
		int64		number = iload_key_integer(key, value);

		if (number < 0)
			return false;
		return parts_to_date(number / 10000, number / 100 % 100, number % 100, date);
	}
	if (key->kind == ILOAD_KEY_TEXT)
	{
		struct varlena *text = PG_DETOAST_DATUM_PACKED(value);
		const char *s = VARDATA_ANY(text);
		int			digits[8];
		int			n = 0;

		if (VARSIZE_ANY_EXHDR(text) != 10)
			return false;
		for (int i = 0; i < 10; i++)
		{
			if (i == 4 || i == 7)
			{
				if (s[i] != '-')
					return false;
			}
			else if (s[i] < '0' || s[i] > '9')
				return false;
			else
				digits[n++] = s[i] - '0';
		}
		return parts_to_date(digits[0] * 1000 + digits[1] * 100 + digits[2] * 10 + digits[3],
							 digits[4] * 10 + digits[5], digits[6] * 10 + digits[7], date);
	}
	if (key->kind == ILOAD_KEY_DATE)
		*date = DatumGetDateADT(value);
	return key->kind != ILOAD_KEY_OTHER;
}

/* Read a value from text, as the session would. */
Datum
iload_key_in(const IloadKey *key, const char *text)
{
	Oid			input;
	Oid			ioparam;

	getTypeInputInfo(key->type, &input, &ioparam);
	return OidInputFunctionCall(input, (char *) text, ioparam, -1);
}

/*
 * Write a value as text, for messages, records and SQL: in full and in one style
 * whatever the session's settings, but a timestamptz in the session's TimeZone.
 */
char *
iload_key_out(const IloadKey *key, Datum value)
{
	static const struct
	{
		const char *name;
		const char *value;
	}			settings[] = {
		{"DateStyle", "ISO, YMD"},
		{"IntervalStyle", "postgres"},
		{"bytea_output", "hex"},
		{"extra_float_digits", "1"}
	};
	Oid			output;
	bool		varlena;
	char	   *text;
	int			nestlevel = NewGUCNestLevel();

	for (int i = 0; i < (int) lengthof(settings); i++)
		(void) set_config_option(settings[i].name, settings[i].value,
								 PGC_USERSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
	getTypeOutputInfo(key->type, &output, &varlena);
	text = OidOutputFunctionCall(output, value);

	AtEOXact_GUC(true, nestlevel);
	return text;
}

/* A value as a string literal, without its type. */
char *
iload_key_literal(const IloadKey *key, Datum value)
{
	return quote_literal_cstr(iload_key_out(key, value));
}

/* "t.key op 'value'::type": SQL text about a relation that goes by "t". */
char *
iload_key_condition(const IloadKey *key, const char *op, Datum value)
{
	return psprintf("t.%s%s %s %s::%s", quote_identifier(key->name), key->cast, op,
					iload_key_literal(key, value), type_text(key));
}

/* A value as in iload_key_out, within a sentence: in quotes where it may have blanks or be empty. */
char *
iload_key_quoted(const IloadKey *key, Datum value)
{
	if (key->kind == ILOAD_KEY_TEXT || key->kind == ILOAD_KEY_OTHER)
		return psprintf("\"%s\"", iload_key_out(key, value));
	return iload_key_out(key, value);
}

/* Compare two values that are not null: below, at or above zero. */
int
iload_key_cmp(IloadKey *key, Datum a, Datum b)
{
	return DatumGetInt32(FunctionCall2Coll(&key->cmp, key->collation, a, b));
}
