/*
 * sibling.h
 *		The sibling that a new partition takes after.
 */
#ifndef ILOAD_SIBLING_H
#define ILOAD_SIBLING_H

#include "leaf.h"

typedef struct IloadSibling
{
	Oid			relid;			/* the nearest one, or InvalidOid */
	Datum		lower;			/* its bounds; of a list, its last value */
	Datum		upper;
	bool		bounded;		/* both bounds are finite */
	bool		has_floor;		/* the end of the partition before the gap */
	Datum		floor;
	bool		has_ceiling;	/* the start of the partition after it */
	Datum		ceiling;
} IloadSibling;

extern bool iload_partitioned_by_column(Relation rel, const char *column);
extern void iload_sibling_of_value(const IloadKey *key, Oid parent, IloadSibling *sibling);
extern void iload_sibling_of_range(IloadKey *key, const IloadGap *gap, Datum at,
								   IloadSibling *sibling, Datum *lower, Datum *upper);
extern char *iload_sibling_name(IloadKey *key, const IloadSibling *sibling, Datum lower);
extern char *iload_sibling_suffix(IloadKey *key, Datum lower);

#endif
