/*
 * lint_order.c
 *		Findings about results that depend on the order of rows.
 *
 * Only functions and aggregates of the server are judged; what others depend on is
 * not known.
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "lint_order.h"
#include "order.h"

/* Sorted.  jsonb sorts the keys of an object itself. */
static const char *const ordered_aggregates[] = {
	"any_value", "array_agg", "json_agg", "json_agg_strict", "json_object_agg",
	"json_object_agg_strict", "json_object_agg_unique", "json_object_agg_unique_strict",
	"jsonb_agg", "jsonb_agg_strict", "string_agg", "xmlagg"
};

static const char *const summing_aggregates[] = {
	"avg", "corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_intercept",
	"regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy", "stddev", "stddev_pop",
	"stddev_samp", "sum", "var_pop", "var_samp", "variance"
};

/* Window functions that look at one row, and so at which of those that tie. */
static const char *const row_functions[] = {
	"first_value", "lag", "last_value", "lead", "nth_value", "ntile", "row_number"
};

static bool
is_word(const char *name, const char *const *words, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (strcmp(name, words[i]) == 0)
			return true;
	}
	return false;
}

#define IS_WORD(name, words) is_word(name, words, lengthof(words))

/* The place of the first of some expressions that has one. */
static int
first_location(List *exprs)
{
	ListCell   *lc;

	foreach(lc, exprs)
	{
		if (exprLocation(lfirst(lc)) >= 0)
			return exprLocation(lfirst(lc));
	}
	return -1;
}

static bool
is_null_constant(Node *node)
{
	return node == NULL || (IsA(node, Const) && ((Const *) node)->constisnull);
}

/* LIMIT and OFFSET. */
static void
check_limit(IloadLint *lint, IloadScope *scope, List *sort)
{
	Query	   *query = scope->query;
	int			location;

	if (is_null_constant(query->limitCount) && is_null_constant(query->limitOffset))
		return;
	/* rows that tie with the last one come too */
	if (query->limitOption == LIMIT_OPTION_WITH_TIES && is_null_constant(query->limitOffset))
		return;
	if (iload_order_is_total(scope, sort, ILOAD_ORDER_OUTPUT))
		return;
	location = exprLocation(is_null_constant(query->limitCount) ?
							query->limitOffset : query->limitCount);
	if (sort == NIL)
		iload_finding_add(lint, ILOAD_LINT_LIMIT_WITHOUT_ORDER, scope->source, location,
						  pstrdup("LIMIT without ORDER BY takes any rows"), NULL);
	else
		iload_finding_add(lint, ILOAD_LINT_LIMIT_WITH_TIES, scope->source, location,
						  pstrdup("LIMIT takes any of the rows that tie in ORDER BY"), NULL);
}

static void
check_distinct_on(IloadLint *lint, IloadScope *scope, List *sort)
{
	Query	   *query = scope->query;
	List	   *exprs = get_sortgrouplist_exprs(query->distinctClause, query->targetList);
	int			location = first_location(exprs);

	if (!query->hasDistinctOn)
		return;
	exprs = list_concat_unique(exprs, sort);
	if (!iload_order_is_total(scope, exprs, ILOAD_ORDER_DISTINCT))
		iload_finding_add(lint, ILOAD_LINT_DISTINCT_ON_TIES, scope->source, location,
						  pstrdup(sort == NIL ? "DISTINCT ON without ORDER BY takes any row of each group" :
								  "DISTINCT ON takes any of the rows that tie in ORDER BY"), NULL);
}

/* Look at the clauses of one query. */
void
iload_lint_order_query(IloadLint *lint, IloadScope *scope)
{
	List	   *sort = get_sortgrouplist_exprs(scope->query->sortClause, scope->query->targetList);

	if (lint->brief || scope->query->commandType != CMD_SELECT)
		return;
	check_limit(lint, scope, sort);
	check_distinct_on(lint, scope, sort);
}

/* Does it read the rows of one subquery that has an ORDER BY, and not group them? */
static bool
reads_in_order(IloadScope *scope)
{
	Query	   *query = scope->query;
	Node	   *from = list_length(query->jointree->fromlist) == 1 ? linitial(query->jointree->fromlist) : NULL;
	IloadScope *child = NULL;

	if (from != NULL && IsA(from, RangeTblRef) && query->groupClause == NIL)
		child = iload_scope_child(scope, ((RangeTblRef *) from)->rtindex);
	return child != NULL && child->query->sortClause != NIL;
}

/* Is the order of what an aggregate takes in settled? */
static bool
aggregate_is_settled(IloadScope *scope, Aggref *aggref)
{
	List	   *order = get_sortgrouplist_exprs(aggref->aggorder, aggref->args);
	List	   *exprs;
	ListCell   *lc;

	if (aggref->aggdistinct != NIL)
		return true;
	if (aggref->aggorder == NIL && reads_in_order(scope))
		return true;

	/* rows that tie may be the same to the aggregate */
	foreach(lc, aggref->args)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, lc);

		if (!entry->resjunk && !IsA(entry->expr, Const) && !list_member(order, entry->expr))
			break;
	}
	if (lc == NULL && order != NIL)
		return true;
	exprs = list_concat_unique(get_sortgrouplist_exprs(scope->query->groupClause,
													   scope->query->targetList), order);
	return iload_order_is_total(scope, exprs, ILOAD_ORDER_INPUT);
}

static bool
takes_floats(List *types)
{
	return list_member_oid(types, FLOAT4OID) || list_member_oid(types, FLOAT8OID);
}

static void
add_float_aggregate(IloadLint *lint, IloadScope *scope, const char *name, int location)
{
	iload_finding_add(lint, ILOAD_LINT_FLOAT_AGGREGATE, scope->source, location,
					  psprintf("%s() of floating-point values may differ in the last digits", name),
					  NULL);
}

static void
check_aggregate(IloadLint *lint, IloadScope *scope, Aggref *aggref)
{
	IloadScope *owner = iload_scope_up(scope, aggref->agglevelsup);
	char	   *name = get_func_name(aggref->aggfnoid);

	if (owner == NULL || aggref->aggfnoid >= FirstUnpinnedObjectId || AGGKIND_IS_ORDERED_SET(aggref->aggkind))
		return;
	if (IS_WORD(name, ordered_aggregates) && aggref->agglevelsup == 0 &&
		!aggregate_is_settled(owner, aggref))
		iload_finding_add(lint, ILOAD_LINT_ORDER_DEPENDENT_AGGREGATE, scope->source, aggref->location,
						  psprintf(aggref->aggorder == NIL ? "%s() without ORDER BY takes rows as they come" :
								   "%s() takes rows that tie in its ORDER BY as they come", name), NULL);
	if (IS_WORD(name, summing_aggregates) && takes_floats(aggref->aggargtypes) && aggref->aggorder == NIL)
		add_float_aggregate(lint, scope, name, aggref->location);
}

/* Does a frame in ROWS begin or end among rows that may tie? */
static bool
frame_cuts(const WindowClause *window)
{
	return (window->frameOptions & FRAMEOPTION_ROWS) != 0 &&
		((window->frameOptions & FRAMEOPTION_START_UNBOUNDED_PRECEDING) == 0 ||
		 (window->frameOptions & FRAMEOPTION_END_UNBOUNDED_FOLLOWING) == 0);
}

/* first_value(x) OVER (ORDER BY x) is the same for all rows that tie. */
static bool
value_is_ordered(const char *name, WindowFunc *call, List *order)
{
	return (strcmp(name, "first_value") == 0 || strcmp(name, "last_value") == 0 ||
			strcmp(name, "nth_value") == 0) && list_member(order, linitial(call->args));
}

static void
check_window_function(IloadLint *lint, IloadScope *scope, WindowFunc *call)
{
	Query	   *query = scope->query;
	WindowClause *window = list_nth_node(WindowClause, query->windowClause, call->winref - 1);
	List	   *exprs = list_concat_unique(get_sortgrouplist_exprs(window->partitionClause, query->targetList),
										   get_sortgrouplist_exprs(window->orderClause, query->targetList));
	char	   *name = get_func_name(call->winfnoid);
	bool		ordered;
	List	   *types = NIL;
	ListCell   *lc;

	if (call->winfnoid >= FirstUnpinnedObjectId)
		return;
	foreach(lc, call->args)
		types = lappend_oid(types, exprType(lfirst(lc)));
	ordered = call->winagg ? frame_cuts(window) || IS_WORD(name, ordered_aggregates) :
		IS_WORD(name, row_functions) && !value_is_ordered(name, call, exprs);
	if (ordered && !iload_order_is_total(scope, exprs, ILOAD_ORDER_GROUPED))
		iload_finding_add(lint, ILOAD_LINT_WINDOW_TIES, scope->source, call->location,
						  psprintf(window->orderClause == NIL ?
								   "%s() OVER a window without ORDER BY takes rows as they come" :
								   "%s() takes rows that tie in the ORDER BY of its window as they come",
								   name), NULL);
	if (call->winagg && IS_WORD(name, summing_aggregates) && takes_floats(types))
		add_float_aggregate(lint, scope, name, call->location);
}

/* Look at the call of an aggregate or window function. */
void
iload_lint_order_call(IloadLint *lint, IloadScope *scope, Node *node)
{
	if (lint->brief)
		return;
	if (IsA(node, Aggref))
		check_aggregate(lint, scope, (Aggref *) node);
	else
		check_window_function(lint, scope, (WindowFunc *) node);
}
