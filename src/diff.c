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
#include "place_sort.h"
#include "progress.h"

/* A sort that rows are put into, where the sketch does not tell that they are the same. */
typedef struct PlaceInput
{
	const IloadSketch *sketch;
	IloadPlaceSort *places;
} PlaceInput;

static void
put_live_row(Oid leaf, ItemPointer tid, IloadRowHash hash, void *arg)
{
	PlaceInput *input = arg;

	if (iload_sketch_differs(input->sketch, hash))
		iload_place_sort_put(input->places, hash, leaf, iload_place_encode(tid));
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
			iload_place_sort_put(input->places, hash, InvalidOid, ordinal);
		if (differs && copy)
			tuplestore_puttupleslot(candidates, row);
		if (differs || !copy)
			ordinal++;
	}
	ExecDropSingleTupleTableSlot(row);
}

/* What the merge finds: stored rows to delete, staged rows to insert. */
typedef struct Differences
{
	IloadPlaceSort doomed;		/* by leaf and place */
	uint64		ndoomed;
	Tuplesortstate *fresh;		/* ordinals in "candidates" */
	uint64		nfresh;
	Tuplestorestate *candidates;	/* see sort_staged */
} Differences;

static void
merge_multisets(IloadPlaceSort *staged, IloadPlaceSort *stored, Differences *found)
{
	while (!staged->done || !stored->done)
	{
		int			cmp = iload_place_sort_cmp(staged, stored);

		if (cmp < 0)
		{
			tuplesort_putdatum(found->fresh,
							   Int64GetDatum(iload_place_sort_get(staged, ILOAD_PLACE_ROW)), false);
			found->nfresh++;
		}
		else if (cmp > 0)
		{
			iload_place_sort_put_current(&found->doomed, stored);
			found->ndoomed++;
		}
		if (cmp <= 0)
			iload_place_sort_next(staged);
		if (cmp >= 0)
			iload_place_sort_next(stored);
	}
}

static void
find_differences(IloadStage *stage, IloadLive *live, Snapshot snapshot, Differences *found)
{
	IloadPlaceSort staged,
				stored;
	PlaceInput	input = {.sketch = stage->sketch};

	found->candidates = iload_sketch_narrows(stage->sketch) ?
		tuplestore_begin_heap(false, false, work_mem / 16) : stage->spool;
	iload_place_sort_begin(&staged, ILOAD_PLACE_HI, work_mem / 8);
	input.places = &staged;
	sort_staged(stage, &input, found->candidates);
	iload_place_sort_perform(&staged);

	iload_place_sort_begin(&stored, ILOAD_PLACE_HI, work_mem / 8);
	input.places = &stored;
	iload_live_scan(live, snapshot, put_live_row, &input);
	iload_place_sort_perform(&stored);

	iload_place_sort_begin(&found->doomed, ILOAD_PLACE_LEAF, work_mem / 16);
	found->fresh = tuplesort_begin_datum(INT8OID, Int8LessOperator, InvalidOid, false,
										 work_mem / 16, NULL, TUPLESORT_NONE);
	found->ndoomed = 0;
	found->nfresh = 0;
	merge_multisets(&staged, &stored, found);
	iload_place_sort_end(&staged);
	iload_place_sort_end(&stored);
}

/* Write the places of the rows to delete, in the order of their places. */
static Tuplestorestate *
collect_doomed(Differences *found)
{
	IloadPlaceSort *doomed = &found->doomed;
	Tuplestorestate *store = tuplestore_begin_heap(false, false, work_mem / 16);
	TupleDesc	desc = iload_rewrite_doomed_desc();

	for (iload_place_sort_perform(doomed); !doomed->done; iload_place_sort_next(doomed))
	{
		ItemPointerData tid;
		Datum		values[2];
		bool		isnull[2] = {false, false};

		iload_place_decode(iload_place_sort_get(doomed, ILOAD_PLACE_ROW), &tid);
		values[0] = ObjectIdGetDatum((Oid) iload_place_sort_get(doomed, ILOAD_PLACE_LEAF));
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
	iload_place_sort_end(&found.doomed);
	tuplesort_end(found.fresh);
	if (found.candidates != stage->spool)
		tuplestore_end(found.candidates);

	iload_rewrite_apply(rewrite);
	if (!all_doomed)
		tuplestore_end(rewrite->doomed);
	if (!all_fresh)
		tuplestore_end(rewrite->fresh);
}
