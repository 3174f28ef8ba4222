/*
 * constraints.c
 *		When deferrable constraints and triggers are checked.
 */
#include "postgres.h"

#include "executor/spi.h"

#include "constraints.h"
#include "query.h"

static void
set_constraints(const char *text)
{
	SPI_connect();
	if (SPI_execute(text, false, 0) != SPI_OK_UTILITY)
		elog(ERROR, "could not execute \"%s\"", text);
	SPI_finish();
}

/*
 * Check now what waits for the commit, and from now on at the end of each statement, until
 * the transaction, or the subtransaction if it is rolled back, ends.
 *
 * Errors: those that the commit would have raised.
 */
void
iload_constraints_check(void)
{
	set_constraints(ILOAD_QUERY_MARK "SET CONSTRAINTS ALL IMMEDIATE");
}

/* Let all that is deferrable wait again. */
void
iload_constraints_defer(void)
{
	set_constraints(ILOAD_QUERY_MARK "SET CONSTRAINTS ALL DEFERRED");
}
