/*
 * clock.h
 *		The server's clock, moved for one query.
 */
#ifndef ILOAD_CLOCK_H
#define ILOAD_CLOCK_H

#include "nodes/parsenodes.h"

/* Why the true clock was kept in parts of a query. */
typedef struct IloadClockKept
{
	Oid			role;			/* whose views or policies these are, or
								 * InvalidOid */
	bool		calls_functions;	/* they call functions of users */
}			IloadClockKept;

extern Query *iload_clock_move(Query *query, int seconds, Oid user, IloadClockKept * kept);
extern List *iload_clock_move_literals(Query *query, const char *source, int seconds);
extern char *iload_clock_literal(const char *text, int location);

#endif
