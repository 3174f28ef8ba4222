/*
 * rerun.c
 *		The reruns of a check, and the worlds that each of them tries.
 *
 * The clock ticks in every rerun: within one transaction it stands still, so a job that
 * stores now() would give the same twice.  One shift of the clock is not enough, nor
 * one time zone: a few hours show what a month does not.  Odd minutes and seconds show
 * what whole ones do not.  Dates that a job writes as text it must be able to read
 * again, so each DateStyle reads what it writes.
 *
 * Of the settings of the planner these few show what the others show; a function's own
 * SET clauses win over them.
 */
#include "postgres.h"

#include "utils/guc.h"

#include "rerun.h"

#define TICK	61				/* seconds */
#define HOUR	3600
#define DAY		86400

static const IloadSetting east[] = {
	{"TimeZone", "Etc/GMT-14"},
	{"DateStyle", "German, DMY"},
	{"IntervalStyle", "sql_standard"},
	{NULL, NULL}
};

static const IloadSetting west[] = {
	{"TimeZone", "Etc/GMT+12"},
	{"DateStyle", "SQL, MDY"},
	{"IntervalStyle", "iso_8601"},
	{NULL, NULL}
};

static const IloadSetting index_scans[] = {
	{"enable_seqscan", "off"},
	{"enable_bitmapscan", "off"},
	{NULL, NULL}
};

static const IloadSetting hash_aggregates[] = {
	{"enable_indexscan", "off"},
	{"enable_indexonlyscan", "off"},
	{"enable_bitmapscan", "off"},
	{"enable_sort", "off"},
	{NULL, NULL}
};

static const IloadSetting no_hash_joins[] = {
	{"enable_hashjoin", "off"},
	{NULL, NULL}
};

static const IloadSetting parallel[] = {
	{"max_parallel_workers_per_gather", "4"},
	{"parallel_setup_cost", "0"},
	{"parallel_tuple_cost", "0"},
	{"min_parallel_table_scan_size", "0"},
	{"min_parallel_index_scan_size", "0"},
	{"parallel_leader_participation", "off"},
	{NULL, NULL}
};

static const IloadVariant same_variants[] = {
	{NULL, {TICK, 0}, NULL}
};

static const IloadVariant clock_variants[] = {
	{"clock moved by 31 days and 7:13:29", {31 * DAY + 7 * HOUR + 13 * 60 + 29, 0}, NULL},
	{"clock moved by 5:17:23", {5 * HOUR + 17 * 60 + 23, 0}, NULL},
	{"clock moved by 400 days and 3:11:47", {400 * DAY + 3 * HOUR + 11 * 60 + 47, 0}, NULL}
};

static const IloadVariant timezone_variants[] = {
	{"TimeZone 14 hours ahead of UTC, DateStyle \"German, DMY\", IntervalStyle \"sql_standard\"", {TICK, 0}, east},
	{"TimeZone 12 hours behind UTC, DateStyle \"SQL, MDY\", IntervalStyle \"iso_8601\"", {TICK, 0}, west}
};

static const IloadVariant plan_variants[] = {
	{"tables read in a shuffled order", {TICK, 1}, NULL},
	{"tables read in another shuffled order", {TICK, 2}, NULL},
	{"sequential and bitmap scans off", {TICK, 0}, index_scans},
	{"index scans and sorts off", {TICK, 0}, hash_aggregates},
	{"hash joins off", {TICK, 0}, no_hash_joins},
	{"parallel plans", {TICK, 0}, parallel}
};

static const struct
{
	const char *name;
	const IloadVariant *variants;
	int			nvariants;
}			reruns[ILOAD_NRERUNS] = {
	[ILOAD_RERUN_SAME] = {"same", same_variants, lengthof(same_variants)},
	/* the world is as usual, but for what is lost */
	[ILOAD_RERUN_CRASH] = {"crash", same_variants, lengthof(same_variants)},
	[ILOAD_RERUN_CLOCK] = {"clock", clock_variants, lengthof(clock_variants)},
	[ILOAD_RERUN_TIMEZONE] = {"timezone", timezone_variants, lengthof(timezone_variants)},
	[ILOAD_RERUN_PLAN] = {"plan", plan_variants, lengthof(plan_variants)}
};

const char *
iload_rerun_name(IloadRerun rerun)
{
	return reruns[rerun].name;
}

/* The rerun of a name, or -1. */
int
iload_rerun_find(const char *name)
{
	for (int i = 0; i < ILOAD_NRERUNS; i++)
	{
		if (strcmp(reruns[i].name, name) == 0)
			return i;
	}
	return -1;
}

/* The worlds that a rerun tries; their number is stored in "n". */
const IloadVariant *
iload_rerun_variants(IloadRerun rerun, int *n)
{
	*n = reruns[rerun].nvariants;
	return reruns[rerun].variants;
}

/* Set settings in the present GUC nest level or subtransaction. */
void
iload_rerun_apply(const IloadSetting *settings)
{
	for (; settings != NULL && settings->name != NULL; settings++)
		(void) set_config_option(settings->name, settings->value, PGC_SUSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
}
