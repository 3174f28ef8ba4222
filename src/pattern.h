/*
 * pattern.h
 *		How the statements of a job write: append, merge, replace, ...
 */
#ifndef ILOAD_PATTERN_H
#define ILOAD_PATTERN_H

#include "finding.h"

extern void iload_pattern_find(IloadLint *lint, List *statements, const IloadSource *source);

#endif
