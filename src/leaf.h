/*
 * leaf.h
 *		The leaves: the relations in which the rows of a slice are stored.
 */
#ifndef ILOAD_LEAF_H
#define ILOAD_LEAF_H

#include "nodes/pg_list.h"

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

typedef struct IloadLeaves
{
	List	   *leaves;			/* of IloadLeaf, by OID */
	List	   *gaps;			/* of IloadGap, in order of the bounds */
	bool		all_exact;
} IloadLeaves;

/* What is going to be done about gaps. */
typedef enum IloadGapsPlan
{
	ILOAD_GAPS_STAY,			/* nothing */
	ILOAD_GAPS_FILL_LATER,		/* partitions may be made, after the query */
	ILOAD_GAPS_FILL_NOW			/* they are made next */
} IloadGapsPlan;

extern IloadLeaves *iload_leaves_lock(Relation target, IloadSlice *slice,
									  IloadGapsPlan plan);

#endif
