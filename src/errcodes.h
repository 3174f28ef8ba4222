/*
 * errcodes.h
 *		SQLSTATEs of our own, class IL.
 *
 * Every other error carries one of the server's codes.  A number, once
 * released, keeps its meaning; doc/reference.md lists them.
 */
#ifndef ILOAD_ERRCODES_H
#define ILOAD_ERRCODES_H

#include "utils/elog.h"

/* a row of the query has a null key or lies outside the slice */
#define ERRCODE_ILOAD_STRAY_ROW		MAKE_SQLSTATE('I', 'L', '0', '0', '1')
/* an empty result would have emptied a slice that has rows */
#define ERRCODE_ILOAD_EMPTY_REFUSED	MAKE_SQLSTATE('I', 'L', '0', '0', '2')
/* the audit query did not return true */
#define ERRCODE_ILOAD_AUDIT_FAILED	MAKE_SQLSTATE('I', 'L', '0', '0', '3')
/* another load of the slice is running, and the caller did not want to wait */
#define ERRCODE_ILOAD_SLICE_BUSY	MAKE_SQLSTATE('I', 'L', '0', '0', '4')
/* the query is not one read-only SELECT with the columns of the target */
#define ERRCODE_ILOAD_QUERY_SHAPE	MAKE_SQLSTATE('I', 'L', '0', '0', '5')
/* a job gives another result when it is run again */
#define ERRCODE_ILOAD_NOT_IDEMPOTENT	MAKE_SQLSTATE('I', 'L', '0', '0', '6')
/* the query may give another result when it is repeated */
#define ERRCODE_ILOAD_LINT			MAKE_SQLSTATE('I', 'L', '0', '0', '7')
/* days that must be loaded are not */
#define ERRCODE_ILOAD_NOT_LOADED	MAKE_SQLSTATE('I', 'L', '0', '0', '9')
/* a token of run_once has run another command */
#define ERRCODE_ILOAD_TOKEN_USED	MAKE_SQLSTATE('I', 'L', '0', '1', '0')

#endif
