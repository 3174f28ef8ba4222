/*
 * lint_slice.c
 *		Findings about queries that read the table that they load.
 *
 * While the query is walked through, it is noted where the target is read, and which
 * conditions there are on a column and a bound of the slice.  A condition outside a
 * view, a subquery or a WITH query counts for the table within.  Whether all that is
 * read is the slice can be told at the end only.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/partition.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

#include "lint_slice.h"
#include "lint_text.h"

/* A place where the target is read. */
typedef struct TargetRead
{
	IloadScope *scope;
	int			varno;
} TargetRead;

/* A bound of the slice. */
typedef enum Bound
{
	BOUND_NONE,
	BOUND_LOWER,
	BOUND_UPPER
} Bound;

/* A condition that keeps a column of a table to one side of the slice, or to it. */
typedef struct KeyCondition
{
	IloadScope *scope;
	int			varno;
	AttrNumber	attno;
	bool		from_lower;
	bool		to_upper;
} KeyCondition;

/* Are rows of "relid" rows of the target, or the other way round? */
static bool
is_target(Oid relid, Oid target)
{
	return relid == target ||
		(get_rel_relispartition(relid) && list_member_oid(get_partition_ancestors(relid), target)) ||
		(get_rel_relispartition(target) && list_member_oid(get_partition_ancestors(target), relid));
}

/* Take note if an entry of FROM, which is a table, is the target. */
void
iload_lint_slice_read(IloadLint *lint, IloadScope *scope, int rtindex)
{
	TargetRead *read;

	if (lint->brief || !OidIsValid(lint->target) ||
		!is_target(rt_fetch(rtindex, scope->query->rtable)->relid, lint->target))
		return;
	read = palloc(sizeof(TargetRead));
	read->scope = scope;
	read->varno = rtindex;
	lint->reads = lappend(lint->reads, read);
}

/* A day, as an interval or as what is added to a date. */
static bool
is_one_day(Node *node)
{
	Const	   *value = (Const *) node;
	Interval   *interval;

	if (node == NULL || !IsA(node, Const) || value->constisnull)
		return false;
	if (value->consttype == INT4OID)
		return DatumGetInt32(value->constvalue) == 1;
	if (value->consttype != INTERVALOID)
		return false;
	interval = DatumGetIntervalP(value->constvalue);
	return interval->month == 0 &&
		interval->day * USECS_PER_DAY + interval->time == USECS_PER_DAY;
}

/* The bound that an expression is, in whatever form. */
static Bound
find_bound(Node *node, const IloadSource *source)
{
	node = iload_scope_strip(node);
	if (node == NULL)
		return BOUND_NONE;
	if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXTERN)
	{
		if (((Param *) node)->paramid == source->lower)
			return BOUND_LOWER;
		return ((Param *) node)->paramid == source->upper ? BOUND_UPPER : BOUND_NONE;
	}
	if (IsA(node, FuncExpr) && (((FuncExpr *) node)->funcid == F_TO_CHAR_TIMESTAMP_TEXT ||
								((FuncExpr *) node)->funcid == F_TO_CHAR_TIMESTAMPTZ_TEXT))
		return find_bound(linitial(((FuncExpr *) node)->args), source);
	if (IsA(node, OpExpr) && list_length(((OpExpr *) node)->args) == 2)
	{
		OpExpr	   *op = (OpExpr *) node;

		if (strcmp(get_opname(op->opno), "+") == 0 && is_one_day(llast(op->args)) &&
			find_bound(linitial(op->args), source) == BOUND_LOWER)
			return BOUND_UPPER;
	}
	return BOUND_NONE;
}

/* Without date_trunc('day', ...), which leaves a time in its day. */
static Node *
strip_day(Node *node)
{
	FuncExpr   *call = (FuncExpr *) iload_scope_strip(node);
	Const	   *unit;

	if (call == NULL || !IsA(call, FuncExpr) ||
		(call->funcid != F_DATE_TRUNC_TEXT_TIMESTAMP && call->funcid != F_DATE_TRUNC_TEXT_TIMESTAMPTZ))
		return node;
	unit = linitial(call->args);
	if (!IsA(unit, Const) || unit->constisnull ||
		pg_strcasecmp(TextDatumGetCString(unit->constvalue), "day") != 0)
		return node;
	return lsecond(call->args);
}

static int
btree_strategy(Oid operator)
{
	Oid			left;
	Oid			right;
	Oid			family;

	op_input_types(operator, &left, &right);
	family = lookup_type_cache(left, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
	return OidIsValid(family) ? get_op_opfamily_strategy(operator, family) : 0;
}

static void
note_condition(IloadLint *lint, IloadScope *scope, Node *column, Oid operator, Bound bound)
{
	KeyCondition condition = {.scope = scope};
	KeyCondition *copy;
	int			strategy;
	Var		   *var;

	if (bound == BOUND_NONE || !OidIsValid(operator))
		return;
	strategy = btree_strategy(operator);
	var = iload_scope_origin(&condition.scope, strip_day(column));
	if (var == NULL)
		return;
	condition.varno = var->varno;
	condition.attno = var->varattno;
	condition.from_lower = bound == BOUND_LOWER &&
		(strategy == BTEqualStrategyNumber || strategy == BTGreaterEqualStrategyNumber ||
		 strategy == BTGreaterStrategyNumber);
	condition.to_upper =
		(bound == BOUND_LOWER &&
		 (strategy == BTEqualStrategyNumber || strategy == BTLessEqualStrategyNumber)) ||
		(bound == BOUND_UPPER && strategy == BTLessStrategyNumber);
	copy = palloc(sizeof(KeyCondition));
	*copy = condition;
	lint->conditions = lappend(lint->conditions, copy);
}

/* Take note of conditions on a column and a bound of the slice. */
void
iload_lint_slice_conditions(IloadLint *lint, IloadScope *scope, Node *quals)
{
	ListCell   *lc;

	if (lint->brief || !OidIsValid(lint->target))
		return;
	foreach(lc, make_ands_implicit((Expr *) quals))
	{
		OpExpr	   *op = lfirst(lc);

		if (!IsA(op, OpExpr) || list_length(op->args) != 2)
			continue;
		note_condition(lint, scope, linitial(op->args), op->opno,
					   find_bound(llast(op->args), scope->source));
		note_condition(lint, scope, llast(op->args), get_commutator(op->opno),
					   find_bound(linitial(op->args), scope->source));
	}
}

/* Do conditions keep a table to the slice? */
static bool
reads_slice(IloadLint *lint, const TargetRead *read)
{
	Oid			relid = rt_fetch(read->varno, read->scope->query->rtable)->relid;
	AttrNumber	key = lint->key != NULL ? get_attnum(relid, lint->key) : InvalidAttrNumber;
	bool		from_lower = false;
	bool		to_upper = false;
	ListCell   *lc;

	foreach(lc, lint->conditions)
	{
		KeyCondition *condition = lfirst(lc);

		if (condition->scope == read->scope && condition->varno == read->varno &&
			condition->attno == key)
		{
			from_lower = from_lower || condition->from_lower;
			to_upper = to_upper || condition->to_upper;
		}
	}
	return from_lower && to_upper;
}

/* Does a name at this place in the tokens stand in FROM? */
static bool
is_in_from(List *tokens, int i)
{
	IloadToken *token;

	/* without the schema */
	if (i >= 2 && ((IloadToken *) list_nth(tokens, i - 1))->character == '.')
		i -= 2;
	token = i >= 1 ? list_nth(tokens, i - 1) : NULL;
	if (token == NULL)
		return false;
	if (token->word != NULL && strcmp(token->word, "from") == 0)
	{
		token = i >= 2 ? list_nth(tokens, i - 2) : NULL;
		return token == NULL || token->word == NULL || strcmp(token->word, "delete") != 0;
	}
	return token->character == ',' ||
		(token->word != NULL && (strcmp(token->word, "join") == 0 || strcmp(token->word, "only") == 0));
}

/* The place where a statement of a text first names a table that it reads, or -1. */
static int
name_location(const char *text, int start, const char *name)
{
	List	   *tokens = text !=NULL ? iload_text_tokens(text) : NIL;
	ListCell   *lc;

	foreach(lc, tokens)
	{
		IloadToken *token = lfirst(lc);

		if (token->location >= start && token->word != NULL &&
			strcmp(token->word, name) == 0 && is_in_from(tokens, foreach_current_index(lc)))
			return token->location;
	}
	return -1;
}

static int
statement_location(const IloadScope *scope)
{
	while (scope->parent != NULL)
		scope = scope->parent;
	return scope->query->stmt_location;
}

/* Tell of the places where the target is read. */
void
iload_lint_slice_judge(IloadLint *lint)
{
	ListCell   *lc;

	foreach(lc, lint->reads)
	{
		TargetRead *read = lfirst(lc);
		Oid			relid = rt_fetch(read->varno, read->scope->query->rtable)->relid;
		char	   *name = get_rel_name(relid);
		bool		slice = reads_slice(lint, read);
		const char *format = relid == lint->target ?
		(slice ? "query reads the slice of its target \"%s\"" :
		 "query reads its target \"%s\" beyond the slice") :
		(slice ? "query reads the slice in \"%s\", which shares rows with its target" :
		 "query reads \"%s\", which shares rows with its target, beyond the slice");

		iload_finding_add(lint, slice ? ILOAD_LINT_READS_SLICE : ILOAD_LINT_READS_TARGET,
						  read->scope->source,
						  name_location(read->scope->source->text, statement_location(read->scope), name),
						  psprintf(format, name), NULL);
	}
	lint->reads = NIL;
	lint->conditions = NIL;
}
