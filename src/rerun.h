/*
 * rerun.h
 *		The reruns of a check, and the worlds that each of them tries.
 */
#ifndef ILOAD_RERUN_H
#define ILOAD_RERUN_H

#include "world.h"

/* In the order in which they are tried. */
typedef enum IloadRerun
{
	ILOAD_RERUN_SAME,
	ILOAD_RERUN_CRASH,
	ILOAD_RERUN_CLOCK,
	ILOAD_RERUN_TIMEZONE,
	ILOAD_RERUN_PLAN,
	ILOAD_NRERUNS
} IloadRerun;

typedef struct IloadSetting
{
	const char *name;
	const char *value;
} IloadSetting;

/* One world that a rerun tries. */
typedef struct IloadVariant
{
	const char *what;			/* in words for a message, or NULL */
	IloadWorld	world;
	const IloadSetting *settings;	/* the last one has no name; or NULL */
} IloadVariant;

extern const char *iload_rerun_name(IloadRerun rerun);
extern int	iload_rerun_find(const char *name);
extern const IloadVariant *iload_rerun_variants(IloadRerun rerun, int *n);
extern void iload_rerun_apply(const IloadSetting *settings);

#endif
