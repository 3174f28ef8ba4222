/*
 * slice.c
 *		The slice: the half-open span of the key column that one load replaces.
 *
 * Bounds are computed once, here, in the key's own type and in the session's
 * TimeZone, which the caller has set to the load's; the same bounds then
 * select, check, delete and record.  A slice lives in the context that was
 * current when it was made.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "pgtime.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "root.h"
#include "slice.h"

static IloadSlice *
make_slice(Relation target, const char *column, bool by_date)
{
	IloadSlice *slice = palloc0(sizeof(IloadSlice));
	Oid			relid = RelationGetRelid(target);

	slice->target = relid;
	slice->root = iload_root(relid);
	slice->table_name = pstrdup(RelationGetRelationName(target));
	slice->key = iload_key_find(target, column, by_date);
	slice->by_date = by_date;
	slice->timezone = pstrdup(pg_get_timezone_name(session_timezone));
	return slice;
}

/* A date for messages, in ISO style whatever the session's DateStyle. */
static char *
date_text(DateADT date)
{
	struct pg_tm tm;
	char	   *text = palloc(MAXDATELEN + 1);

	j2date(date + POSTGRES_EPOCH_JDATE, &tm.tm_year, &tm.tm_mon, &tm.tm_mday);
	EncodeDateOnly(&tm, USE_ISO_DATES, text);
	return text;
}

static char *
interval_text(Interval *interval)
{
	return DatumGetCString(DirectFunctionCall1(interval_out, IntervalPGetDatum(interval)));
}

static void
period_unsupported(Interval *period)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("period \"%s\" is not supported", interval_text(period)),
			 errhint("Use a number of hours that divides a day, 1 day, 1 week, or a number of months that divides a year.")));
}

/*
 * The first day of the period in which "date" lies.  Days are periods of
 * themselves, weeks begin on Monday, and months are counted from January.
 *
 * Errors: a period that is not supported.
 */
DateADT
iload_period_start(DateADT date, Interval *period)
{
	int			year,
				month,
				day;

	if (period->month == 0 && period->time == 0 && period->day == 1)
		return date;
	if (period->month == 0 && period->time == 0 && period->day == 7)
		return date - (j2day(date + POSTGRES_EPOCH_JDATE) + 6) % 7;
	if (period->month == 0 && period->day == 0 && period->time > 0 &&
		period->time < USECS_PER_DAY && period->time % USECS_PER_HOUR == 0 &&
		USECS_PER_DAY % period->time == 0)
		return date;
	if (period->day == 0 && period->time == 0 && period->month > 0 &&
		12 % period->month == 0)
	{
		j2date(date + POSTGRES_EPOCH_JDATE, &year, &month, &day);
		return date2j(year, month - (month - 1) % period->month, 1) - POSTGRES_EPOCH_JDATE;
	}
	period_unsupported(period);
	return date;
}

/* The first day after the period that begins on "date"; of hours, the same day. */
DateADT
iload_period_end(DateADT date, Interval *period)
{
	Datum		end = DirectFunctionCall2(date_pl_interval, DateADTGetDatum(date),
										  IntervalPGetDatum(period));

	return DatumGetDateADT(DirectFunctionCall1(timestamp_date, end));
}

/* The upper bound of a period of hours; only timestamps can be cut so. */
static Datum
hours_end(IloadSlice *slice)
{
	Datum		hours = IntervalPGetDatum(slice->period);

	if (slice->key->kind == ILOAD_KEY_TIMESTAMP)
		return DirectFunctionCall2(timestamp_pl_interval, slice->lower, hours);
	if (slice->key->kind == ILOAD_KEY_TIMESTAMPTZ)
		return DirectFunctionCall2(timestamptz_pl_interval, slice->lower, hours);
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("period \"%s\" is shorter than a day, but key column \"%s\" holds whole days",
					interval_text(slice->period), slice->key->name)));
}

/*
 * The slice of "target" for the calendar period that begins on "date", in the
 * session's TimeZone.
 *
 * Errors: a date that is infinite or not the start of its period, a period
 * that is not supported.
 */
static IloadSlice *
slice_for_date(Relation target, const char *column, DateADT date, Interval *period)
{
	IloadSlice *slice;
	DateADT		day;

	if (DATE_NOT_FINITE(date))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("date must be finite")));
	if (iload_period_start(date, period) != date)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("date %s is not the start of a period of \"%s\"",
						date_text(date), interval_text(period)),
				 errdetail("Its period starts on %s.", date_text(iload_period_start(date, period))),
				 errhint("Pass the first day of the period.")));

	slice = make_slice(target, column, true);
	slice->date = date;
	slice->period = period;
	slice->upper_date = iload_period_end(date, period);
	slice->lower = iload_key_from_date(slice->key, date);
	if (!iload_key_is_day(slice->key, slice->lower, &day))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("date out of range for the key column")));
	slice->upper = period->time != 0 ? hours_end(slice) :
		iload_key_from_date(slice->key, slice->upper_date);
	slice->lower_text = iload_key_out(slice->key, slice->lower);
	slice->upper_text = iload_key_out(slice->key, slice->upper);

	/* hours cannot be told apart by dates */
	slice->param_type = period->time != 0 ? slice->key->type : DATEOID;
	slice->params[0] = period->time != 0 ? slice->lower : DateADTGetDatum(date);
	slice->params[1] = period->time != 0 ? slice->upper : DateADTGetDatum(slice->upper_date);
	return slice;
}

/*
 * The slice of "target" from "lower" up to, not including, "upper", both in
 * the text form of the key's type; or where "upper" is NULL, the one value
 * "lower".
 *
 * Errors: text that the type does not take, bounds in the wrong order.
 */
static IloadSlice *
slice_for_bounds(Relation target, const char *column,
				 const char *lower, const char *upper)
{
	IloadSlice *slice = make_slice(target, column, false);
	IloadKey   *key = slice->key;

	slice->lower = iload_key_in(key, lower);
	slice->lower_text = iload_key_out(key, slice->lower);
	slice->single = (upper == NULL);
	if (!slice->single)
	{
		slice->upper = iload_key_in(key, upper);
		slice->upper_text = iload_key_out(key, slice->upper);
		if (iload_key_cmp(key, slice->lower, slice->upper) >= 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("lower bound of the slice must be less than its upper bound"),
					 errdetail("The bounds are %s and %s.", slice->lower_text, slice->upper_text),
					 errhint("The slice is half-open: the upper bound is the first value outside. For a slice of one value pass upper => NULL.")));
	}

	slice->param_type = key->type;
	slice->params[0] = slice->lower;
	slice->params[1] = slice->upper;
	slice->param_nulls[1] = slice->single;
	return slice;
}

/*
 * The slice of "target" that "args" describes.  "column" names the key column, or is
 * NULL.  The result lives in the current context.
 *
 * Errors: as above, and no key column.  The caller holds a lock on "target".
 */
IloadSlice *
iload_slice_create(Relation target, const char *column, const IloadSliceArgs *args)
{
	return args->by_date ? slice_for_date(target, column, args->date, args->period) :
		slice_for_bounds(target, column, args->lower, args->upper);
}

/*
 * Does a key value, not null, lie in the slice?  Of an integer or text key
 * that stands for days, only true days do.
 */
bool
iload_slice_contains(IloadSlice *slice, Datum value)
{
	DateADT		date;

	if (slice->single)
		return iload_key_cmp(slice->key, value, slice->lower) == 0;
	return iload_key_cmp(slice->key, value, slice->lower) >= 0 &&
		iload_key_cmp(slice->key, value, slice->upper) < 0 &&
		(!slice->by_date || iload_key_is_day(slice->key, value, &date));
}

/*
 * The target as SQL text, "schema.table", quoted.  Looked up anew for each
 * statement: our lock on the table does not keep its schema from being renamed.
 */
char *
iload_slice_table(const IloadSlice *slice)
{
	return iload_table_name(slice->target);
}

/* The slice for messages: "[lower, upper)", or the one value. */
char *
iload_slice_text(const IloadSlice *slice)
{
	if (slice->single)
		return psprintf("%s = %s", slice->key->name, slice->lower_text);
	return psprintf("[%s, %s)", slice->lower_text, slice->upper_text);
}

/*
 * SQL text that is true for the rows of the slice, with $3 and $4 as bounds,
 * for a relation that goes by "alias".  Nothing in it depends on search_path.
 */
char *
iload_slice_predicate(const IloadSlice *slice, const char *alias)
{
	const IloadKey *key = slice->key;
	char	   *column = psprintf("%s.%s%s", alias, quote_identifier(key->name), key->cast);

	if (slice->single)
		return psprintf("%s %s $3", column, key->op_eq);
	return psprintf("%s %s $3 AND %s %s $4", column, key->op_ge, column, key->op_lt);
}

/*
 * The types of the parameters that go with the user's query and with the
 * predicate: $1 and $2 are the user's, $3 and $4 the bounds in the type that
 * the operators take.
 */
void
iload_slice_param_types(const IloadSlice *slice, Oid *types)
{
	types[0] = types[1] = slice->param_type;
	types[2] = types[3] = slice->key->optype;
}

/*
 * The values for those types.  They are marked constant, so that the planner
 * prunes partitions before it locks them.
 */
ParamListInfo
iload_slice_params(const IloadSlice *slice)
{
	ParamListInfo params = makeParamList(ILOAD_SLICE_NPARAMS);
	Oid			types[ILOAD_SLICE_NPARAMS];

	iload_slice_param_types(slice, types);
	for (int i = 0; i < ILOAD_SLICE_NPARAMS; i++)
	{
		ParamExternData *param = &params->params[i];

		param->ptype = types[i];
		param->pflags = PARAM_FLAG_CONST;
		param->isnull = (i % 2 == 1 && slice->single);
		if (i < 2)
		{
			param->value = slice->params[i];
			param->isnull = slice->param_nulls[i];
		}
		else
			param->value = i == 2 ? slice->lower : slice->upper;
	}
	return params;
}

/*
 * Compute bounds, and run queries, in this time zone; NULL is the session's.  It is
 * undone with the caller's GUC nest level.  Errors: not a time zone.
 */
void
iload_slice_set_timezone(const char *timezone)
{
	if (timezone == NULL)
		return;
	if (pg_tzset(timezone) == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("time zone \"%s\" not recognized", timezone)));
	(void) set_config_option("TimeZone", timezone, PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
}

/*
 * SQL text that is true for the rows of the slice of a table "t", with the bounds as
 * literals.
 */
char *
iload_slice_literal_predicate(const IloadSlice *slice)
{
	IloadKey   *key = slice->key;

	if (slice->single)
		return iload_key_condition(key, key->op_eq, slice->lower);
	return psprintf("%s AND %s", iload_key_condition(key, key->op_ge, slice->lower),
					iload_key_condition(key, key->op_lt, slice->upper));
}
