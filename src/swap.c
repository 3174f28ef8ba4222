/*
 * swap.c
 *		The method swap: new files take the place of the leaves' files.
 *
 * The staged rows are written to transient heaps while everybody can still read
 * the leaves.  Then the leaves are locked ACCESS EXCLUSIVE, and the server's own
 * routine exchanges the files and builds the indexes anew, as REFRESH MATERIALIZED
 * VIEW has it done.  The parents are not locked more than by INSERT.  The leaves
 * keep their OIDs and all that hangs on them.
 */
#include "postgres.h"

#include "access/multixact.h"
#include "access/table.h"
#include "access/xact.h"
#include "commands/cluster.h"
#include "pgstat.h"
#include "storage/predicate.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "patience.h"
#include "progress.h"
#include "swap.h"
#include "swap_gate.h"
#include "wait_point.h"

/*
 * Exchange the files of one leaf and its transient heap, build its indexes, and
 * drop the heap with the old file.
 */
static void
exchange(IloadTransient *transient)
{
	Relation	leaf = table_open(transient->leaf, NoLock);
	char		persistence = leaf->rd_rel->relpersistence;

	/* to serializable transactions this is a write to all of the table */
	CheckTableForSerializableConflictIn(leaf);
	TransferPredicateLocksToHeapRelation(leaf);

	pgstat_count_truncate(leaf);
	pgstat_count_heap_insert(leaf, transient->rows);
	table_close(leaf, NoLock);
	finish_heap_swap(transient->leaf, transient->heap, false, false, true, true,
					 RecentXmin, ReadNextMultiXactId(), persistence);
}

/*
 * What is locked: the leaves, and their toast tables, which are dropped with the
 * old files, and which autovacuum works on by themselves.
 */
static List *
relations_to_lock(IloadLeaves *leaves)
{
	List	   *relids = NIL;
	ListCell   *lc;

	foreach(lc, leaves->leaves)
		relids = lappend_oid(relids, ((IloadLeaf *) lfirst(lc))->relid);
	foreach(lc, leaves->leaves)
	{
		Relation	leaf = table_open(((IloadLeaf *) lfirst(lc))->relid, NoLock);

		if (OidIsValid(leaf->rd_rel->reltoastrelid))
			relids = lappend_oid(relids, leaf->rd_rel->reltoastrelid);
		table_close(leaf, NoLock);
	}
	return relids;
}

/*
 * Be alone with the leaves, as far as a swap must be.  Returns what stands in
 * the way, in words for a message, or NULL.
 */
static char *
lock_leaves(Relation target, IloadLive *live, IloadPatience *patience)
{
	if (!iload_patience_snapshots(patience))
		return pstrdup("other transactions hold snapshots that are older");
	if (!iload_patience_lock(patience, relations_to_lock(live->leaves)))
		return pstrdup("other transactions use its partitions");

	/* publications and slots are made without a lock on the tables */
	return iload_swap_refusal(target, live);
}

/*
 * Bring the slice to the staged rows by new files.  Returns NULL where that is
 * done; else why it could not be, in words for a message, with nothing changed
 * and the stage as it was.  "snapshot" is for functions in constraints.
 * With "insists" also those are waited for that have outlasted a load of the session.
 *
 * Locks: the leaves, in order of their OIDs, then their toast tables, ACCESS
 * EXCLUSIVE, in short tries.  They are kept also where the gate refuses at last.
 */
char *
iload_swap_apply(Relation target, IloadStage *stage, IloadLive *live, Snapshot snapshot,
				 bool insists)
{
	IloadTransients *transients = stage->transients;
	Oid			relid = RelationGetRelid(target);
	IloadPatience patience;
	char	   *reason;
	ListCell   *lc;

	iload_patience_begin(&patience, relid, insists);
	if (transients == NULL)
	{
		/* filling takes long, so first see whether it would be for nothing */
		if (!iload_patience_snapshots(&patience))
			return pstrdup("other transactions hold snapshots that are older");
		iload_progress_phase(relid, ILOAD_PHASE_FILLING, stage->fingerprint.rows);
		PushActiveSnapshot(snapshot);
		transients = iload_transients_begin(target, live->leaves, stage->columns);
		iload_stage_fill(stage, transients);
		iload_transients_finish(transients);
		PopActiveSnapshot();
	}
	iload_wait_point("filled");

	reason = lock_leaves(target, live, &patience);
	if (reason != NULL)
	{
		if (stage->transients == NULL)
			iload_transients_drop(transients);
		return reason;
	}
	iload_progress_phase(relid, ILOAD_PHASE_EXCHANGING, 0);
	foreach(lc, transients->heaps)
		exchange(lfirst(lc));
	stage->transients = NULL;
	iload_wait_point("swapped");
	return NULL;
}
