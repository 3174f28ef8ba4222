/*
 * impure.h
 *		What in a query may give another answer the next time.
 */
#ifndef ILOAD_IMPURE_H
#define ILOAD_IMPURE_H

#include "nodes/parsenodes.h"

typedef enum IloadImpureKind
{
	ILOAD_IMPURE_CLOCK,			/* now(), CURRENT_DATE */
	ILOAD_IMPURE_RANDOM,		/* random(), gen_random_uuid(), TABLESAMPLE */
	ILOAD_IMPURE_SEQUENCE,		/* nextval(), identity columns */
	ILOAD_IMPURE_TRANSACTION,	/* txid_current() */
	ILOAD_IMPURE_SESSION,		/* pg_backend_pid(), CURRENT_USER */
	ILOAD_IMPURE_EFFECT			/* pg_notify(), pg_advisory_lock(): not undone */
} IloadImpureKind;

/* One such call. */
typedef struct IloadImpure
{
	IloadImpureKind kind;
	char	   *name;			/* as in SQL: "now()", "CURRENT_DATE" */
	int			location;		/* byte in the text of the query, or -1 */
	char	   *column;			/* output column that it becomes, or NULL */
	Node	   *node;			/* the call itself, not owned */
} IloadImpure;

extern List *iload_impure_find(Query *query);
extern bool iload_impure_classify(Node *node, IloadImpureKind *kind, char **name);
extern bool iload_impure_function(const char *schema, const char *name, IloadImpureKind *kind);

#endif
