/*
 * lint_slice.h
 *		Findings about queries that read the table that they load.
 */
#ifndef ILOAD_LINT_SLICE_H
#define ILOAD_LINT_SLICE_H

#include "finding.h"

extern void iload_lint_slice_read(IloadLint *lint, IloadScope *scope, int rtindex);
extern void iload_lint_slice_conditions(IloadLint *lint, IloadScope *scope, Node *quals);
extern void iload_lint_slice_judge(IloadLint *lint);

#endif
