/*
 * attempt.c
 *		Something that may fail without failing the load.
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "attempt.h"

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
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		function(arg);
		ReleaseCurrentSubTransaction();
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
