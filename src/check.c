/*
 * check.c
 *		One check of a job: it is run, and run again, and the results compared.
 *
 *	A subtransaction, always rolled back:
 *		the job is run for the first time, and observed
 *		an image of each table that it wrote is taken
 *		for each world of each rerun, a subtransaction, always rolled back:
 *			what a crash would have lost is deleted, if it is about a crash
 *			the job is run in that world, and observed
 *			an image of each table that either run wrote is taken and compared
 *
 * So each rerun starts from the state that the first run has left, or from half of it.
 *
 * All runs see the same of what other transactions do: the check takes one snapshot
 * and, in READ COMMITTED, goes on as REPEATABLE READ does.  Otherwise a source that
 * another session changes between two runs would be taken for the job's fault.  Where
 * the job and another session write the same row, that is a serialization failure, and
 * no verdict.
 *
 * The runs are made comparable: without parallel workers and synchronized scans, unless
 * the rerun is about plans.  Loads of the job do not swap unless told to, since a swap
 * locks readers out for the whole check.
 *
 * What is found lives in the context that was current at the start, as do the images;
 * the subtransactions' own contexts end with them.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "nodes/value.h"
#include "tcop/utility.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

#include "attempt.h"
#include "check.h"
#include "root.h"
#include "trial.h"

/* Does the same rerun, in another world, give the same result as the first run? */
static bool
control_is_same(IloadTrial *control, const IloadTrial *trial, const IloadVariant *variant)
{
	return iload_trial_rerun(control, trial->check, variant, trial->losses) == ILOAD_TRIAL_SAME;
}

/* The difference of the same table that a control found, or else the first one. */
static const IloadDifference *
matching_difference(const IloadTrial *control, const IloadDifference *difference)
{
	ListCell   *lc;

	foreach(lc, control->differences)
	{
		if (difference != NULL &&
			strcmp(((IloadDifference *) lfirst(lc))->relation, difference->relation) == 0)
			return lfirst(lc);
	}
	return control->differences == NIL ? NULL : linitial(control->differences);
}

static IloadViolation *
make_violation(const IloadTrial *trial, IloadDifference *difference, const IloadTrial *control,
			   IloadEvidence evidence)
{
	IloadViolation *violation = palloc0(sizeof(IloadViolation));

	violation->difference = difference;
	violation->error = difference == NULL ? trial->error : NULL;
	evidence.difference = control == NULL ? difference : matching_difference(control, difference);
	evidence.error = control == NULL ? trial->error : control->error;
	evidence.run = control == NULL ? trial->run : control->run;
	violation->cause = iload_cause_find(&evidence);
	return violation;
}

/*
 * A table of which no cause is known follows another one: by a cascade, or since it is
 * made from that.
 */
static void
share_causes(List *violations)
{
	IloadCause *known = NULL;
	ListCell   *lc;

	foreach(lc, violations)
	{
		IloadCause *cause = ((IloadViolation *) lfirst(lc))->cause;

		if (known == NULL && iload_cause_is_known(cause))
			known = cause;
	}
	foreach(lc, violations)
	{
		IloadViolation *violation = lfirst(lc);

		if (known != NULL && !iload_cause_is_known(violation->cause))
			violation->cause = known;
	}
}

/*
 * A rerun gave another result.  See by further reruns whether that is due to its world
 * at all, and whether it is due to the clock, which ticks in each.
 */
static List *
explain(const IloadTrial *trial, IloadRerun rerun)
{
	int			n;
	const IloadVariant *plain = iload_rerun_variants(ILOAD_RERUN_SAME, &n);
	IloadEvidence evidence = {.rerun = rerun};
	bool		is_plain = rerun == ILOAD_RERUN_SAME || rerun == ILOAD_RERUN_CRASH;
	List	   *violations = NIL;
	IloadTrial	control,
				still;
	const IloadTrial *relevant = NULL;
	ListCell   *lc;

	if (!is_plain && !control_is_same(&control, trial, plain))
	{
		evidence.rerun = trial->losses == NULL ? ILOAD_RERUN_SAME : ILOAD_RERUN_CRASH;
		relevant = &control;
		is_plain = true;
	}
	evidence.clock = is_plain && trial->check->reads_clock &&
		control_is_same(&still, trial, &iload_usual_variant);
	foreach(lc, trial->differences)
		violations = lappend(violations, make_violation(trial, lfirst(lc), relevant, evidence));
	if (trial->error != NULL)
		violations = lappend(violations, make_violation(trial, NULL, relevant, evidence));
	share_causes(violations);
	return violations;
}

/*
 * Is the difference due to the half state alone, in a check that is not to look for
 * what a crash does?
 */
static bool
is_of_state_alone(const IloadTrial *trial, IloadRerun rerun)
{
	IloadCheck *check = trial->check;
	int			n;
	IloadTrial	control;

	if (trial->losses == NULL || check->options->reruns[ILOAD_RERUN_CRASH])
		return false;
	if (rerun == ILOAD_RERUN_CLOCK)
		return !check->reads_clock;
	return !control_is_same(&control, trial, iload_rerun_variants(ILOAD_RERUN_SAME, &n));
}

/* Try one world from one state; true if that has shown violations. */
static bool
try_world(IloadCheck *check, IloadRerunResult *result, const IloadVariant *variant,
		  const IloadLoss *losses)
{
	IloadTrial	trial;

	switch (iload_trial_rerun(&trial, check, variant, losses))
	{
		case ILOAD_TRIAL_IMPOSSIBLE:
			return false;
		case ILOAD_TRIAL_SAME:
			result->runs++;
			return false;
		case ILOAD_TRIAL_DIFFERENT:
			break;
	}
	result->runs++;
	if (is_of_state_alone(&trial, result->rerun))
		return false;
	result->what = variant->what;
	result->violations = explain(&trial, result->rerun);
	return true;
}

/* Would these losses take away anything? */
static bool
loses_rows(IloadCheck *check, const IloadLoss *losses)
{
	ListCell   *lc;

	foreach(lc, check->inserted)
	{
		if (iload_crash_count(lfirst(lc), losses[foreach_current_index(lc)]) > 0)
			return true;
	}
	return false;
}

static IloadLoss *
make_losses(IloadCheck *check, IloadLoss even, IloadLoss odd)
{
	int			n = list_length(check->inserted);
	IloadLoss  *losses = palloc(n * sizeof(IloadLoss));

	for (int i = 0; i < n; i++)
		losses[i] = i % 2 == 0 ? even : odd;
	return losses;
}

/* The later half of all that was inserted is gone; NULL where nothing was. */
static IloadLoss *
half_state(IloadCheck *check)
{
	return check->inserted == NIL ? NULL :
		make_losses(check, ILOAD_LOSE_TAIL, ILOAD_LOSE_TAIL);
}

/* At most so many tables are tried alone. */
#define MAX_TABLES_ALONE 4

/*
 * The states after a crash: either half is gone; of more than one table, halves that
 * are not in step, and half of one table alone.
 */
static List *
crash_states(IloadCheck *check)
{
	List	   *states;
	int			n = list_length(check->inserted);

	if (n == 0)
		return NIL;
	states = list_make2(half_state(check), make_losses(check, ILOAD_LOSE_HEAD, ILOAD_LOSE_HEAD));
	if (n == 1)
		return states;
	states = lappend(states, make_losses(check, ILOAD_LOSE_TAIL, ILOAD_LOSE_HEAD));
	states = lappend(states, make_losses(check, ILOAD_LOSE_HEAD, ILOAD_LOSE_TAIL));
	for (int i = 0; i < Min(n, MAX_TABLES_ALONE); i++)
	{
		IloadLoss  *losses = make_losses(check, ILOAD_LOSE_NOTHING, ILOAD_LOSE_NOTHING);

		losses[i] = ILOAD_LOSE_TAIL;
		states = lappend(states, losses);
	}
	return states;
}

/* The image of a table that a call's value is written to, or NULL. */
static IloadImage *
written_by_call(IloadCheck *check, const IloadCall *call)
{
	ListCell   *lc;

	if (call->column == NULL)
		return NULL;
	foreach(lc, check->images)
	{
		IloadImage *image = lfirst(lc);

		if ((call->target == NULL || strcmp(call->target, image->root) == 0) &&
			iload_image_compares(image, call->column))
			return image;
	}
	return NULL;
}

/*
 * The runs share a transaction, so its ID stands still.  A column that stores it would
 * differ in a real rerun, though no rerun here shows it; of other uses there is a note.
 */
static List *
columns_that_stand_still(IloadCheck *check)
{
	List	   *violations = NIL;
	ListCell   *lc;

	foreach(lc, check->first->calls)
	{
		IloadCall  *call = lfirst(lc);
		IloadImage *image;
		IloadViolation *violation;

		if (!iload_cause_stands_still(call))
			continue;
		image = written_by_call(check, call);
		if (image == NULL)
		{
			iload_trial_note(check, psprintf("%s is the same in all runs of a check, but not in a real rerun.",
											 call->name));
			continue;
		}
		violation = palloc0(sizeof(IloadViolation));
		violation->difference = palloc0(sizeof(IloadDifference));
		violation->difference->relation = image->root;
		violation->difference->columns = list_make1(makeString(call->column));
		violation->difference->readable = true;
		violation->cause = iload_cause_of_call(call);
		violations = lappend(violations, violation);
	}
	return violations;
}

static void
rerun_unchanged(IloadCheck *check, IloadRerunResult *result)
{
	int			n;

	if (!try_world(check, result, iload_rerun_variants(ILOAD_RERUN_SAME, &n), NULL))
		result->violations = columns_that_stand_still(check);
}

static void
rerun_after_crash(IloadCheck *check, IloadRerunResult *result)
{
	int			n;
	const IloadVariant *variant = iload_rerun_variants(ILOAD_RERUN_CRASH, &n);
	ListCell   *lc;

	foreach(lc, crash_states(check))
	{
		if (loses_rows(check, lfirst(lc)) && try_world(check, result, variant, lfirst(lc)))
		{
			result->what = "some of the rows that the first run inserted are gone";
			return;
		}
	}
}

/*
 * Each world is tried from the full state and from the half state: a job that skips
 * what is there hides in the first what it does.
 */
static void
rerun_in_worlds(IloadCheck *check, IloadRerunResult *result)
{
	int			n;
	const IloadVariant *variants = iload_rerun_variants(result->rerun, &n);
	IloadLoss  *half = half_state(check);

	for (int i = 0; i < n; i++)
	{
		if (try_world(check, result, &variants[i], NULL) ||
			(half != NULL && try_world(check, result, &variants[i], half)))
			return;
	}
}

/*
 * The clock needs to be moved only for a job that reads it.  The reruns before have
 * shown that, from both states; where they were not asked for, it is tried.
 */
static void
rerun_with_clock(IloadCheck *check, IloadRerunResult *result)
{
	int			n;
	const IloadVariant *variants = iload_rerun_variants(ILOAD_RERUN_CLOCK, &n);
	IloadVariant variant = variants[0];
	IloadLoss  *half = half_state(check);

	if (check->options->clock_shift != 0)
	{
		variant.what = psprintf("clock moved by %s", check->options->clock_shift_text);
		variant.world.clock_shift = check->options->clock_shift;
		variants = &variant;
		n = 1;
	}
	for (int i = 0; i < n; i++)
	{
		if ((check->reads_clock || !check->options->reruns[ILOAD_RERUN_SAME]) &&
			try_world(check, result, &variants[i], NULL))
			return;
		if (half != NULL &&
			(check->reads_clock || !check->options->reruns[ILOAD_RERUN_CRASH]) &&
			try_world(check, result, &variants[i], half))
			return;
		if (!check->reads_clock)
			return;
	}
}

static void
try_reruns(IloadCheck *check)
{
	for (IloadRerun rerun = 0; rerun < ILOAD_NRERUNS; rerun++)
	{
		IloadRerunResult *result;

		if (!check->options->reruns[rerun])
			continue;
		result = palloc0(sizeof(IloadRerunResult));
		result->rerun = rerun;
		check->result->reruns = lappend(check->result->reruns, result);
		switch (rerun)
		{
			case ILOAD_RERUN_SAME:
				rerun_unchanged(check, result);
				break;
			case ILOAD_RERUN_CRASH:
				rerun_after_crash(check, result);
				break;
			case ILOAD_RERUN_CLOCK:
				rerun_with_clock(check, result);
				break;
			default:
				rerun_in_worlds(check, result);
				break;
		}
		if (result->violations != NIL && check->options->stop_at_first)
			return;
	}
}

/* What happens within the subtransaction of the first run. */
static void
check_job(void *arg)
{
	IloadCheck *check = arg;

	iload_trial_first(check);
	try_reruns(check);
}

/* Columns that do not count: those of the options, and those that the job's loads ignore. */
static List *
ignored_columns(const IloadJob *job, const IloadCheckOptions *options)
{
	List	   *ignored = list_copy(options->ignore_columns);
	Oid			root;
	ListCell   *lc;

	if (job->kind != ILOAD_JOB_QUERY)
		return ignored;
	root = iload_root(job->target);
	foreach(lc, job->options.ignore_columns)
		ignored = lappend(ignored,
						  makeString(psprintf("%s.%s.%s", get_namespace_name(get_rel_namespace(root)),
											  get_rel_name(root), strVal(lfirst(lc)))));
	return ignored;
}

/*
 * Check that a job can be retried for a date.  The result lives in the current context.
 * The database is left as it was, but for sequences.
 *
 * Locks: those that the runs take are given back, but for those on sequences.
 * Errors: whatever the first run raises; a check within a check; an error in a rerun
 * that says nothing about the job, such as a serialization failure.
 */
IloadCheckResult *
iload_check_job(Oid schema, const IloadJob *job, DateADT date, const IloadCheckOptions *options)
{
	IloadJob	checked = *job;
	IloadCheck	check = {
		.schema = schema,
		.job = &checked,
		.date = date,
		.options = options,
		.ignored = ignored_columns(job, options),
		.context = CurrentMemoryContext
	};
	int			isolation = XactIsoLevel;
	Snapshot	snapshot;
	ErrorData  *volatile error = NULL;

	PreventCommandIfReadOnly("a check of a job");

	/*
	 * all is undone anyway, and what a load keeps is another thing in each
	 * run
	 */
	checked.options.keep_previous = false;
	if (iload_observe_is_on())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("a check of a job is already going on"),
				 errdetail("A job that is being checked cannot check a job.")));
	check.result = palloc0(sizeof(IloadCheckResult));
	check.session = iload_session_remember();

	/* the snapshot that GetTransactionSnapshot gives from now on */
	snapshot = RegisterSnapshot(GetTransactionSnapshot());
	PG_TRY();
	{
		if (!IsolationUsesXactSnapshot())
			XactIsoLevel = XACT_REPEATABLE_READ;
		error = iload_rehearse(check_job, &check);
	}
	PG_FINALLY();
	{
		XactIsoLevel = isolation;
	}
	PG_END_TRY();
	UnregisterSnapshot(snapshot);
	iload_session_unlock(check.session);
	iload_session_deallocate(check.session);
	if (error != NULL)
		ReThrowError(error);
	return check.result;
}
