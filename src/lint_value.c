/*
 * lint_value.c
 *		Values that are others in another run: findings in one node.
 *
 * They are calls that read the clock, or depend on chance, a sequence, the
 * transaction or the session; constants that the clock gave their value; and
 * conversions that depend on the settings TimeZone, DateStyle and IntervalStyle.
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "lint_text.h"
#include "lint_value.h"

/*
 * Take note of a call that is known to answer differently the next time.  An effect
 * outside the transaction is not a value.
 */
void
iload_lint_impure(IloadLint *lint, const IloadSource *source, IloadImpureKind kind,
				  const char *name, int location)
{
	const char *hint = NULL;

	if (kind <= ILOAD_IMPURE_SEQUENCE && lint->output != NULL && lint->key != NULL &&
		strcmp(lint->output, lint->key) != 0)
		hint = psprintf("%s, or name column \"%s\" in ignore_columns.",
						kind == ILOAD_IMPURE_CLOCK ? "Use the logical date, $1, instead" :
						kind == ILOAD_IMPURE_RANDOM ?
						"Derive the value from the row, for instance from a hash of its key" :
						"Derive the value from the row", lint->output);
	switch (kind)
	{
		case ILOAD_IMPURE_CLOCK:
			iload_finding_add(lint, ILOAD_LINT_CLOCK_READ, source, location,
							  psprintf("%s reads the clock", name), hint);
			break;
		case ILOAD_IMPURE_RANDOM:
			iload_finding_add(lint, ILOAD_LINT_RANDOM_VALUE, source, location,
							  psprintf("%s gives another value in each run", name), hint);
			break;
		case ILOAD_IMPURE_SEQUENCE:
			iload_finding_add(lint, ILOAD_LINT_SEQUENCE_VALUE, source, location,
							  psprintf("%s gives another value in each run", name), hint);
			break;
		case ILOAD_IMPURE_TRANSACTION:
			iload_finding_add(lint, ILOAD_LINT_TRANSACTION_VALUE, source, location,
							  psprintf("%s depends on the transaction", name), NULL);
			break;
		case ILOAD_IMPURE_SESSION:
			iload_finding_add(lint, ILOAD_LINT_SESSION_VALUE, source, location,
							  psprintf("%s depends on the session", name), NULL);
			break;
		case ILOAD_IMPURE_EFFECT:
			break;
	}
}

static bool
is_timezone_type(Oid type)
{
	return type == TIMESTAMPTZOID || type == TIMETZOID;
}

/* May a constant of this type have been written as 'today'? */
static bool
is_clock_type(Oid type)
{
	Oid			element = get_base_element_type(type);
	Oid			subtype = get_range_subtype(type);

	type = OidIsValid(element) ? element : OidIsValid(subtype) ? subtype : getBaseType(type);
	return type == DATEOID || type == TIMEOID || type == TIMESTAMPOID || is_timezone_type(type);
}

static void
add_clock_literal(IloadLint *lint, const IloadScope *scope, const char *string, Oid type,
				  int location)
{
	iload_finding_add(lint, ILOAD_LINT_CLOCK_LITERAL, scope->source, location,
					  psprintf("%s as %s is read from the clock", quote_literal_cstr(string),
							   format_type_be(type)), NULL);
}

/*
 * A constant has lost the word that it was written with, but not its place in the
 * text.
 */
static void
check_constant(IloadLint *lint, const IloadScope *scope, Const *value)
{
	char	   *string;

	if (value->location < 0 || scope->source->text == NULL || !is_clock_type(value->consttype))
		return;
	string = iload_text_string_at(scope->source->text, value->location);
	if (string != NULL && iload_text_has_clock_word(string))
		add_clock_literal(lint, scope, string, value->consttype, value->location);
}

/* The text constants that an expression is, or may be, as in a list of VALUES. */
static List *
text_constants(IloadScope *scope, Node *node)
{
	List	   *constants = NIL;
	Var		   *var;
	RangeTblEntry *rte;
	ListCell   *lc;

	if (node != NULL && IsA(node, Const))
		return list_make1(node);
	var = iload_scope_origin(&scope, node);
	if (var == NULL || var->varattno <= 0)
		return NIL;
	rte = rt_fetch(var->varno, scope->query->rtable);
	foreach(lc, rte->rtekind == RTE_VALUES ? rte->values_lists : NIL)
	{
		Node	   *value = list_nth(lfirst_node(List, lc), var->varattno - 1);

		if (IsA(value, Const))
			constants = lappend(constants, value);
	}
	return constants;
}

/* Text that becomes a date or a time as the query runs. */
static void
check_text_constants(IloadLint *lint, IloadScope *scope, CoerceViaIO *cast)
{
	ListCell   *lc;

	if (!is_clock_type(cast->resulttype))
		return;
	foreach(lc, text_constants(scope, (Node *) cast->arg))
	{
		Const	   *value = lfirst_node(Const, lc);
		char	   *string;

		if (value->constisnull || value->consttype != TEXTOID)
			continue;
		string = TextDatumGetCString(value->constvalue);
		if (iload_text_has_clock_word(string))
			add_clock_literal(lint, scope, string, cast->resulttype, value->location);
	}
}

/* The setting that the text form of a type depends on, or NULL. */
static const char *
style_setting(Oid type)
{
	switch (getBaseType(type))
	{
		case DATEOID:
		case TIMESTAMPOID:
			return "DateStyle";
		case TIMESTAMPTZOID:
			return "TimeZone and DateStyle";
		case INTERVALOID:
			return "IntervalStyle";
		default:
			return NULL;
	}
}

static bool
is_string_type(Oid type)
{
	char		category;
	bool		preferred;

	get_type_category_preferred(type, &category, &preferred);
	return category == TYPCATEGORY_STRING;
}

/* A conversion between text and date or time. */
static void
check_text_cast(IloadLint *lint, IloadScope *scope, CoerceViaIO *cast)
{
	Oid			from = exprType((Node *) cast->arg);
	Oid			to = cast->resulttype;
	const char *setting = NULL;

	if (is_string_type(to))
		setting = style_setting(from);
	else if (is_string_type(from) && text_constants(scope, (Node *) cast->arg) == NIL)
		setting = style_setting(to);
	if (setting != NULL)
		iload_finding_add(lint, ILOAD_LINT_SESSION_CAST, scope->source, exprLocation((Node *) cast),
						  psprintf("cast from %s to %s depends on %s",
								   format_type_be(from), format_type_be(to), setting), NULL);
}

/* Is it an interval without days and months?  Adding it needs no time zone. */
static bool
is_plain_duration(Node *node)
{
	Interval   *interval;

	if (!IsA(node, Const) || ((Const *) node)->consttype != INTERVALOID || ((Const *) node)->constisnull)
		return false;
	interval = DatumGetIntervalP(((Const *) node)->constvalue);
	return interval->day == 0 && interval->month == 0;
}

/* Is it the field 'epoch', which needs no time zone either? */
static bool
is_epoch(Node *node)
{
	Const	   *value = (Const *) node;

	return IsA(node, Const) && value->consttype == TEXTOID && !value->constisnull &&
		strcmp(TextDatumGetCString(value->constvalue), "epoch") == 0;
}

/* The first type among the arguments whose text form depends on a setting. */
static Oid
style_argument(List *args)
{
	ListCell   *lc;

	foreach(lc, args)
	{
		if (style_setting(exprType(lfirst(lc))) != NULL)
			return exprType(lfirst(lc));
	}
	return InvalidOid;
}

/* A function of the server's that puts its arguments together as text. */
static bool
prints_arguments(Oid function)
{
	return function == F_CONCAT || function == F_CONCAT_WS || function == F_FORMAT_TEXT_ANY ||
		function == F_TEXTANYCAT || function == F_ANYTEXTCAT;
}

/*
 * Is it a time in the session's zone that was made from a date or time without one?
 * What is made of it in the same zone, as by to_char or a cast to date, does not
 * depend on the zone after all.
 */
static bool
is_local_time(Node *node)
{
	if (IsA(node, FuncExpr))
	{
		FuncExpr   *call = (FuncExpr *) node;

		return call->funcid == F_TIMESTAMPTZ_DATE || call->funcid == F_TIMESTAMPTZ_TIMESTAMP ||
			(call->funcid == F_DATE_TRUNC_TEXT_TIMESTAMPTZ && is_local_time(lsecond(call->args)));
	}
	if (IsA(node, OpExpr))
	{
		OpExpr	   *op = (OpExpr *) node;

		return (op->opfuncid == F_TIMESTAMPTZ_PL_INTERVAL || op->opfuncid == F_TIMESTAMPTZ_MI_INTERVAL) &&
			is_local_time(linitial(op->args));
	}
	return false;
}

static bool
takes_local_times(List *args)
{
	ListCell   *lc;

	foreach(lc, args)
	{
		if (is_timezone_type(exprType(lfirst(lc))) && !is_local_time(lfirst(lc)))
			return false;
	}
	return true;
}

/* A function of the server's that depends on TimeZone. */
static void
check_timezone_call(IloadLint *lint, IloadScope *scope, Node *node, Oid function, List *args)
{
	Oid			result = exprType(node);
	bool		timezone = is_timezone_type(result);
	bool		temporal = false;
	ListCell   *lc;
	char	   *what;

	foreach(lc, args)
	{
		Oid			type = exprType(lfirst(lc));

		if (is_plain_duration(lfirst(lc)) || is_epoch(lfirst(lc)))
			return;
		timezone = timezone || is_timezone_type(type);
		temporal = temporal || is_clock_type(type) || is_string_type(type);
	}
	if (!timezone || !temporal)
		return;
	if (list_member_ptr(lint->settled, node) ||
		(!is_timezone_type(result) && takes_local_times(args)))
	{
		lint->settled = list_concat(lint->settled, args);
		return;
	}
	if (IsA(node, OpExpr))
		what = psprintf("operator %s of %s and %s", get_opname(((OpExpr *) node)->opno),
						format_type_be(exprType(linitial(args))),
						format_type_be(exprType(llast(args))));
	else if (((FuncExpr *) node)->funcformat == COERCE_EXPLICIT_CAST ||
			 ((FuncExpr *) node)->funcformat == COERCE_IMPLICIT_CAST)
		what = psprintf("cast from %s to %s", format_type_be(exprType(linitial(args))),
						format_type_be(result));
	else
		what = psprintf("%s()", get_func_name(function));
	iload_finding_add(lint, ILOAD_LINT_SESSION_CAST, scope->source, exprLocation(node),
					  psprintf("%s depends on TimeZone", what), NULL);
}

static void
check_call(IloadLint *lint, IloadScope *scope, Node *node)
{
	Oid			function = IsA(node, OpExpr) ? ((OpExpr *) node)->opfuncid : ((FuncExpr *) node)->funcid;
	List	   *args = IsA(node, OpExpr) ? ((OpExpr *) node)->args : ((FuncExpr *) node)->args;

	if (function >= FirstUnpinnedObjectId || func_volatile(function) != PROVOLATILE_STABLE)
		return;
	if (!prints_arguments(function))
		check_timezone_call(lint, scope, node, function, args);
	else if (OidIsValid(style_argument(args)))
		iload_finding_add(lint, ILOAD_LINT_SESSION_CAST, scope->source, exprLocation(node),
						  psprintf("%s as text depends on %s", format_type_be(style_argument(args)),
								   style_setting(style_argument(args))), NULL);
}

/* age() of one argument counts from today. */
static bool
is_age_of_today(Node *node)
{
	return IsA(node, FuncExpr) && (((FuncExpr *) node)->funcid == F_AGE_TIMESTAMP ||
								   ((FuncExpr *) node)->funcid == F_AGE_TIMESTAMPTZ);
}

/* Look at one node, and not at those below it. */
void
iload_lint_value(IloadLint *lint, IloadScope *scope, Node *node)
{
	IloadImpureKind kind;
	char	   *name;

	if (iload_impure_classify(node, &kind, &name))
	{
		iload_lint_impure(lint, scope->source, kind, name, exprLocation(node));
		return;
	}
	if (is_age_of_today(node))
	{
		iload_lint_impure(lint, scope->source, ILOAD_IMPURE_CLOCK, "age()", exprLocation(node));
		lint->settled = list_concat(lint->settled, ((FuncExpr *) node)->args);
		return;
	}
	if (IsA(node, Const))
		check_constant(lint, scope, (Const *) node);
	else if (IsA(node, CoerceViaIO))
		check_text_constants(lint, scope, (CoerceViaIO *) node);
	if (lint->brief || lint->pinned)
		return;
	if (IsA(node, CoerceViaIO))
		check_text_cast(lint, scope, (CoerceViaIO *) node);
	else if (IsA(node, FuncExpr) || IsA(node, OpExpr))
		check_call(lint, scope, node);
}
