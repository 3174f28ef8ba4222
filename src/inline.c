/*
 * inline.c
 *		What the planner would inline, inlined before it plans.
 *
 * The planner replaces calls of simple SQL functions by their bodies, and adds
 * the defaults of arguments that are not given.  Who wants to see, or to change,
 * every function that a query calls has to look at it after that, but before it
 * becomes a plan.  So the same routines of the planner are called here, on a
 * query that has been rewritten (views, policies), and the planner then finds
 * nothing left to inline.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/optimizer.h"
#include "optimizer/prep.h"

#include "inline.h"

static Node *inline_mutator(Node *node, void *context);

/* Go on to the queries within an expression; the expression itself is done. */
static Node *
sublink_mutator(Node *node, void *context)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Query))
		return inline_mutator(node, context);
	return expression_tree_mutator(node, sublink_mutator, context);
}

/*
 * The functions in FROM of one query.  What the planner would note of them, so that
 * a plan is made anew when one is replaced, is lost here; it is noted for those
 * that remain.
 */
static void
inline_set_returning(Query *query)
{
	PlannerInfo *root = makeNode(PlannerInfo);

	root->glob = makeNode(PlannerGlobal);
	root->parse = query;
	root->query_level = 1;
	root->planner_cxt = CurrentMemoryContext;
	preprocess_function_rtes(root);
}

static Node *
inline_mutator(Node *node, void *context)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Query))
	{
		Query	   *query = copyObject((Query *) node);

		check_stack_depth();
		inline_set_returning(query);
		return (Node *) query_tree_mutator(query, inline_mutator, context, 0);
	}
	return sublink_mutator(eval_const_expressions(NULL, node), context);
}

/*
 * Returns a copy of a rewritten query in which all SQL functions are inlined that
 * the planner would inline, at all levels.  Allocates in the current context.
 */
Query *
iload_inline_functions(Query *query)
{
	if (query->commandType == CMD_UTILITY)
		return query;
	return castNode(Query, inline_mutator((Node *) query, NULL));
}
