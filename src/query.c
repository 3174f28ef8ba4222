/*
 * query.c
 *		One query: parsed alone, checked, planned and run into a receiver.
 *
 * A user's text is never put into another text.  It is parsed by itself, must
 * be one SELECT that only reads, and what is to be done with its result is
 * built around its parse tree.  So nothing in it can break out, and a comment
 * or a semicolon at its end means what it always means.
 *
 * An error inside the text is reported with its place in the text, as for a
 * query inside a function.
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "parser/analyze.h"
#include "parser/parse_param.h"
#include "parser/parser.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "errcodes.h"
#include "query.h"

typedef struct QueryErrorContext
{
	const char *text;
	const char *what;
} QueryErrorContext;

/* Is it a statement of our own, rather than of a user? */
bool
iload_query_is_ours(const char *text)
{
	return text !=NULL && strncmp(text, ILOAD_QUERY_MARK, strlen(ILOAD_QUERY_MARK)) == 0;
}

/* Turn a cursor position into one within the text given by the user. */
static void
query_error_callback(void *arg)
{
	QueryErrorContext *context = arg;
	int			position = geterrposition();

	if (position > 0)
	{
		errposition(0);
		internalerrposition(position);
		internalerrquery(context->text);
	}
	errcontext("%s of the load", context->what);
}

static void
push_query_context(ErrorContextCallback *callback, QueryErrorContext *context,
				   const char *text, const char *what)
{
	context->text = text;

	context->what = what;
	callback->callback = query_error_callback;
	callback->arg = context;
	callback->previous = error_context_stack;
	error_context_stack = callback;
}

static void
refuse(const char *what, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_ILOAD_QUERY_SHAPE),
			 errmsg("%s must be one SELECT that only reads", what),
			 errdetail_internal("%s", detail),
			 errhint("Write one SELECT, VALUES, TABLE, or WITH ... SELECT, with no INTO, no FOR UPDATE and no data-modifying part.")));
}

/*
 * Parse "text", which must hold exactly one SELECT.  "what" names its role in
 * messages: "query" or "audit".
 */
SelectStmt *
iload_query_parse(const char *text, const char *what)
{
	ErrorContextCallback callback;
	QueryErrorContext context;
	List	   *statements;
	SelectStmt *select;
	SelectStmt *leftmost;

	push_query_context(&callback, &context, text, what);
	statements = pg_parse_query(text);
	if (list_length(statements) != 1)
		refuse(what, psprintf("It holds %d statements.", list_length(statements)));
	select = (SelectStmt *) linitial_node(RawStmt, statements)->stmt;
	if (!IsA(select, SelectStmt))
		refuse(what, "It is a statement of another kind.");
	/* of a set operation, it is the first SELECT that has the INTO */
	leftmost = select;
	while (leftmost->larg != NULL)
		leftmost = leftmost->larg;
	if (leftmost->intoClause != NULL)
		refuse(what, "It has an INTO clause.");
	error_context_stack = callback.previous;
	return select;
}

static bool
writes_or_locks(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		Query	   *query = (Query *) node;

		return query->commandType != CMD_SELECT || query->hasModifyingCTE ||
			query->rowMarks != NIL ||
			query_tree_walker(query, writes_or_locks, arg, 0);
	}
	return expression_tree_walker(node, writes_or_locks, arg);
}

/*
 * Analyze a parsed SELECT, with parameters of the types given and relations
 * from "env".  Literals of unknown type in its output stay unknown, so that
 * they can take on the type of the column that they are for.
 */
Query *
iload_query_analyze(SelectStmt *select, const char *text, const char *what,
					const Oid *param_types, int nparams, QueryEnvironment *env)
{
	ErrorContextCallback callback;
	QueryErrorContext context;
	ParseState *pstate = make_parsestate(NULL);
	RawStmt    *raw = makeNode(RawStmt);
	Query	   *query;

	push_query_context(&callback, &context, text, what);
	raw->stmt = (Node *) select;
	pstate->p_queryEnv = env;
	pstate->p_resolve_unknowns = false;
	pstate->p_sourcetext = text;

	setup_parse_fixed_parameters(pstate, param_types, nparams);
	query = transformTopLevelStmt(pstate, raw);
	if (post_parse_analyze_hook)
		(*post_parse_analyze_hook) (pstate, query, NULL);
	free_parsestate(pstate);
	if (writes_or_locks((Node *) query, NULL))
		refuse(what, "It has a data-modifying part, or locks rows.");
	error_context_stack = callback.previous;
	return query;
}

/* A DestReceiver around a row function. */
typedef struct FunctionReceiver
{
	DestReceiver pub;
	IloadRowFunction function;
	void	   *arg;
} FunctionReceiver;

static bool
receiver_receive(TupleTableSlot *slot, DestReceiver *self)
{
	FunctionReceiver *receiver = (FunctionReceiver *) self;

	receiver->function(slot, receiver->arg);
	return true;
}

static void
receiver_startup(DestReceiver *self, int operation, TupleDesc desc)
{
}

static void
receiver_end(DestReceiver *self)
{
}

/* Rewrite an analyzed SELECT: views, policies.  "query" is scribbled upon. */
Query *
iload_query_rewrite(Query *query)
{
	return linitial_node(Query, pg_rewrite_query(query));
}

/*
 * Plan a rewritten SELECT, parallel plans allowed.  "query" is scribbled upon.
 * Needs an active snapshot.
 */
PlannedStmt *
iload_query_plan(Query *query, const char *text, ParamListInfo params)
{
	return pg_plan_query(query, text, CURSOR_OPT_PARALLEL_OK, params);
}

/*
 * Run a plan with the snapshot given, and hand each row to "function".  Returns the
 * number of rows.  What the run allocates is gone when it ends.
 */
uint64
iload_query_execute(PlannedStmt *plan, const char *text, ParamListInfo params,
					QueryEnvironment *env, Snapshot snapshot,
					IloadRowFunction function, void *arg)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "idempotent_load query",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	FunctionReceiver receiver = {
		.pub = {receiver_receive, receiver_startup, receiver_end, receiver_end, DestNone},
		.function = function,
		.arg = arg
	};
	QueryDesc  *desc;
	uint64		rows;

	PushActiveSnapshot(snapshot);
	desc = CreateQueryDesc(plan, text, snapshot, InvalidSnapshot, &receiver.pub, params, env, 0);
	ExecutorStart(desc, 0);
	iload_ExecutorRun(desc, 0);
	rows = desc->estate->es_processed;
	ExecutorFinish(desc);
	ExecutorEnd(desc);
	FreeQueryDesc(desc);
	PopActiveSnapshot();

	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return rows;
}

/*
 * Rewrite, plan and run an analyzed SELECT, as above.  "query" is scribbled upon.
 */
uint64
iload_query_run(Query *query, const char *text, ParamListInfo params,
				QueryEnvironment *env, Snapshot snapshot,
				IloadRowFunction function, void *arg)
{
	PlannedStmt *plan;

	PushActiveSnapshot(snapshot);
	plan = iload_query_plan(iload_query_rewrite(query), text, params);
	PopActiveSnapshot();
	return iload_query_execute(plan, text, params, env, snapshot, function, arg);
}
