/*
 * leaf.c
 *		The leaves: the relations in which the rows of a slice are stored.
 *
 * The partition tree is walked by the bounds that each partitioned table keeps
 * of its own partitions, so only partitioned tables on the way and the leaves
 * of the slice are locked, however many others there are.
 *
 * A leaf whose bounds lie inside the slice is exact: every row that it holds or
 * will get belongs to the slice.  It is locked SHARE ROW EXCLUSIVE, so writers
 * that do not come through us are waited for.  Any other leaf, and a table
 * without partitions, is locked ROW EXCLUSIVE as by INSERT, for it holds rows
 * of other slices too.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "partitioning/partbounds.h"
#include "partitioning/partdesc.h"
#include "storage/lmgr.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"
#include "utils/rel.h"

#include "leaf.h"

static void walk(IloadLeaves *leaves, Relation rel, IloadSlice *slice, bool exact);

static void
add_leaf(IloadLeaves *leaves, Oid relid, bool exact)
{
	IloadLeaf  *leaf = palloc(sizeof(IloadLeaf));

	leaf->relid = relid;
	leaf->exact = exact;
	leaves->leaves = lappend(leaves->leaves, leaf);
}

/* Go on to a partition.  The lock on a partitioned table is kept. */
static void
walk_child(IloadLeaves *leaves, PartitionDesc desc, int index, IloadSlice *slice, bool exact)
{
	Relation	child;

	if (desc->is_leaf[index])
	{
		add_leaf(leaves, desc->oids[index], exact);
		return;
	}
	child = table_open(desc->oids[index], RowExclusiveLock);
	walk(leaves, child, slice, exact);
	table_close(child, NoLock);
}

static void
add_gap(IloadLeaves *leaves, Relation parent, PartitionDesc desc,
		IloadKey *key, bool single, Datum lower, Datum upper)
{
	IloadGap   *gap = palloc0(sizeof(IloadGap));
	PartitionBoundInfo bounds = desc->boundinfo;

	gap->parent = RelationGetRelid(parent);
	if (bounds != NULL && bounds->default_index >= 0)
		gap->default_leaf = desc->oids[bounds->default_index];
	gap->single = single;
	gap->lower = datumCopy(lower, key->typbyval, key->typlen);
	if (!single)
		gap->upper = datumCopy(upper, key->typbyval, key->typlen);
	leaves->gaps = lappend(leaves->gaps, gap);
}

/* Is the partition key's first column the key column, ordered the same way? */
static bool
partitioned_by_key(Relation rel, IloadKey *key)
{
	PartitionKey part = RelationGetPartitionKey(rel);

	return part->strategy != PARTITION_STRATEGY_HASH &&
		part->partattrs[0] != 0 &&
		part->partattrs[0] == get_attnum(RelationGetRelid(rel), key->name) &&
		part->partopfamily[0] == key->opfamily &&
		part->partcollation[0] == key->collation;
}

/*
 * Compare a value with the first column of a range bound.  Below zero, zero or
 * above zero: the value lies below, at or above it.
 */
static int
cmp_bound(IloadKey *key, Datum value, PartitionRangeDatumKind kind, Datum bound)
{
	if (kind == PARTITION_RANGE_DATUM_MINVALUE)
		return 1;
	if (kind == PARTITION_RANGE_DATUM_MAXVALUE)
		return -1;
	return iload_key_cmp(key, value, bound);
}

/*
 * Can a partition with this upper bound hold the very value of the bound's
 * first column?  Only where further columns follow it.
 */
static bool
upper_is_shared(PartitionKey part, PartitionRangeDatumKind *kinds)
{
	return part->partnatts > 1 && kinds[0] == PARTITION_RANGE_DATUM_VALUE &&
		kinds[1] != PARTITION_RANGE_DATUM_MINVALUE;
}

/*
 * The partitions of a table that is partitioned by ranges of the key.  The part
 * of the slice up to "covered" has been seen; what lies between there and the
 * next partition's lower bound is a gap.
 */
static void
walk_range(IloadLeaves *leaves, Relation rel, IloadSlice *slice)
{
	PartitionKey part = RelationGetPartitionKey(rel);
	PartitionDesc desc = RelationGetPartitionDesc(rel, true);
	PartitionBoundInfo bounds = desc->boundinfo;
	IloadKey   *key = slice->key;
	Datum		covered = slice->lower;
	bool		complete = false;
	bool		has_gap = false;

	for (int i = 1; bounds != NULL && i < bounds->ndatums; i++)
	{
		int			index = bounds->indexes[i];
		Datum		lower = bounds->datums[i - 1][0];
		Datum		upper = bounds->datums[i][0];
		PartitionRangeDatumKind lower_kind = bounds->kind[i - 1][0];
		PartitionRangeDatumKind upper_kind = bounds->kind[i][0];
		bool		shared = upper_is_shared(part, bounds->kind[i]);
		int			below,
					above;
		bool		exact;

		if (index < 0)
			continue;
		/* where the slice's ends lie, seen from the partition's */
		below = cmp_bound(key, slice->lower, upper_kind, upper);
		if (below > 0 || (below == 0 && !shared))
			continue;
		above = cmp_bound(key, slice->single ? slice->lower : slice->upper, lower_kind, lower);
		if (above < 0 || (above == 0 && !slice->single))
			break;

		if (!complete && cmp_bound(key, covered, lower_kind, lower) < 0)
		{
			add_gap(leaves, rel, desc, key, slice->single, covered, lower);
			has_gap = true;
		}
		exact = !slice->single &&
			cmp_bound(key, slice->lower, lower_kind, lower) <= 0 &&
			(shared ? cmp_bound(key, slice->upper, upper_kind, upper) > 0 :
			 cmp_bound(key, slice->upper, upper_kind, upper) >= 0);
		walk_child(leaves, desc, index, slice, exact);
		if (upper_kind == PARTITION_RANGE_DATUM_MAXVALUE || slice->single ||
			iload_key_cmp(key, upper, slice->upper) >= 0)
			complete = true;
		else
			covered = upper;
	}
	if (!complete)
	{
		add_gap(leaves, rel, desc, key, slice->single, covered, slice->upper);
		has_gap = true;
	}
	if (has_gap && bounds != NULL && bounds->default_index >= 0)
		walk_child(leaves, desc, bounds->default_index, slice, false);
}

/* Does a list partition take the value "value"?  Its index, or -1. */
static int
list_partition_of(PartitionBoundInfo bounds, IloadKey *key, Datum value)
{
	for (int i = 0; bounds != NULL && i < bounds->ndatums; i++)
	{
		if (iload_key_cmp(key, bounds->datums[i][0], value) == 0)
			return bounds->indexes[i];
	}
	return -1;
}

/*
 * Gaps of a table that is partitioned by lists of the key.  They can be named
 * only where the values of the slice can be counted: one value, or whole days
 * in a type that holds days.
 */
static bool
list_gaps(IloadLeaves *leaves, Relation rel, IloadSlice *slice, PartitionDesc desc)
{
	IloadKey   *key = slice->key;
	bool		found = false;

	if (slice->single)
	{
		found = list_partition_of(desc->boundinfo, key, slice->lower) < 0;
		if (found)
			add_gap(leaves, rel, desc, key, true, slice->lower, (Datum) 0);
		return found;
	}
	if (!slice->by_date || slice->period->time != 0 ||
		key->kind == ILOAD_KEY_TIMESTAMP || key->kind == ILOAD_KEY_TIMESTAMPTZ)
		return true;
	for (DateADT date = slice->date; date < slice->upper_date; date++)
	{
		Datum		value = iload_key_from_date(key, date);

		if (list_partition_of(desc->boundinfo, key, value) >= 0)
			continue;
		add_gap(leaves, rel, desc, key, true, value, (Datum) 0);
		found = true;
	}
	return found;
}

/* Is a value, which a list partition takes, one of the slice's? */
static bool
bound_in_slice(IloadSlice *slice, Datum value)
{
	if (slice->single)
		return iload_key_cmp(slice->key, value, slice->lower) == 0;
	return iload_key_cmp(slice->key, value, slice->lower) >= 0 &&
		iload_key_cmp(slice->key, value, slice->upper) < 0;
}

/* The partitions of a table that is partitioned by lists of the key. */
static void
walk_list(IloadLeaves *leaves, Relation rel, IloadSlice *slice)
{
	PartitionDesc desc = RelationGetPartitionDesc(rel, true);
	PartitionBoundInfo bounds = desc->boundinfo;
	bool	   *inside = palloc0(desc->nparts * sizeof(bool));
	bool	   *outside = palloc0(desc->nparts * sizeof(bool));

	for (int i = 0; bounds != NULL && i < bounds->ndatums; i++)
	{
		if (bound_in_slice(slice, bounds->datums[i][0]))
			inside[bounds->indexes[i]] = true;
		else
			outside[bounds->indexes[i]] = true;
	}
	if (bounds != NULL && bounds->null_index >= 0)
		outside[bounds->null_index] = true;
	for (int part = 0; part < desc->nparts; part++)
	{
		if (inside[part])
			walk_child(leaves, desc, part, slice, !outside[part]);
	}
	if (list_gaps(leaves, rel, slice, desc) &&
		bounds != NULL && bounds->default_index >= 0)
		walk_child(leaves, desc, bounds->default_index, slice, false);
}

/*
 * Add the leaves and gaps of the slice below the partitioned table "rel".
 * "exact" says that all rows of "rel" lie in the slice by bounds further up.
 */
static void
walk(IloadLeaves *leaves, Relation rel, IloadSlice *slice, bool exact)
{
	PartitionDesc desc;

	if (!exact && partitioned_by_key(rel, slice->key))
	{
		if (RelationGetPartitionKey(rel)->strategy == PARTITION_STRATEGY_RANGE)
			walk_range(leaves, rel, slice);
		else
			walk_list(leaves, rel, slice);
		return;
	}
	desc = RelationGetPartitionDesc(rel, true);
	for (int part = 0; part < desc->nparts; part++)
		walk_child(leaves, desc, part, slice, exact);
}

static int
leaf_cmp(const ListCell *a, const ListCell *b)
{
	Oid			oid_a = ((IloadLeaf *) lfirst(a))->relid;
	Oid			oid_b = ((IloadLeaf *) lfirst(b))->relid;

	return (oid_a > oid_b) - (oid_a < oid_b);
}

static IloadLeaves *
collect(Relation target, IloadSlice *slice)
{
	IloadLeaves *leaves = palloc0(sizeof(IloadLeaves));
	ListCell   *lc;

	if (target->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		walk(leaves, target, slice, false);
	else
		add_leaf(leaves, RelationGetRelid(target), false);
	list_sort(leaves->leaves, leaf_cmp);

	leaves->all_exact = true;
	foreach(lc, leaves->leaves)
	{
		if (!((IloadLeaf *) lfirst(lc))->exact)
			leaves->all_exact = false;
	}
	return leaves;
}

static bool
same_leaves(IloadLeaves *a, IloadLeaves *b)
{
	ListCell   *la,
			   *lb;

	if (list_length(a->leaves) != list_length(b->leaves))
		return false;
	forboth(la, a->leaves, lb, b->leaves)
	{
		IloadLeaf  *leaf_a = lfirst(la);
		IloadLeaf  *leaf_b = lfirst(lb);

		if (leaf_a->relid != leaf_b->relid || leaf_a->exact != leaf_b->exact)
			return false;
	}
	return true;
}

/*
 * Lock the tables that a partition may have to be attached to, where they have
 * a default partition.  ATTACH will lock that one exclusively, so two loads
 * that had both begun to read it would wait for each other for ever.
 */
static bool
lock_parents_of_gaps(IloadLeaves *leaves)
{
	bool		locked = false;
	ListCell   *lc;

	foreach(lc, leaves->gaps)
	{
		IloadGap   *gap = lfirst(lc);

		if (!OidIsValid(gap->default_leaf))
			continue;
		LockRelationOid(gap->parent, ShareUpdateExclusiveLock);
		locked = true;
	}
	return locked;
}

/*
 * Find and lock the leaves of the slice, by OID and each at its full strength
 * at once.  While a lock is waited for, partitions may be attached or detached,
 * so what was found is looked up again until it stays the same.
 * "create_partition" says that missing partitions are going to be made.
 *
 * The caller holds ROW EXCLUSIVE on "target" and the slice lock.
 */
IloadLeaves *
iload_leaves_lock(Relation target, IloadSlice *slice, bool create_partition)
{
	IloadLeaves *leaves = collect(target, slice);

	if (create_partition && lock_parents_of_gaps(leaves))
		leaves = collect(target, slice);
	for (;;)
	{
		IloadLeaves *again;
		ListCell   *lc;

		foreach(lc, leaves->leaves)
		{
			IloadLeaf  *leaf = lfirst(lc);

			LockRelationOid(leaf->relid,
							leaf->exact ? ShareRowExclusiveLock : RowExclusiveLock);
		}
		again = collect(target, slice);
		if (same_leaves(leaves, again))
			return again;
		leaves = again;
	}
}
