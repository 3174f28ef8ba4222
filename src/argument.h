/*
 * argument.h
 *		Arguments of SQL functions, as C values.
 */
#ifndef ILOAD_ARGUMENT_H
#define ILOAD_ARGUMENT_H

#include "fmgr.h"
#include "nodes/pg_list.h"
#include "utils/array.h"
#include "utils/timestamp.h"

extern int	iload_argument_word(const char *option, char *value, const char *const *words);
extern char *iload_argument_text(FunctionCallInfo fcinfo, int argno);
extern void iload_argument_require(FunctionCallInfo fcinfo, int argno, const char *name);
extern List *iload_array_names(ArrayType *array, const char *name);
extern List *iload_argument_names(FunctionCallInfo fcinfo, int argno, const char *name);
extern Interval *iload_argument_period(FunctionCallInfo fcinfo, int argno);

#endif
