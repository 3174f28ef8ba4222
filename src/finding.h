/*
 * finding.h
 *		What lint finds: codes, and the list of findings.
 */
#ifndef ILOAD_FINDING_H
#define ILOAD_FINDING_H

#include "scope.h"

typedef enum IloadLintCode
{
	/* these make a load warn */
	ILOAD_LINT_CLOCK_READ,
	ILOAD_LINT_CLOCK_LITERAL,
	ILOAD_LINT_RANDOM_VALUE,
	ILOAD_LINT_SEQUENCE_VALUE,
	/* and these do not */
	ILOAD_LINT_TRANSACTION_VALUE,
	ILOAD_LINT_SESSION_VALUE,
	ILOAD_LINT_SESSION_CAST,
	ILOAD_LINT_READS_TARGET,	/* more than the slice */
	ILOAD_LINT_READS_SLICE,
	ILOAD_LINT_LIMIT_WITHOUT_ORDER,
	ILOAD_LINT_LIMIT_WITH_TIES,
	ILOAD_LINT_DISTINCT_ON_TIES,
	ILOAD_LINT_WINDOW_TIES,
	ILOAD_LINT_ORDER_DEPENDENT_AGGREGATE,
	ILOAD_LINT_FLOAT_AGGREGATE,
	/* how a statement writes */
	ILOAD_LINT_APPEND,
	ILOAD_LINT_INSERT_IF_ABSENT,
	ILOAD_LINT_INSERT_IF_ABSENT_BY_KEY,
	ILOAD_LINT_MERGE,
	ILOAD_LINT_REPLACE_SLICE,
	ILOAD_LINT_FULL_RELOAD,
	ILOAD_LINT_UPDATE_IN_PLACE,
	ILOAD_LINT_COUNTER,
	ILOAD_LINT_DELETE_ONLY
} IloadLintCode;

typedef struct IloadFinding
{
	IloadLintCode code;
	char	   *message;
	char	   *object;			/* or NULL: the text itself */
	int			line;			/* from 1, or 0 where there is no text */
	int			column;
	const char *hint;
} IloadFinding;

typedef struct IloadLint
{
	/* what is asked for */
	Oid			target;			/* of the load, or InvalidOid */
	const char *key;			/* its key column, or NULL */
	List	   *ignored;		/* ignore_columns: of String */
	bool		pinned;			/* TimeZone and DateStyle are always the same */
	bool		brief;			/* only what makes a load warn */

	List	   *findings;		/* of IloadFinding */

	/* the state of the search, see lint_walk.c */
	char	   *output;			/* the output column that is looked at, or
								 * NULL */
	List	   *functions;		/* OIDs of those that were looked into */
	List	   *settled;		/* nodes whose time zone does not matter */
	List	   *reads;			/* places where the target is read */
	List	   *conditions;		/* on key columns */
} IloadLint;

extern void iload_finding_add(IloadLint *lint, IloadLintCode code, const IloadSource *source,
							  int location, char *message, const char *hint);
extern bool iload_finding_is_reported(const IloadLint *lint, const IloadFinding *finding);
extern const char *iload_finding_code(const IloadFinding *finding);
extern const char *iload_finding_severity(const IloadFinding *finding);

#endif
