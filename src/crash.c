/*
 * crash.c
 *		The state that a crash between commits would have left.
 *
 * A job whose writes are not one transaction may die when a part of its rows is there.
 * Such a state is made by deleting half of the rows that a run inserted; never new
 * versions of rows that it updated, since these were there before.
 *
 * They are deleted by SQL, as the user, with triggers and foreign keys on: children go
 * with their parents, and a state that the constraints forbid is an error and not a
 * state.  The deletions share one level of AFTER triggers, so that it does not matter in
 * which order the tables come.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

#include "crash.h"
#include "named_store.h"
#include "query.h"
#include "root.h"

#define LOST_NAME "iload_lost"

/* How many of the rows that the run inserted into a table are lost? */
uint64
iload_crash_count(const IloadImage *image, IloadLoss loss)
{
	uint64		head = image->ninserted / 2;

	switch (loss)
	{
		case ILOAD_LOSE_NOTHING:
			break;
		case ILOAD_LOSE_TAIL:
			return image->ninserted - head;
		case ILOAD_LOSE_HEAD:
			return head;
	}
	return 0;
}

typedef struct LoseContext
{
	TransactionId since;
	uint64		first;			/* ordinals among the inserted rows */
	uint64		end;
	uint64		ordinal;
	TupleDesc	desc;
	Tuplestorestate *lost;		/* places */
} LoseContext;

static void
note_lost(TupleTableSlot *slot, HeapTuple tuple, void *arg)
{
	LoseContext *context = arg;
	Datum		value = PointerGetDatum(&slot->tts_tid);
	bool		isnull = false;

	if (!iload_image_inserted(tuple, context->since))
		return;
	if (context->ordinal >= context->first && context->ordinal < context->end)
		tuplestore_putvalues(context->lost, context->desc, &value, &isnull);
	context->ordinal++;
}

/* The places of the rows that are lost, to be read by the statement under a name. */
static void
register_lost(const IloadImage *image, IloadLoss loss, TransactionId since)
{
	uint64		count = iload_crash_count(image, loss);
	LoseContext context = {
		.since = since,
		.first = loss == ILOAD_LOSE_TAIL ? image->ninserted - count : 0,
		.end = loss == ILOAD_LOSE_TAIL ? image->ninserted : count,
		.desc = CreateTemplateTupleDesc(1),
		.lost = tuplestore_begin_heap(false, false, work_mem / 4)
	};

	TupleDescInitEntry(context.desc, 1, "tid", TIDOID, -1, 0);
	iload_image_scan(image, note_lost, &context);
	iload_named_store_register(LOST_NAME, context.desc, context.lost, count);
}

/*
 * The table by which rows of a partition are deleted: the partition itself, or its root
 * where the user has rights on that one only.
 */
static Oid
deletable(Oid relid)
{
	return pg_class_aclcheck(relid, GetUserId(), ACL_DELETE) == ACLCHECK_OK ? relid :
		iload_root(relid);
}

static void
lose_from_table(const IloadImage *image, IloadLoss loss, TransactionId since)
{
	Oid			relid = deletable(image->relid);
	char	   *text = psprintf(ILOAD_QUERY_MARK "DELETE FROM %s AS t USING " LOST_NAME " AS l"
								" WHERE t.ctid OPERATOR(pg_catalog.=) l.tid"
								" AND t.tableoid OPERATOR(pg_catalog.=) %u::pg_catalog.oid",
								iload_table_name(relid),
								image->relid);
	SPIPlanPtr	plan;
	int			result;

	SPI_connect();
	register_lost(image, loss, since);
	plan = SPI_prepare(text, 0, NULL);
	if (plan == NULL)
		elog(ERROR, "SPI_prepare failed: %s", SPI_result_code_string(SPI_result));
	result = SPI_execute_snapshot(plan, NULL, NULL, InvalidSnapshot, InvalidSnapshot,
								  false, false, 0);
	if (result < 0)
		elog(ERROR, "SPI_execute_snapshot failed: %s", SPI_result_code_string(result));
	SPI_finish();
}

/*
 * Delete from the tables of "images" what is lost of each, as told by "losses" in the
 * same order.  "since" is the transaction ID of the subtransaction of the run.
 *
 * Errors: whatever the deletion raises, such as a foreign key or a lack of rights.
 */
void
iload_crash_lose(List *images, const IloadLoss *losses, TransactionId since)
{
	ListCell   *lc;

	AfterTriggerBeginQuery();
	foreach(lc, images)
	{
		const IloadImage *image = lfirst(lc);
		IloadLoss	loss = losses[foreach_current_index(lc)];

		if (iload_crash_count(image, loss) > 0)
			lose_from_table(image, loss, since);
	}
	PushActiveSnapshot(GetTransactionSnapshot());
	AfterTriggerEndQuery(NULL);
	PopActiveSnapshot();
	CommandCounterIncrement();
}
