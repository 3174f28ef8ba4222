/*
 * coverage.h
 *		Coverage: which days of a table have been loaded, by its history.
 */
#ifndef ILOAD_COVERAGE_H
#define ILOAD_COVERAGE_H

#include "utils/date.h"
#include "utils/timestamp.h"

extern DateADT iload_coverage_first(DateADT from, DateADT to, Interval *period);
extern bool iload_coverage_has_load(Oid schema, Oid target, DateADT date, Interval *period);

#endif
