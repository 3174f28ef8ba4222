/*
 * query.h
 *		One query: parsed alone, checked, planned and run into a receiver.
 */
#ifndef ILOAD_QUERY_H
#define ILOAD_QUERY_H

#include "nodes/params.h"
#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"
#include "tcop/dest.h"
#include "utils/queryenvironment.h"
#include "utils/snapshot.h"

/* How the text of a statement of our own begins. */
#define ILOAD_QUERY_MARK "/* idempotent_load */ "

/*
 * A receiver that hands each row to a function.  "desc" is that of the rows;
 * the slot is good until the function returns.
 */
typedef void (*IloadRowFunction) (TupleTableSlot *slot, void *arg);

extern bool iload_query_is_ours(const char *text);
extern SelectStmt *iload_query_parse(const char *text, const char *what);
extern Query *iload_query_analyze(SelectStmt *select, const char *text, const char *what,
								  const Oid *param_types, int nparams,
								  QueryEnvironment *env);
extern Query *iload_query_rewrite(Query *query);
extern PlannedStmt *iload_query_plan(Query *query, const char *text, ParamListInfo params);
extern uint64 iload_query_execute(PlannedStmt *plan, const char *text, ParamListInfo params,
								  QueryEnvironment *env, Snapshot snapshot,
								  IloadRowFunction function, void *arg);
extern uint64 iload_query_run(Query *query, const char *text, ParamListInfo params,
							  QueryEnvironment *env, Snapshot snapshot,
							  IloadRowFunction function, void *arg);

#endif
