/*
 * lint.h
 *		What a load warns of before it runs its query.
 */
#ifndef ILOAD_LINT_H
#define ILOAD_LINT_H

#include "nodes/parsenodes.h"
#include "utils/relcache.h"

#include "columns.h"

extern void iload_lint_load(Relation target, Query *query, const char *text,
							const IloadColumns *columns, const char *key);

#endif
