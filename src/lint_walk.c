/*
 * lint_walk.c
 *		The walk through a query and all that it stands upon.
 *
 * It goes by what is needed: what decides which rows there are is looked at when a
 * query is entered (enter_query), an output column only if something asks for it
 * (need_column).  So a column of a view that nobody reads raises no alarm, nor does
 * one that the load ignores.
 *
 * What is looked at is the query as written, not as rewritten and inlined: positions
 * within it, within a function, and no position at all within a view could not be
 * told apart afterwards.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteHandler.h"
#include "rewrite/rowsecurity.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/rls.h"

#include "compat.h"
#include "function_body.h"
#include "lint_order.h"
#include "lint_plpgsql.h"
#include "lint_slice.h"
#include "lint_value.h"
#include "lint_walk.h"

typedef struct WalkContext
{
	IloadLint  *lint;
	IloadScope *scope;
} WalkContext;

static bool walk(Node *node, WalkContext *context);
static void enter_query(IloadLint *lint, IloadScope *scope);
static void need_column(IloadLint *lint, IloadScope *scope, AttrNumber attno);
static void walk_stored(IloadLint *lint, Node *node, char *object);
static void look_into_function(IloadLint *lint, Oid function, Node *call,
							   const IloadSource *caller);

static void
walk_expression(IloadLint *lint, IloadScope *scope, Node *node)
{
	WalkContext context = {.lint = lint,.scope = scope};

	(void) walk(node, &context);
}

/* All columns that others see. */
static void
need_output(IloadLint *lint, IloadScope *scope)
{
	ListCell   *lc;

	foreach(lc, iload_scope_output(scope))
	{
		TargetEntry *entry = lfirst_node(TargetEntry, lc);

		if (!entry->resjunk)
			need_column(lint, scope, entry->resno);
	}
}

/* Go on from a Var to what it stands for. */
static void
need_var(IloadLint *lint, IloadScope *scope, Var *var)
{
	RangeTblEntry *rte;
	IloadScope *child;
	ListCell   *lc;

	scope = iload_scope_up(scope, var->varlevelsup);
	if (scope == NULL || var->varno <= 0 || var->varno > list_length(scope->query->rtable))
		return;
	if (var->varlevelsup > 0)
	{
		var = copyObject(var);
		var->varlevelsup = 0;
	}
	rte = rt_fetch(var->varno, scope->query->rtable);
	child = iload_scope_child(scope, var->varno);
	if (child != NULL && var->varattno == 0)
		need_output(lint, child);
	else if (child != NULL)
		need_column(lint, child, var->varattno);
	else if (rte->rtekind == RTE_VALUES && var->varattno > 0)
	{
		foreach(lc, rte->values_lists)
			walk_expression(lint, scope, list_nth(lfirst_node(List, lc), var->varattno - 1));
	}
	else if (rte->rtekind == RTE_JOIN && var->varattno == 0)
		walk_expression(lint, scope, (Node *) rte->joinaliasvars);
	else
		walk_expression(lint, scope, iload_scope_alias(scope, var));
}

/* A query within an expression. */
static void
walk_sublink(IloadLint *lint, IloadScope *scope, SubLink *sublink)
{
	IloadScope *inner = iload_scope_create(castNode(Query, sublink->subselect), scope,
										   scope->source);

	enter_query(lint, inner);
	if (sublink->subLinkType != EXISTS_SUBLINK)
		iload_lint_order_query(lint, inner);
	if (sublink->subLinkType != EXISTS_SUBLINK)
		need_output(lint, inner);
}

/* Look into the functions that a node calls: functions proper, operators, casts. */
static void
look_into_functions(IloadLint *lint, IloadScope *scope, Node *node)
{
	ListCell   *lc;

	foreach(lc, iload_body_functions(node))
		look_into_function(lint, lfirst_oid(lc), node, scope->source);
	if (IsA(node, FuncExpr))
	{
		Oid			function = ((FuncExpr *) node)->funcid;

		foreach(lc, iload_body_defaults((FuncExpr *) node))
			walk_stored(lint, lfirst(lc),
						psprintf("default argument of function %s", iload_body_function_text(function)));
	}
}

static bool
walk(Node *node, WalkContext *context)
{
	IloadLint  *lint = context->lint;
	IloadScope *scope = context->scope;

	if (node == NULL || IsA(node, Query))
		return false;
	if (IsA(node, Var))
		need_var(lint, scope, (Var *) node);
	else if (IsA(node, SubLink))
		walk_sublink(lint, scope, (SubLink *) node);
	else if (IsA(node, Aggref) || IsA(node, WindowFunc))
		iload_lint_order_call(lint, scope, node);

	if (IsA(node, WindowFunc))
	{
		WindowClause *window = list_nth_node(WindowClause, scope->query->windowClause,
											 ((WindowFunc *) node)->winref - 1);

		walk_expression(lint, scope, (Node *) get_sortgrouplist_exprs(window->partitionClause,
																	  scope->query->targetList));
		walk_expression(lint, scope, (Node *) get_sortgrouplist_exprs(window->orderClause,
																	  scope->query->targetList));
	}
	iload_lint_value(lint, scope, node);
	look_into_functions(lint, scope, node);
	return expression_tree_walker(node, walk, context);
}

/* Is it an output column of the load that does not count? */
static bool
is_ignored(IloadLint *lint, IloadScope *scope, const TargetEntry *entry)
{
	return scope->parent == NULL && scope->source->object == NULL && entry->resname != NULL &&
		list_member(lint->ignored, makeString(entry->resname));
}

/*
 * The same column of each part of a UNION or the like.  The range table of a view may
 * hold the view itself besides.
 */
static void
need_part_column(IloadLint *lint, IloadScope *scope, Node *node, AttrNumber attno)
{
	if (IsA(node, SetOperationStmt))
	{
		need_part_column(lint, scope, ((SetOperationStmt *) node)->larg, attno);
		need_part_column(lint, scope, ((SetOperationStmt *) node)->rarg, attno);
	}
	else
		need_column(lint, iload_scope_child(scope, castNode(RangeTblRef, node)->rtindex), attno);
}

/* An output column is asked for.  Each is looked at once. */
static void
need_column(IloadLint *lint, IloadScope *scope, AttrNumber attno)
{
	TargetEntry *entry;

	check_stack_depth();
	if (attno <= 0 || bms_is_member(attno, scope->needed))
		return;
	scope->needed = bms_add_member(scope->needed, attno);
	if (scope->query->setOperations != NULL)
		need_part_column(lint, scope, scope->query->setOperations, attno);
	entry = get_tle_by_resno(iload_scope_output(scope), attno);
	if (entry != NULL && !is_ignored(lint, scope, entry))
		walk_expression(lint, scope, (Node *) entry->expr);
}

/* A default, or another expression that is stored with a table. */
static void
walk_stored(IloadLint *lint, Node *node, char *object)
{
	IloadSource source = {.object = object};
	IloadSource *copy = palloc(sizeof(IloadSource));
	Query	   *query = makeNode(Query);

	*copy = source;
	query->commandType = CMD_SELECT;
	walk_expression(lint, iload_scope_create(query, NULL, copy), node);
}

/* The rows of a table that this role sees depend on its policies. */
static void
walk_policies(IloadLint *lint, Oid relid)
{
	Relation	table;
	ListCell   *lc;

	if (check_enable_rls(relid, InvalidOid, true) != RLS_ENABLED)
		return;
	table = table_open(relid, AccessShareLock);
	foreach(lc, table->rd_rsdesc != NULL ? table->rd_rsdesc->policies : NIL)
	{
		RowSecurityPolicy *policy = lfirst(lc);

		walk_stored(lint, copyObject((Node *) policy->qual),
					psprintf("policy \"%s\" of table \"%s\"", policy->policy_name,
							 RelationGetRelationName(table)));
	}
	table_close(table, NoLock);
}

/* An entry of FROM. */
static void
enter_relation(IloadLint *lint, IloadScope *scope, int rtindex)
{
	RangeTblEntry *rte = rt_fetch(rtindex, scope->query->rtable);
	IloadScope *child = iload_scope_child(scope, rtindex);

	if (child != NULL)
	{
		enter_query(lint, child);
		iload_lint_order_query(lint, child);
	}
	else if (rte->rtekind == RTE_RELATION)
	{
		iload_lint_slice_read(lint, scope, rtindex);
		walk_policies(lint, rte->relid);
		if (rte->tablesample != NULL)
		{
			if (rte->tablesample->repeatable == NULL)
				iload_finding_add(lint, ILOAD_LINT_RANDOM_VALUE, scope->source, -1,
								  psprintf("TABLESAMPLE of table \"%s\" is another sample in each run",
										   get_rel_name(rte->relid)),
								  "Give it REPEATABLE, or choose rows by a hash of their key.");
			walk_expression(lint, scope, (Node *) rte->tablesample->args);
		}
	}
	else if (rte->rtekind == RTE_FUNCTION)
	{
		ListCell   *lc;

		foreach(lc, rte->functions)
			walk_expression(lint, scope, lfirst_node(RangeTblFunction, lc)->funcexpr);
	}
	else if (rte->rtekind == RTE_TABLEFUNC)
		walk_expression(lint, scope, (Node *) rte->tablefunc);
}

static void
enter_from(IloadLint *lint, IloadScope *scope, Node *node)
{
	Node	   *quals;
	ListCell   *lc;

	if (IsA(node, RangeTblRef))
	{
		if (((RangeTblRef *) node)->rtindex != scope->query->resultRelation)
			enter_relation(lint, scope, ((RangeTblRef *) node)->rtindex);
		return;
	}
	if (IsA(node, FromExpr))
	{
		foreach(lc, ((FromExpr *) node)->fromlist)
			enter_from(lint, scope, lfirst(lc));
		quals = ((FromExpr *) node)->quals;
	}
	else
	{
		JoinExpr   *join = castNode(JoinExpr, node);

		enter_from(lint, scope, join->larg);
		enter_from(lint, scope, join->rarg);
		quals = join->quals;
	}
	iload_lint_slice_conditions(lint, scope, quals);
	walk_expression(lint, scope, quals);
}

/* UNION and the like: which rows there are depends on all columns, but for UNION ALL. */
static void
enter_set_operation(IloadLint *lint, IloadScope *scope, Node *node, bool all)
{
	if (IsA(node, SetOperationStmt))
	{
		SetOperationStmt *operation = (SetOperationStmt *) node;

		all = all && operation->op == SETOP_UNION && operation->all;
		enter_set_operation(lint, scope, operation->larg, all);
		enter_set_operation(lint, scope, operation->rarg, all);
		return;
	}
	enter_relation(lint, scope, castNode(RangeTblRef, node)->rtindex);
	if (!all)
		need_output(lint, iload_scope_child(scope, ((RangeTblRef *) node)->rtindex));
}

/* The defaults that an INSERT puts into columns that it does not give. */
static void
walk_defaults(IloadLint *lint, IloadScope *scope)
{
	Query	   *query = scope->query;
	RangeTblEntry *rte = rt_fetch(query->resultRelation, query->rtable);
	Relation	table = table_open(rte->relid, AccessShareLock);

	for (int i = 0; i < RelationGetNumberOfAttributes(table); i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(table), i);
		TargetEntry *entry = get_tle_by_resno(query->targetList, att->attnum);

		if (!att->attisdropped && att->attgenerated == '\0' &&
			(entry == NULL || IsA(entry->expr, SetToDefault)))
			walk_stored(lint, build_column_default(table, att->attnum),
						psprintf("default of column \"%s\"", NameStr(att->attname)));
	}
	table_close(table, NoLock);
}

/* What a statement that writes sets, and on what conditions. */
static void
enter_write(IloadLint *lint, IloadScope *scope)
{
	Query	   *query = scope->query;
	ListCell   *lc;

	foreach(lc, query->targetList)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, lc);

		lint->output = entry->resjunk ? NULL : entry->resname;
		walk_expression(lint, scope, (Node *) entry->expr);
	}
	lint->output = NULL;
	if (query->commandType == CMD_INSERT)
		walk_defaults(lint, scope);
	if (query->onConflict != NULL)
	{
		walk_expression(lint, scope, (Node *) query->onConflict->onConflictSet);
		walk_expression(lint, scope, query->onConflict->onConflictWhere);
	}
	walk_expression(lint, scope, (Node *) query->mergeActionList);
	walk_expression(lint, scope, iload_merge_join_condition(query));
}

/* What decides which rows a query gives.  Each is looked at once. */
static void
enter_query(IloadLint *lint, IloadScope *scope)
{
	Query	   *query = scope->query;
	ListCell   *lc;

	check_stack_depth();
	if (scope->entered || query->commandType == CMD_UTILITY)
		return;
	scope->entered = true;
	enter_from(lint, scope, (Node *) query->jointree);
	if (query->setOperations != NULL)
		enter_set_operation(lint, scope, query->setOperations, true);
	walk_expression(lint, scope, query->havingQual);
	walk_expression(lint, scope, query->limitCount);
	walk_expression(lint, scope, query->limitOffset);
	walk_expression(lint, scope, (Node *) get_sortgrouplist_exprs(query->groupClause,
																  query->targetList));
	walk_expression(lint, scope, (Node *) get_sortgrouplist_exprs(query->distinctClause,
																  query->targetList));
	if (query->limitCount != NULL || query->limitOffset != NULL || query->hasDistinctOn)
		walk_expression(lint, scope, (Node *) get_sortgrouplist_exprs(query->sortClause,
																	  query->targetList));
	foreach(lc, query->cteList)
	{
		CommonTableExpr *cte = lfirst_node(CommonTableExpr, lc);

		if (castNode(Query, cte->ctequery)->commandType != CMD_SELECT)
		{
			scope->ctes[foreach_current_index(lc)] =
				iload_scope_create((Query *) cte->ctequery, scope, scope->source);
			enter_query(lint, scope->ctes[foreach_current_index(lc)]);
		}
	}
	if (query->commandType != CMD_SELECT)
		enter_write(lint, scope);
}

/*
 * Is a column of the query the default of the target's column?  In the shape of the
 * target (shape.c) all others come from the query or have a place in its text.
 */
static bool
is_default(IloadLint *lint, IloadScope *scope, const TargetEntry *entry)
{
	return OidIsValid(lint->target) && scope->source->object == NULL &&
		!is_ignored(lint, scope, entry) &&
		!contain_var_clause((Node *) entry->expr) && exprLocation((Node *) entry->expr) < 0;
}

/*
 * Look for findings in an analyzed query and all that it stands upon.  All of it is
 * allocated in the current context; "query" is not changed.  Relations are locked in
 * ACCESS SHARE mode.
 */
void
iload_lint_query(IloadLint *lint, Query *query, const IloadSource *source)
{
	IloadScope *scope = iload_scope_create(query, NULL, source);
	char	   *output = lint->output;
	ListCell   *lc;

	enter_query(lint, scope);
	iload_lint_order_query(lint, scope);
	foreach(lc, query->commandType == CMD_SELECT ? query->targetList : NIL)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, lc);

		if (entry->resjunk)
			continue;
		if (OidIsValid(lint->target) && source->object == NULL)
			lint->output = entry->resname;
		if (is_default(lint, scope, entry))
			walk_stored(lint, (Node *) entry->expr,
						psprintf("default of column \"%s\"", entry->resname));
		else
			need_column(lint, scope, entry->resno);
	}
	lint->output = output;
}

/*
 * Look for findings in the body of a function that a node calls, if it is written in
 * SQL or PL/pgSQL.  Each function is looked into once.
 */
static void
look_into_function(IloadLint *lint, Oid function, Node *call, const IloadSource *caller)
{
	IloadBody  *body;
	ListCell   *lc;

	if (list_member_oid(lint->functions, function))
		return;
	lint->functions = lappend_oid(lint->functions, function);
	check_stack_depth();
	body = iload_body_read(function, call, caller);
	if (body == NULL)
		return;
	foreach(lc, body->queries)
		iload_lint_query(lint, lfirst_node(Query, lc), &body->source);
	if (body->plpgsql && !lint->brief)
		iload_lint_plpgsql(lint, &body->source);
}
