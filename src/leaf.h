/*
 * leaf.h
 *		The leaves: the relations in which the rows of a slice are stored.
 */
#ifndef ILOAD_LEAF_H
#define ILOAD_LEAF_H

#include "nodes/pg_list.h"
#include "utils/snapshot.h"

#include "slice.h"

typedef struct IloadLeaf
{
	Oid			relid;
	bool		exact;			/* holds rows of the slice and no others */
} IloadLeaf;

/* A part of the slice for which a partitioned table has no partition. */
typedef struct IloadGap
{
	Oid			parent;
	Oid			default_leaf;	/* its default partition, or InvalidOid */
	bool		single;			/* list: the value "lower"; range: a span */
	Datum		lower;
	Datum		upper;
} IloadGap;

/* What the leaves are wanted for, and what is done about gaps. */
typedef enum IloadLeavesUse
{
	ILOAD_LEAVES_READ,			/* reading */
	ILOAD_LEAVES_WRITE,			/* writing; gaps stay */
	ILOAD_LEAVES_FILL_LATER,	/* writing; partitions may be made, after the
								 * query */
	ILOAD_LEAVES_FILL_NOW		/* writing; they are made next */
}			IloadLeavesUse;

typedef struct IloadLeaves
{
	IloadLeavesUse use;
	List	   *leaves;			/* of IloadLeaf, by OID */
	List	   *gaps;			/* of IloadGap, in order of the bounds */
	bool		all_exact;
} IloadLeaves;

extern IloadLeaves *iload_leaves_lock(Relation target, IloadSlice *slice,
									  IloadLeavesUse use);
extern uint64 iload_leaves_size(IloadLeaves *leaves);
extern bool iload_leaves_defined_after(IloadLeaves *leaves, Snapshot snapshot);

#endif
