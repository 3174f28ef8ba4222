/*
 * function_body.h
 *		The bodies of functions in SQL and PL/pgSQL.
 */
#ifndef ILOAD_FUNCTION_BODY_H
#define ILOAD_FUNCTION_BODY_H

#include "nodes/primnodes.h"

#include "scope.h"

typedef struct IloadBody
{
	IloadSource source;
	bool		plpgsql;
	List	   *queries;		/* of Query, analyzed; none for PL/pgSQL */
} IloadBody;

extern List *iload_body_functions(Node *node);
extern List *iload_body_defaults(FuncExpr *call);
extern char *iload_body_function_text(Oid function);
extern IloadBody *iload_body_read(Oid function, Node *call, const IloadSource *caller);

#endif
