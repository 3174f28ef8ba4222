/*
 * lint_value.h
 *		Values that are others in another run: findings in one node.
 */
#ifndef ILOAD_LINT_VALUE_H
#define ILOAD_LINT_VALUE_H

#include "finding.h"
#include "impure.h"

extern void iload_lint_value(IloadLint *lint, IloadScope *scope, Node *node);
extern void iload_lint_impure(IloadLint *lint, const IloadSource *source, IloadImpureKind kind,
							  const char *name, int location);

#endif
