/*
 * history.c
 *		The table load_history: one row a load, in the load's transaction.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "fingerprint.h"
#include "history.h"
#include "own_table.h"

#define HISTORY_TABLE	"load_history"

/* The columns that a load fills in, in the order of the parameters. */
#define HISTORY_COLUMNS \
	"target, target_name, lower_bound, upper_bound, logical_date, period, timezone," \
	" run_id, query_hash, method, rows, rows_before, inserted, deleted, updated, fingerprint," \
	" loaded_by, started_at, finished_at"
#define HISTORY_PARAMETERS \
	"$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19"
#define HISTORY_NPARAMETERS 19

static void
fill_values(IloadOwnValues *values, const IloadHistoryRow *row)
{
	const IloadSlice *slice = row->slice;

	values->n = 0;
	iload_own_values_add(values, REGCLASSOID, ObjectIdGetDatum(slice->target), false);
	iload_own_values_add_text(values, iload_slice_table(slice));
	iload_own_values_add_text(values, slice->lower_text);
	iload_own_values_add_text(values, slice->upper_text);
	iload_own_values_add(values, DATEOID, DateADTGetDatum(slice->date), !slice->by_date);
	iload_own_values_add(values, INTERVALOID, PointerGetDatum(slice->period), !slice->by_date);
	iload_own_values_add_text(values, slice->timezone);
	iload_own_values_add_text(values, row->run_id);
	iload_own_values_add_text(values,
							  row->query == NULL ? NULL : iload_text_digest(row->query));
	iload_own_values_add_text(values, row->method);
	iload_own_values_add(values, INT8OID, Int64GetDatum(row->rows), false);
	iload_own_values_add(values, INT8OID, Int64GetDatum(row->rows_before), row->before_unknown);
	iload_own_values_add(values, INT8OID, Int64GetDatum(row->inserted), false);
	iload_own_values_add(values, INT8OID, Int64GetDatum(row->deleted), false);
	iload_own_values_add(values, INT8OID, Int64GetDatum(row->updated), false);
	iload_own_values_add_text(values, row->fingerprint);
	iload_own_values_add_text(values, GetUserNameFromId(GetUserId(), false));
	iload_own_values_add(values, TIMESTAMPTZOID, TimestampTzGetDatum(row->started), false);
	iload_own_values_add(values, TIMESTAMPTZOID, TimestampTzGetDatum(row->finished), false);
	Assert(values->n == HISTORY_NPARAMETERS);
}

/*
 * Was the last load of the slice one by this very query?  "schema" is the
 * extension's.
 */
bool
iload_history_repeats(Oid schema, const IloadSlice *slice, const char *query)
{
	IloadOwnValues values = {0};
	char	   *text;
	bool		repeats;
	bool		isnull;

	SPI_connect();
	iload_own_values_add(&values, REGCLASSOID, ObjectIdGetDatum(slice->target), false);
	iload_own_values_add_text(&values, slice->lower_text);
	iload_own_values_add_text(&values, slice->upper_text);
	iload_own_values_add_text(&values, iload_text_digest(query));
	text = psprintf("SELECT query_hash OPERATOR(pg_catalog.=) $4 FROM %s"
					" WHERE target OPERATOR(pg_catalog.=) $1"
					" AND lower_bound OPERATOR(pg_catalog.=) $2"
					" AND (upper_bound OPERATOR(pg_catalog.=) $3"
					" OR upper_bound IS NULL AND $3 IS NULL)"
					" ORDER BY id DESC LIMIT 1", iload_own_table_name(schema, HISTORY_TABLE));

	iload_own_table_execute(schema, HISTORY_TABLE, text, &values, true, SPI_OK_SELECT);
	repeats = SPI_processed == 1 &&
		DatumGetBool(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull));
	SPI_finish();
	return repeats;
}

/*
 * Was the last load of a target for a date one by this very query, in this time zone?
 * "schema" is the extension's.
 */
bool
iload_history_has_date(Oid schema, Oid target, DateADT date, const char *query,
					   const char *timezone)
{
	IloadOwnValues values = {0};
	char	   *text;
	bool		has;
	bool		isnull;

	SPI_connect();
	iload_own_values_add(&values, REGCLASSOID, ObjectIdGetDatum(target), false);
	iload_own_values_add(&values, DATEOID, DateADTGetDatum(date), false);
	iload_own_values_add_text(&values, iload_text_digest(query));
	iload_own_values_add_text(&values, timezone);
	text = psprintf("SELECT query_hash IS NOT DISTINCT FROM $3"
					" AND timezone OPERATOR(pg_catalog.=) $4 FROM %s"
					" WHERE target OPERATOR(pg_catalog.=) $1"
					" AND logical_date OPERATOR(pg_catalog.=) $2"
					" ORDER BY id DESC LIMIT 1", iload_own_table_name(schema, HISTORY_TABLE));

	iload_own_table_execute(schema, HISTORY_TABLE, text, &values, true, SPI_OK_SELECT);
	has = SPI_processed == 1 &&
		DatumGetBool(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull));
	SPI_finish();
	return has;
}

/* Record a load.  "schema" is the extension's. */
void
iload_history_insert(Oid schema, const IloadHistoryRow *row)
{
	IloadOwnValues values;
	char	   *text;

	SPI_connect();
	fill_values(&values, row);
	text = psprintf("INSERT INTO %s (" HISTORY_COLUMNS ") VALUES (" HISTORY_PARAMETERS ")",
					iload_own_table_name(schema, HISTORY_TABLE));

	iload_own_table_execute(schema, HISTORY_TABLE, text, &values, false, SPI_OK_INSERT);
	SPI_finish();
}
