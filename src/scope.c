/*
 * scope.c
 *		One level of a query, and what its Vars stand for.
 *
 * The query has been analyzed and not rewritten, so that it is known of each part
 * whether it is written in the text or in a view.  A view is entered like a
 * subquery.  Relations are locked in ACCESS SHARE mode before they are looked at,
 * as the query itself would do; everything is allocated in the context that is
 * current.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/pg_class.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteHandler.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "scope.h"

IloadScope *
iload_scope_create(Query *query, IloadScope *parent, const IloadSource *source)
{
	IloadScope *scope = palloc0(sizeof(IloadScope));

	scope->query = query;
	scope->parent = parent;
	scope->source = source;
	scope->children = palloc0((list_length(query->rtable) + 1) * sizeof(IloadScope *));
	scope->ctes = palloc0((list_length(query->cteList) + 1) * sizeof(IloadScope *));
	return scope;
}

/* The scope so many levels further out, or NULL. */
IloadScope *
iload_scope_up(IloadScope *scope, int levels)
{
	while (scope != NULL && levels-- > 0)
		scope = scope->parent;
	return scope;
}

static IloadScope *
view_scope(RangeTblEntry *rte, const IloadSource *source)
{
	IloadSource *inner = palloc0(sizeof(IloadSource));
	Relation	view = table_open(rte->relid, AccessShareLock);
	Query	   *query = copyObject(get_view_query(view));

	table_close(view, NoLock);
	inner->object = psprintf("view \"%s.%s\"", get_namespace_name(get_rel_namespace(rte->relid)),
							 get_rel_name(rte->relid));
	inner->depth = source->depth;
	return iload_scope_create(query, NULL, inner);
}

/* The WITH query that a range table entry names; it is made once. */
static IloadScope *
cte_scope(IloadScope *scope, RangeTblEntry *rte)
{
	IloadScope *owner = iload_scope_up(scope, rte->ctelevelsup);
	ListCell   *lc;

	foreach(lc, owner != NULL ? owner->query->cteList : NIL)
	{
		CommonTableExpr *cte = lfirst_node(CommonTableExpr, lc);
		IloadScope **found = &owner->ctes[foreach_current_index(lc)];

		if (strcmp(cte->ctename, rte->ctename) != 0)
			continue;
		if (*found == NULL)
			*found = iload_scope_create(castNode(Query, cte->ctequery), owner, owner->source);
		return *found;
	}
	return NULL;
}

/*
 * The scope of a subquery, a view or a WITH query in the range table, always the
 * same one; NULL for an entry of another kind.
 */
IloadScope *
iload_scope_child(IloadScope *scope, int rtindex)
{
	RangeTblEntry *rte = rt_fetch(rtindex, scope->query->rtable);
	IloadScope **child = &scope->children[rtindex - 1];

	if (*child != NULL)
		return *child;
	if (rte->rtekind == RTE_SUBQUERY)
		*child = iload_scope_create(rte->subquery, scope, scope->source);
	else if (rte->rtekind == RTE_CTE)
		*child = cte_scope(scope, rte);
	else if (rte->rtekind == RTE_RELATION && rte->relkind == RELKIND_VIEW)
		*child = view_scope(rte, scope->source);
	return *child;
}

/* The target list whose columns others see. */
List *
iload_scope_output(const IloadScope *scope)
{
	return scope->query->commandType == CMD_SELECT ? scope->query->targetList :
		scope->query->returningList;
}

/*
 * What a Var of this level stands for within it, where it is a column of a join or
 * of GROUP BY; else NULL.
 */
Node *
iload_scope_alias(const IloadScope *scope, const Var *var)
{
	RangeTblEntry *rte;
	List	   *aliased;

	if (var->varlevelsup > 0 || var->varattno <= 0 ||
		var->varno <= 0 || var->varno > list_length(scope->query->rtable))
		return NULL;
	rte = rt_fetch(var->varno, scope->query->rtable);
	aliased = rte->rtekind == RTE_JOIN ? rte->joinaliasvars : iload_rte_group_exprs(rte);
	return var->varattno <= list_length(aliased) ? list_nth(aliased, var->varattno - 1) : NULL;
}

/* What a function call only puts into another form, or NULL. */
static Node *
converted(FuncExpr *call)
{
	if (call->args != NIL &&
		(call->funcformat == COERCE_EXPLICIT_CAST || call->funcformat == COERCE_IMPLICIT_CAST))
		return linitial(call->args);
	if (call->funcid == F_TIMEZONE_TEXT_TIMESTAMP || call->funcid == F_TIMEZONE_TEXT_TIMESTAMPTZ)
		return lsecond(call->args);
	return NULL;
}

/* An expression without the casts, and AT TIME ZONE, around it. */
Node *
iload_scope_strip(Node *node)
{
	Node	   *inner = node;

	while (inner != NULL)
	{
		node = inner;
		if (IsA(node, RelabelType))
			inner = (Node *) ((RelabelType *) node)->arg;
		else if (IsA(node, CoerceViaIO))
			inner = (Node *) ((CoerceViaIO *) node)->arg;
		else if (IsA(node, CoerceToDomain))
			inner = (Node *) ((CoerceToDomain *) node)->arg;
		else
			inner = IsA(node, FuncExpr) ? converted((FuncExpr *) node) : NULL;
	}
	return node;
}

/*
 * The column of the range table that an expression is, if it is one, or is one but
 * for its binary representation; else NULL.
 */
Var *
iload_scope_column(const IloadScope *scope, Node *node)
{
	for (;;)
	{
		Node	   *alias;

		while (node != NULL && IsA(node, RelabelType))
			node = (Node *) ((RelabelType *) node)->arg;
		if (node == NULL || !IsA(node, Var))
			return NULL;
		alias = iload_scope_alias(scope, (Var *) node);
		if (alias == NULL)
			return (Var *) node;
		node = alias;
	}
}

/* Would a condition on its columns mean another thing within it? */
static bool
chooses_rows(const Query *query)
{
	return query->limitCount != NULL || query->limitOffset != NULL ||
		query->hasDistinctOn || query->hasWindowFuncs;
}

/*
 * The column of a table, or of another entry without a query of its own, that an
 * expression is, casts apart, looked for through subqueries, views and WITH queries
 * that only pass it on; else NULL.  *scope becomes the one that this Var belongs to.
 */
Var *
iload_scope_origin(IloadScope **scope, Node *node)
{
	for (;;)
	{
		Var		   *var = iload_scope_column(*scope, iload_scope_strip(node));
		IloadScope *child;
		TargetEntry *entry;

		if (var == NULL)
			return NULL;
		*scope = iload_scope_up(*scope, var->varlevelsup);
		if (*scope == NULL)
			return NULL;
		if (var->varlevelsup > 0)
		{
			var = copyObject(var);
			var->varlevelsup = 0;
			node = (Node *) var;
			continue;
		}
		child = var->varattno > 0 ? iload_scope_child(*scope, var->varno) : NULL;
		if (child == NULL)
			return var;
		/* a set operation has several of each column */
		if (child->query->setOperations != NULL || chooses_rows(child->query))
			return NULL;
		entry = get_tle_by_resno(iload_scope_output(child), var->varattno);
		if (entry == NULL)
			return NULL;
		*scope = child;
		node = (Node *) entry->expr;
	}
}
