/*
 * command.h
 *		A command: SQL text of one or more statements.
 */
#ifndef ILOAD_COMMAND_H
#define ILOAD_COMMAND_H

#include "nodes/params.h"

extern void iload_command_check(const char *sql, const char *what);
extern void iload_command_run(const char *sql, ParamListInfo params, const char *what);

#endif
