/*
 * previous.h
 *		The rows of a slice as they were before its last load.
 */
#ifndef ILOAD_PREVIOUS_H
#define ILOAD_PREVIOUS_H

#include "columns.h"
#include "slice.h"

extern void iload_previous_keep(Oid schema, const IloadSlice *slice, const IloadColumns *columns,
								TimestampTz started);
extern Oid	iload_previous_find(Oid schema, const IloadSlice *slice);
extern void iload_previous_forget(Oid schema, const IloadSlice *slice);

#endif
