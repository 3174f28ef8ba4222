/*
 * shape.h
 *		The query in the shape of the target.
 */
#ifndef ILOAD_SHAPE_H
#define ILOAD_SHAPE_H

#include "nodes/parsenodes.h"
#include "utils/relcache.h"

#include "columns.h"
#include "slice.h"

extern List *iload_shape_names(Relation target, const IloadSlice *slice,
							   const IloadColumns *columns, const char *text);
extern Query *iload_shape_query(Relation target, const IloadSlice *slice,
								const IloadColumns *columns, const char *text);

#endif
