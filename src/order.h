/*
 * order.h
 *		Does an order settle which row comes first?
 */
#ifndef ILOAD_ORDER_H
#define ILOAD_ORDER_H

#include "scope.h"

/* Which rows are ordered. */
typedef enum IloadOrderStage
{
	ILOAD_ORDER_INPUT,			/* those of FROM and WHERE: for aggregates */
	ILOAD_ORDER_GROUPED,		/* groups, if any: for window functions */
	ILOAD_ORDER_DISTINCT,		/* what DISTINCT ON takes one of */
	ILOAD_ORDER_OUTPUT			/* the result: for LIMIT */
} IloadOrderStage;

extern bool iload_order_is_total(IloadScope *scope, List *exprs, IloadOrderStage stage);

#endif
