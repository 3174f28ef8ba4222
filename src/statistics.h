/*
 * statistics.h
 *		Planner statistics of leaves that a load has changed.
 */
#ifndef ILOAD_STATISTICS_H
#define ILOAD_STATISTICS_H

#include "leaf.h"

extern void iload_statistics_gather(IloadLeaves *leaves, uint64 rows_before, uint64 changed);

#endif
