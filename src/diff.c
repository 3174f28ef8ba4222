/*
 * diff.c
 *		The method diff: only rows that differ are deleted and inserted.
 *
 * The hashes of the staged rows, each with its place in the spool, and those of
 * the stored rows, each with its place in the table, are sorted and merged as
 * two multisets.  What only the first has is inserted, what only the second has
 * is deleted.  128-bit hashes that are equal count as equal rows.  Rows in parts
 * of the hash space where the sketch found no difference are left out; if they
 * are most rows, the others are copied, so that the spool need not be read
 * again to insert a few.
 *
 * The server's tuplesort does it in memory where the hashes fit and in
 * temporary files where not; the parts share work_mem, so that memory stays
 * bounded whatever the number of rows.
 */
#include "postgres.h"

#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/tuplesort.h"

#include "compat.h"
#include "diff.h"
#include "progress.h"

/* Columns of a sort: the hash, then where the row lies. */
typedef enum PlaceColumn
{
	COLUMN_HI,
	COLUMN_LO,
	COLUMN_LEAF,				/* OID; of staged rows, zero */
	COLUMN_PLACE,				/* see encode_tid; of staged rows, its ordinal */
	PLACE_NCOLUMNS
} PlaceColumn;

typedef struct PlaceSort
{
	Tuplesortstate *sort;
	TupleTableSlot *slot;
	bool		done;
} PlaceSort;

static int64
encode_tid(ItemPointer tid)
{
	return ((int64) ItemPointerGetBlockNumberNoCheck(tid) << 16) |
		ItemPointerGetOffsetNumberNoCheck(tid);
}

static void
decode_tid(int64 place, ItemPointer tid)
{
	ItemPointerSet(tid, (BlockNumber) (place >> 16), (OffsetNumber) (place & 0xFFFF));
}

static TupleDesc
place_desc(void)
{
	TupleDesc	desc = CreateTemplateTupleDesc(PLACE_NCOLUMNS);

	for (int i = 0; i < PLACE_NCOLUMNS; i++)
		TupleDescInitEntry(desc, i + 1, "place", INT8OID, -1, 0);
	return desc;
}

/* A sort of places by two neighbouring columns, the first one given. */
static void
place_sort_begin(PlaceSort *places, PlaceColumn first, int memory)
{
	AttrNumber	attnums[2] = {first + 1, first + 2};
	Oid			operators[2] = {Int8LessOperator, Int8LessOperator};
	Oid			collations[2] = {InvalidOid, InvalidOid};
	bool		nulls_first[2] = {false, false};
	TupleDesc	desc = place_desc();

	places->sort = tuplesort_begin_heap(desc, 2, attnums, operators, collations,
										nulls_first, memory, NULL, TUPLESORT_NONE);
	places->slot = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	places->done = false;
}

static void
place_sort_put(PlaceSort *places, TupleTableSlot *slot, IloadRowHash hash, Oid leaf, int64 place)
{
	ExecClearTuple(slot);
	slot->tts_values[COLUMN_HI] = Int64GetDatum((int64) hash.hi);
	slot->tts_values[COLUMN_LO] = Int64GetDatum((int64) hash.lo);
	slot->tts_values[COLUMN_LEAF] = Int64GetDatum((int64) leaf);
	slot->tts_values[COLUMN_PLACE] = Int64GetDatum(place);
	memset(slot->tts_isnull, false, PLACE_NCOLUMNS * sizeof(bool));
	ExecStoreVirtualTuple(slot);
	tuplesort_puttupleslot(places->sort, slot);
}

static void
place_sort_next(PlaceSort *places)
{
	CHECK_FOR_INTERRUPTS();
	places->done = !tuplesort_gettupleslot(places->sort, true, false, places->slot, NULL);
	if (!places->done)
		slot_getallattrs(places->slot);
}

static inline int64
place_get(PlaceSort *places, PlaceColumn column)
{
	return DatumGetInt64(places->slot->tts_values[column]);
}

static void
place_sort_end(PlaceSort *places)
{
	ExecDropSingleTupleTableSlot(places->slot);
	tuplesort_end(places->sort);
}

/* A sort that rows are put into, and the slot to put them by. */
typedef struct PlaceInput
{
	const IloadSketch *sketch;
	PlaceSort  *places;
	TupleTableSlot *slot;
} PlaceInput;

static void
put_live_row(Oid leaf, ItemPointer tid, IloadRowHash hash, void *arg)
{
	PlaceInput *input = arg;

	if (iload_sketch_differs(input->sketch, hash))
		place_sort_put(input->places, input->slot, hash, leaf, encode_tid(tid));
}

/*
 * Sort the hashes of the spool's rows that may differ, with the ordinal of each
 * in "candidates": a copy of just these rows, or the spool itself.
 */
static void
sort_staged(IloadStage *stage, PlaceInput *input, Tuplestorestate *candidates)
{
	IloadRowHasher *hasher = iload_columns_hasher(stage->columns);
	TupleTableSlot *row = MakeSingleTupleTableSlot(stage->columns->desc, &TTSOpsMinimalTuple);
	bool		copy = candidates != stage->spool;
	int64		ordinal = 0;

	tuplestore_rescan(stage->spool);
	while (tuplestore_gettupleslot(stage->spool, true, false, row))
	{
		bool		should_free;
		MinimalTuple minimal = ExecFetchSlotMinimalTuple(row, &should_free);
		IloadRowHash hash;
		bool		differs;

		CHECK_FOR_INTERRUPTS();
		hash = iload_row_hash_minimal(hasher, minimal);
		differs = iload_sketch_differs(input->sketch, hash);
		if (differs)
			place_sort_put(input->places, input->slot, hash, InvalidOid, ordinal);
		if (differs && copy)
			tuplestore_puttupleslot(candidates, row);
		if (differs || !copy)
			ordinal++;
	}
	ExecDropSingleTupleTableSlot(row);
}

/* Compare the hashes of the two current rows. */
static int
cmp_hashes(PlaceSort *a, PlaceSort *b)
{
	for (PlaceColumn column = COLUMN_HI; column <= COLUMN_LO; column++)
	{
		int64		value_a = place_get(a, column);
		int64		value_b = place_get(b, column);

		if (value_a != value_b)
			return value_a < value_b ? -1 : 1;
	}
	return 0;
}

/* What the merge finds: stored rows to delete, staged rows to insert. */
typedef struct Differences
{
	PlaceSort	doomed;			/* by leaf and place */
	uint64		ndoomed;
	Tuplesortstate *fresh;		/* ordinals in "candidates" */
	uint64		nfresh;
	Tuplestorestate *candidates;	/* see sort_staged */
} Differences;

static void
merge_multisets(PlaceSort *staged, PlaceSort *stored, Differences *found)
{
	place_sort_next(staged);
	place_sort_next(stored);
	while (!staged->done || !stored->done)
	{
		int			cmp = staged->done ? 1 : stored->done ? -1 : cmp_hashes(staged, stored);

		if (cmp == 0)
		{
			place_sort_next(staged);
			place_sort_next(stored);
		}
		else if (cmp < 0)
		{
			tuplesort_putdatum(found->fresh, Int64GetDatum(place_get(staged, COLUMN_PLACE)), false);
			found->nfresh++;
			place_sort_next(staged);
		}
		else
		{
			tuplesort_puttupleslot(found->doomed.sort, stored->slot);
			found->ndoomed++;
			place_sort_next(stored);
		}
	}
}

static void
find_differences(IloadStage *stage, IloadLive *live, Snapshot snapshot, Differences *found)
{
	PlaceSort	staged,
				stored;
	PlaceInput	input = {.sketch = stage->sketch};

	found->candidates = iload_sketch_narrows(stage->sketch) ?
		tuplestore_begin_heap(false, false, work_mem / 16) : stage->spool;
	input.slot = MakeSingleTupleTableSlot(place_desc(), &TTSOpsVirtual);
	place_sort_begin(&staged, COLUMN_HI, work_mem / 8);
	input.places = &staged;
	sort_staged(stage, &input, found->candidates);
	tuplesort_performsort(staged.sort);

	place_sort_begin(&stored, COLUMN_HI, work_mem / 8);
	input.places = &stored;
	iload_live_scan(live, snapshot, put_live_row, &input);
	tuplesort_performsort(stored.sort);

	place_sort_begin(&found->doomed, COLUMN_LEAF, work_mem / 16);
	found->fresh = tuplesort_begin_datum(INT8OID, Int8LessOperator, InvalidOid, false,
										 work_mem / 16, NULL, TUPLESORT_NONE);
	found->ndoomed = 0;
	found->nfresh = 0;
	merge_multisets(&staged, &stored, found);
	place_sort_end(&staged);
	place_sort_end(&stored);
	ExecDropSingleTupleTableSlot(input.slot);
}

/* Write the places of the rows to delete, in the order of their places. */
static Tuplestorestate *
collect_doomed(Differences *found)
{
	PlaceSort  *doomed = &found->doomed;
	Tuplestorestate *store = tuplestore_begin_heap(false, false, work_mem / 16);
	TupleDesc	desc = iload_rewrite_doomed_desc();

	tuplesort_performsort(doomed->sort);
	for (place_sort_next(doomed); !doomed->done; place_sort_next(doomed))
	{
		ItemPointerData tid;
		Datum		values[2];
		bool		isnull[2] = {false, false};

		decode_tid(place_get(doomed, COLUMN_PLACE), &tid);
		values[0] = ObjectIdGetDatum((Oid) place_get(doomed, COLUMN_LEAF));
		values[1] = PointerGetDatum(&tid);
		tuplestore_putvalues(store, desc, values, isnull);
	}
	return store;
}

/* Write the rows to insert, in the order in which the query gave them. */
static Tuplestorestate *
collect_fresh(Differences *found, TupleDesc desc)
{
	Tuplestorestate *store = tuplestore_begin_heap(false, false, work_mem / 16);
	TupleTableSlot *row = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	int64		ordinal = -1;
	Datum		wanted;
	bool		isnull;

	tuplesort_performsort(found->fresh);
	tuplestore_rescan(found->candidates);
	while (iload_tuplesort_getdatum(found->fresh, true, &wanted, &isnull))
	{
		while (ordinal < DatumGetInt64(wanted))
		{
			CHECK_FOR_INTERRUPTS();
			if (!tuplestore_gettupleslot(found->candidates, true, false, row))
				elog(ERROR, "spool ended before row " INT64_FORMAT, DatumGetInt64(wanted));
			ordinal++;
		}
		tuplestore_puttupleslot(store, row);
	}
	ExecDropSingleTupleTableSlot(row);
	return store;
}

/*
 * Find what differs between the staged rows and the slice as "snapshot" sees
 * it, and write just that.
 *
 * Where nothing is the same, the stored rows are not named one by one, if no
 * others can be in the slice by then, and the rows to insert are the spool.
 */
void
iload_diff_apply(IloadStage *stage, IloadLive *live, Snapshot snapshot, IloadRewrite *rewrite)
{
	Differences found;
	bool		all_fresh,
				all_doomed;

	iload_progress_phase(live->slice->target, ILOAD_PHASE_SEARCHING, 0);
	find_differences(stage, live, snapshot, &found);
	all_fresh = found.nfresh == rewrite->nfresh;
	all_doomed = found.ndoomed == rewrite->ndoomed && live->direct;
	rewrite->ndoomed = found.ndoomed;
	rewrite->nfresh = found.nfresh;
	if (!all_doomed)
		rewrite->doomed = collect_doomed(&found);
	if (!all_fresh)
		rewrite->fresh = collect_fresh(&found, stage->columns->desc);
	place_sort_end(&found.doomed);
	tuplesort_end(found.fresh);
	if (found.candidates != stage->spool)
		tuplestore_end(found.candidates);

	iload_rewrite_apply(rewrite);
	if (!all_doomed)
		tuplestore_end(rewrite->doomed);
	if (!all_fresh)
		tuplestore_end(rewrite->fresh);
}
