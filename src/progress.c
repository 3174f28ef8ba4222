/*
 * progress.c
 *		Progress of a load, as pg_stat_progress_load shows it.
 *
 * The server keeps the progress of a command in shared memory, for all sessions to
 * see.  Its list of commands is closed, so a load goes by a number of its own, which
 * the server's views pass over.
 *
 * A load that builds indexes, or whose query runs such a command, shares the fields
 * with it, so ours are the last ones, which these do not use.  A command that ends,
 * and an aborted subtransaction, end what is shown; each phase starts it anew.
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/backend_progress.h"
#include "utils/backend_status.h"
#include "utils/builtins.h"

#include "compat.h"
#include "progress.h"

PG_FUNCTION_INFO_V1(iload_progress_loads);

#define PROGRESS_COMMAND_LOAD	((ProgressCommandType) 0x494C)

/* Numbers of our fields. */
#define PROGRESS_LOAD_PHASE			(PGSTAT_NUM_PROGRESS_PARAM - 3)
#define PROGRESS_LOAD_ROWS_DONE		(PGSTAT_NUM_PROGRESS_PARAM - 2)
#define PROGRESS_LOAD_ROWS_TOTAL	(PGSTAT_NUM_PROGRESS_PARAM - 1)

/* rows between two updates */
#define ROWS_PER_UPDATE		1024

static const char *const phase_names[] = {
	[ILOAD_PHASE_LOCKING] = "waiting for the slice",
	[ILOAD_PHASE_STAGING] = "running the query",
	[ILOAD_PHASE_AUDITING] = "auditing",
	[ILOAD_PHASE_COMPARING] = "comparing",
	[ILOAD_PHASE_CREATING_PARTITIONS] = "creating partitions",
	[ILOAD_PHASE_SEARCHING] = "searching for differences",
	[ILOAD_PHASE_DELETING] = "deleting rows",
	[ILOAD_PHASE_UPDATING] = "updating rows",
	[ILOAD_PHASE_INSERTING] = "inserting rows",
	[ILOAD_PHASE_FIRING_TRIGGERS] = "firing triggers",
	[ILOAD_PHASE_WAITING_SNAPSHOTS] = "waiting for old snapshots",
	[ILOAD_PHASE_FILLING] = "writing new files",
	[ILOAD_PHASE_WAITING_LOCKS] = "waiting for readers",
	[ILOAD_PHASE_EXCHANGING] = "rebuilding indexes",
	[ILOAD_PHASE_ANALYZING] = "analyzing",
	[ILOAD_PHASE_RECORDING] = "recording"
};

/*
 * A phase of a load of "target" begins; "rows_total" is how many rows it is about,
 * 0 where that is not known.
 */
void
iload_progress_phase(Oid target, IloadPhase phase, uint64 rows_total)
{
	pgstat_progress_start_command(PROGRESS_COMMAND_LOAD, target);
	pgstat_progress_update_param(PROGRESS_LOAD_PHASE, phase);
	pgstat_progress_update_param(PROGRESS_LOAD_ROWS_TOTAL, (int64) rows_total);
}

/* So many rows are done in this phase; called for each of them. */
void
iload_progress_rows(uint64 rows)
{
	if (rows % ROWS_PER_UPDATE == 0)
		pgstat_progress_update_param(PROGRESS_LOAD_ROWS_DONE, (int64) rows);
}

void
iload_progress_end(void)
{
	pgstat_progress_end_command();
}

/* Columns of progress_loads(). */
typedef enum ProgressColumn
{
	PROGRESS_PID,
	PROGRESS_DATID,
	PROGRESS_RELID,
	PROGRESS_PHASE,
	PROGRESS_ROWS_DONE,
	PROGRESS_ROWS_TOTAL,
	PROGRESS_NCOLUMNS
} ProgressColumn;

/* May the caller see what a session of this role does?  As in pg_stat_activity. */
static bool
may_see(Oid role)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||
		has_privs_of_role(GetUserId(), role);
}

static void
put_load(ReturnSetInfo *result, const PgBackendStatus *status)
{
	Datum		values[PROGRESS_NCOLUMNS] = {0};
	bool		nulls[PROGRESS_NCOLUMNS] = {false};
	bool		visible = may_see(status->st_userid);
	int64		phase = status->st_progress_param[PROGRESS_LOAD_PHASE];
	int64		total = status->st_progress_param[PROGRESS_LOAD_ROWS_TOTAL];

	if (phase < 0 || phase >= (int64) lengthof(phase_names))
		return;
	values[PROGRESS_PID] = Int32GetDatum(status->st_procpid);
	values[PROGRESS_DATID] = ObjectIdGetDatum(status->st_databaseid);
	for (int i = PROGRESS_RELID; i < PROGRESS_NCOLUMNS; i++)
		nulls[i] = !visible;
	if (visible)
	{
		values[PROGRESS_RELID] = ObjectIdGetDatum(status->st_progress_command_target);
		values[PROGRESS_PHASE] = CStringGetTextDatum(phase_names[phase]);
		values[PROGRESS_ROWS_DONE] =
			Int64GetDatum(status->st_progress_param[PROGRESS_LOAD_ROWS_DONE]);
		values[PROGRESS_ROWS_TOTAL] = Int64GetDatum(total);
		nulls[PROGRESS_ROWS_TOTAL] = total == 0;
	}
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/*
 * progress_loads() returns setof record: one row for each session that runs a
 * load, in all databases.  What it does is null to those who may not see it.
 */
Datum
iload_progress_loads(PG_FUNCTION_ARGS)
{
	int			n = pgstat_fetch_stat_numbackends();

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 1; i <= n; i++)
	{
		const LocalPgBackendStatus *local = iload_pgstat_get_local_beentry_by_index(i);

		if (local != NULL &&
			local->backendStatus.st_progress_command == PROGRESS_COMMAND_LOAD)
			put_load((ReturnSetInfo *) fcinfo->resultinfo, &local->backendStatus);
	}
	PG_RETURN_NULL();
}
