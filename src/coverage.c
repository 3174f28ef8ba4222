/*
 * coverage.c
 *		Coverage: which days of a table have been loaded, by its history.
 *
 * What is asked is load_history and load_failures, never the target: so it costs the
 * same for a table of any size, takes no lock on it and needs no right to it.  Both
 * are read as their owner, since failures are not for everybody to see; of them only
 * a date gets out.
 *
 * A day counts as loaded by a load of that day, or of a longer period that it is part
 * of; the last one says what it is now.  The SQL functions that are nothing but a
 * query over load_states are in the extension's script.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

#include "argument.h"
#include "coverage.h"
#include "errcodes.h"
#include "error_fields.h"
#include "own_table.h"
#include "slice.h"

PG_FUNCTION_INFO_V1(iload_load_states);
PG_FUNCTION_INFO_V1(iload_assert_loaded);

#define HISTORY_TABLE	"load_history"
#define FAILURE_TABLE	"load_failures"

/* Days that an error lists. */
#define LISTED_DAYS		10

/* Columns of the statement and of load_states(). */
typedef enum StateColumn
{
	STATE_DATE,
	STATE_STATE,
	STATE_ROWS,
	STATE_LOADS,				/* not of load_states() */
	STATE_NCOLUMNS = STATE_LOADS
} StateColumn;

/* What is asked. */
typedef struct Coverage
{
	Oid			schema;			/* of the extension */
	Oid			target;
	DateADT		from;
	DateADT		to;
	Interval   *period;
	bool		has_thin;
	float4		thin;
} Coverage;

/*
 * The state of each period, in order of date.
 *
 * Parameters: $1 target, $2 start of the first period, $3 last date, $4 period,
 * $5 thin, $6 how far apart the periods are that are compared by their rows, $7 how
 * many of these are looked at on either side.
 *
 * A load of a longer period tells how many rows the day has only where it had none.
 */
static const char state_query[] =
"WITH days AS ("
" SELECT g.at::pg_catalog.date AS date"
" FROM pg_catalog.generate_series($2::pg_catalog.timestamp, $3::pg_catalog.timestamp, $4) AS g (at)"
"), loads AS ("
" SELECT DISTINCT ON (h.logical_date) h.logical_date AS date, h.id, h.rows, h.finished_at"
" FROM %s AS h"
" WHERE h.target OPERATOR(pg_catalog.=) $1 AND h.period OPERATOR(pg_catalog.=) $4"
" AND h.logical_date OPERATOR(pg_catalog.>=)"
" ($2 OPERATOR(pg_catalog.-) ($6 OPERATOR(pg_catalog.*) $7::pg_catalog.float8))"
" AND h.logical_date OPERATOR(pg_catalog.<=)"
" ($3 OPERATOR(pg_catalog.+) ($6 OPERATOR(pg_catalog.*) $7::pg_catalog.float8))"
" ORDER BY h.logical_date, h.id DESC"
"), medians AS ("
" SELECT d.date, (pg_catalog.percentile_cont(0.5)"
" WITHIN GROUP (ORDER BY n.rows::pg_catalog.float8))::pg_catalog.numeric AS rows"
" FROM days AS d CROSS JOIN pg_catalog.generate_series(OPERATOR(pg_catalog.-) $7, $7) AS k (k)"
" JOIN loads AS n ON n.date OPERATOR(pg_catalog.=)"
" (d.date OPERATOR(pg_catalog.+) ($6 OPERATOR(pg_catalog.*) k.k::pg_catalog.float8))::pg_catalog.date"
" WHERE k.k OPERATOR(pg_catalog.<>) 0 AND $5 IS NOT NULL"
" GROUP BY d.date"
"), longer AS ("
" SELECT h.logical_date AS date, h.logical_date OPERATOR(pg_catalog.+) h.period AS until,"
" h.id, h.rows, h.finished_at"
" FROM %s AS h"
" WHERE h.target OPERATOR(pg_catalog.=) $1 AND h.period OPERATOR(pg_catalog.>) $4"
" AND h.logical_date OPERATOR(pg_catalog.<=) $3"
"), last AS ("
" SELECT DISTINCT ON (c.date) c.date, c.id, c.rows, c.finished_at"
" FROM ("
" SELECT l.date, l.id, l.rows, l.finished_at FROM loads AS l"
" UNION ALL"
" SELECT d.date, w.id, CASE WHEN w.rows OPERATOR(pg_catalog.=) 0 THEN w.rows END, w.finished_at"
" FROM days AS d JOIN longer AS w ON w.date OPERATOR(pg_catalog.<=) d.date"
" AND w.until OPERATOR(pg_catalog.>=) (d.date OPERATOR(pg_catalog.+) $4)"
" ) AS c"
" ORDER BY c.date, c.id DESC"
"), failures AS ("
" SELECT f.logical_date AS date, pg_catalog.max(f.failed_at) AS failed_at"
" FROM %s AS f"
" WHERE f.target OPERATOR(pg_catalog.=) $1"
" AND f.logical_date OPERATOR(pg_catalog.>=) $2 AND f.logical_date OPERATOR(pg_catalog.<=) $3"
" GROUP BY f.logical_date"
")"
" SELECT d.date,"
" CASE WHEN f.failed_at OPERATOR(pg_catalog.>) l.finished_at"
" OR f.failed_at IS NOT NULL AND l.id IS NULL THEN 'failed'"
" WHEN l.id IS NULL THEN 'never loaded'"
" WHEN l.rows OPERATOR(pg_catalog.=) 0 THEN 'empty'"
" WHEN l.rows::pg_catalog.numeric OPERATOR(pg_catalog.<)"
" ($5::pg_catalog.numeric OPERATOR(pg_catalog.*) m.rows) THEN 'thin'"
" ELSE 'loaded' END,"
" l.rows, l.id IS NOT NULL"
" FROM days AS d LEFT JOIN last AS l ON l.date OPERATOR(pg_catalog.=) d.date"
" LEFT JOIN medians AS m ON m.date OPERATOR(pg_catalog.=) d.date"
" LEFT JOIN failures AS f ON f.date OPERATOR(pg_catalog.=) d.date"
" ORDER BY d.date";

/* Days are compared with the same weekday, other periods with all of their kind. */
#define DAYS_APART		7
/* How many of these on either side. */
#define NEIGHBOURS		8

static void
fill_values(IloadOwnValues *values, const Coverage *coverage)
{
	Interval   *period = coverage->period;
	Interval   *apart = palloc(sizeof(Interval));

	*apart = *period;
	if (period->month == 0 && period->day == 1)
		apart->day = DAYS_APART;
	iload_own_values_add(values, REGCLASSOID, ObjectIdGetDatum(coverage->target), false);
	iload_own_values_add(values, DATEOID,
						 DateADTGetDatum(iload_coverage_first(coverage->from, coverage->to, period)),
						 false);
	iload_own_values_add(values, DATEOID, DateADTGetDatum(coverage->to), false);
	iload_own_values_add(values, INTERVALOID, IntervalPGetDatum(period), false);
	iload_own_values_add(values, FLOAT4OID, Float4GetDatum(coverage->thin), !coverage->has_thin);
	iload_own_values_add(values, INTERVALOID, IntervalPGetDatum(apart), false);
	iload_own_values_add(values, INT4OID, Int32GetDatum(NEIGHBOURS), false);
}

/*
 * Read the states, as the active snapshot sees them.  The caller has connected to SPI
 * and finds the rows there.
 */
static void
read_states(const Coverage *coverage)
{
	IloadOwnValues values = {0};
	char	   *history = iload_own_table_name(coverage->schema, HISTORY_TABLE);
	char	   *failures = iload_own_table_name(coverage->schema, FAILURE_TABLE);

	fill_values(&values, coverage);
	iload_own_table_execute(coverage->schema, HISTORY_TABLE,
							psprintf(state_query, history, history, failures),
							&values, true, SPI_OK_SELECT);
}

/*
 * The start of the first period that begins from "from" to "to", both included; it is
 * later than "to" where there is none.
 *
 * Errors: dates that are infinite or in the wrong order, a period that is not
 * supported or shorter than a day.
 */
DateADT
iload_coverage_first(DateADT from, DateADT to, Interval *period)
{
	DateADT		start;

	if (DATE_NOT_FINITE(from) || DATE_NOT_FINITE(to))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("from_date and to_date must be finite")));
	if (from > to)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("from_date must not be later than to_date"),
				 errhint("Both days are included: pass the same date twice for one day.")));
	start = iload_period_start(from, period);
	if (period->time != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("period must not be shorter than a day"),
				 errhint("Slices of hours are in the table load_history, by lower_bound.")));
	return start == from ? from : iload_period_end(start, period);
}

/*
 * Is there a load of the period that begins on "date"?  The latest snapshot is used in
 * every isolation level.
 */
bool
iload_coverage_has_load(Oid schema, Oid target, DateADT date, Interval *period)
{
	Coverage	coverage = {
		.schema = schema,
		.target = target,
		.from = date,
		.to = date,
		.period = period
	};
	bool		found;
	bool		isnull;

	PushActiveSnapshot(GetLatestSnapshot());
	SPI_connect();
	read_states(&coverage);
	found = SPI_processed == 1 &&
		DatumGetBool(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc,
								   STATE_LOADS + 1, &isnull));
	SPI_finish();
	PopActiveSnapshot();
	return found;
}

/* What every function is told first: target, from_date, to_date. */
static void
read_range(FunctionCallInfo fcinfo, Coverage *coverage)
{
	iload_argument_require(fcinfo, 0, "target");
	iload_argument_require(fcinfo, 1, "from_date");
	iload_argument_require(fcinfo, 2, "to_date");
	coverage->schema = get_func_namespace(fcinfo->flinfo->fn_oid);
	coverage->target = PG_GETARG_OID(0);
	coverage->from = PG_GETARG_DATEADT(1);
	coverage->to = PG_GETARG_DATEADT(2);
	if (get_rel_name(coverage->target) == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", coverage->target)));
}

static void
read_thin(FunctionCallInfo fcinfo, int argno, Coverage *coverage)
{
	if (PG_ARGISNULL(argno))
		return;
	coverage->has_thin = true;
	coverage->thin = PG_GETARG_FLOAT4(argno);
	if (isnan(coverage->thin) || coverage->thin < 0 || coverage->thin > 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("thin must be a share between 0 and 1"),
				 errhint("A day is thin that has less than this share of the rows of other days of its weekday; null finds none.")));
}

/*
 * load_states(target regclass, from_date date, to_date date, thin real,
 * period interval) returns setof record
 */
Datum
iload_load_states(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Coverage	coverage = {0};

	read_range(fcinfo, &coverage);
	read_thin(fcinfo, 3, &coverage);
	coverage.period = iload_argument_period(fcinfo, 4);
	InitMaterializedSRF(fcinfo, 0);

	SPI_connect();
	read_states(&coverage);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		Datum		values[STATE_NCOLUMNS];
		bool		nulls[STATE_NCOLUMNS];

		for (int column = 0; column < STATE_NCOLUMNS; column++)
			values[column] = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc,
										   column + 1, &nulls[column]);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	SPI_finish();
	return (Datum) 0;
}

/* Does a day in this state pass for loaded? */
static bool
passes(const char *state, bool allow_empty)
{
	return strcmp(state, "loaded") == 0 || (allow_empty && strcmp(state, "empty") == 0);
}

/* Raise an error that lists the days that SPI has read and that do not pass. */
static void
raise_not_loaded(const Coverage *coverage, bool allow_empty, uint64 nmissing)
{
	StringInfoData list;
	uint64		nlisted = 0;

	initStringInfo(&list);
	for (uint64 i = 0; i < SPI_processed && nlisted < LISTED_DAYS; i++)
	{
		HeapTuple	row = SPI_tuptable->vals[i];
		TupleDesc	desc = SPI_tuptable->tupdesc;
		char	   *state = SPI_getvalue(row, desc, STATE_STATE + 1);
		bool		isnull;

		if (passes(state, allow_empty))
			continue;
		/* in ISO style, whatever the DateStyle */
		appendStringInfo(&list, "%s%s %s", nlisted++ > 0 ? ", " : "",
						 JsonEncodeDateTime(NULL, SPI_getbinval(row, desc, STATE_DATE + 1, &isnull),
											DATEOID, NULL),
						 state);
	}
	if (nmissing > nlisted)
		appendStringInfo(&list, ", and " UINT64_FORMAT " more", nmissing - nlisted);
	ereport(ERROR,
			(errcode(ERRCODE_ILOAD_NOT_LOADED),
			 errmsg(UINT64_FORMAT " of " UINT64_FORMAT " days of table \"%s\" are not loaded",
					nmissing, SPI_processed, get_rel_name(coverage->target)),
			 errdetail("Days that are missing: %s.", list.data),
			 errhint("Load these days. Errors of a backfill are in the table %s.",
					 iload_own_table_name(coverage->schema, FAILURE_TABLE)),
			 iload_errtable(coverage->target)));
}

/*
 * assert_loaded(target regclass, from_date date, to_date date, allow_empty boolean,
 * thin real) returns boolean
 */
Datum
iload_assert_loaded(PG_FUNCTION_ARGS)
{
	Coverage	coverage = {0};
	bool		allow_empty = PG_ARGISNULL(3) || PG_GETARG_BOOL(3);
	uint64		nmissing = 0;

	read_range(fcinfo, &coverage);
	read_thin(fcinfo, 4, &coverage);
	coverage.period = palloc0(sizeof(Interval));
	coverage.period->day = 1;

	SPI_connect();
	read_states(&coverage);
	for (uint64 i = 0; i < SPI_processed; i++)
		nmissing += !passes(SPI_getvalue(SPI_tuptable->vals[i], SPI_tuptable->tupdesc,
										 STATE_STATE + 1), allow_empty);
	if (nmissing > 0)
		raise_not_loaded(&coverage, allow_empty, nmissing);
	SPI_finish();
	PG_RETURN_BOOL(true);
}
