/*
 * world.c
 *		What a run sees of the world: the clock, and the order of tables.
 *
 * The planner's hook changes each query that is planned while a run sees another
 * world, be it of the job, of a function, trigger or view.  Plans that were made
 * before are made anew, and those that are made meanwhile are thrown away when the
 * run ends, also where it ends in an error.
 *
 * The shift of the clock is a setting, so that parallel workers have it too.  Set by
 * hand it holds for everything in the session, so only a superuser may.  Within a
 * check it holds for what the user who asked for the check may see anyway.
 */
#include "postgres.h"

#include <limits.h>

#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "optimizer/planner.h"
#include "parser/analyze.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/plancache.h"
#include "utils/syscache.h"

#include "clock.h"
#include "guc.h"
#include "impure.h"
#include "inline.h"
#include "lint_text.h"
#include "observe.h"
#include "query.h"
#include "shuffle.h"
#include "world.h"

static planner_hook_type prev_planner_hook = NULL;
static post_parse_analyze_hook_type prev_post_parse_analyze_hook = NULL;
static ProcessUtility_hook_type prev_ProcessUtility = NULL;
static needs_fmgr_hook_type prev_needs_fmgr_hook = NULL;

/* Set between iload_world_enter and iload_world_leave only. */
static Oid	world_user = InvalidOid;
static int	shuffle_seed = 0;
static bool clock_stopped = false;	/* it is not moved until the world is left */

static void
note_kept_clock(Oid role)
{
	iload_observe_note("The clock was not moved in code that runs as role \"%s\".",
					   GetUserNameFromId(role, false));
}

/* May the clock be moved in what runs as the present user? */
static bool
may_move_clock(void)
{
	if (clock_stopped)
		return false;
	if (!OidIsValid(world_user) || has_privs_of_role(world_user, GetUserId()))
		return true;
	note_kept_clock(GetUserId());
	return false;
}

/*
 * Move the clock in a query.  Where a view or a policy of another role calls functions,
 * these are planned by themselves, as the user, and nothing tells then for whom: so the
 * clock is not moved any more until the world is left.
 */
static Query *
move_clock(Query *query)
{
	IloadClockKept kept = {0};
	Query	   *moved = iload_clock_move(query, iload_clock_shift, world_user, &kept);

	if (OidIsValid(kept.role))
		note_kept_clock(kept.role);
	if (!kept.calls_functions)
		return moved;
	iload_observe_note("The clock was not moved, since a view or a policy of another role calls functions.");
	clock_stopped = true;
	ResetPlanCache();
	return query;
}

/* The query as it is to be planned. */
static Query *
change_query(Query *query, const char *text)
{
	query = iload_inline_functions(query);
	iload_observe_query(query, text);
	if (iload_clock_shift != 0 && may_move_clock())
		query = move_clock(query);
	if (shuffle_seed != 0)
		iload_shuffle_tables(query, shuffle_seed);
	return query;
}

static PlannedStmt *
iload_planner(Query *query, const char *text, int cursor_options, ParamListInfo params)
{
	if (unlikely(iload_clock_shift != 0 || iload_observe_is_on()) && !iload_query_is_ours(text))
	{
		query = change_query(query, text);

		/* a parallel worker knows the setting, but not for whom it is */
		if (OidIsValid(world_user) && !superuser_arg(world_user))
			cursor_options &= ~CURSOR_OPT_PARALLEL_OK;
	}
	return (prev_planner_hook ? prev_planner_hook : standard_planner)
		(query, text, cursor_options, params);
}

/*
 * The arguments of CALL are evaluated without being planned: they are changed as if
 * they were the columns of a query.
 */
static PlannedStmt *
change_call(PlannedStmt *planned, const char *text)
{
	PlannedStmt *changed = copyObject(planned);
	FuncExpr   *call = castNode(CallStmt, changed->utilityStmt)->funcexpr;
	Query	   *query = makeNode(Query);
	ListCell   *lc;

	query->commandType = CMD_SELECT;
	query->jointree = makeFromExpr(NIL, NULL);
	query->stmt_location = planned->stmt_location;
	query->stmt_len = planned->stmt_len;
	foreach(lc, call->args)
		query->targetList = lappend(query->targetList,
									makeTargetEntry(lfirst(lc), foreach_current_index(lc) + 1,
													NULL, false));
	query = change_query(query, text);
	foreach(lc, call->args)
		lfirst(lc) = list_nth_node(TargetEntry, query->targetList, foreach_current_index(lc))->expr;
	return changed;
}

static void
iload_world_ProcessUtility(PlannedStmt *planned, const char *text, bool read_only_tree,
						   ProcessUtilityContext context, ParamListInfo params,
						   QueryEnvironment *env, DestReceiver *dest, QueryCompletion *completion)
{
	if (unlikely(iload_clock_shift != 0 || iload_observe_is_on()) &&
		IsA(planned->utilityStmt, CallStmt))
		planned = change_call(planned, text);
	(prev_ProcessUtility ? prev_ProcessUtility : standard_ProcessUtility)
		(planned, text, read_only_tree, context, params, env, dest, completion);
}

/* The literals that were read from the clock as they are to be. */
static void
change_literals(Query *query, const char *text)
{
	ListCell   *lc;

	foreach(lc, iload_clock_move_literals(query, text, may_move_clock() ? iload_clock_shift : 0))
	{
		int			location = lfirst_node(Const, lc)->location;

		iload_observe_clock_literal(query, text, iload_clock_literal(text, location), location);
	}
}

static void
iload_post_parse_analyze(ParseState *pstate, Query *query, JumbleState *jstate)
{
	if (unlikely(iload_clock_shift != 0 || iload_observe_is_on()) &&
		!iload_query_is_ours(pstate->p_sourcetext))
		change_literals(query, pstate->p_sourcetext);
	if (prev_post_parse_analyze_hook)
		prev_post_parse_analyze_hook(pstate, query, jstate);
}

/* Is it an SQL function whose text has a literal that is read from the clock? */
static bool
has_clock_literal(Oid function)
{
	HeapTuple	tup = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool		isnull = true;
	bool		found = false;
	Datum		body = (Datum) 0;
	ListCell   *lc;

	if (!HeapTupleIsValid(tup))
		return false;
	if (((Form_pg_proc) GETSTRUCT(tup))->prolang == SQLlanguageId)
		body = SysCacheGetAttr(PROCOID, tup, Anum_pg_proc_prosrc, &isnull);
	if (!isnull)
	{
		foreach(lc, iload_text_tokens(TextDatumGetCString(body)))
		{
			IloadToken *token = lfirst(lc);

			found = found || (token->string != NULL && iload_text_has_clock_word(token->string));
		}
	}
	ReleaseSysCache(tup);
	return found;
}

/*
 * An SQL function with such a literal must not be inlined, since the text of an inlined
 * function is analyzed where no hook sees it.
 */
static bool
iload_needs_fmgr_hook(Oid function)
{
	if (prev_needs_fmgr_hook && prev_needs_fmgr_hook(function))
		return true;
	return unlikely(iload_clock_shift != 0 || iload_observe_is_on()) &&
		has_clock_literal(function);
}

/*
 * Let the present user see another world from now on, until iload_world_leave.  A clock
 * that the session has moved by itself is moved further.  The caller is in a subtransaction or a GUC nest level, whose end undoes the setting.
 */
void
iload_world_enter(const IloadWorld *world)
{
	int64		shift = (int64) iload_clock_shift + world->clock_shift;

	(void) set_config_option("idempotent_load.clock_shift",
							 psprintf("%d", (int) Max(Min(shift, INT_MAX), INT_MIN)),
							 PGC_SUSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	world_user = GetUserId();
	clock_stopped = false;
	shuffle_seed = world->shuffle_seed;
	ResetPlanCache();
}

/*
 * Back to the usual world, but for the setting.  Raises no error, and may be called
 * without iload_world_enter.
 */
void
iload_world_leave(void)
{
	world_user = InvalidOid;
	clock_stopped = false;
	shuffle_seed = 0;
	ResetPlanCache();
}

/* Is there a planner hook besides ours?  It may be that of an extension that plans. */
bool
iload_world_has_other_planner(void)
{
	return planner_hook != iload_planner || prev_planner_hook != NULL;
}

/* Called once, when the library is loaded. */
void
iload_world_init(void)
{
	prev_planner_hook = planner_hook;
	planner_hook = iload_planner;
	prev_post_parse_analyze_hook = post_parse_analyze_hook;
	post_parse_analyze_hook = iload_post_parse_analyze;
	prev_needs_fmgr_hook = needs_fmgr_hook;
	needs_fmgr_hook = iload_needs_fmgr_hook;
	prev_ProcessUtility = ProcessUtility_hook;
	ProcessUtility_hook = iload_world_ProcessUtility;
}
