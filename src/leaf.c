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

#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "partitioning/partbounds.h"
#include "partitioning/partdesc.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "compat.h"
#include "leaf.h"

/*
 * How far the walk has come: what of the slice the table at hand can hold, and
 * what is known of the rows that it does hold.
 */
typedef struct Reach
{
	Datum		lower;
	Datum		upper;			/* not set where the slice is one value */
	bool		exact;			/* all its rows are of the slice */
	bool		in_default;		/* it lies below a default partition: what is
								 * missing there is not to be made */
} Reach;

static void walk(IloadLeaves *leaves, Relation rel, IloadSlice *slice, Reach reach);

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
walk_child(IloadLeaves *leaves, PartitionDesc desc, int index, IloadSlice *slice, Reach reach)
{
	Relation	child;

	if (desc->is_leaf[index])
	{
		add_leaf(leaves, desc->oids[index], reach.exact);
		return;
	}
	/* where it has been dropped meanwhile, the search is repeated */
	child = try_table_open(desc->oids[index], leaves->use == ILOAD_LEAVES_READ ?
						   AccessShareLock : RowExclusiveLock);
	if (child == NULL)
		return;
	walk(leaves, child, slice, reach);
	table_close(child, NoLock);
}

static void
walk_default(IloadLeaves *leaves, PartitionDesc desc, IloadSlice *slice, Reach reach)
{
	if (desc->boundinfo == NULL || desc->boundinfo->default_index < 0)
		return;
	reach.in_default = true;
	walk_child(leaves, desc, desc->boundinfo->default_index, slice, reach);
}

/*
 * Where days are written as numbers or text, cut a gap down to the days in it.
 * False where there is none, as between 20260132 and 20260201.
 */
static bool
clip_to_days(IloadSlice *slice, Datum *lower, Datum *upper)
{
	IloadKey   *key = slice->key;
	DateADT		first = slice->date;
	DateADT		end = slice->upper_date;

	if (!slice->by_date || (key->kind != ILOAD_KEY_INTEGER && key->kind != ILOAD_KEY_TEXT))
		return true;
	while (first < end && iload_key_cmp(key, iload_key_from_date(key, first), *lower) < 0)
		first++;
	while (first < end && iload_key_cmp(key, iload_key_from_date(key, end - 1), *upper) >= 0)
		end--;
	if (first == end)
		return false;
	*lower = iload_key_from_date(key, first);
	if (iload_key_cmp(key, iload_key_from_date(key, end), *upper) < 0)
		*upper = iload_key_from_date(key, end);
	return true;
}

static void
add_gap(IloadLeaves *leaves, Relation parent, PartitionDesc desc, IloadSlice *slice,
		Reach reach, bool single, Datum lower, Datum upper)
{
	IloadKey   *key = slice->key;
	IloadGap   *gap;
	PartitionBoundInfo bounds = desc->boundinfo;

	if (reach.in_default || (!single && !clip_to_days(slice, &lower, &upper)))
		return;
	gap = palloc0(sizeof(IloadGap));
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
 * What a range partition can hold of what its parent can.  Where the upper bound
 * is shared, its very value belongs to it too.
 */
static Reach
clip_reach(IloadSlice *slice, Reach reach, PartitionRangeDatumKind lower_kind, Datum lower,
		   PartitionRangeDatumKind upper_kind, Datum upper, bool shared)
{
	IloadKey   *key = slice->key;
	bool		from_inside;
	bool		to_inside;

	if (slice->single)
		return reach;
	from_inside = cmp_bound(key, reach.lower, lower_kind, lower) <= 0;
	to_inside = cmp_bound(key, reach.upper, upper_kind, upper) >= (shared ? 1 : 0);
	reach.exact = reach.exact || (from_inside && to_inside);
	if (from_inside)
		reach.lower = lower;
	if (to_inside && !shared)
		reach.upper = upper;
	return reach;
}

/*
 * The partitions of a table that is partitioned by ranges of the key.  What the
 * table can hold has been seen up to "covered"; what lies between there and the
 * next partition's lower bound is a gap.
 */
static void
walk_range(IloadLeaves *leaves, Relation rel, IloadSlice *slice, Reach reach)
{
	PartitionKey part = RelationGetPartitionKey(rel);
	PartitionDesc desc = RelationGetPartitionDesc(rel, true);
	PartitionBoundInfo bounds = desc->boundinfo;
	IloadKey   *key = slice->key;
	Datum		covered = reach.lower;
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

		if (index < 0)
			continue;
		/* where the ends of the slice lie, seen from the partition's */
		below = cmp_bound(key, reach.lower, upper_kind, upper);
		if (below > 0 || (below == 0 && !shared))
			continue;
		above = cmp_bound(key, slice->single ? reach.lower : reach.upper, lower_kind, lower);
		if (above < 0 || (above == 0 && !slice->single))
			break;

		if (!complete && cmp_bound(key, covered, lower_kind, lower) < 0)
		{
			add_gap(leaves, rel, desc, slice, reach, slice->single, covered, lower);
			has_gap = true;
		}
		walk_child(leaves, desc, index, slice,
				   clip_reach(slice, reach, lower_kind, lower, upper_kind, upper, shared));
		if (upper_kind == PARTITION_RANGE_DATUM_MAXVALUE || slice->single ||
			iload_key_cmp(key, upper, reach.upper) >= 0)
			complete = true;
		else
			covered = upper;
	}
	if (!complete)
	{
		add_gap(leaves, rel, desc, slice, reach, slice->single, covered, reach.upper);
		has_gap = true;
	}
	/* with more columns, it may hold what the others do not take of the key */
	if (has_gap || part->partnatts > 1)
		walk_default(leaves, desc, slice, reach);
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
list_gaps(IloadLeaves *leaves, Relation rel, IloadSlice *slice, PartitionDesc desc, Reach reach)
{
	IloadKey   *key = slice->key;
	bool		found = false;

	if (slice->single)
	{
		found = list_partition_of(desc->boundinfo, key, slice->lower) < 0;
		if (found)
			add_gap(leaves, rel, desc, slice, reach, true, slice->lower, (Datum) 0);
		return found;
	}
	if (!slice->by_date || slice->period->time != 0 ||
		key->kind == ILOAD_KEY_TIMESTAMP || key->kind == ILOAD_KEY_TIMESTAMPTZ)
		return true;
	for (DateADT date = slice->date; date < slice->upper_date; date++)
	{
		Datum		value = iload_key_from_date(key, date);

		if (iload_key_cmp(key, value, reach.lower) < 0 ||
			iload_key_cmp(key, value, reach.upper) >= 0)
			continue;
		if (list_partition_of(desc->boundinfo, key, value) >= 0)
			continue;
		add_gap(leaves, rel, desc, slice, reach, true, value, (Datum) 0);
		found = true;
	}
	/* between two days there are numbers and texts that are none */
	return found || key->kind != ILOAD_KEY_DATE;
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
walk_list(IloadLeaves *leaves, Relation rel, IloadSlice *slice, Reach reach)
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
		Reach		child = reach;

		child.exact = reach.exact || !outside[part];
		if (inside[part])
			walk_child(leaves, desc, part, slice, child);
	}
	if (list_gaps(leaves, rel, slice, desc, reach))
		walk_default(leaves, desc, slice, reach);
}

/* Add the leaves and gaps of the slice below the partitioned table "rel". */
static void
walk(IloadLeaves *leaves, Relation rel, IloadSlice *slice, Reach reach)
{
	PartitionDesc desc;

	if (partitioned_by_key(rel, slice->key))
	{
		if (RelationGetPartitionKey(rel)->strategy == PARTITION_STRATEGY_RANGE)
			walk_range(leaves, rel, slice, reach);
		else
			walk_list(leaves, rel, slice, reach);
		return;
	}
	desc = RelationGetPartitionDesc(rel, true);
	for (int part = 0; part < desc->nparts; part++)
		walk_child(leaves, desc, part, slice, reach);
}

static int
leaf_cmp(const ListCell *a, const ListCell *b)
{
	Oid			oid_a = ((IloadLeaf *) lfirst(a))->relid;
	Oid			oid_b = ((IloadLeaf *) lfirst(b))->relid;

	return (oid_a > oid_b) - (oid_a < oid_b);
}

/* "key op value" as a qualification on a table's column. */
static Expr *
bound_qual(Relation rel, IloadKey *key, StrategyNumber strategy, Datum value)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), key->attnum - 1);
	Oid			operator = get_opfamily_member(key->opfamily, key->optype, key->optype, strategy);
	Var		   *var = makeVar(1, key->attnum, att->atttypid, att->atttypmod, att->attcollation, 0);
	Const	   *constant = makeConst(key->type, -1, key->collation, key->typlen, value, false,
									 key->typbyval);
	Expr	   *qual = make_opclause(operator, BOOLOID, false, (Expr *) var, (Expr *) constant,
									 InvalidOid, key->collation);

	set_opfuncid((OpExpr *) qual);
	return qual;
}

/*
 * Does a partition that is itself the target hold rows of the slice only?  The
 * server's own prover tells, from its bounds and those of the tables above it.
 * Where the column is of another type than the operators take, it cannot.
 */
static bool
target_is_exact(Relation target, IloadSlice *slice)
{
	IloadKey   *key = slice->key;
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(target), key->attnum - 1);
	List	   *quals;

	if (!target->rd_rel->relispartition || slice->single || att->atttypid != key->optype ||
		key->kind == ILOAD_KEY_OTHER)
		return false;
	quals = list_make2(bound_qual(target, key, BTGreaterEqualStrategyNumber, slice->lower),
					   bound_qual(target, key, BTLessStrategyNumber, slice->upper));
	return predicate_implied_by(quals, RelationGetPartitionQual(target), false);
}

static IloadLeaves *
collect(Relation target, IloadSlice *slice, IloadLeavesUse use)
{
	IloadLeaves *leaves = palloc0(sizeof(IloadLeaves));
	Reach		reach = {.lower = slice->lower,.upper = slice->upper};
	ListCell   *lc;

	leaves->use = use;
	if (target->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		walk(leaves, target, slice, reach);
	else
		add_leaf(leaves, RelationGetRelid(target), target_is_exact(target, slice));
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
 * Lock the tables that a partition has to be attached to; true if there are
 * any.
 *
 * Those that have a default partition are locked before that one: ATTACH will
 * lock it exclusively, so two loads that had both begun to read it would wait
 * for each other for ever.
 */
static bool
lock_parents_of_gaps(IloadLeaves *leaves)
{
	bool		locked = false;
	ListCell   *lc;

	foreach(lc, leaves->gaps)
	{
		IloadGap   *gap = lfirst(lc);

		if (leaves->use <= ILOAD_LEAVES_WRITE ||
			(leaves->use == ILOAD_LEAVES_FILL_LATER && !OidIsValid(gap->default_leaf)))
			continue;
		if (!iload_class_ownercheck(gap->parent, GetUserId()))
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
 *
 * Where partitions that are missing are to be made now, nobody else can make one any
 * more.
 *
 * The caller holds ROW EXCLUSIVE on "target" and the slice lock; to read, ACCESS
 * SHARE on "target" is enough.
 */
IloadLeaves *
iload_leaves_lock(Relation target, IloadSlice *slice, IloadLeavesUse use)
{
	IloadLeaves *leaves = collect(target, slice, use);

	if (lock_parents_of_gaps(leaves))
		leaves = collect(target, slice, use);
	for (;;)
	{
		IloadLeaves *again;
		ListCell   *lc;

		foreach(lc, leaves->leaves)
		{
			IloadLeaf  *leaf = lfirst(lc);

			LockRelationOid(leaf->relid,
							use == ILOAD_LEAVES_READ ? AccessShareLock :
							leaf->exact ? ShareRowExclusiveLock : RowExclusiveLock);
		}
		again = collect(target, slice, use);
		if (same_leaves(leaves, again))
			return again;
		leaves = again;
	}
}

/* The bytes of the leaves' files, as far as they are heaps. */
uint64
iload_leaves_size(IloadLeaves *leaves)
{
	uint64		size = 0;
	ListCell   *lc;

	foreach(lc, leaves->leaves)
	{
		Relation	rel = table_open(((IloadLeaf *) lfirst(lc))->relid, NoLock);

		if (rel->rd_rel->relkind == RELKIND_RELATION)
			size += (uint64) RelationGetNumberOfBlocks(rel) * BLCKSZ;
		table_close(rel, NoLock);
	}
	return size;
}

/*
 * Was a leaf made, or its definition or file changed, by a transaction that the
 * snapshot does not see?  Its entry in pg_class tells.
 */
bool
iload_leaves_defined_after(IloadLeaves *leaves, Snapshot snapshot)
{
	bool		result = false;
	ListCell   *lc;

	foreach(lc, leaves->leaves)
	{
		Oid			relid = ((IloadLeaf *) lfirst(lc))->relid;
		HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
		TransactionId xmin;

		if (!HeapTupleIsValid(tuple))
			elog(ERROR, "cache lookup failed for relation %u", relid);
		xmin = HeapTupleHeaderGetXmin(tuple->t_data);
		result = result || (!TransactionIdIsCurrentTransactionId(xmin) &&
							XidInMVCCSnapshot(xmin, snapshot));
		ReleaseSysCache(tuple);
	}
	return result;
}
