/*
 * backfill_preview.c
 *		What a backfill would change in a slice.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/numeric.h"
#include "utils/snapmgr.h"

#include "backfill_preview.h"
#include "job_run.h"
#include "preview.h"

static char *
numeric_text(Datum value)
{
	return DatumGetCString(DirectFunctionCall1(numeric_out, value));
}

/* "rows 2000 -> 2100, sum(amount) 10.00 -> 12.00" */
static char *
measures_text(List *measures)
{
	StringInfoData text;
	ListCell   *lc;

	initStringInfo(&text);
	foreach(lc, measures)
	{
		IloadMeasure *measure = lfirst(lc);

		appendStringInfo(&text, "%s%s %s -> %s", foreach_current_index(lc) > 0 ? ", " : "",
						 measure->name, numeric_text(measure->live), numeric_text(measure->staged));
	}
	return text.data;
}

/*
 * Tell the caller, as a notice, the measures of a slice as it is and as the job would
 * make it.  Nothing is written.
 */
void
iload_backfill_preview(const IloadJob *job, const IloadTask *task)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "idempotent_load slice",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	IloadSliceArgs args = {.by_date = true};
	int			nestlevel = NewGUCNestLevel();

	args.date = task->date;
	args.period = job->period;
	iload_job_set_environment(job);
	PushActiveSnapshot(GetTransactionSnapshot());
	ereport(NOTICE,
			(errmsg("%s: %s", iload_task_date(task),
					measures_text(iload_preview(job->target, &args, job->text, &job->options)))));
	PopActiveSnapshot();
	AtEOXact_GUC(true, nestlevel);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}
