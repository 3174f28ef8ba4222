/*
 * impure.c
 *		What in a query may give another answer the next time.
 *
 * Found are calls of functions that are known to answer differently: by the clock,
 * by chance, by a sequence, by the transaction or the session; and those whose
 * effect outlives a rollback.  A query should be rewritten and inlined before, so
 * that views, defaults and SQL functions are looked through.  Functions of users
 * that remain are not: their own queries are.
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "impure.h"

typedef struct ImpureName
{
	const char *name;
	IloadImpureKind kind;
	bool		builtin;		/* in pg_catalog only, else in any schema */
} ImpureName;

/* Sorted by name.  Those in any schema come with extensions of the server. */
static const ImpureName impure_names[] = {
	{"clock_timestamp", ILOAD_IMPURE_CLOCK, true},
	{"currval", ILOAD_IMPURE_SEQUENCE, true},
	{"dblink", ILOAD_IMPURE_EFFECT, false},
	{"dblink_exec", ILOAD_IMPURE_EFFECT, false},
	{"gen_random_bytes", ILOAD_IMPURE_RANDOM, false},
	{"gen_random_uuid", ILOAD_IMPURE_RANDOM, false},
	{"gen_salt", ILOAD_IMPURE_RANDOM, false},
	{"inet_client_addr", ILOAD_IMPURE_SESSION, true},
	{"inet_client_port", ILOAD_IMPURE_SESSION, true},
	{"lastval", ILOAD_IMPURE_SEQUENCE, true},
	{"lo_creat", ILOAD_IMPURE_EFFECT, true},
	{"lo_create", ILOAD_IMPURE_EFFECT, true},
	{"lo_from_bytea", ILOAD_IMPURE_EFFECT, true},
	{"lo_import", ILOAD_IMPURE_EFFECT, true},
	{"lo_put", ILOAD_IMPURE_EFFECT, true},
	{"lo_unlink", ILOAD_IMPURE_EFFECT, true},
	{"lowrite", ILOAD_IMPURE_EFFECT, true},
	{"nextval", ILOAD_IMPURE_SEQUENCE, true},
	{"now", ILOAD_IMPURE_CLOCK, true},
	{"pg_advisory_lock", ILOAD_IMPURE_EFFECT, true},
	{"pg_advisory_lock_shared", ILOAD_IMPURE_EFFECT, true},
	{"pg_backend_pid", ILOAD_IMPURE_SESSION, true},
	{"pg_current_snapshot", ILOAD_IMPURE_TRANSACTION, true},
	{"pg_current_wal_insert_lsn", ILOAD_IMPURE_TRANSACTION, true},
	{"pg_current_wal_lsn", ILOAD_IMPURE_TRANSACTION, true},
	{"pg_current_xact_id", ILOAD_IMPURE_TRANSACTION, true},
	{"pg_current_xact_id_if_assigned", ILOAD_IMPURE_TRANSACTION, true},
	{"pg_logical_emit_message", ILOAD_IMPURE_EFFECT, true},
	{"pg_notify", ILOAD_IMPURE_EFFECT, true},
	{"pg_try_advisory_lock", ILOAD_IMPURE_EFFECT, true},
	{"pg_try_advisory_lock_shared", ILOAD_IMPURE_EFFECT, true},
	{"random", ILOAD_IMPURE_RANDOM, true},
	{"random_normal", ILOAD_IMPURE_RANDOM, true},
	{"setval", ILOAD_IMPURE_SEQUENCE, true},
	{"statement_timestamp", ILOAD_IMPURE_CLOCK, true},
	{"timeofday", ILOAD_IMPURE_CLOCK, true},
	{"transaction_timestamp", ILOAD_IMPURE_CLOCK, true},
	{"txid_current", ILOAD_IMPURE_TRANSACTION, true},
	{"txid_current_if_assigned", ILOAD_IMPURE_TRANSACTION, true},
	{"txid_current_snapshot", ILOAD_IMPURE_TRANSACTION, true},
	{"uuid_generate_v1", ILOAD_IMPURE_RANDOM, false},
	{"uuid_generate_v1mc", ILOAD_IMPURE_RANDOM, false},
	{"uuid_generate_v4", ILOAD_IMPURE_RANDOM, false},
	{"uuidv4", ILOAD_IMPURE_RANDOM, true},
	{"uuidv7", ILOAD_IMPURE_RANDOM, true}
};

static int
cmp_name(const void *key, const void *entry)
{
	return strcmp(key, ((const ImpureName *) entry)->name);
}

static const ImpureName *
find_name(const char *name)
{
	return bsearch(name, impure_names, lengthof(impure_names), sizeof(ImpureName), cmp_name);
}

/*
 * Is a function known to answer differently, by its name in a text that cannot be
 * analyzed?  "schema" is NULL where it is not given.
 */
bool
iload_impure_function(const char *schema, const char *name, IloadImpureKind *kind)
{
	const ImpureName *found = find_name(name);

	if (found == NULL ||
		(schema != NULL && found->builtin && strcmp(schema, "pg_catalog") != 0))
		return false;
	*kind = found->kind;
	return true;
}

static const ImpureName *
find_function(Oid funcid)
{
	const ImpureName *found = NULL;
	char	   *name;

	if (func_volatile(funcid) == PROVOLATILE_IMMUTABLE)
		return NULL;
	name = get_func_name(funcid);
	if (name != NULL)
		found = find_name(name);
	if (found != NULL && found->builtin && funcid >= FirstUnpinnedObjectId)
		return NULL;
	return found;
}

static bool
find_function_checker(Oid funcid, void *arg)
{
	const ImpureName **found = arg;

	*found = find_function(funcid);
	return *found != NULL;
}

/* What stands for a value of the session or of the clock without parentheses. */
static void
classify_value_function(SQLValueFunction *value, IloadImpureKind *kind, char **name)
{
	*kind = ILOAD_IMPURE_CLOCK;
	switch (value->op)
	{
		case SVFOP_CURRENT_DATE:
			*name = "CURRENT_DATE";
			break;
		case SVFOP_CURRENT_TIME:
		case SVFOP_CURRENT_TIME_N:
			*name = "CURRENT_TIME";
			break;
		case SVFOP_CURRENT_TIMESTAMP:
		case SVFOP_CURRENT_TIMESTAMP_N:
			*name = "CURRENT_TIMESTAMP";
			break;
		case SVFOP_LOCALTIME:
		case SVFOP_LOCALTIME_N:
			*name = "LOCALTIME";
			break;
		case SVFOP_LOCALTIMESTAMP:
		case SVFOP_LOCALTIMESTAMP_N:
			*name = "LOCALTIMESTAMP";
			break;
		case SVFOP_CURRENT_ROLE:
		case SVFOP_CURRENT_USER:
		case SVFOP_USER:
		case SVFOP_SESSION_USER:
			*kind = ILOAD_IMPURE_SESSION;
			*name = value->op == SVFOP_SESSION_USER ? "SESSION_USER" : "CURRENT_USER";
			break;
		case SVFOP_CURRENT_CATALOG:
		case SVFOP_CURRENT_SCHEMA:
			*kind = ILOAD_IMPURE_SESSION;
			*name = value->op == SVFOP_CURRENT_SCHEMA ? "CURRENT_SCHEMA" : "CURRENT_CATALOG";
			break;
	}
}

/*
 * Is this node, itself, such a call?  If so, of what kind, and its name, which is
 * allocated in the current context or constant.
 */
bool
iload_impure_classify(Node *node, IloadImpureKind *kind, char **name)
{
	const ImpureName *found = NULL;

	if (IsA(node, SQLValueFunction))
	{
		classify_value_function((SQLValueFunction *) node, kind, name);
		return true;
	}
	if (IsA(node, NextValueExpr))
	{
		*kind = ILOAD_IMPURE_SEQUENCE;
		*name = "GENERATED AS IDENTITY";
		return true;
	}
	if (!check_functions_in_node(node, find_function_checker, &found))
		return false;
	*kind = found->kind;
	*name = psprintf("%s()", found->name);
	return true;
}

static void
add_found(List **found, IloadImpureKind kind, char *name, Node *node)
{
	IloadImpure *impure = palloc0(sizeof(IloadImpure));

	impure->kind = kind;
	impure->name = name;
	impure->location = exprLocation(node);
	impure->node = node;
	*found = lappend(*found, impure);
}

/* A sample without REPEATABLE is another one each time. */
static void
find_samples(Query *query, List **found)
{
	ListCell   *lc;

	foreach(lc, query->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		if (rte->tablesample != NULL && rte->tablesample->repeatable == NULL)
			add_found(found, ILOAD_IMPURE_RANDOM, "TABLESAMPLE", (Node *) rte->tablesample);
	}
}

static bool
find_walker(Node *node, List **found)
{
	IloadImpureKind kind;
	char	   *name;

	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		find_samples((Query *) node, found);
		return query_tree_walker((Query *) node, find_walker, found, 0);
	}
	if (iload_impure_classify(node, &kind, &name))
		add_found(found, kind, name, node);
	return expression_tree_walker(node, find_walker, found);
}

/* The column that is being traced to the calls it is made of. */
typedef struct TraceContext
{
	Query	   *query;			/* whose Vars these are */
	char	   *column;
	List	   *found;
} TraceContext;

static bool trace_walker(Node *node, TraceContext *context);

static void
trace_query_column(Query *query, AttrNumber attnum, TraceContext *context)
{
	TraceContext inner = {.query = query,.column = context->column,.found = context->found};
	TargetEntry *entry = get_tle_by_resno(query->targetList, attnum);

	check_stack_depth();
	if (entry != NULL)
		(void) trace_walker((Node *) entry->expr, &inner);
}

/* Go on from a Var to the column of a subquery or a WITH query that it stands for. */
static void
trace_var(Var *var, TraceContext *context)
{
	RangeTblEntry *rte;

	if (var->varlevelsup != 0 || var->varattno <= 0 ||
		var->varno <= 0 || var->varno > list_length(context->query->rtable))
		return;
	rte = rt_fetch(var->varno, context->query->rtable);
	if (rte->rtekind == RTE_SUBQUERY)
		trace_query_column(rte->subquery, var->varattno, context);
	else if (rte->rtekind == RTE_CTE && rte->ctelevelsup == 0)
	{
		ListCell   *lc;

		foreach(lc, context->query->cteList)
		{
			CommonTableExpr *cte = lfirst_node(CommonTableExpr, lc);

			if (strcmp(cte->ctename, rte->ctename) == 0 && IsA(cte->ctequery, Query))
				trace_query_column((Query *) cte->ctequery, var->varattno, context);
		}
	}
	else if (rte->rtekind == RTE_VALUES)
	{
		ListCell   *lc;

		foreach(lc, rte->values_lists)
			(void) trace_walker(list_nth(lfirst_node(List, lc), var->varattno - 1), context);
	}
	else
	{
		List	   *aliased = rte->rtekind == RTE_JOIN ? rte->joinaliasvars :
		iload_rte_group_exprs(rte);

		if (var->varattno <= list_length(aliased))
			(void) trace_walker(list_nth(aliased, var->varattno - 1), context);
	}
}

static bool
trace_walker(Node *node, TraceContext *context)
{
	ListCell   *lc;

	if (node == NULL)
		return false;
	if (IsA(node, Var))
		trace_var((Var *) node, context);
	foreach(lc, context->found)
	{
		IloadImpure *impure = lfirst(lc);

		if (impure->node == node && impure->column == NULL)
			impure->column = context->column;
	}
	return expression_tree_walker(node, trace_walker, context);
}

/* See which output columns, or columns that are set, the calls become. */
static void
trace_columns(Query *query, List *entries, List *found)
{
	ListCell   *lc;

	foreach(lc, entries)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, lc);
		TraceContext context = {.query = query,.column = entry->resname,.found = found};

		if (!entry->resjunk && entry->resname != NULL)
			(void) trace_walker((Node *) entry->expr, &context);
	}
}

/*
 * All such calls in a query, as a list of IloadImpure in the current context.  They
 * point into the query.
 */
List *
iload_impure_find(Query *query)
{
	List	   *found = NIL;
	ListCell   *lc;

	if (query->commandType == CMD_UTILITY)
		return NIL;
	(void) find_walker((Node *) query, &found);
	if (found == NIL)
		return NIL;
	trace_columns(query, query->targetList, found);
	if (query->onConflict != NULL)
		trace_columns(query, query->onConflict->onConflictSet, found);
	foreach(lc, query->mergeActionList)
		trace_columns(query, lfirst_node(MergeAction, lc)->targetList, found);
	return found;
}
