/*
 * history.c
 *		The table load_history: one row a load, in the load's transaction.
 *
 * The table belongs to the extension's owner, and nobody else may write it.
 * Here is the one place where that owner's rights are taken on, for one INSERT
 * and one SELECT whose text is ours and depends on no search_path.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "fingerprint.h"
#include "history.h"

#define HISTORY_TABLE	"load_history"

/* The columns that a load fills in, in the order of the parameters. */
#define HISTORY_COLUMNS \
	"target, target_name, lower_bound, upper_bound, logical_date, period, timezone," \
	" run_id, query_hash, method, rows, rows_before, inserted, deleted, fingerprint," \
	" loaded_by, started_at, finished_at"
#define HISTORY_PARAMETERS \
	"$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18"
#define HISTORY_NPARAMETERS 18

typedef struct HistoryValues
{
	int			n;
	Oid			types[HISTORY_NPARAMETERS];
	Datum		values[HISTORY_NPARAMETERS];
	char		nulls[HISTORY_NPARAMETERS];
} HistoryValues;

static void
add_value(HistoryValues *values, Oid type, Datum value, bool isnull)
{
	values->types[values->n] = type;
	values->values[values->n] = value;
	values->nulls[values->n] = isnull ? 'n' : ' ';
	values->n++;
}

static void
add_text(HistoryValues *values, const char *text)
{
	add_value(values, TEXTOID, text == NULL ? (Datum) 0 : CStringGetTextDatum(text),
			  text == NULL);
}

static void
fill_values(HistoryValues *values, const IloadHistoryRow *row)
{
	const IloadSlice *slice = row->slice;

	values->n = 0;
	add_value(values, REGCLASSOID, ObjectIdGetDatum(slice->target), false);
	add_text(values, iload_slice_table(slice));
	add_text(values, slice->lower_text);
	add_text(values, slice->upper_text);
	add_value(values, DATEOID, DateADTGetDatum(slice->date), !slice->by_date);
	add_value(values, INTERVALOID, PointerGetDatum(slice->period), !slice->by_date);
	add_text(values, slice->timezone);
	add_text(values, row->run_id);
	add_text(values, iload_text_digest(row->query));
	add_text(values, row->method);
	add_value(values, INT8OID, Int64GetDatum(row->rows), false);
	add_value(values, INT8OID, Int64GetDatum(row->rows_before), false);
	add_value(values, INT8OID, Int64GetDatum(row->inserted), false);
	add_value(values, INT8OID, Int64GetDatum(row->deleted), false);
	add_text(values, row->fingerprint);
	add_text(values, GetUserNameFromId(GetUserId(), false));
	add_value(values, TIMESTAMPTZOID, TimestampTzGetDatum(row->started), false);
	add_value(values, TIMESTAMPTZOID, TimestampTzGetDatum(row->finished), false);
	Assert(values->n == HISTORY_NPARAMETERS);
}

static Oid
history_owner(Oid schema)
{
	Oid			relid = get_relname_relid(HISTORY_TABLE, schema);
	HeapTuple	tup = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid			owner;

	if (!HeapTupleIsValid(tup))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("table \"%s\" of extension idempotent_load does not exist", HISTORY_TABLE)));
	owner = ((Form_pg_class) GETSTRUCT(tup))->relowner;
	ReleaseSysCache(tup);
	return owner;
}

/* Take on the rights of the table's owner; the caller gives them back. */
static void
become_owner(Oid schema, Oid *user, int *context)
{
	GetUserIdAndSecContext(user, context);
	SetUserIdAndSecContext(history_owner(schema), *context | SECURITY_LOCAL_USERID_CHANGE);
}

/* The table's name in SQL text. */
static char *
history_table(Oid schema)
{
	return quote_qualified_identifier(get_namespace_name(schema), HISTORY_TABLE);
}

/*
 * Was the last load of the slice one by this very query?  "schema" is the
 * extension's.
 */
bool
iload_history_repeats(Oid schema, const IloadSlice *slice, const char *query)
{
	HistoryValues values = {0};
	Oid			user;
	int			context;
	bool		repeats;
	bool		isnull;

	SPI_connect();
	add_value(&values, REGCLASSOID, ObjectIdGetDatum(slice->target), false);
	add_text(&values, slice->lower_text);
	add_text(&values, slice->upper_text);
	add_text(&values, iload_text_digest(query));
	become_owner(schema, &user, &context);
	if (SPI_execute_with_args(psprintf("SELECT query_hash OPERATOR(pg_catalog.=) $4 FROM %s"
									   " WHERE target OPERATOR(pg_catalog.=) $1"
									   " AND lower_bound OPERATOR(pg_catalog.=) $2"
									   " AND (upper_bound OPERATOR(pg_catalog.=) $3"
									   " OR upper_bound IS NULL AND $3 IS NULL)"
									   " ORDER BY id DESC LIMIT 1", history_table(schema)),
							  values.n, values.types, values.values, values.nulls,
							  true, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not read table \"%s\"", HISTORY_TABLE);
	SetUserIdAndSecContext(user, context);
	repeats = SPI_processed == 1 &&
		DatumGetBool(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull));
	SPI_finish();
	return repeats;
}

/* Record a load.  "schema" is the extension's. */
void
iload_history_insert(Oid schema, const IloadHistoryRow *row)
{
	HistoryValues values;
	Oid			user;
	int			context;
	char	   *text;

	SPI_connect();
	fill_values(&values, row);
	text = psprintf("INSERT INTO %s (" HISTORY_COLUMNS ") VALUES (" HISTORY_PARAMETERS ")",
					history_table(schema));

	become_owner(schema, &user, &context);
	if (SPI_execute_with_args(text, values.n, values.types, values.values, values.nulls,
							  false, 0) != SPI_OK_INSERT)
		elog(ERROR, "could not insert into table \"%s\"", HISTORY_TABLE);
	SetUserIdAndSecContext(user, context);
	SPI_finish();
}
