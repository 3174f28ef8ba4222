/*
 * lag.c
 *		How far standbys are behind.
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "lag.h"
#include "query.h"

/* Is there a standby that is further behind, by bytes $1 or by microseconds $2? */
#define SELECT_BEHIND \
	ILOAD_QUERY_MARK "SELECT 1 FROM pg_catalog.pg_stat_replication" \
	" WHERE ($1 OPERATOR(pg_catalog.>) 0 AND" \
	" pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), replay_lsn) OPERATOR(pg_catalog.>) $1)" \
	" OR ($2 OPERATOR(pg_catalog.>) 0 AND" \
	" pg_catalog.date_part('epoch', replay_lag) OPERATOR(pg_catalog.*) 1000000 OPERATOR(pg_catalog.>) $2)" \
	" LIMIT 1"

/*
 * Read a limit: bytes as '16MB', or time as '30s' or '5min'.  The other one
 * becomes 0.  NULL is no limit.
 *
 * Errors: what is neither; a user who may not see what standbys have replayed.
 */
void
iload_lag_parse(const char *text, int64 *bytes, int64 *microseconds)
{
	int			kilobytes;
	int			milliseconds;
	const char *hint = NULL;

	*bytes = *microseconds = 0;
	if (text == NULL)
		return;
	if (!has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("max_lag needs the rights of role \"%s\"", "pg_read_all_stats"),
				 errdetail("Others do not see how far standbys are behind.")));
	if (parse_int(text, &kilobytes, GUC_UNIT_KB, &hint) && kilobytes > 0 &&
		strpbrk(text, "Bb") != NULL)
		*bytes = (int64) kilobytes * 1024;
	else if (parse_int(text, &milliseconds, GUC_UNIT_MS, &hint) && milliseconds > 0 &&
			 strpbrk(text, "smhd") != NULL)
		*microseconds = (int64) milliseconds * 1000;
	else
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for option \"%s\": \"%s\"", "max_lag", text),
				 errhint("Give bytes with their unit, as '16MB', or time, as '30s' or '5min'.")));
}

/* Is a standby further behind than the limits?  Needs a transaction, and no snapshot. */
bool
iload_lag_exceeds(int64 bytes, int64 microseconds)
{
	Oid			types[] = {INT8OID, INT8OID};
	Datum		values[] = {Int64GetDatum(bytes), Int64GetDatum(microseconds)};
	bool		exceeds;

	if (bytes == 0 && microseconds == 0)
		return false;
	PushActiveSnapshot(GetTransactionSnapshot());
	SPI_connect();
	if (SPI_execute_with_args(SELECT_BEHIND, 2, types, values, NULL, true, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not look at standbys");
	exceeds = SPI_processed > 0;
	SPI_finish();
	PopActiveSnapshot();
	return exceeds;
}
