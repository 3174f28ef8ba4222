/*
 * lint_plpgsql.h
 *		Findings in the text of a PL/pgSQL function.
 */
#ifndef ILOAD_LINT_PLPGSQL_H
#define ILOAD_LINT_PLPGSQL_H

#include "finding.h"

extern void iload_lint_plpgsql(IloadLint *lint, const IloadSource *source);

#endif
