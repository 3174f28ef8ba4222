/*
 * scope.h
 *		One level of a query, and what its Vars stand for.
 */
#ifndef ILOAD_SCOPE_H
#define ILOAD_SCOPE_H

#include "nodes/parsenodes.h"

/*
 * Where a query is written: in a text, in a function, in a view that a text reads,
 * in a default.
 */
typedef struct IloadSource
{
	const char *text;			/* that locations are in, or NULL */
	char	   *object;			/* for a person; NULL for the text itself */
	int			depth;			/* functions entered on the way to it */
	int			lower;			/* number of the parameter that is the lower
								 * bound of the slice, or 0 */
	int			upper;			/* the same for the upper bound */
} IloadSource;

typedef struct IloadScope
{
	Query	   *query;			/* analyzed, not rewritten */
	struct IloadScope *parent;	/* or NULL */
	const IloadSource *source;
	struct IloadScope **children;	/* by position in the range table, from 0;
									 * made when asked for */
	struct IloadScope **ctes;	/* the same for WITH queries */
	bool		entered;		/* for who walks: has been seen */
	Bitmapset  *needed;			/* output columns that have been seen */
} IloadScope;

extern IloadScope *iload_scope_create(Query *query, IloadScope *parent,
									  const IloadSource *source);
extern IloadScope *iload_scope_up(IloadScope *scope, int levels);
extern IloadScope *iload_scope_child(IloadScope *scope, int rtindex);
extern List *iload_scope_output(const IloadScope *scope);
extern Node *iload_scope_alias(const IloadScope *scope, const Var *var);
extern Node *iload_scope_strip(Node *node);
extern Var *iload_scope_column(const IloadScope *scope, Node *node);
extern Var *iload_scope_origin(IloadScope **scope, Node *node);

#endif
