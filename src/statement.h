/*
 * statement.h
 *		The statements of a command or of a function, as they are written.
 */
#ifndef ILOAD_STATEMENT_H
#define ILOAD_STATEMENT_H

#include "nodes/parsenodes.h"

typedef struct IloadRawStatement
{
	RawStmt    *raw;
	int			offset;			/* byte in the whole text from which its
								 * locations count; -1 where they are not of
								 * that text */
	List	   *guards;			/* SelectStmts that decide whether it is
								 * reached */
} IloadRawStatement;

extern List *iload_statements_parse(const char *text);
extern List *iload_statements_cut(const char *text);

#endif
