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

#include "miscadmin.h"
#include "optimizer/planner.h"
#include "parser/analyze.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/plancache.h"

#include "clock.h"
#include "guc.h"
#include "impure.h"
#include "inline.h"
#include "observe.h"
#include "query.h"
#include "shuffle.h"
#include "world.h"

static planner_hook_type prev_planner_hook = NULL;
static post_parse_analyze_hook_type prev_post_parse_analyze_hook = NULL;

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

/*
 * Let the present user see another world from now on, until iload_world_leave.  A clock
 * that the session has moved by itself is moved further.  The caller is in a subtransaction or a GUC nest level, whose end undoes the setting.
 */
void
iload_world_enter(const IloadWorld *world)
{
	(void) set_config_option("idempotent_load.clock_shift",
							 psprintf("%d", iload_clock_shift + world->clock_shift),
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
}
