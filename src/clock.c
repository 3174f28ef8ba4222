/*
 * clock.c
 *		The server's clock, moved for one query.
 *
 * There is one clock for all sessions, so it is not the clock that is moved but each
 * reading of it in a query: now() becomes now() plus an interval.  CURRENT_DATE and
 * its like become what the server makes of CURRENT_TIMESTAMP, plus the interval.
 * Only functions of the server are used, so nobody needs a right for them.
 *
 * A literal such as date 'today' is a constant before the query is planned.  It is
 * moved when the text has been analyzed, since it can be told by the text only.
 *
 * The clock decides also what a user may see, in policies and views.  So what another
 * role has written, whose rights the user has not, keeps the true clock: the quals of
 * policies, and the views of that role.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/scansup.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "compat.h"
#include "lint_text.h"

/* How timeofday() writes a time. */
#define TIMEOFDAY_FORMAT	"Dy Mon DD HH24:MI:SS.US YYYY TZ"

typedef struct ClockContext
{
	int			seconds;
	Oid			user;			/* who sees the moved clock; InvalidOid:
								 * everybody */
	IloadClockKept *kept;		/* what keeps the true one */
} ClockContext;

static Node *
call(Oid function, Oid type, List *args)
{
	return (Node *) makeFuncExpr(function, type, args, InvalidOid, InvalidOid,
								 COERCE_EXPLICIT_CALL);
}

/* "time" plus the interval, as an expression. */
static Node *
move_expression(Node *time, const ClockContext *context)
{
	Interval   *interval = palloc0(sizeof(Interval));
	Const	   *constant;

	interval->time = (int64) context->seconds * USECS_PER_SEC;
	constant = makeConst(INTERVALOID, -1, InvalidOid, sizeof(Interval),
						 IntervalPGetDatum(interval), false, false);
	return call(F_TIMESTAMPTZ_PL_INTERVAL, TIMESTAMPTZOID, list_make2(time, constant));
}

/* CURRENT_TIMESTAMP with the precision of "value", moved. */
static Node *
moved_timestamp(SQLValueFunction *value, const ClockContext *context)
{
	SQLValueFunction *timestamp = makeNode(SQLValueFunction);

	timestamp->op = value->typmod < 0 || value->op == SVFOP_CURRENT_DATE ?
		SVFOP_CURRENT_TIMESTAMP : SVFOP_CURRENT_TIMESTAMP_N;
	timestamp->type = TIMESTAMPTZOID;
	timestamp->typmod = value->op == SVFOP_CURRENT_DATE ? -1 : value->typmod;
	timestamp->location = value->location;
	return move_expression((Node *) timestamp, context);
}

static Node *
move_value_function(SQLValueFunction *value, const ClockContext *context)
{
	Oid			cast;

	switch (value->op)
	{
		case SVFOP_CURRENT_TIMESTAMP:
		case SVFOP_CURRENT_TIMESTAMP_N:
			return moved_timestamp(value, context);
		case SVFOP_CURRENT_DATE:
			cast = F_DATE_TIMESTAMPTZ;
			break;
		case SVFOP_CURRENT_TIME:
		case SVFOP_CURRENT_TIME_N:
			cast = F_TIMETZ_TIMESTAMPTZ;
			break;
		case SVFOP_LOCALTIME:
		case SVFOP_LOCALTIME_N:
			cast = F_TIME_TIMESTAMPTZ;
			break;
		case SVFOP_LOCALTIMESTAMP:
		case SVFOP_LOCALTIMESTAMP_N:
			cast = F_TIMESTAMP_TIMESTAMPTZ;
			break;
		default:
			return (Node *) value;
	}
	return call(cast, value->type, list_make1(moved_timestamp(value, context)));
}

/* timeofday() is text, so it is written anew from a moved time. */
static Node *
moved_timeofday(const ClockContext *context)
{
	Node	   *time = move_expression(call(F_CLOCK_TIMESTAMP, TIMESTAMPTZOID, NIL), context);
	Const	   *format = makeConst(TEXTOID, -1, DEFAULT_COLLATION_OID, -1,
								   CStringGetTextDatum(TIMEOFDAY_FORMAT), false, false);
	FuncExpr   *text = makeFuncExpr(F_TO_CHAR_TIMESTAMPTZ_TEXT, TEXTOID,
									list_make2(time, format),
									DEFAULT_COLLATION_OID, DEFAULT_COLLATION_OID,
									COERCE_EXPLICIT_CALL);

	return (Node *) text;
}

/* May the user see a moved clock in what the roles have written that a query names? */
static bool
may_move(Query *query, ClockContext *context)
{
	ListCell   *lc;

	if (!OidIsValid(context->user))
		return true;
	foreach(lc, iload_query_check_as_users(query))
	{
		if (!has_privs_of_role(context->user, lfirst_oid(lc)))
		{
			context->kept->role = lfirst_oid(lc);
			return false;
		}
	}
	return true;
}

/*
 * The same for the view that an entry of the range table stands for.  The rights tell
 * nothing of a view that reads no table itself.
 */
static bool
may_move_view(RangeTblEntry *rte, ClockContext *context)
{
	Relation	view;
	bool		may;

	if (!OidIsValid(context->user) || rte->rtekind != RTE_SUBQUERY || !OidIsValid(rte->relid))
		return true;
	view = relation_open(rte->relid, NoLock);
	may = RelationHasSecurityInvoker(view) ||
		has_privs_of_role(context->user, view->rd_rel->relowner);
	if (!may)
		context->kept->role = view->rd_rel->relowner;
	relation_close(view, NoLock);
	return may;
}

static bool
is_user_function(Oid funcid, void *arg)
{
	return funcid >= FirstNormalObjectId && func_volatile(funcid) != PROVOLATILE_IMMUTABLE;
}

static bool
user_function_walker(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, user_function_walker, arg, 0);
	return check_functions_in_node(node, is_user_function, NULL) ||
		expression_tree_walker(node, user_function_walker, arg);
}

/* A part of the query keeps the true clock: does it call functions of users? */
static void
keep(Node *part, ClockContext *context)
{
	if (OidIsValid(context->user) && user_function_walker(part, NULL))
		context->kept->calls_functions = true;
}

static Node *clock_mutator(Node *node, ClockContext *context);

static Query *
move_query(Query *query, ClockContext *context)
{
	Query	   *moved;
	ListCell   *lold,
			   *lnew;

	if (!may_move(query, context))
	{
		keep((Node *) query, context);
		return query;
	}
	moved = query_tree_mutator(query, clock_mutator, context, 0);

	/* policies, and views of others, keep the true clock */
	forboth(lold, query->rtable, lnew, moved->rtable)
	{
		RangeTblEntry *old = lfirst_node(RangeTblEntry, lold);
		RangeTblEntry *new = lfirst_node(RangeTblEntry, lnew);

		new->securityQuals = old->securityQuals;
		keep((Node *) old->securityQuals, context);
		if (!may_move_view(old, context))
		{
			new->subquery = old->subquery;
			keep((Node *) old->subquery, context);
		}
	}
	return moved;
}

static Node *
clock_mutator(Node *node, ClockContext *context)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Query))
		return (Node *) move_query((Query *) node, context);
	if (IsA(node, SQLValueFunction))
		return move_value_function((SQLValueFunction *) node, context);
	if (IsA(node, FuncExpr))
	{
		switch (((FuncExpr *) node)->funcid)
		{
			case F_NOW:
			case F_TRANSACTION_TIMESTAMP:
			case F_STATEMENT_TIMESTAMP:
			case F_CLOCK_TIMESTAMP:
				return move_expression(node, context);
			case F_TIMEOFDAY:
				return moved_timeofday(context);
		}
	}
	return expression_tree_mutator(node, clock_mutator, context);
}

/*
 * Returns a rewritten and inlined query in which every reading of the clock is moved
 * by a number of seconds.  If "user" is valid, what depends on the rights of others
 * keeps the true clock, which is told in "kept".  Shares parts with the query given;
 * allocates in the current context.
 */
Query *
iload_clock_move(Query *query, int seconds, Oid user, IloadClockKept * kept)
{
	ClockContext context = {0};

	context.seconds = seconds;
	context.user = user;
	context.kept = kept;
	return query->commandType == CMD_UTILITY ? query : move_query(query, &context);
}

/*
 * The string literal that begins at byte "location" of a text, if date and time types
 * read it from the clock; else NULL.
 */
char *
iload_clock_literal(const char *text, int location)
{
	char	   *literal = text == NULL || location < 0 ? NULL : iload_text_string_at(text, location);

	return literal != NULL && iload_text_has_clock_word(literal) ? literal : NULL;
}

static bool
is_date_or_time(Const *constant)
{
	return !constant->constisnull &&
		(constant->consttype == DATEOID || constant->consttype == TIMESTAMPOID ||
		 constant->consttype == TIMESTAMPTZOID);
}

/* By how many days does a date of the clock move? */
static int
days_moved(int seconds)
{
	TimestampTz now = GetCurrentTransactionStartTimestamp();
	TimestampTz moved = now + (int64) seconds * USECS_PER_SEC;

	return DatumGetDateADT(DirectFunctionCall1(timestamptz_date, TimestampTzGetDatum(moved))) -
		DatumGetDateADT(DirectFunctionCall1(timestamptz_date, TimestampTzGetDatum(now)));
}

/* Is it the present moment, rather than a day? */
static bool
is_now(const char *literal)
{
	while (scanner_isspace(*literal))
		literal++;
	return pg_strncasecmp(literal, "now", strlen("now")) == 0;
}

static void
move_constant(Const *constant, const char *literal, int seconds)
{
	int64		by = is_now(literal) ? (int64) seconds * USECS_PER_SEC :
	days_moved(seconds) * USECS_PER_DAY;

	switch (constant->consttype)
	{
		case DATEOID:
			constant->constvalue = DateADTGetDatum(DatumGetDateADT(constant->constvalue) +
												   days_moved(seconds));
			break;
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			constant->constvalue = Int64GetDatum(DatumGetInt64(constant->constvalue) + by);
			break;
	}
}

/* A text in which literals are moved. */
typedef struct LiteralContext
{
	const char *source;
	int			seconds;
	List	   *found;			/* Const */
} LiteralContext;

static bool
literal_walker(Node *node, LiteralContext *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, literal_walker, context, 0);
	if (IsA(node, Const) && is_date_or_time((Const *) node))
	{
		char	   *literal = iload_clock_literal(context->source, ((Const *) node)->location);

		if (literal != NULL)
		{
			move_constant((Const *) node, literal, context->seconds);
			context->found = lappend(context->found, node);
		}
	}
	return expression_tree_walker(node, literal_walker, context);
}

/*
 * Move the literals that were read from the clock when "source" was analyzed.  Returns
 * them, as a list of Const that belong to the query.
 */
List *
iload_clock_move_literals(Query *query, const char *source, int seconds)
{
	LiteralContext context = {0};

	context.source = source;
	context.seconds = seconds;

	(void) literal_walker((Node *) query, &context);
	if (query->commandType == CMD_UTILITY && IsA(query->utilityStmt, CallStmt))
		(void) literal_walker((Node *) castNode(CallStmt, query->utilityStmt)->funcexpr, &context);
	return context.found;
}
