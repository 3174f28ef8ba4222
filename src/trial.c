/*
 * trial.c
 *		One run of a job that is being checked, in one world from one state.
 *
 * The first run takes place in a subtransaction that stays open for the whole check;
 * each rerun in one of its own below it, which is always rolled back.  Images are taken
 * when a run has ended.  In which rows two of them differ is found when the rerun has been
 * rolled back and the state is again that of the first run.
 *
 * What is noted, images, and the rows of a rerun that may differ, live in the check's
 * context, and the files of these rows in the resource owner of the first run, since
 * they outlive the rerun.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "attempt.h"
#include "constraints.h"
#include "job_run.h"
#include "trial.h"
#include "wait_point.h"

/* Of more tables than these it is not looked into in which rows they differ. */
#define MAX_SUSPECTS 8

/* Two images that differ, and the rows that are to be told apart. */
typedef struct Suspect
{
	IloadImage *later;
	Tuplestorestate *new;
} Suspect;

static const IloadSetting comparable_settings[] = {
	{"track_counts", "on"},
	{"max_parallel_workers_per_gather", "0"},
	{"synchronize_seqscans", "off"},
	{"idempotent_load.swap_min_size", "2147483647"},
	{"idempotent_load.lint", "off"},
	{NULL, NULL}
};

const IloadVariant iload_usual_variant = {NULL, {0, 0}, NULL};

/* What waits for the commit is part of the run. */
static void
finish_deferred(IloadCheck *check)
{
	if (!iload_observe_has_deferred())
		return;
	check->deferred = true;
	iload_constraints_check();
}

/*
 * Run the job in a world, and observe it.  The caller is in a subtransaction of its own.
 * What is observed is in "run" also after an error, as far as the run came.  Settings
 * that the job makes do not outlive the run, as they would not outlive its session.
 */
static void
run_job(IloadCheck *check, const IloadVariant *variant, IloadObservation **run)
{
	int			nestlevel = NewGUCNestLevel();

	if (check->deferred)
		iload_constraints_defer();
	iload_rerun_apply(comparable_settings);
	iload_rerun_apply(variant->settings);
	*run = iload_observe_begin(check->context);
	PG_TRY();
	{
		iload_world_enter(&variant->world);
		(void) iload_job_run(check->schema, check->job, check->date);
		CommandCounterIncrement();
		finish_deferred(check);
		iload_observe_end();
	}
	PG_FINALLY();
	{
		iload_observe_cancel();
		iload_world_leave();
	}
	PG_END_TRY();
	AtEOXact_GUC(false, nestlevel);
}

/* Add a note to the result, once. */
void
iload_trial_note(IloadCheck *check, char *note)
{
	ListCell   *lc;

	foreach(lc, check->result->notes)
	{
		if (strcmp(lfirst(lc), note) == 0)
			return;
	}
	check->result->notes = lappend(check->result->notes, note);
}

/* Remember notes, and whether the clock is read. */
static void
learn(IloadCheck *check, const IloadObservation *run)
{
	ListCell   *lc;

	foreach(lc, run->notes)
		iload_trial_note(check, lfirst(lc));
	foreach(lc, run->calls)
	{
		IloadCall  *call = lfirst(lc);

		if (call->kind == ILOAD_IMPURE_CLOCK)
			check->reads_clock = true;
		if (call->kind == ILOAD_IMPURE_SEQUENCE)
			iload_trial_note(check, "Sequences were advanced; that is not undone.");
	}
}

static IloadImage *
find_image(List *images, const char *name)
{
	ListCell   *lc;

	foreach(lc, images)
	{
		IloadImage *image = lfirst(lc);

		if (strcmp(image->name, name) == 0)
			return image;
	}
	return NULL;
}

/* Take the image of a table in the check's context. */
static IloadImage *
take_image(IloadCheck *check, const IloadWrite *write, TransactionId since)
{
	MemoryContext old = MemoryContextSwitchTo(check->context);
	IloadImage *image = iload_image_take(write->name, write->root,
										 check->ignored, since);

	MemoryContextSwitchTo(old);
	return image;
}

/* A tuplestore that outlives the rerun's subtransaction. */
static Tuplestorestate *
begin_store(IloadCheck *check)
{
	MemoryContext old = MemoryContextSwitchTo(check->context);
	ResourceOwner owner = CurrentResourceOwner;
	Tuplestorestate *store;

	CurrentResourceOwner = check->owner;
	store = tuplestore_begin_heap(false, false, work_mem / (2 * MAX_SUSPECTS));
	CurrentResourceOwner = owner;
	MemoryContextSwitchTo(old);
	return store;
}

/* Compare a table with what it was after the first run, as far as that is known. */
static void
compare_table(IloadTrial *trial, const IloadWrite *write)
{
	IloadCheck *check = trial->check;
	IloadImage *earlier = find_image(check->images, write->name);
	Suspect    *suspect;
	MemoryContext old;

	suspect = MemoryContextAlloc(check->context, sizeof(Suspect));
	suspect->later = take_image(check, write, trial->since);
	suspect->later->rewritten = earlier == NULL ||
		earlier->relid != suspect->later->relid || earlier->file != suspect->later->file;
	if (earlier != NULL &&
		iload_fingerprint_equal(&earlier->fingerprint, &suspect->later->fingerprint))
		return;
	if (list_length(trial->suspects) >= MAX_SUSPECTS)
		return;
	suspect->new = begin_store(check);
	iload_image_spool_new(suspect->later, trial->since, suspect->new);
	old = MemoryContextSwitchTo(check->context);
	trial->suspects = lappend(trial->suspects, suspect);
	MemoryContextSwitchTo(old);
}

/* The tables that either run wrote, each once. */
static List *
written_by_either(const IloadObservation *a, const IloadObservation *b)
{
	List	   *writes = list_copy(a->writes);
	ListCell   *lc,
			   *lc2;

	foreach(lc, b->writes)
	{
		IloadWrite *write = lfirst(lc);
		bool		known = false;

		foreach(lc2, a->writes)
			known = known || strcmp(((IloadWrite *) lfirst(lc2))->name, write->name) == 0;
		if (!known)
			writes = lappend(writes, write);
	}
	return writes;
}

/*
 * A state is one that could have been committed: what constraints wait for the commit
 * are checked, and wait for it again.
 */
static void
settle_constraints(void)
{
	iload_constraints_check();
	iload_constraints_defer();
}

/* What happens within the subtransaction of a rerun. */
static void
rerun_job(void *arg)
{
	IloadTrial *trial = arg;
	IloadCheck *check = trial->check;
	ListCell   *lc;

	trial->since = GetCurrentTransactionId();
	if (trial->losses != NULL)
	{
		iload_crash_lose(check->inserted, trial->losses, check->since);
		settle_constraints();
	}
	trial->lost = true;
	iload_wait_point("rerun");
	run_job(check, trial->variant, &trial->run);
	trial->done = true;
	foreach(lc, written_by_either(check->first, trial->run))
		compare_table(trial, lfirst(lc));
}

/* Is it an error that says nothing about the job? */
static bool
is_no_verdict(const ErrorData *error)
{
	switch (ERRCODE_TO_CATEGORY(error->sqlerrcode))
	{
		case ERRCODE_TRANSACTION_ROLLBACK:	/* serialization, deadlock */
		case ERRCODE_INSUFFICIENT_RESOURCES:
		case ERRCODE_OPERATOR_INTERVENTION:
		case ERRCODE_SYSTEM_ERROR:
		case ERRCODE_INTERNAL_ERROR:
			return true;
	}
	return error->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE;
}

/* The rerun raised an error before its end. */
static IloadTrialOutcome
judge_error(IloadTrial *trial)
{
	if (trial->done || is_no_verdict(trial->error))
		ReThrowError(trial->error);
	if (trial->lost)
		return ILOAD_TRIAL_DIFFERENT;
	if (trial->error->sqlerrcode == ERRCODE_INSUFFICIENT_PRIVILEGE)
		iload_trial_note(trial->check,
						 psprintf("No crash was tried, since the user may not delete what it would have lost: %s.",
								  trial->error->message));
	return ILOAD_TRIAL_IMPOSSIBLE;
}

/*
 * The rerun has been rolled back, and the state is again what the first run has left:
 * find the rows in which the suspects differ.
 */
static void
find_differences(IloadTrial *trial)
{
	IloadCheck *check = trial->check;
	ListCell   *lc;

	foreach(lc, trial->suspects)
	{
		Suspect    *suspect = lfirst(lc);
		IloadImage *later = suspect->later;
		IloadImage *earlier = find_image(check->images, later->name);
		Tuplestorestate *old;

		if (earlier == NULL)
			earlier = iload_image_take(later->name, later->root, check->ignored, check->since);
		if (iload_fingerprint_equal(&earlier->fingerprint, &later->fingerprint))
		{
			tuplestore_end(suspect->new);
			continue;
		}
		old = begin_store(check);
		iload_image_spool_old(earlier, later, trial->since, old);
		trial->differences = iload_difference_add(trial->differences, earlier, later, old, suspect->new);
	}
}

/* Run the job once more, in a world, after the losses given or NULL. */
IloadTrialOutcome
iload_trial_rerun(IloadTrial *trial, IloadCheck *check, const IloadVariant *variant, const IloadLoss *losses)
{
	memset(trial, 0, sizeof(IloadTrial));
	trial->check = check;
	trial->variant = variant;
	trial->losses = losses;
	trial->error = iload_rehearse(rerun_job, trial);
	iload_session_deallocate(check->session);
	if (trial->run != NULL)
		learn(check, trial->run);
	if (trial->error != NULL)
		return judge_error(trial);
	find_differences(trial);
	return trial->differences == NIL ? ILOAD_TRIAL_SAME : ILOAD_TRIAL_DIFFERENT;
}

/*
 * Run the job for the first time, in the present subtransaction, and take the images
 * of what it wrote.
 */
void
iload_trial_first(IloadCheck *check)
{
	ListCell   *lc;

	check->owner = CurrentResourceOwner;
	check->since = GetCurrentTransactionId();
	run_job(check, &iload_usual_variant, &check->first);
	learn(check, check->first);
	iload_session_deallocate(check->session);
	iload_session_close_cursors(check->session);
	iload_session_drop_temporary(check->first->temporary);
	CommandCounterIncrement();
	foreach(lc, check->first->writes)
	{
		IloadImage *image = take_image(check, lfirst(lc), check->since);

		check->images = lappend(check->images, image);
		if (image->ninserted > 0 && get_rel_relkind(image->relid) == RELKIND_RELATION)
			check->inserted = lappend(check->inserted, image);
	}
	if (check->images == NIL)
		iload_trial_note(check, "The first run wrote nothing, so the reruns prove little.");
}
