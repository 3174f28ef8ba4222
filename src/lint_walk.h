/*
 * lint_walk.h
 *		The walk through a query and all that it stands upon.
 */
#ifndef ILOAD_LINT_WALK_H
#define ILOAD_LINT_WALK_H

#include "finding.h"

extern void iload_lint_query(IloadLint *lint, Query *query, const IloadSource *source);

#endif
