/*
 * preview.c
 *		The preview of a load, and the SQL function preview_partition.
 *
 * The query is staged as by a load, with all its checks, and measured beside the slice
 * as it is: rows, and the sum of each numeric column.  Nothing is written.  Floats are
 * summed as numeric, so that the order in which rows come makes no difference.
 *
 * No slice lock is taken: a load of the slice that is under way is not waited for.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

#include "argument.h"
#include "preview.h"
#include "query.h"
#include "stage.h"
#include "target.h"

PG_FUNCTION_INFO_V1(iload_preview_partition);

/* Columns of preview_partition() and of the statement. */
typedef enum PreviewColumn
{
	PREVIEW_MEASURE,
	PREVIEW_LIVE,
	PREVIEW_STAGED,
	PREVIEW_DIFFERENCE,
	PREVIEW_SHARE,
	PREVIEW_NCOLUMNS
} PreviewColumn;

static void
preview_error_callback(void *arg)
{
	const IloadSlice *slice = arg;

	errcontext("preview of slice %s of table \"%s\"", iload_slice_text(slice), slice->table_name);
}

/*
 * The sum of a column of "t" as SQL text, of type numeric; NULL for a column that is
 * not numeric.
 */
static char *
sum_text(Form_pg_attribute att)
{
	const char *name = quote_identifier(NameStr(att->attname));

	switch (getBaseType(att->atttypid))
	{
		case INT2OID:
		case INT4OID:
		case INT8OID:
			return psprintf("pg_catalog.sum(t.%s)::pg_catalog.numeric", name);
		case FLOAT4OID:
		case FLOAT8OID:
		case NUMERICOID:
			return psprintf("pg_catalog.sum(t.%s::pg_catalog.numeric)", name);
		default:
			return NULL;
	}
}

/*
 * The SELECT that measures both sides.  The key column is no measure, nor are columns
 * that do not count when rows are compared.
 */
static char *
measure_text(const IloadStage *stage)
{
	const IloadColumns *columns = stage->columns;
	StringInfoData sums;
	StringInfoData measures;

	initStringInfo(&sums);
	initStringInfo(&measures);
	appendStringInfoString(&sums, "pg_catalog.count(*)::pg_catalog.numeric AS m0");
	appendStringInfoString(&measures, "(0, 'rows'::pg_catalog.text, l.m0, s.m0)");
	for (int i = 0; i < columns->ncompared; i++)
	{
		Form_pg_attribute att = TupleDescAttr(columns->desc, columns->compared[i] - 1);
		char	   *sum = sum_text(att);
		int			place = columns->compared[i];

		if (sum == NULL || strcmp(NameStr(att->attname), stage->slice->key->name) == 0)
			continue;
		appendStringInfo(&sums, ", COALESCE(%s, 0) AS m%d", sum, place);
		appendStringInfo(&measures, ", (%d, %s, l.m%d, s.m%d)", place,
						 quote_literal_cstr(psprintf("sum(%s)", NameStr(att->attname))),
						 place, place);
	}
	return psprintf(ILOAD_QUERY_MARK
					"SELECT m.measure, m.live, m.staged,"
					" m.staged OPERATOR(pg_catalog.-) m.live,"
					" CASE WHEN m.live OPERATOR(pg_catalog.<>) 0 THEN"
					" pg_catalog.round((m.staged OPERATOR(pg_catalog.-) m.live)"
					" OPERATOR(pg_catalog./) m.live, 4) END"
					" FROM (SELECT %s FROM %s AS t WHERE %s) AS l,"
					" (SELECT %s FROM " ILOAD_STAGE_NAME " AS t) AS s,"
					" LATERAL (VALUES %s) AS m (place, measure, live, staged)"
					" ORDER BY m.place",
					sums.data, iload_slice_table(stage->slice),
					iload_slice_predicate(stage->slice, "t"), sums.data, measures.data);
}

/* Where measures are collected. */
typedef struct MeasureList
{
	List	   *measures;
	MemoryContext context;
} MeasureList;

static Datum
copy_numeric(TupleTableSlot *slot, PreviewColumn column, bool *isnull)
{
	Datum		value = slot_getattr(slot, column + 1, isnull);

	return *isnull ? (Datum) 0 : datumCopy(value, false, -1);
}

static void
measure_row(TupleTableSlot *slot, void *arg)
{
	MeasureList *list = arg;
	MemoryContext old = MemoryContextSwitchTo(list->context);
	IloadMeasure *measure = palloc(sizeof(IloadMeasure));
	bool		isnull;

	measure->name = TextDatumGetCString(slot_getattr(slot, PREVIEW_MEASURE + 1, &isnull));
	measure->live = copy_numeric(slot, PREVIEW_LIVE, &isnull);
	measure->staged = copy_numeric(slot, PREVIEW_STAGED, &isnull);
	measure->difference = copy_numeric(slot, PREVIEW_DIFFERENCE, &isnull);
	measure->share = copy_numeric(slot, PREVIEW_SHARE, &measure->no_share);
	list->measures = lappend(list->measures, measure);
	MemoryContextSwitchTo(old);
}

/* Measure the slice and the staged rows. */
static List *
measure(IloadStage *stage, Snapshot snapshot)
{
	MeasureList list = {NIL, CurrentMemoryContext};
	char	   *text = measure_text(stage);
	QueryEnvironment *env = iload_stage_environment(stage);
	Oid			types[ILOAD_SLICE_NPARAMS];
	Query	   *query;

	iload_slice_param_types(stage->slice, types);
	query = iload_query_analyze(iload_query_parse(text, "preview"), text, "preview",
								types, ILOAD_SLICE_NPARAMS, env);
	(void) iload_query_run(query, text, iload_slice_params(stage->slice), env, snapshot,
						   measure_row, &list);
	return list.measures;
}

/*
 * What a load of the slice that "args" describes would change: a list of IloadMeasure,
 * in the current context.  Of the options, date_column, timezone and ignore_columns
 * count.
 *
 * Locks: ACCESS SHARE on the target and on its partitions that have the slice, and
 * what the query takes.
 * Errors: those of a load up to its audit.  Defaults are computed, so sequences
 * advance.
 */
List *
iload_preview(Oid relid, const IloadSliceArgs *args, const char *query,
			  const IloadOptions *options)
{
	Relation	target = iload_target_open(relid, AccessShareLock);
	int			nestlevel = NewGUCNestLevel();
	ErrorContextCallback callback;
	Snapshot	snapshot;
	IloadSlice *slice;
	IloadStage *stage;
	List	   *measures;

	iload_slice_set_timezone(options->timezone);
	slice = iload_slice_create(target, options->date_column, args);
	callback.callback = preview_error_callback;
	callback.arg = slice;
	callback.previous = error_context_stack;
	error_context_stack = &callback;

	snapshot = RegisterSnapshot(GetTransactionSnapshot());
	stage = iload_stage_create(target, slice,
							   iload_columns_create(target, slice->key->name,
													options->ignore_columns),
							   query, snapshot);
	iload_stage_run(stage, snapshot, NULL, 0);
	measures = measure(stage, snapshot);
	iload_stage_end(stage);
	UnregisterSnapshot(snapshot);

	error_context_stack = callback.previous;
	AtEOXact_GUC(true, nestlevel);
	table_close(target, NoLock);
	return measures;
}

/*
 * preview_partition(target regclass, date date, query text, date_column text,
 * period interval, timezone text, ignore_columns text[]) returns setof record
 */
Datum
iload_preview_partition(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	IloadSliceArgs args = {.by_date = true};
	IloadOptions options = {0};
	MemoryContext context;
	MemoryContext old;
	ListCell   *lc;

	iload_argument_require(fcinfo, 0, "target");
	iload_argument_require(fcinfo, 1, "date");
	iload_argument_require(fcinfo, 2, "query");
	InitMaterializedSRF(fcinfo, 0);
	context = AllocSetContextCreate(CurrentMemoryContext,
									"idempotent_load", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	args.date = PG_GETARG_DATEADT(1);
	args.period = iload_argument_period(fcinfo, 4);
	options.date_column = iload_argument_text(fcinfo, 3);
	options.timezone = iload_argument_text(fcinfo, 5);
	options.ignore_columns = iload_argument_names(fcinfo, 6, "ignore_columns");

	foreach(lc, iload_preview(PG_GETARG_OID(0), &args, iload_argument_text(fcinfo, 2), &options))
	{
		IloadMeasure *measure = lfirst(lc);
		Datum		values[PREVIEW_NCOLUMNS] = {
			CStringGetTextDatum(measure->name), measure->live, measure->staged,
			measure->difference, measure->share
		};
		bool		nulls[PREVIEW_NCOLUMNS] = {false};

		nulls[PREVIEW_SHARE] = measure->no_share;
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return (Datum) 0;
}
