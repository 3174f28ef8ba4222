/*
 * guc.h
 *		The settings idempotent_load.*.
 */
#ifndef ILOAD_GUC_H
#define ILOAD_GUC_H

/* may loads ANALYZE the leaves that they changed? */
extern bool iload_auto_analyze;

/* seconds by which queries that are planned see the clock moved */
extern int	iload_clock_shift;

/* share of changed rows from which auto takes delete instead of diff */
extern double iload_delete_threshold;

/* what a load does about a query that may give another result when it is repeated */
typedef enum IloadLintLevel
{
	ILOAD_LINT_OFF,
	ILOAD_LINT_WARNING,
	ILOAD_LINT_ERROR
} IloadLintLevel;
extern int	iload_lint_level;

/* kilobytes that a swap costs, whatever has changed; -1: see iload_method_swap_cost */
extern int	iload_swap_min_size;

/* milliseconds that a swap waits for older snapshots and for locks */
extern int	iload_swap_patience;

/* share of changed rows that it costs besides */
extern double iload_swap_threshold;

/* name of the wait point at which this session stops, or "" */
extern char *iload_wait_point_name;

extern void iload_guc_init(void);

#endif
