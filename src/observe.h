/*
 * observe.h
 *		What a run of a job does: tables written, statements, calls.
 */
#ifndef ILOAD_OBSERVE_H
#define ILOAD_OBSERVE_H

#include "nodes/parsenodes.h"

#include "impure.h"

/* A table that was written, or made, altered or dropped. */
typedef struct IloadWrite
{
	char	   *name;			/* schema-qualified and quoted */
	char	   *root;			/* name of its topmost ancestor, or its own */
	uint64		inserted;		/* rows, by whatever statement, trigger or
								 * cascade */
	uint64		updated;
	uint64		deleted;
} IloadWrite;

/* A statement that wrote, or read. */
typedef struct IloadStatement
{
	const char *tag;			/* "INSERT", "COPY FROM" */
	CmdType		command;		/* CMD_UTILITY for COPY and the like */
	bool		from_self;		/* sets a column from what the table has */
	char	   *target;			/* name of the table's root, or NULL */
	List	   *reads;			/* names of the roots of tables that it reads */
	char	   *text;			/* the statement alone, shortened */
	char	   *where;			/* function and line, or NULL */
} IloadStatement;

/* A call that may give another answer the next time, see impure.h. */
typedef struct IloadCall
{
	IloadImpureKind kind;
	char	   *name;
	char	   *column;			/* of "target", or of a query's output; or
								 * NULL */
	char	   *target;			/* name of the root that the statement writes,
								 * or NULL */
	bool		unplanned;		/* evaluated without a plan: no world changes
								 * it */
	int			line;			/* in the text that holds the query; 0: not in
								 * it */
	char	   *text;			/* the statement alone, shortened */
	char	   *where;			/* function and line, or NULL */
} IloadCall;

typedef struct IloadObservation
{
	MemoryContext context;		/* of all that is noted */
	int			nest_level;		/* of the subtransaction that is observed */
	char	   *base_stack;		/* context lines of whoever began */
	List	   *defined;		/* OIDs of relations made or altered */
	List	   *made;			/* those of them that were made */
	List	   *dropped;		/* IloadWrite */
	List	   *writes;			/* IloadWrite, set at the end */
	List	   *temporary;		/* OIDs of temporary relations made, set at
								 * the end */
	List	   *statements;		/* IloadStatement */
	List	   *calls;			/* IloadCall */
	List	   *notes;			/* strings: what cannot be undone or was not
								 * seen */
} IloadObservation;

extern void iload_observe_init(void);
extern IloadObservation *iload_observe_begin(MemoryContext context);
extern void iload_observe_end(void);
extern void iload_observe_cancel(void);
extern bool iload_observe_is_on(void);
extern void iload_observe_query(Query *query, const char *text);
extern void iload_observe_clock_literal(Query *query, const char *text, const char *word,
										int location);
extern bool iload_observe_has_deferred(void);
extern void iload_observe_note(const char *format,...) pg_attribute_printf(1, 2);

#endif
