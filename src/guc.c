/*
 * guc.c
 *		The settings idempotent_load.*, sorted by name.
 */
#include "postgres.h"

#include <limits.h>

#include "utils/guc.h"

#include "guc.h"

bool		iload_auto_analyze = true;
int			iload_clock_shift = 0;
double		iload_delete_threshold = 0.7;
int			iload_lint_level = ILOAD_LINT_WARNING;
int			iload_swap_min_size = -1;
int			iload_swap_patience = 5000;
double		iload_swap_threshold = 0.1;
char	   *iload_wait_point_name = NULL;

static const struct config_enum_entry lint_levels[] = {
	{"off", ILOAD_LINT_OFF, false},
	{"warning", ILOAD_LINT_WARNING, false},
	{"error", ILOAD_LINT_ERROR, false},
	{NULL, 0, false}
};

/*
 * Define the settings and reserve their prefix.  Called once, when the library
 * is loaded.
 */
void
iload_guc_init(void)
{
	DefineCustomBoolVariable("idempotent_load.auto_analyze",
							 "Lets a load gather planner statistics of the partitions that it changed.",
							 "It does so where autovacuum would, before the load commits.",
							 &iload_auto_analyze,
							 true,
							 PGC_USERSET,
							 0,
							 NULL, NULL, NULL);

	DefineCustomIntVariable("idempotent_load.clock_shift",
							"Moves the clock in every query that is planned, by this time.",
							"For tests. A check of a job sets it while it runs the job.",
							&iload_clock_shift,
							0, INT_MIN, INT_MAX,
							PGC_SUSET,
							GUC_UNIT_S | GUC_NOT_IN_SAMPLE,
							NULL, NULL, NULL);

	DefineCustomRealVariable("idempotent_load.delete_threshold",
							 "Share of changed rows from which method auto prefers delete to diff.",
							 NULL,
							 &iload_delete_threshold,
							 0.7, 0.0, 1.0,
							 PGC_USERSET,
							 0,
							 NULL, NULL, NULL);

	DefineCustomEnumVariable("idempotent_load.lint",
							 "What a load does about a query that may give another result when it is repeated.",
							 "Such a query reads the clock, or random or sequence values.",
							 &iload_lint_level,
							 ILOAD_LINT_WARNING,
							 lint_levels,
							 PGC_USERSET,
							 0,
							 NULL, NULL, NULL);

	DefineCustomIntVariable("idempotent_load.swap_min_size",
							"Size of what has changed from which method auto may swap.",
							"It comes on top of swap_threshold, and is the least size for delete. -1 sets it by shared_buffers.",
							&iload_swap_min_size,
							-1, -1, MAX_KILOBYTES,
							PGC_USERSET,
							GUC_UNIT_KB,
							NULL, NULL, NULL);

	DefineCustomIntVariable("idempotent_load.swap_patience",
							"Time that a swap waits for older snapshots and for its locks.",
							"After it method auto takes another method, and swap fails.",
							&iload_swap_patience,
							5000, 0, INT_MAX,
							PGC_USERSET,
							GUC_UNIT_MS,
							NULL, NULL, NULL);

	DefineCustomRealVariable("idempotent_load.swap_threshold",
							 "Share of changed rows from which method auto may swap.",
							 "It comes on top of swap_min_size.",
							 &iload_swap_threshold,
							 0.1, 0.0, 1.0,
							 PGC_USERSET,
							 0,
							 NULL, NULL, NULL);

	DefineCustomStringVariable("idempotent_load.wait_point",
							   "Names the step of a load at which this session waits for an advisory lock.",
							   "For tests. The lock is (hashtext('idempotent_load'), hashtext(name)).",
							   &iload_wait_point_name,
							   "",
							   PGC_SUSET,
							   GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE,
							   NULL, NULL, NULL);

	MarkGUCPrefixReserved("idempotent_load");
}
