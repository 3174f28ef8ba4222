/*
 * backfill_log.c
 *		The table backfills: what other sessions see of a backfill.
 *
 * A row is made when a backfill starts and changed while it runs, in its transactions.
 * A leader that is killed cannot say so in the row.  So it holds, as a lock of the
 * session, an advisory lock of our own on the row's id: the view backfill_progress takes a
 * row for running only as long as that lock is held.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lock.h"

#include "backfill_log.h"
#include "own_table.h"

#define BACKFILL_TABLE "backfills"

/* field 4 of the lock tag; the view backfill_progress knows it, and lock.c has others */
#define ILOAD_LOCK_BACKFILL 0x4951

/* Insert the row of a backfill that starts.  Returns its id. */
int64
iload_backfill_log_insert(const IloadBackfill *backfill, const IloadJob *job, DateADT from,
						  DateADT to, int workers)
{
	Oid			schema = backfill->schema;
	IloadOwnValues values = {0};
	int64		id;
	bool		isnull;

	SPI_connect();
	iload_own_values_add_text(&values, job->name);
	iload_own_values_add(&values, DATEOID, DateADTGetDatum(from), false);
	iload_own_values_add(&values, DATEOID, DateADTGetDatum(to), false);
	iload_own_values_add(&values, INT4OID, Int32GetDatum(workers), false);
	iload_own_values_add(&values, INT4OID, Int32GetDatum(backfill->ntasks), false);
	iload_own_values_add_text(&values, GetUserNameFromId(GetUserId(), false));
	iload_own_values_add(&values, INT4OID, Int32GetDatum(MyProcPid), false);
	iload_own_values_add_text(&values, job->options.run_id);
	iload_own_table_execute(schema, BACKFILL_TABLE,
							psprintf("INSERT INTO %s (job, from_date, to_date, workers, total, run_by, pid, run_id)"
									 " VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id",
									 iload_own_table_name(schema, BACKFILL_TABLE)),
							&values, false, SPI_OK_INSERT_RETURNING);
	id = DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull));
	SPI_finish();
	return id;
}

static void
add_count(IloadOwnValues *values, const IloadBackfill *backfill, IloadTaskState state)
{
	int			n = 0;

	for (int i = 0; i < backfill->ntasks; i++)
		n += iload_task_state(&backfill->tasks[i]) == state;
	iload_own_values_add(values, INT4OID, Int32GetDatum(n), false);
}

/* Bring the row up to date.  With a state other than running, the backfill has ended. */
void
iload_backfill_log_update(const IloadBackfill *backfill, const char *state)
{
	IloadOwnValues values = {0};

	SPI_connect();
	iload_own_values_add(&values, INT8OID, Int64GetDatum(backfill->id), false);
	add_count(&values, backfill, ILOAD_TASK_DONE);
	add_count(&values, backfill, ILOAD_TASK_SKIPPED);
	add_count(&values, backfill, ILOAD_TASK_FAILED);
	iload_own_values_add_text(&values, state);
	iload_own_table_execute(backfill->schema, BACKFILL_TABLE,
							psprintf("UPDATE %s SET done = $2, skipped = $3, failed = $4, state = $5,"
									 " updated_at = pg_catalog.clock_timestamp(),"
									 " finished_at = CASE WHEN $5 OPERATOR(pg_catalog.<>) 'running'"
									 " THEN pg_catalog.clock_timestamp() END"
									 " WHERE id OPERATOR(pg_catalog.=) $1",
									 iload_own_table_name(backfill->schema, BACKFILL_TABLE)),
							&values, false, SPI_OK_UPDATE);
	SPI_finish();
}

static void
make_tag(LOCKTAG *tag, int64 id)
{
	SET_LOCKTAG_ADVISORY(*tag, MyDatabaseId, (uint32) (id >> 32), (uint32) id,
						 ILOAD_LOCK_BACKFILL);
}

/* Hold the lock that tells that the backfill runs, until it is given back. */
void
iload_backfill_lock(int64 id)
{
	LOCKTAG		tag;

	make_tag(&tag, id);
	(void) LockAcquire(&tag, ExclusiveLock, true, false);
}

void
iload_backfill_unlock(int64 id)
{
	LOCKTAG		tag;

	make_tag(&tag, id);
	(void) LockRelease(&tag, ExclusiveLock, true);
}
