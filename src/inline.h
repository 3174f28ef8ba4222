/*
 * inline.h
 *		What the planner would inline, inlined before it plans.
 */
#ifndef ILOAD_INLINE_H
#define ILOAD_INLINE_H

#include "nodes/parsenodes.h"

extern Query *iload_inline_functions(Query *query);

#endif
