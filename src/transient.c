/*
 * transient.c
 *		Transient heaps: new files for the leaves of a slice.
 *
 * A transient heap has the columns, toast table, options, persistence and
 * tablespace of its leaf, and no indexes.  It is filled in batches, as COPY does
 * it, with rows that are frozen from the start, and its visibility map is set: to
 * every snapshot, also one that is older, the file holds all its rows, and no
 * vacuum is owed.  That is what lets it take the leaf's place (swap.c).
 *
 * What INSERT would do to a row is done here: it is routed to its leaf, brought
 * into the leaf's layout, its generated columns are computed, and the leaf's
 * constraints checked.  Uniqueness is checked when indexes are built.
 *
 * No other session can see a transient heap.  Until it is exchanged or dropped it
 * is a table "pg_temp_<OID of the leaf>" in the leaf's schema, as for VACUUM FULL.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/visibilitymap.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/pg_class.h"
#include "catalog/storage.h"
#include "commands/cluster.h"
#include "executor/execPartition.h"
#include "executor/executor.h"
#include "executor/nodeModifyTable.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "transient.h"

/*
 * A batch ends with so many rows or bytes: some pages.  The slots for more would cost
 * a small slice more than it gains.  With many leaves, batches are smaller.
 */
#define BATCH_ROWS		256
#define BATCH_BYTES		65535
#define LEAST_BATCH_ROWS	16

/* State of one leaf while its transient heap is filled. */
typedef struct TransientFill
{
	Relation	leaf;
	Relation	heap;
	ResultRelInfo *info;		/* of the leaf, for its constraints */
	AttrNumber *attnums;		/* of the loaded columns in the leaf; NULL
								 * where it has the same layout */
	TupleTableSlot *row;		/* a row in the leaf's layout, where that
								 * differs */
	BulkInsertState bulk;
	int			nrows;			/* in the batch */
	Size		nbytes;
	TupleTableSlot *batch[BATCH_ROWS];
} TransientFill;

/* Which leaf a row goes to, and what is common to all of them. */
typedef struct TransientRouter
{
	Relation	target;
	EState	   *estate;
	MemoryContext context;		/* of all this, and of batches */
	int			batch_rows;
	MemoryContext batch_context;	/* reset after each batch */
	CommandId	cid;
	/* by the server's own routing, once that is needed */
	ModifyTableState *mtstate;
	PartitionTupleRouting *routing;
	TupleTableSlot *row;		/* in the target's layout */
} TransientRouter;

/* Has a leaf the loaded columns and no others, in their order? */
static bool
has_same_layout(const IloadColumns *columns, Relation leaf, const AttrNumber *attnums)
{
	if (RelationGetDescr(leaf)->natts != columns->desc->natts)
		return false;
	for (int i = 0; i < columns->desc->natts; i++)
	{
		if (attnums[i] != i + 1)
			return false;
	}
	return true;
}

static TransientFill *
fill_begin(const IloadColumns *columns, Oid leaf, Oid heap)
{
	TransientFill *fill = palloc0(sizeof(TransientFill));

	fill->leaf = table_open(leaf, NoLock);
	fill->heap = table_open(heap, NoLock);
	fill->info = makeNode(ResultRelInfo);
	InitResultRelInfo(fill->info, fill->leaf, 0, NULL, 0);
	fill->attnums = iload_columns_attnums(columns, fill->leaf);
	if (!has_same_layout(columns, fill->leaf, fill->attnums))
		fill->row = MakeSingleTupleTableSlot(RelationGetDescr(fill->leaf), &TTSOpsVirtual);
	fill->bulk = GetBulkInsertState();
	return fill;
}

/*
 * Do rows of a leaf call functions of users when they are stored?  These may do what
 * cannot be done while a query runs in parallel, and have not been planned for.
 */
bool
iload_transients_call_functions(IloadLeaves *leaves)
{
	bool		result = false;
	ListCell   *lc;

	foreach(lc, leaves->leaves)
	{
		Relation	leaf = table_open(((IloadLeaf *) lfirst(lc))->relid, NoLock);
		TupleConstr *constr = RelationGetDescr(leaf)->constr;

		if (constr != NULL && (constr->num_check > 0 || constr->has_generated_stored))
			result = true;
		table_close(leaf, NoLock);
	}
	return result;
}

/* Make the heap; nobody else can see it, but it is locked as if they could. */
static Oid
make_heap(Oid leaf)
{
	Relation	rel = table_open(leaf, NoLock);
	Oid			heap = make_new_heap(leaf, rel->rd_rel->reltablespace, rel->rd_rel->relam,
									 rel->rd_rel->relpersistence, ShareRowExclusiveLock);

	LockRelationOid(heap, AccessExclusiveLock);
	table_close(rel, NoLock);
	return heap;
}

/*
 * Make a transient heap for each leaf, to be filled.  The leaves hold the slice
 * and nothing else, are heaps, and are locked SHARE ROW EXCLUSIVE or more.
 *
 * The result lives in the current context.  It assigns a transaction id, so it
 * must come before a query that may run in parallel.  "target" stays open until
 * iload_transients_finish.
 */
IloadTransients *
iload_transients_begin(Relation target, IloadLeaves *leaves, IloadColumns *columns)
{
	IloadTransients *transients = palloc0(sizeof(IloadTransients));
	TransientRouter *router = palloc0(sizeof(TransientRouter));
	ListCell   *lc;

	transients->columns = columns;
	foreach(lc, leaves->leaves)
	{
		IloadTransient *transient = palloc0(sizeof(IloadTransient));

		transient->leaf = ((IloadLeaf *) lfirst(lc))->relid;
		transient->heap = make_heap(transient->leaf);
		transient->fill = fill_begin(columns, transient->leaf, transient->heap);
		transients->heaps = lappend(transients->heaps, transient);
	}
	router->target = target;
	router->context = CurrentMemoryContext;
	router->estate = CreateExecutorState();
	router->batch_rows = Max(BATCH_ROWS / list_length(leaves->leaves), LEAST_BATCH_ROWS);
	router->batch_context = AllocSetContextCreate(CurrentMemoryContext,
												  "idempotent_load transient batch",
												  ALLOCSET_DEFAULT_SIZES);
	router->cid = GetCurrentCommandId(true);
	transients->router = router;
	return transients;
}

static void
flush(TransientRouter *router, TransientFill *fill)
{
	MemoryContext old;

	if (fill->nrows == 0)
		return;
	old = MemoryContextSwitchTo(router->batch_context);
	table_multi_insert(fill->heap, fill->batch, fill->nrows, router->cid,
					   TABLE_INSERT_SKIP_FSM | TABLE_INSERT_FROZEN, fill->bulk);
	MemoryContextSwitchTo(old);
	MemoryContextReset(router->batch_context);
	for (int i = 0; i < fill->nrows; i++)
		ExecClearTuple(fill->batch[i]);
	fill->nrows = 0;
	fill->nbytes = 0;
}

/* Put a row of the leaf's layout into the batch. */
static void
add_to_batch(TransientRouter *router, TransientFill *fill, TupleTableSlot *row)
{
	MemoryContext old = MemoryContextSwitchTo(router->context);
	HeapTuple	tuple;

	if (fill->batch[fill->nrows] == NULL)
		fill->batch[fill->nrows] = MakeSingleTupleTableSlot(RelationGetDescr(fill->heap),
															&TTSOpsHeapTuple);
	tuple = ExecCopySlotHeapTuple(row);
	ExecStoreHeapTuple(tuple, fill->batch[fill->nrows++], true);
	fill->nbytes += tuple->t_len;
	if (fill->nrows == router->batch_rows || fill->nbytes >= BATCH_BYTES)
		flush(router, fill);
	MemoryContextSwitchTo(old);
}

/* Prepare the server's routing of rows, as COPY does. */
static void
start_routing(TransientRouter *router)
{
	MemoryContext old = MemoryContextSwitchTo(router->context);
	ResultRelInfo *info = makeNode(ResultRelInfo);

	InitResultRelInfo(info, router->target, 0, NULL, 0);
	router->mtstate = makeNode(ModifyTableState);
	router->mtstate->ps.state = router->estate;
	router->mtstate->operation = CMD_INSERT;
	router->mtstate->mt_nrels = 1;
	router->mtstate->resultRelInfo = info;
	router->mtstate->rootResultRelInfo = info;
	router->routing = ExecSetupPartitionTupleRouting(router->estate, router->target);
	router->row = MakeSingleTupleTableSlot(RelationGetDescr(router->target), &TTSOpsVirtual);
	MemoryContextSwitchTo(old);
}

/* Lay out a row of the loaded columns for a relation that numbers them so. */
static void
lay_out(const IloadColumns *columns, const AttrNumber *attnums, TupleTableSlot *row,
		TupleTableSlot *result)
{
	slot_getallattrs(row);
	ExecClearTuple(result);
	memset(result->tts_isnull, true, result->tts_tupleDescriptor->natts * sizeof(bool));
	for (int i = 0; i < columns->desc->natts; i++)
	{
		result->tts_values[attnums[i] - 1] = row->tts_values[i];
		result->tts_isnull[attnums[i] - 1] = row->tts_isnull[i];
	}
	ExecStoreVirtualTuple(result);
}

/* The transient heap of the leaf that the server would route a row to. */
static IloadTransient *
route(IloadTransients *transients, TupleTableSlot *row)
{
	TransientRouter *router = transients->router;
	Oid			leaf;
	ListCell   *lc;

	if (router->routing == NULL)
		start_routing(router);
	lay_out(transients->columns, transients->columns->attnums, row, router->row);
	leaf = RelationGetRelid(ExecFindPartition(router->mtstate, router->mtstate->rootResultRelInfo,
											  router->routing, router->row,
											  router->estate)->ri_RelationDesc);
	foreach(lc, transients->heaps)
	{
		IloadTransient *transient = lfirst(lc);

		if (transient->leaf == leaf)
			return transient;
	}
	elog(ERROR, "row belongs to partition \"%s\", which is not a leaf of the slice",
		 get_rel_name(leaf));
	return NULL;
}

/* A row in the layout of a leaf. */
static TupleTableSlot *
in_layout_of(const IloadColumns *columns, TransientFill *fill, TupleTableSlot *row)
{
	if (fill->row == NULL)
		return row;
	lay_out(columns, fill->attnums, row, fill->row);
	return fill->row;
}

/*
 * Does the only leaf take a row?  Its partition constraint tells, for less than
 * the server's routing; that is asked only to say what is wrong.
 */
static void
check_only_leaf(IloadTransients *transients, TransientFill *fill, TupleTableSlot *row,
				TupleTableSlot *laid_out)
{
	TransientRouter *router = transients->router;

	if (!fill->leaf->rd_rel->relispartition ||
		ExecPartitionCheck(fill->info, laid_out, router->estate, false))
		return;
	if (router->target->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		(void) route(transients, row);
	ExecPartitionCheckEmitError(fill->info, laid_out, router->estate);
}

/*
 * Add a row of the loaded columns, which must have no out-of-line values.
 * Errors: those that INSERT raises for the row, but for uniqueness.
 */
void
iload_transients_put(IloadTransients *transients, TupleTableSlot *row)
{
	TransientRouter *router = transients->router;
	bool		only = list_length(transients->heaps) == 1;
	IloadTransient *transient;
	TransientFill *fill;
	TupleTableSlot *laid_out;
	TupleConstr *constr;
	MemoryContext old;

	ResetPerTupleExprContext(router->estate);
	old = MemoryContextSwitchTo(GetPerTupleMemoryContext(router->estate));
	transient = only ? linitial(transients->heaps) : route(transients, row);
	fill = transient->fill;
	laid_out = in_layout_of(transients->columns, fill, row);
	laid_out->tts_tableOid = transient->leaf;
	if (only)
		check_only_leaf(transients, fill, row, laid_out);
	constr = RelationGetDescr(fill->leaf)->constr;
	if (constr != NULL && constr->has_generated_stored)
		ExecComputeStoredGenerated(fill->info, router->estate, laid_out, CMD_INSERT);
	if (constr != NULL)
		ExecConstraints(fill->info, laid_out, router->estate);
	MemoryContextSwitchTo(old);
	add_to_batch(router, fill, laid_out);
	transient->rows++;
}

/*
 * Set the visibility map of a toast table that holds frozen rows only.  The
 * server does so for the rows of a heap that are inserted in batches, not for
 * those of its toast table.
 */
static void
set_all_frozen(Oid relid)
{
	Relation	rel = table_open(relid, NoLock);
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_BULKREAD);
	Buffer		map = InvalidBuffer;

	for (BlockNumber block = 0; block < nblocks; block++)
	{
		Buffer		buffer;

		CHECK_FOR_INTERRUPTS();
		visibilitymap_pin(rel, block, &map);
		buffer = ReadBufferExtended(rel, MAIN_FORKNUM, block, RBM_NORMAL, strategy);
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
		PageSetAllVisible(BufferGetPage(buffer));
		MarkBufferDirty(buffer);
		visibilitymap_set(rel, block, buffer, InvalidXLogRecPtr, map, InvalidTransactionId,
						  VISIBILITYMAP_ALL_VISIBLE | VISIBILITYMAP_ALL_FROZEN);
		UnlockReleaseBuffer(buffer);
	}
	if (BufferIsValid(map))
		ReleaseBuffer(map);
	FreeAccessStrategy(strategy);
	table_close(rel, NoLock);
}

/*
 * Cut off pages at the end that hold nothing: from version 16 on, a heap that is
 * filled in batches is extended by many pages at once.
 */
static void
cut_new_pages(Relation heap)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(heap);
	BlockNumber used = nblocks;

	while (used > 0)
	{
		Buffer		buffer = ReadBuffer(heap, used - 1);
		bool		is_new;

		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		is_new = PageIsNew(BufferGetPage(buffer));
		UnlockReleaseBuffer(buffer);
		if (!is_new)
			break;
		used--;
	}
	if (used < nblocks)
		RelationTruncate(heap, used);
}

static void
fill_end(TransientRouter *router, TransientFill *fill)
{
	Oid			toast = fill->heap->rd_rel->reltoastrelid;

	flush(router, fill);
	for (int i = 0; i < BATCH_ROWS && fill->batch[i] != NULL; i++)
		ExecDropSingleTupleTableSlot(fill->batch[i]);
	if (fill->row != NULL)
		ExecDropSingleTupleTableSlot(fill->row);
	FreeBulkInsertState(fill->bulk);
	table_finish_bulk_insert(fill->heap, TABLE_INSERT_SKIP_FSM | TABLE_INSERT_FROZEN);
	cut_new_pages(fill->heap);
	if (OidIsValid(toast))
		set_all_frozen(toast);
	table_close(fill->heap, NoLock);
	table_close(fill->leaf, NoLock);
}

/* All rows are there: write what is left of them, and close the relations. */
void
iload_transients_finish(IloadTransients *transients)
{
	TransientRouter *router = transients->router;
	ListCell   *lc;

	foreach(lc, transients->heaps)
	{
		IloadTransient *transient = lfirst(lc);

		fill_end(router, transient->fill);
		transient->fill = NULL;
	}
	if (router->routing != NULL)
	{
		ExecCleanupTupleRouting(router->mtstate, router->routing);
		ExecResetTupleTable(router->estate->es_tupleTable, false);
		ExecDropSingleTupleTableSlot(router->row);
	}
	FreeExecutorState(router->estate);
	MemoryContextDelete(router->batch_context);
	transients->router = NULL;
	CommandCounterIncrement();
}

/* Hand one heap's rows to "function", in the loaded columns. */
static void
scan_heap(const IloadColumns *columns, const IloadTransient *transient,
		  TupleTableSlot *row, IloadRowFunction function, void *arg)
{
	Relation	heap = table_open(transient->heap, NoLock);
	AttrNumber *attnums = iload_columns_attnums(columns, heap);
	TupleTableSlot *slot = table_slot_create(heap, NULL);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	TableScanDesc scan = table_beginscan(heap, snapshot, 0, NULL);

	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		CHECK_FOR_INTERRUPTS();
		slot_getallattrs(slot);
		ExecClearTuple(row);
		for (int i = 0; i < columns->desc->natts; i++)
		{
			row->tts_values[i] = slot->tts_values[attnums[i] - 1];
			row->tts_isnull[i] = slot->tts_isnull[attnums[i] - 1];
		}
		function(ExecStoreVirtualTuple(row), arg);
	}
	table_endscan(scan);
	UnregisterSnapshot(snapshot);
	ExecDropSingleTupleTableSlot(slot);
	table_close(heap, NoLock);
}

/* Hand all rows to "function", in the loaded columns; the heaps are finished. */
void
iload_transients_scan(IloadTransients *transients, IloadRowFunction function, void *arg)
{
	TupleTableSlot *row = MakeSingleTupleTableSlot(transients->columns->desc, &TTSOpsVirtual);
	ListCell   *lc;

	foreach(lc, transients->heaps)
		scan_heap(transients->columns, lfirst(lc), row, function, arg);
	ExecDropSingleTupleTableSlot(row);
}

/* Drop heaps that do not take the place of their leaves. */
void
iload_transients_drop(IloadTransients *transients)
{
	ListCell   *lc;

	foreach(lc, transients->heaps)
	{
		ObjectAddress object;

		ObjectAddressSet(object, RelationRelationId, ((IloadTransient *) lfirst(lc))->heap);
		performDeletion(&object, DROP_RESTRICT, PERFORM_DELETION_INTERNAL);
	}
	transients->heaps = NIL;
}
