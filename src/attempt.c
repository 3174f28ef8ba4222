/*
 * attempt.c
 *		Something that may fail without failing the load.
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "attempt.h"

/* Call "function" in a subtransaction, which is kept or not; see below. */
static ErrorData *
call_in_subtransaction(IloadAttemptFunction function, void *arg, bool keep)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		function(arg);
		if (keep)
			ReleaseCurrentSubTransaction();
		else
			RollbackAndReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		if (error->sqlerrcode == ERRCODE_QUERY_CANCELED)
			ReThrowError(error);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return error;
}

/*
 * Call "function" in a subtransaction.  Returns NULL where it comes back; its locks
 * are kept then.  Where it raises an error, all that it did is undone, and the error
 * is returned, in the current context.  A cancel is raised again.
 *
 * What pg_stat_progress_load shows is gone after an error.
 */
ErrorData *
iload_attempt(IloadAttemptFunction function, void *arg)
{
	return call_in_subtransaction(function, arg, true);
}

/* The same, but all that it did is undone also where it comes back. */
ErrorData *
iload_rehearse(IloadAttemptFunction function, void *arg)
{
	return call_in_subtransaction(function, arg, false);
}
