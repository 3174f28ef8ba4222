/*
 * load_result.h
 *		The composite type load_result.
 */
#ifndef ILOAD_LOAD_RESULT_H
#define ILOAD_LOAD_RESULT_H

#include "fmgr.h"

#include "load.h"

extern Datum iload_load_result_make(FunctionCallInfo fcinfo, const IloadResult *result);
extern Datum iload_load_result_make_command(FunctionCallInfo fcinfo, TimestampTz started,
											TimestampTz finished);

#endif
