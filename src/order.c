/*
 * order.c
 *		Does an order settle which row comes first?
 *
 * It does where the ordered expressions determine the row: where they hold a unique
 * key of each table, or columns that such a key follows from by equalities in WHERE
 * and ON, or the columns of GROUP BY or DISTINCT, or all that there is to see.
 * "No" means that it is not known to.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "order.h"

/* A column whose value follows from the ordered expressions. */
typedef struct Covered
{
	int			varno;
	AttrNumber	attno;
	bool		not_null;		/* by an equality */
} Covered;

/* "to" follows from "from", or from nothing where "from" is NULL. */
typedef struct Equality
{
	Var		   *from;
	Var		   *to;
} Equality;

typedef struct OrderContext
{
	IloadScope *scope;
	List	   *exprs;			/* the ordered expressions */
	List	   *covered;		/* of Covered */
	List	   *equalities;		/* of Equality */
	Bitmapset  *relations;		/* in FROM */
	Bitmapset  *determined;		/* those of which one row is left */
} OrderContext;

static Covered *
find_covered(OrderContext *context, int varno, AttrNumber attno)
{
	ListCell   *lc;

	foreach(lc, context->covered)
	{
		Covered    *covered = lfirst(lc);

		if (covered->varno == varno && covered->attno == attno)
			return covered;
	}
	return NULL;
}

static bool
is_covered(OrderContext *context, int varno, AttrNumber attno)
{
	return bms_is_member(varno, context->determined) ||
		find_covered(context, varno, attno) != NULL;
}

/* Returns whether that is new. */
static bool
cover(OrderContext *context, const Var *var, bool not_null)
{
	Covered    *covered = find_covered(context, var->varno, var->varattno);

	if (covered != NULL && (covered->not_null || !not_null))
		return false;
	if (covered == NULL)
	{
		covered = palloc0(sizeof(Covered));
		covered->varno = var->varno;
		covered->attno = var->varattno;
		context->covered = lappend(context->covered, covered);
	}
	covered->not_null = not_null;
	return true;
}

static void
add_equality(OrderContext *context, Var *from, Var *to)
{
	Equality   *equality = palloc(sizeof(Equality));

	equality->from = from;
	equality->to = to;
	context->equalities = lappend(context->equalities, equality);
}

/*
 * Take note of a condition "column = something".  Where the condition is that of an
 * outer join, only columns of its nullable side, "nullable", follow from it.
 */
static void
note_condition(OrderContext *context, Node *node, Bitmapset *nullable, bool outer)
{
	OpExpr	   *op = (OpExpr *) node;

	if (!IsA(node, OpExpr) || list_length(op->args) != 2 ||
		get_mergejoin_opfamilies(op->opno) == NIL)
		return;
	for (int i = 0; i < 2; i++)
	{
		Var		   *to = iload_scope_column(context->scope, list_nth(op->args, i));
		Node	   *other = list_nth(op->args, 1 - i);
		Var		   *from = iload_scope_column(context->scope, other);

		if (to == NULL || to->varlevelsup > 0 ||
			(outer && !bms_is_member(to->varno, nullable)))
			continue;
		if (from != NULL && from->varlevelsup == 0)
			add_equality(context, from, to);
		else if (!contain_var_clause(other) && !contain_volatile_functions(other))
			add_equality(context, NULL, to);
	}
}

static void
note_conditions(OrderContext *context, Node *quals, Bitmapset *nullable, bool outer)
{
	ListCell   *lc;

	foreach(lc, make_ands_implicit((Expr *) quals))
		note_condition(context, lfirst(lc), nullable, outer);
}

/* Take note of what is in FROM.  Returns the relations. */
static Bitmapset *
note_from(OrderContext *context, Node *node)
{
	Bitmapset  *relations = NULL;
	ListCell   *lc;

	if (IsA(node, RangeTblRef))
		relations = bms_make_singleton(((RangeTblRef *) node)->rtindex);
	else if (IsA(node, FromExpr))
	{
		foreach(lc, ((FromExpr *) node)->fromlist)
			relations = bms_add_members(relations, note_from(context, lfirst(lc)));
		note_conditions(context, ((FromExpr *) node)->quals, NULL, false);
	}
	else if (IsA(node, JoinExpr))
	{
		JoinExpr   *join = (JoinExpr *) node;
		Bitmapset  *left = note_from(context, join->larg);
		Bitmapset  *right = note_from(context, join->rarg);

		if (join->jointype == JOIN_INNER)
			note_conditions(context, join->quals, NULL, false);
		else if (join->jointype == JOIN_LEFT)
			note_conditions(context, join->quals, right, true);
		else if (join->jointype == JOIN_RIGHT)
			note_conditions(context, join->quals, left, true);
		relations = bms_union(left, right);
	}
	return relations;
}

/* Are the columns of a unique index among those that are covered? */
static bool
index_is_covered(OrderContext *context, int varno, Relation table, Relation index)
{
	Form_pg_index form = index->rd_index;

	if (!form->indisunique || !form->indimmediate || !form->indisvalid ||
		RelationGetIndexPredicate(index) != NIL)
		return false;
	for (int i = 0; i < form->indnkeyatts; i++)
	{
		AttrNumber	attno = form->indkey.values[i];
		Covered    *covered = find_covered(context, varno, attno);

		if (attno <= 0 || covered == NULL)
			return false;
		if (!covered->not_null && !form->indnullsnotdistinct &&
			!TupleDescAttr(RelationGetDescr(table), attno - 1)->attnotnull)
			return false;
	}
	return true;
}

static bool
table_is_determined(OrderContext *context, int varno, RangeTblEntry *rte)
{
	Relation	table = table_open(rte->relid, AccessShareLock);
	bool		found = false;
	ListCell   *lc;

	/* a key is not unique beyond the table, among those that inherit from it */
	if (rte->inh && rte->relkind == RELKIND_RELATION && find_inheritance_children(rte->relid, NoLock) != NIL)
	{
		table_close(table, NoLock);
		return false;
	}
	foreach(lc, RelationGetIndexList(table))
	{
		Relation	index = index_open(lfirst_oid(lc), AccessShareLock);

		found = found || index_is_covered(context, varno, table, index);
		index_close(index, NoLock);
	}
	table_close(table, NoLock);
	return found;
}

/* A subquery is asked whether its own columns that are covered determine its row. */
static bool
subquery_is_determined(OrderContext *context, int varno)
{
	IloadScope *child = iload_scope_child(context->scope, varno);
	List	   *exprs = NIL;
	ListCell   *lc;

	if (child == NULL || child == context->scope)
		return false;
	foreach(lc, iload_scope_output(child))
	{
		TargetEntry *entry = lfirst_node(TargetEntry, lc);

		if (!entry->resjunk && is_covered(context, varno, entry->resno))
			exprs = lappend(exprs, entry->expr);
	}
	return child->query->commandType == CMD_SELECT &&
		iload_order_is_total(child, exprs, ILOAD_ORDER_OUTPUT);
}

/* Does a function in FROM give one row? */
static bool
gives_one_row(RangeTblEntry *rte)
{
	ListCell   *lc;

	if (rte->rtekind != RTE_FUNCTION)
		return rte->rtekind == RTE_RESULT;
	foreach(lc, rte->functions)
	{
		if (expression_returns_set(lfirst_node(RangeTblFunction, lc)->funcexpr))
			return false;
	}
	return true;
}

/* Is every column covered that there is to see?  Rows that tie are the same then. */
static bool
all_columns_covered(OrderContext *context, int varno, RangeTblEntry *rte)
{
	ListCell   *lc;

	foreach(lc, rte->eref->colnames)
	{
		/* dropped columns have no name */
		if (strVal(lfirst(lc))[0] != '\0' &&
			find_covered(context, varno, foreach_current_index(lc) + 1) == NULL)
			return false;
	}
	return true;
}

static bool
relation_is_determined(OrderContext *context, int varno)
{
	RangeTblEntry *rte = rt_fetch(varno, context->scope->query->rtable);

	if (gives_one_row(rte) || all_columns_covered(context, varno, rte))
		return true;
	if (iload_scope_child(context->scope, varno) != NULL)
		return subquery_is_determined(context, varno);
	return rte->rtekind == RTE_RELATION && table_is_determined(context, varno, rte);
}

/* Follow equalities and unique keys until nothing new is found. */
static void
follow(OrderContext *context)
{
	bool		changed = true;
	ListCell   *lc;
	int			varno;

	while (changed)
	{
		changed = false;
		foreach(lc, context->equalities)
		{
			Equality   *equality = lfirst(lc);

			if (equality->from == NULL ||
				is_covered(context, equality->from->varno, equality->from->varattno))
				changed = cover(context, equality->to, true) || changed;
		}
		varno = -1;
		while ((varno = bms_next_member(context->relations, varno)) >= 0)
		{
			if (!bms_is_member(varno, context->determined) &&
				relation_is_determined(context, varno))
			{
				context->determined = bms_add_member(context->determined, varno);
				changed = true;
			}
		}
	}
}

/* Is there anything of which it is not known whether its value follows? */
static bool
uncovered_walker(Node *node, OrderContext *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var))
	{
		Var		   *var = iload_scope_column(context->scope, node);

		if (var == NULL)
			return expression_tree_walker(iload_scope_alias(context->scope, (Var *) node),
										  uncovered_walker, context);
		return var->varlevelsup == 0 && !is_covered(context, var->varno, var->varattno);
	}
	if (IsA(node, Aggref) || IsA(node, WindowFunc) || IsA(node, SubLink))
		return true;
	return expression_tree_walker(node, uncovered_walker, context);
}

/* Does the value of an expression follow? */
static bool
expression_is_covered(OrderContext *context, Node *node)
{
	return list_member(context->exprs, node) ||
		(!contain_volatile_functions(node) && !uncovered_walker(node, context));
}

static bool
clauses_are_covered(OrderContext *context, List *clauses)
{
	List	   *entries = context->scope->query->targetList;
	ListCell   *lc;

	foreach(lc, clauses)
	{
		if (!expression_is_covered(context,
								   get_sortgroupclause_expr(lfirst_node(SortGroupClause, lc), entries)))
			return false;
	}
	return true;
}

static bool
output_is_covered(OrderContext *context)
{
	ListCell   *lc;

	foreach(lc, context->scope->query->targetList)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, lc);

		if (!entry->resjunk && !expression_is_covered(context, (Node *) entry->expr))
			return false;
	}
	return true;
}

/*
 * Do these expressions, which the rows of a query are ordered or grouped by at
 * "stage", determine the row, or at least all that there is to see of it?  Allocates
 * in the current context.
 */
bool
iload_order_is_total(IloadScope *scope, List *exprs, IloadOrderStage stage)
{
	Query	   *query = scope->query;
	OrderContext context = {.scope = scope,.exprs = exprs};
	ListCell   *lc;

	check_stack_depth();
	if (query->setOperations != NULL)
		return output_is_covered(&context);
	foreach(lc, exprs)
	{
		Var		   *var = iload_scope_column(scope, lfirst(lc));

		if (var != NULL && var->varlevelsup == 0)
			(void) cover(&context, var, false);
	}
	context.relations = note_from(&context, (Node *) query->jointree);
	follow(&context);

	if (stage >= ILOAD_ORDER_DISTINCT && output_is_covered(&context))
		return true;
	if (stage == ILOAD_ORDER_OUTPUT && query->distinctClause != NIL &&
		clauses_are_covered(&context, query->distinctClause))
		return true;
	if (stage != ILOAD_ORDER_INPUT && query->hasTargetSRFs)
		return false;
	if (stage != ILOAD_ORDER_INPUT && query->groupingSets != NIL)
		return false;
	if (stage != ILOAD_ORDER_INPUT && (query->groupClause != NIL || query->hasAggs))
		return clauses_are_covered(&context, query->groupClause);
	return bms_is_subset(context.relations, context.determined);
}
