/*
 * command.c
 *		A command: SQL text of one or more statements, checked and run.
 *
 * It runs in its caller's transaction and with its caller's rights.  "what" names it
 * in messages.
 */
#include "postgres.h"

#include "catalog/pg_proc.h"
#include "executor/spi.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"

#include "command.h"

/* A command that is being parsed, for messages. */
typedef struct ParsedCommand
{
	const char *sql;
	const char *what;
} ParsedCommand;

/* Show the place of a syntax error within the command. */
static void
command_error_callback(void *arg)
{
	ParsedCommand *command = arg;

	if (!function_parse_error_transpose(command->sql))
		errcontext("%s", command->what);
}

/*
 * A command must parse, and leave the transaction to its caller.  It is not
 * analyzed: a statement may need what an earlier one makes.
 */
void
iload_command_check(const char *sql, const char *what)
{
	ParsedCommand command = {sql, what};
	ErrorContextCallback callback;
	List	   *statements;
	ListCell   *lc;

	callback.callback = command_error_callback;
	callback.arg = &command;
	callback.previous = error_context_stack;
	error_context_stack = &callback;
	statements = pg_parse_query(sql);
	error_context_stack = callback.previous;

	if (statements == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s holds no statement", what)));
	foreach(lc, statements)
	{
		Node	   *statement = lfirst_node(RawStmt, lc)->stmt;

		if (IsA(statement, TransactionStmt))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_TRANSACTION_TERMINATION),
					 errmsg("%s must not contain %s",
							what, GetCommandTagName(CreateCommandTag(statement))),
					 errdetail("It runs in its caller's transaction."),
					 errhint("Leave BEGIN, COMMIT and ROLLBACK to the caller.")));
	}
}

/* Say in words that a command has tried to end the transaction. */
static void
rethrow_termination(const char *what, MemoryContext context)
{
	ErrorData  *error;

	MemoryContextSwitchTo(context);
	error = CopyErrorData();
	FlushErrorState();
	error->message = psprintf("%s commits or rolls back by itself", what);
	error->hint = pstrdup("It runs in its caller's transaction: leave COMMIT and ROLLBACK to the caller.");
	ReThrowError(error);
}

/*
 * Run a command, whose parameters may be NULL.  Each statement is analyzed when the
 * one before it is done, so it may use what that has made.  Rows that a statement
 * returns are dropped as they come.
 *
 * Errors: whatever the statements raise; the command tries to end the transaction,
 * or to copy from or to the client.
 */
void
iload_command_run(const char *sql, ParamListInfo params, const char *what)
{
	MemoryContext context = CurrentMemoryContext;
	SPIExecuteOptions options = {
		.params = params,
		.dest = None_Receiver
	};
	volatile int result = 0;

	SPI_connect();
	PG_TRY();
	{
		result = SPI_execute_extended(sql, &options);
	}
	PG_CATCH();
	{
		if (geterrcode() == ERRCODE_INVALID_TRANSACTION_TERMINATION)
			rethrow_termination(what, context);
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (result == SPI_ERROR_COPY)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("%s copies from or to the client", what),
				 errhint("Use COPY with a file or a program, or INSERT.")));
	if (result < 0)
		elog(ERROR, "could not run %s: %s", what, SPI_result_code_string(result));
	SPI_finish();
}
