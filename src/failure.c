/*
 * failure.c
 *		The table load_failures: one row for each load that a backfill saw fail.
 *
 * A load that fails undoes its subtransaction, and a row about it with it.  So the row
 * is written by who has caught the error, when that has been rolled back.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "failure.h"
#include "own_table.h"
#include "root.h"

#define FAILURE_TABLE	"load_failures"

/* The columns that are filled in, in the order of the parameters. */
#define FAILURE_COLUMNS \
	"target, target_name, job, logical_date, lower_bound, run_id, sqlstate, message," \
	" detail, hint, context, failed_by, failed_at"
#define FAILURE_PARAMETERS \
	"$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13"
#define FAILURE_NPARAMETERS 13

static void
fill_values(IloadOwnValues *values, const IloadFailure *failure)
{
	const ErrorData *error = failure->error;

	iload_own_values_add(values, REGCLASSOID, ObjectIdGetDatum(failure->target),
						 !OidIsValid(failure->target));
	iload_own_values_add_text(values, iload_table_name(failure->target));
	iload_own_values_add_text(values, failure->job);
	iload_own_values_add(values, DATEOID, DateADTGetDatum(failure->date), false);
	iload_own_values_add_text(values, failure->lower_bound);
	iload_own_values_add_text(values, failure->run_id);
	iload_own_values_add_text(values, unpack_sql_state(error->sqlerrcode));
	iload_own_values_add_text(values, error->message);
	iload_own_values_add_text(values, error->detail);
	iload_own_values_add_text(values, error->hint);
	iload_own_values_add_text(values, error->context);
	iload_own_values_add_text(values, GetUserNameFromId(GetUserId(), false));
	iload_own_values_add(values, TIMESTAMPTZOID, TimestampTzGetDatum(GetCurrentTimestamp()),
						 false);
	Assert(values->n == FAILURE_NPARAMETERS);
}

/*
 * Record a failure, as one of the current user's.  "schema" is the extension's.
 * Needs a transaction that will be committed.
 */
void
iload_failure_record(Oid schema, const IloadFailure *failure)
{
	IloadOwnValues values = {0};

	SPI_connect();
	fill_values(&values, failure);
	iload_own_table_execute(schema, FAILURE_TABLE,
							psprintf("INSERT INTO %s (" FAILURE_COLUMNS ") VALUES (" FAILURE_PARAMETERS ")",
									 iload_own_table_name(schema, FAILURE_TABLE)),
							&values, false, SPI_OK_INSERT);
	SPI_finish();
}
