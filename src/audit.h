/*
 * audit.h
 *		The audit: a query that must be true before a load is published.
 */
#ifndef ILOAD_AUDIT_H
#define ILOAD_AUDIT_H

#include "slice.h"
#include "stage.h"

extern void iload_audit_check(IloadStage *stage, IloadSlice *slice, const char *audit,
							  Snapshot snapshot);

#endif
