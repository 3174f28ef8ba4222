/*
 * trial.h
 *		One run of a job that is being checked, in one world from one state.
 */
#ifndef ILOAD_TRIAL_H
#define ILOAD_TRIAL_H

#include "utils/date.h"
#include "utils/resowner.h"

#include "cause.h"
#include "crash.h"
#include "job.h"
#include "session.h"

typedef struct IloadCheckOptions
{
	bool		reruns[ILOAD_NRERUNS];
	List	   *ignore_columns; /* String: "column" or "table.column" */
	int			clock_shift;	/* seconds; 0: the usual ones */
	char	   *clock_shift_text;
	bool		stop_at_first;	/* violation */
} IloadCheckOptions;

/* What a rerun did otherwise than the first run. */
typedef struct IloadViolation
{
	IloadDifference *difference;	/* NULL where an error was raised */
	ErrorData  *error;
	IloadCause *cause;
} IloadViolation;

typedef struct IloadRerunResult
{
	IloadRerun	rerun;
	int			runs;
	const char *what;			/* the world that showed the violations, or
								 * NULL */
	List	   *violations;		/* IloadViolation; NIL: passed */
} IloadRerunResult;

typedef struct IloadCheckResult
{
	List	   *reruns;			/* IloadRerunResult */
	List	   *notes;			/* strings: what was not seen, or cannot be
								 * undone */
} IloadCheckResult;

/* A check that is going on. */
typedef struct IloadCheck
{
	Oid			schema;			/* of the extension */
	const IloadJob *job;
	DateADT		date;
	const IloadCheckOptions *options;
	List	   *ignored;		/* String: columns, by the options and by the
								 * job */
	MemoryContext context;
	ResourceOwner owner;		/* of the first run's subtransaction */
	IloadSession *session;
	IloadObservation *first;	/* run */
	List	   *images;			/* IloadImage: after the first run */
	List	   *inserted;		/* those of them that it inserted rows into */
	TransactionId since;		/* of the first run's subtransaction */
	bool		deferred;		/* constraints or triggers waited for the
								 * commit */
	bool		reads_clock;	/* a run was seen to */
	IloadCheckResult *result;
} IloadCheck;

/* How a rerun went that was not cut off. */
typedef enum IloadTrialOutcome
{
	ILOAD_TRIAL_SAME,			/* the same result */
	ILOAD_TRIAL_DIFFERENT,
	ILOAD_TRIAL_IMPOSSIBLE		/* there is no such state */
} IloadTrialOutcome;

/* One rerun in one world from one state. */
typedef struct IloadTrial
{
	IloadCheck *check;
	const IloadVariant *variant;
	const IloadLoss *losses;	/* for each of check->inserted, or NULL */
	bool		lost;			/* the state has been reached */
	bool		done;			/* so has the end of the run */
	TransactionId since;
	IloadObservation *run;
	List	   *suspects;
	List	   *differences;	/* IloadDifference */
	ErrorData  *error;
} IloadTrial;

/* The world as it is. */
extern const IloadVariant iload_usual_variant;

extern void iload_trial_note(IloadCheck *check, char *note);
extern void iload_trial_first(IloadCheck *check);
extern IloadTrialOutcome iload_trial_rerun(IloadTrial *trial, IloadCheck *check,
										   const IloadVariant *variant,
										   const IloadLoss *losses);

#endif
