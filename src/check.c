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
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "nodes/value.h"
#include "tcop/utility.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"

#include "attempt.h"
#include "check.h"
#include "constraints.h"
#include "crash.h"
#include "job_run.h"
#include "root.h"
#include "session.h"
#include "wait_point.h"

typedef struct Check
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
} Check;

/* How a rerun went that was not cut off. */
typedef enum TryOutcome
{
	TRY_SAME,					/* the same result */
	TRY_DIFFERENT,
	TRY_IMPOSSIBLE				/* there is no such state */
} TryOutcome;

/* Of more tables than these it is not looked into in which rows they differ. */
#define MAX_SUSPECTS 8

/* Two images that differ, and the rows that are to be told apart. */
typedef struct Suspect
{
	IloadImage *later;
	Tuplestorestate *new;
} Suspect;

/* One rerun in one world from one state. */
typedef struct Try
{
	Check	   *check;
	const IloadVariant *variant;
	const IloadLoss *losses;	/* for each of check->inserted, or NULL */
	bool		lost;			/* the state has been reached */
	bool		done;			/* so has the end of the run */
	TransactionId since;
	IloadObservation *run;
	List	   *suspects;
	List	   *differences;	/* IloadDifference */
	ErrorData  *error;
} Try;

static const IloadSetting comparable_settings[] = {
	{"track_counts", "on"},
	{"max_parallel_workers_per_gather", "0"},
	{"synchronize_seqscans", "off"},
	{"idempotent_load.swap_min_size", "2147483647"},
	{"idempotent_load.lint", "off"},
	{NULL, NULL}
};

static const IloadVariant usual_variant = {NULL, {0, 0}, NULL};

/* What waits for the commit is part of the run. */
static void
finish_deferred(Check *check)
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
run_job(Check *check, const IloadVariant *variant, IloadObservation **run)
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

static void
add_note(Check *check, char *note)
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
learn(Check *check, const IloadObservation *run)
{
	ListCell   *lc;

	foreach(lc, run->notes)
		add_note(check, lfirst(lc));
	foreach(lc, run->calls)
	{
		IloadCall  *call = lfirst(lc);

		if (call->kind == ILOAD_IMPURE_CLOCK)
			check->reads_clock = true;
		if (call->kind == ILOAD_IMPURE_SEQUENCE)
			add_note(check, "Sequences were advanced; that is not undone.");
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
take_image(Check *check, const IloadWrite *write, TransactionId since)
{
	MemoryContext old = MemoryContextSwitchTo(check->context);
	IloadImage *image = iload_image_take(write->name, write->root,
										 check->ignored, since);

	MemoryContextSwitchTo(old);
	return image;
}

/* A tuplestore that outlives the rerun's subtransaction. */
static Tuplestorestate *
begin_store(Check *check)
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
compare_table(Try *try, const IloadWrite *write)
{
	Check	   *check = try->check;
	IloadImage *earlier = find_image(check->images, write->name);
	Suspect    *suspect;
	MemoryContext old;

	suspect = MemoryContextAlloc(check->context, sizeof(Suspect));
	suspect->later = take_image(check, write, try->since);
	suspect->later->rewritten = earlier == NULL ||
		earlier->relid != suspect->later->relid || earlier->file != suspect->later->file;
	if (earlier != NULL &&
		iload_fingerprint_equal(&earlier->fingerprint, &suspect->later->fingerprint))
		return;
	if (list_length(try->suspects) >= MAX_SUSPECTS)
		return;
	suspect->new = begin_store(check);
	iload_image_spool_new(suspect->later, try->since, suspect->new);
	old = MemoryContextSwitchTo(check->context);
	try->suspects = lappend(try->suspects, suspect);
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
	Try		   *try = arg;
	Check	   *check = try->check;
	ListCell   *lc;

	try->since = GetCurrentTransactionId();
	if (try->losses != NULL)
	{
		iload_crash_lose(check->inserted, try->losses, check->since);
		settle_constraints();
	}
	try->lost = true;
	iload_wait_point("rerun");
	run_job(check, try->variant, &try->run);
	try->done = true;
	foreach(lc, written_by_either(check->first, try->run))
		compare_table(try, lfirst(lc));
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
static TryOutcome
judge_error(Try *try)
{
	if (try->done || is_no_verdict(try->error))
		ReThrowError(try->error);
	if (try->lost)
		return TRY_DIFFERENT;
	if (try->error->sqlerrcode == ERRCODE_INSUFFICIENT_PRIVILEGE)
		add_note(try->check,
				 psprintf("No crash was tried, since the user may not delete what it would have lost: %s.",
						  try->error->message));
	return TRY_IMPOSSIBLE;
}

/*
 * The rerun has been rolled back, and the state is again what the first run has left:
 * find the rows in which the suspects differ.
 */
static void
find_differences(Try *try)
{
	Check	   *check = try->check;
	ListCell   *lc;

	foreach(lc, try->suspects)
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
		iload_image_spool_old(earlier, later, try->since, old);
		try->differences = iload_difference_add(try->differences, earlier, later, old, suspect->new);
	}
}

/* Run the job once more, in a world, after the losses given or NULL. */
static TryOutcome
try_rerun(Try *try, Check *check, const IloadVariant *variant, const IloadLoss *losses)
{
	memset(try, 0, sizeof(Try));
	try->check = check;
	try->variant = variant;
	try->losses = losses;
	try->error = iload_rehearse(rerun_job, try);
	iload_session_deallocate(check->session);
	if (try->run != NULL)
		learn(check, try->run);
	if (try->error != NULL)
		return judge_error(try);
	find_differences(try);
	return try->differences == NIL ? TRY_SAME : TRY_DIFFERENT;
}

/* Does the same rerun, in another world, give the same result as the first run? */
static bool
control_is_same(Try *control, const Try *try, const IloadVariant *variant)
{
	return try_rerun(control, try->check, variant, try->losses) == TRY_SAME;
}

/* The difference of the same table that a control found, or else the first one. */
static const IloadDifference *
matching_difference(const Try *control, const IloadDifference *difference)
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
make_violation(const Try *try, IloadDifference *difference, const Try *control,
			   IloadEvidence evidence)
{
	IloadViolation *violation = palloc0(sizeof(IloadViolation));

	violation->difference = difference;
	violation->error = difference == NULL ? try->error : NULL;
	evidence.difference = control == NULL ? difference : matching_difference(control, difference);
	evidence.error = control == NULL ? try->error : control->error;
	evidence.run = control == NULL ? try->run : control->run;
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
explain(const Try *try, IloadRerun rerun)
{
	int			n;
	const IloadVariant *plain = iload_rerun_variants(ILOAD_RERUN_SAME, &n);
	IloadEvidence evidence = {.rerun = rerun};
	bool		is_plain = rerun == ILOAD_RERUN_SAME || rerun == ILOAD_RERUN_CRASH;
	List	   *violations = NIL;
	Try			control,
				still;
	const Try  *relevant = NULL;
	ListCell   *lc;

	if (!is_plain && !control_is_same(&control, try, plain))
	{
		evidence.rerun = try->losses == NULL ? ILOAD_RERUN_SAME : ILOAD_RERUN_CRASH;
		relevant = &control;
		is_plain = true;
	}
	evidence.clock = is_plain && try->check->reads_clock &&
		control_is_same(&still, try, &usual_variant);
	foreach(lc, try->differences)
		violations = lappend(violations, make_violation(try, lfirst(lc), relevant, evidence));
	if (try->error != NULL)
		violations = lappend(violations, make_violation(try, NULL, relevant, evidence));
	share_causes(violations);
	return violations;
}

/*
 * Is the difference due to the half state alone, in a check that is not to look for
 * what a crash does?
 */
static bool
is_of_state_alone(const Try *try, IloadRerun rerun)
{
	Check	   *check = try->check;
	int			n;
	Try			control;

	if (try->losses == NULL || check->options->reruns[ILOAD_RERUN_CRASH])
		return false;
	if (rerun == ILOAD_RERUN_CLOCK)
		return !check->reads_clock;
	return !control_is_same(&control, try, iload_rerun_variants(ILOAD_RERUN_SAME, &n));
}

/* Try one world from one state; true if that has shown violations. */
static bool
try_world(Check *check, IloadRerunResult *result, const IloadVariant *variant,
		  const IloadLoss *losses)
{
	Try			try;

	switch (try_rerun(&try, check, variant, losses))
	{
		case TRY_IMPOSSIBLE:
			return false;
		case TRY_SAME:
			result->runs++;
			return false;
		case TRY_DIFFERENT:
			break;
	}
	result->runs++;
	if (is_of_state_alone(&try, result->rerun))
		return false;
	result->what = variant->what;
	result->violations = explain(&try, result->rerun);
	return true;
}

/* Would these losses take away anything? */
static bool
loses_rows(Check *check, const IloadLoss *losses)
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
make_losses(Check *check, IloadLoss even, IloadLoss odd)
{
	int			n = list_length(check->inserted);
	IloadLoss  *losses = palloc(n * sizeof(IloadLoss));

	for (int i = 0; i < n; i++)
		losses[i] = i % 2 == 0 ? even : odd;
	return losses;
}

/* The later half of all that was inserted is gone; NULL where nothing was. */
static IloadLoss *
half_state(Check *check)
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
crash_states(Check *check)
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
written_by_call(Check *check, const IloadCall *call)
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
columns_that_stand_still(Check *check)
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
			add_note(check, psprintf("%s is the same in all runs of a check, but not in a real rerun.",
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
rerun_unchanged(Check *check, IloadRerunResult *result)
{
	int			n;

	if (!try_world(check, result, iload_rerun_variants(ILOAD_RERUN_SAME, &n), NULL))
		result->violations = columns_that_stand_still(check);
}

static void
rerun_after_crash(Check *check, IloadRerunResult *result)
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
rerun_in_worlds(Check *check, IloadRerunResult *result)
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
rerun_with_clock(Check *check, IloadRerunResult *result)
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
try_reruns(Check *check)
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
	Check	   *check = arg;
	ListCell   *lc;

	check->owner = CurrentResourceOwner;
	check->since = GetCurrentTransactionId();
	run_job(check, &usual_variant, &check->first);
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
		add_note(check, "The first run wrote nothing, so the reruns prove little.");
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
	Check		check = {
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
