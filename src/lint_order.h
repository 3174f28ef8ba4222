/*
 * lint_order.h
 *		Findings about results that depend on the order of rows.
 */
#ifndef ILOAD_LINT_ORDER_H
#define ILOAD_LINT_ORDER_H

#include "finding.h"

extern void iload_lint_order_query(IloadLint *lint, IloadScope *scope);
extern void iload_lint_order_call(IloadLint *lint, IloadScope *scope, Node *node);

#endif
