/*
 * once.c
 *		The SQL function run_once: a command that runs once for its token.
 *
 * For writes that cannot be made idempotent.  The token is recorded in the command's
 * own transaction, and first: so a second session with the same token waits for the
 * first one, and runs the command only if that was rolled back.
 *
 * A token belongs to the role that uses it, or anybody could use up another's.  The
 * role is known by OID: one that is renamed keeps its tokens.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "argument.h"
#include "command.h"
#include "errcodes.h"
#include "fingerprint.h"
#include "own_table.h"

PG_FUNCTION_INFO_V1(iload_run_once);

#define TOKEN_TABLE	"once_tokens"

/* Record the token; false if it is on record already.  May wait for who records it. */
static bool
insert_token(Oid schema, IloadOwnValues *values)
{
	iload_own_table_execute(schema, TOKEN_TABLE,
							psprintf("INSERT INTO %s (role, token, command_hash, ran_at)"
									 " VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
									 iload_own_table_name(schema, TOKEN_TABLE)),
							values, false, SPI_OK_INSERT);
	return SPI_processed == 1;
}

/*
 * Find the token; false if it is not on record.  Errors: it has run another command.
 */
static bool
find_token(Oid schema, IloadOwnValues *values, const char *token)
{
	HeapTuple	row;
	bool		isnull;

	iload_own_table_execute(schema, TOKEN_TABLE,
							psprintf("SELECT command_hash OPERATOR(pg_catalog.=) $3, ran_at FROM %s"
									 " WHERE role OPERATOR(pg_catalog.=) $1"
									 " AND token OPERATOR(pg_catalog.=) $2",
									 iload_own_table_name(schema, TOKEN_TABLE)),
							values, false, SPI_OK_SELECT);
	if (SPI_processed == 0)
		return false;
	row = SPI_tuptable->vals[0];
	if (!DatumGetBool(SPI_getbinval(row, SPI_tuptable->tupdesc, 1, &isnull)))
		ereport(ERROR,
				(errcode(ERRCODE_ILOAD_TOKEN_USED),
				 errmsg("token \"%s\" has run another command", token),
				 errdetail("That was at %s.", SPI_getvalue(row, SPI_tuptable->tupdesc, 2)),
				 errhint("Pass the very text of the first call, or another token for another command.")));
	return true;
}

/*
 * Record that the current user runs a command under a token; false if it has done so
 * before.  "schema" is the extension's.
 *
 * May wait for a transaction that does the same.  Errors: another command under the
 * token; in REPEATABLE READ and SERIALIZABLE a serialization failure, where the token
 * was recorded after our snapshot.
 */
static bool
record_token(Oid schema, const char *token, const char *command)
{
	IloadOwnValues values = {0};
	bool		recorded;

	iload_own_values_add(&values, OIDOID, ObjectIdGetDatum(GetUserId()), false);
	iload_own_values_add_text(&values, token);
	iload_own_values_add_text(&values, iload_text_digest(command));
	iload_own_values_add(&values, TIMESTAMPTZOID, TimestampTzGetDatum(GetCurrentTimestamp()),
						 false);
	SPI_connect();
	/* one that was there may have been pruned before we look at it */
	while (!(recorded = insert_token(schema, &values)) && !find_token(schema, &values, token))
		CHECK_FOR_INTERRUPTS();
	SPI_finish();
	return recorded;
}

static void
once_error_callback(void *arg)
{
	errcontext("%s", (char *) arg);
}

/* run_once(token text, command text) returns boolean: was it run? */
Datum
iload_run_once(PG_FUNCTION_ARGS)
{
	Oid			schema = get_func_namespace(fcinfo->flinfo->fn_oid);
	char	   *token;
	char	   *command;
	char	   *what;
	ErrorContextCallback callback;

	iload_argument_require(fcinfo, 0, "token");
	iload_argument_require(fcinfo, 1, "command");
	token = iload_argument_text(fcinfo, 0);
	command = iload_argument_text(fcinfo, 1);
	what = psprintf("command of token \"%s\"", token);
	if (token[0] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("token must not be empty")));
	PreventCommandIfReadOnly("run_once()");
	iload_command_check(command, what);
	if (!record_token(schema, token, command))
		PG_RETURN_BOOL(false);

	callback.callback = once_error_callback;
	callback.arg = what;
	callback.previous = error_context_stack;
	error_context_stack = &callback;
	iload_command_run(command, NULL, what);
	error_context_stack = callback.previous;
	PG_RETURN_BOOL(true);
}
