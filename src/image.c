/*
 * image.c
 *		The rows of a table at one moment of a check.
 *
 * An image is the fingerprint of the whole table, taken in one pass.  The rows
 * themselves are needed only where two images differ.  They need not be kept for that:
 * the later state is that of a subtransaction, so the rows that it wrote are known by
 * its transaction ID, and those that it deleted too, also after it was rolled back.
 * All others are in both images.
 *
 * Tables are scanned with the transaction's snapshot, whoever owns them; what is seen
 * is told to the user only as far as he may read the table.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/heaptoast.h"
#include "access/htup_details.h"
#include "access/multixact.h"
#include "access/subtrans.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/value.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "image.h"

/* Is a column named in a list of "column" and "table.column"? */
static bool
is_ignored(Relation rel, const char *root, const char *column, List *ignored)
{
	List	   *names = iload_string_to_name_list(root);
	char	   *ancestor = strVal(llast(names));
	ListCell   *lc;

	foreach(lc, ignored)
	{
		const char *name = strVal(lfirst(lc));

		if (strcmp(name, column) == 0 ||
			strcmp(name, psprintf("%s.%s", RelationGetRelationName(rel), column)) == 0 ||
			strcmp(name, psprintf("%s.%s", ancestor, column)) == 0 ||
			strcmp(name, psprintf("%s.%s.%s", strVal(linitial(names)), ancestor, column)) == 0)
			return true;
	}
	return false;
}

/* All columns that are stored, but for those that the user wants to ignore. */
static void
find_compared(IloadImage *image, Relation rel, List *ignored)
{
	image->compared = palloc(image->desc->natts * sizeof(AttrNumber));
	for (int i = 0; i < image->desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(image->desc, i);

		if (!att->attisdropped &&
			(att->attgenerated == '\0' || att->attgenerated == ATTRIBUTE_GENERATED_STORED) &&
			!is_ignored(rel, image->root, NameStr(att->attname), ignored))
			image->compared[image->ncompared++] = att->attnum;
	}
}

static bool
may_read(Oid relid)
{
	return pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) == ACLCHECK_OK &&
		check_enable_rls(relid, InvalidOid, true) != RLS_ENABLED;
}

/* Did the present transaction insert this row, from the transaction ID on?  An update did not. */
bool
iload_image_inserted(HeapTuple tuple, TransactionId since)
{
	TransactionId xmin;

	if (tuple == NULL || (tuple->t_data->t_infomask & HEAP_UPDATED) != 0)
		return false;
	xmin = HeapTupleHeaderGetRawXmin(tuple->t_data);
	return TransactionIdFollowsOrEquals(xmin, since) &&
		TransactionIdIsCurrentTransactionId(xmin);
}

/* Hand each row to "function"; "tuple" is NULL where the table is not a heap. */
void
iload_image_scan(const IloadImage *image, IloadImageFunction function, void *arg)
{
	Relation	rel;
	TupleTableSlot *slot;
	TableScanDesc scan;
	Snapshot	snapshot;

	if (!OidIsValid(image->relid))
		return;
	rel = table_open(image->relid, AccessShareLock);
	snapshot = RegisterSnapshot(GetTransactionSnapshot());
	slot = table_slot_create(rel, NULL);
	scan = table_beginscan(rel, snapshot, 0, NULL);
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		CHECK_FOR_INTERRUPTS();
		function(slot,
				 TTS_IS_BUFFERTUPLE(slot) ? ExecFetchSlotHeapTuple(slot, false, NULL) : NULL,
				 arg);
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	UnregisterSnapshot(snapshot);
	table_close(rel, NoLock);
}

/* Is a column of this name compared? */
bool
iload_image_compares(const IloadImage *image, const char *column)
{
	for (int i = 0; i < image->ncompared; i++)
	{
		if (strcmp(NameStr(TupleDescAttr(image->desc, image->compared[i] - 1)->attname), column) == 0)
			return true;
	}
	return false;
}

/* A hasher of the compared columns. */
IloadRowHasher *
iload_image_hasher(const IloadImage *image)
{
	return iload_row_hasher_create(image->desc, image->ncompared, image->compared);
}

typedef struct TakeContext
{
	IloadImage *image;
	IloadRowHasher *hasher;
	TransactionId since;
} TakeContext;

static void
take_row(TupleTableSlot *slot, HeapTuple tuple, void *arg)
{
	TakeContext *context = arg;
	IloadRowHash hash;

	if (tuple != NULL)
		hash = iload_row_hash_tuple(context->hasher, tuple);
	else
	{
		slot_getallattrs(slot);
		hash = iload_row_hash_values(context->hasher, slot->tts_values, slot->tts_isnull);
	}
	iload_fingerprint_add(&context->image->fingerprint, hash);
	if (iload_image_inserted(tuple, context->since))
		context->image->ninserted++;
}

/*
 * The image of the table of a name, as the present command sees it.  "since" is the
 * transaction ID of the subtransaction in which the run took place.  Columns in
 * "ignored", a list of String, do not count.  Allocates in the current context.
 *
 * Locks the table ACCESS SHARE.
 */
IloadImage *
iload_image_take(char *name, char *root, List *ignored, TransactionId since)
{
	IloadImage *image = palloc0(sizeof(IloadImage));
	TakeContext context = {.image = image,.since = since};
	Relation	rel;
	MemoryContext work;
	MemoryContext old;

	image->name = name;
	image->root = root;
	image->relid = RangeVarGetRelid(makeRangeVarFromNameList(iload_string_to_name_list(name)),
									AccessShareLock, true);
	if (!OidIsValid(image->relid))
		return image;
	rel = table_open(image->relid, NoLock);
	image->file = rel->rd_rel->relfilenode;
	image->readable = may_read(image->relid);
	/* with the values that rows have that are older than a column */
	image->desc = CreateTupleDescCopyConstr(RelationGetDescr(rel));
	find_compared(image, rel, ignored);
	table_close(rel, NoLock);

	work = AllocSetContextCreate(CurrentMemoryContext, "idempotent_load image",
								 ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(work);
	context.hasher = iload_image_hasher(image);
	iload_image_scan(image, take_row, &context);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(work);
	return image;
}

/* Which rows are spooled, and where to. */
typedef struct SpoolContext
{
	const IloadImage *image;
	bool		all;
	TransactionId since;
	Tuplestorestate *store;
} SpoolContext;

/* Out-of-line values may be gone when the row is looked at. */
static void
spool_row(SpoolContext *context, TupleTableSlot *slot, HeapTuple tuple)
{
	if (tuple != NULL && HeapTupleHasExternal(tuple))
	{
		HeapTuple	flat = toast_flatten_tuple(tuple, context->image->desc);

		tuplestore_puttuple(context->store, flat);
		heap_freetuple(flat);
	}
	else
		tuplestore_puttupleslot(context->store, slot);
}

static void
spool_if_new(TupleTableSlot *slot, HeapTuple tuple, void *arg)
{
	SpoolContext *context = arg;
	TransactionId xmin;

	if (tuple != NULL && !context->all)
	{
		xmin = HeapTupleHeaderGetRawXmin(tuple->t_data);
		if (!TransactionIdFollowsOrEquals(xmin, context->since) ||
			!TransactionIdIsCurrentTransactionId(xmin))
			return;
	}
	spool_row(context, slot, tuple);
}

/*
 * Put the rows into "store" that a subtransaction, which is still going on and whose ID
 * is "since", has written and not deleted again.  Of a table that was rewritten these are
 * all: CLUSTER leaves the rows their transaction IDs.
 */
void
iload_image_spool_new(const IloadImage *image, TransactionId since, Tuplestorestate *store)
{
	SpoolContext context = {
		.image = image,
		.all = image->rewritten,
		.since = since,
		.store = store
	};

	iload_image_scan(image, spool_if_new, &context);
}

/* Was the row deleted, or updated, by a subtransaction of ours that was rolled back? */
static bool
was_deleted(HeapTupleHeader header, TransactionId since)
{
	TransactionId xmax = HeapTupleHeaderGetRawXmax(header);

	if (HEAP_XMAX_IS_LOCKED_ONLY(header->t_infomask))
		return false;
	if (header->t_infomask & HEAP_XMAX_IS_MULTI)
		xmax = HeapTupleGetUpdateXid(header);
	return TransactionIdIsNormal(xmax) && TransactionIdFollowsOrEquals(xmax, since) &&
		TransactionIdEquals(SubTransGetTopmostTransaction(xmax), GetTopTransactionId());
}

static void
spool_if_old(TupleTableSlot *slot, HeapTuple tuple, void *arg)
{
	SpoolContext *context = arg;

	if (context->all || tuple == NULL || was_deleted(tuple->t_data, context->since))
		spool_row(context, slot, tuple);
}

/*
 * Put the rows into "store" that a subtransaction, which has just been rolled back and
 * whose ID was "since", had deleted.  "later" is the image that was taken in it.
 */
void
iload_image_spool_old(const IloadImage *image, const IloadImage *later, TransactionId since,
					  Tuplestorestate *store)
{
	SpoolContext context = {
		.image = image,
		.all = later->rewritten,
		.since = since,
		.store = store
	};

	iload_image_scan(image, spool_if_old, &context);
}
