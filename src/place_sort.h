/*
 * place_sort.h
 *		Sorting the hashes of rows, each with its place.
 */
#ifndef ILOAD_PLACE_SORT_H
#define ILOAD_PLACE_SORT_H

#include "executor/tuptable.h"
#include "storage/itemptr.h"
#include "utils/tuplesort.h"

#include "row_hash.h"

/* Columns of a sort: the hash, then where the row lies. */
typedef enum IloadPlaceColumn
{
	ILOAD_PLACE_HI,
	ILOAD_PLACE_LO,
	ILOAD_PLACE_LEAF,			/* OID; of rows in a spool, zero */
	ILOAD_PLACE_ROW,			/* the caller's: an encoded TID, see
								 * iload_place_encode, or an ordinal */
	ILOAD_PLACE_NCOLUMNS
} IloadPlaceColumn;

typedef struct IloadPlaceSort
{
	Tuplesortstate *sort;
	TupleTableSlot *input;
	TupleTableSlot *slot;		/* the current row, unless done */
	bool		done;
} IloadPlaceSort;

extern void iload_place_sort_begin(IloadPlaceSort *places, IloadPlaceColumn first, int memory);
extern void iload_place_sort_put(IloadPlaceSort *places, IloadRowHash hash, Oid leaf, int64 row);
extern void iload_place_sort_put_current(IloadPlaceSort *places, IloadPlaceSort *from);
extern void iload_place_sort_perform(IloadPlaceSort *places);
extern void iload_place_sort_next(IloadPlaceSort *places);
extern int	iload_place_sort_cmp(IloadPlaceSort *a, IloadPlaceSort *b);
extern void iload_place_sort_end(IloadPlaceSort *places);

/* A TID as a number, in the order of the places. */
static inline int64
iload_place_encode(ItemPointer tid)
{
	return ((int64) ItemPointerGetBlockNumberNoCheck(tid) << 16) |
		ItemPointerGetOffsetNumberNoCheck(tid);
}

static inline void
iload_place_decode(int64 place, ItemPointer tid)
{
	ItemPointerSet(tid, (BlockNumber) (place >> 16), (OffsetNumber) (place & 0xFFFF));
}

static inline int64
iload_place_sort_get(IloadPlaceSort *places, IloadPlaceColumn column)
{
	return DatumGetInt64(places->slot->tts_values[column]);
}

#endif
