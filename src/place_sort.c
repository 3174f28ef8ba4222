/*
 * place_sort.c
 *		Sorting the hashes of rows, each with its place.
 *
 * Two multisets of rows are compared by sorting the hashes of both and merging them;
 * the place tells afterwards which rows these are.  The server's tuplesort does it in
 * the memory given, and in temporary files beyond it.
 *
 * A sort lives in the context, and its files in the resource owner, that are current
 * when it is begun.
 */
#include "postgres.h"

#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"

#include "place_sort.h"

static TupleDesc
place_desc(void)
{
	TupleDesc	desc = CreateTemplateTupleDesc(ILOAD_PLACE_NCOLUMNS);

	for (int i = 0; i < ILOAD_PLACE_NCOLUMNS; i++)
		TupleDescInitEntry(desc, i + 1, "place", INT8OID, -1, 0);
	return desc;
}

/* Begin to sort by two neighbouring columns, the first one given; "memory" in kB. */
void
iload_place_sort_begin(IloadPlaceSort *places, IloadPlaceColumn first, int memory)
{
	AttrNumber	attnums[2] = {first + 1, first + 2};
	Oid			operators[2] = {Int8LessOperator, Int8LessOperator};
	Oid			collations[2] = {InvalidOid, InvalidOid};
	bool		nulls_first[2] = {false, false};
	TupleDesc	desc = place_desc();

	places->sort = tuplesort_begin_heap(desc, 2, attnums, operators, collations,
										nulls_first, memory, NULL, TUPLESORT_NONE);
	places->input = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	places->slot = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	places->done = false;
}

void
iload_place_sort_put(IloadPlaceSort *places, IloadRowHash hash, Oid leaf, int64 row)
{
	TupleTableSlot *slot = places->input;

	ExecClearTuple(slot);
	slot->tts_values[ILOAD_PLACE_HI] = Int64GetDatum((int64) hash.hi);
	slot->tts_values[ILOAD_PLACE_LO] = Int64GetDatum((int64) hash.lo);
	slot->tts_values[ILOAD_PLACE_LEAF] = Int64GetDatum((int64) leaf);
	slot->tts_values[ILOAD_PLACE_ROW] = Int64GetDatum(row);
	memset(slot->tts_isnull, false, ILOAD_PLACE_NCOLUMNS * sizeof(bool));
	ExecStoreVirtualTuple(slot);
	tuplesort_puttupleslot(places->sort, slot);
}

/* Put the current row of another sort. */
void
iload_place_sort_put_current(IloadPlaceSort *places, IloadPlaceSort *from)
{
	tuplesort_puttupleslot(places->sort, from->slot);
}

/* All rows have been put: go to the first one. */
void
iload_place_sort_perform(IloadPlaceSort *places)
{
	tuplesort_performsort(places->sort);
	iload_place_sort_next(places);
}

void
iload_place_sort_next(IloadPlaceSort *places)
{
	CHECK_FOR_INTERRUPTS();
	places->done = !tuplesort_gettupleslot(places->sort, true, false, places->slot, NULL);
	if (!places->done)
		slot_getallattrs(places->slot);
}

/* Compare the hashes of the two current rows; one that is done comes last. */
int
iload_place_sort_cmp(IloadPlaceSort *a, IloadPlaceSort *b)
{
	if (a->done || b->done)
		return a->done - b->done;
	for (IloadPlaceColumn column = ILOAD_PLACE_HI; column <= ILOAD_PLACE_LO; column++)
	{
		int64		value_a = iload_place_sort_get(a, column);
		int64		value_b = iload_place_sort_get(b, column);

		if (value_a != value_b)
			return value_a < value_b ? -1 : 1;
	}
	return 0;
}

void
iload_place_sort_end(IloadPlaceSort *places)
{
	ExecDropSingleTupleTableSlot(places->input);
	ExecDropSingleTupleTableSlot(places->slot);
	tuplesort_end(places->sort);
}
