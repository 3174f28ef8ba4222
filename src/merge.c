/*
 * merge.c
 *		The method merge: staged rows are put into the slice by key.
 *
 * A staged row whose key the slice lacks is inserted.  One whose key is there with
 * other content updates the stored row, unless that has the same or a higher version.
 * Stored rows whose key is not staged stay.  No index is needed: the key is looked up
 * by a join that the server plans, over rows that no other load can change, for the
 * slice lock is held.
 *
 * The content is the compared columns that the query gives, without the key; it is
 * the same where its hash is, as everywhere.
 *
 * Where the batch is about as large as the slice, both are hashed first, and staged
 * rows in parts of the hash space where the sketch finds no difference are left out:
 * an equal row is stored.  The others, and of a smaller batch all, are the candidates,
 * of which only key, version and hash go into the join.
 *
 * Memory stays bounded: what grows with the rows is in tuplestores and sorts, which
 * share work_mem.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "miscadmin.h"

#include "duplicates.h"
#include "error_fields.h"
#include "merge.h"
#include "named_store.h"
#include "place_sort.h"
#include "progress.h"
#include "query.h"

#define CANDIDATES_NAME "iload_candidates"

/* The batch is about as large as the slice where this share of it is staged. */
#define SKETCH_SHARE	0.5

/* Columns of a candidate, before those of its key, and behind them the version. */
enum
{
	CANDIDATE_ORDINAL,			/* in the spool */
	CANDIDATE_LO,				/* hash of its content */
	CANDIDATE_HI,
	CANDIDATE_KEY
};

/* What the join returns, before the loaded columns of the stored row. */
enum
{
	MATCH_ORDINAL,
	MATCH_LO,
	MATCH_HI,
	MATCH_LEAF,					/* null: no stored row has the key */
	MATCH_TID,
	MATCH_NEWER,				/* is the staged version higher? */
	MATCH_SAME_VERSION,
	MATCH_COLUMNS
};

/*
 * What a stored row is to the staged one with its key.  Where several stored rows have
 * a key, the first of these counts: one that is equal is what is wanted.
 */
typedef enum Verdict
{
	VERDICT_EQUAL,
	VERDICT_OLDER,				/* it is updated */
	VERDICT_SAME_VERSION,		/* it stays, and the user is told */
	VERDICT_NEWER,				/* it stays */
	VERDICT_ABSENT				/* there is none */
} Verdict;

typedef struct Merge
{
	IloadStage *stage;
	IloadLive  *live;
	const IloadMergeKey *key;
	Snapshot	snapshot;
	IloadRowHasher *content;
	bool		use_sketch;

	Tuplestorestate *candidates;
	TupleDesc	desc;			/* of a candidate */
	uint64		ncandidates;
	List	   *nulls;			/* the masks of null columns that come, ints */

	IloadPlaceSort matches;		/* by ordinal and verdict, which stand in for
								 * the hash; with the place of the stored row */
	uint64		nmatches;
	uint64		nabsent;
	uint64		nsame_version;
} Merge;

/*
 * A hasher of a row's content.  The key does not belong to it: it is equal by other
 * rules.
 */
static IloadRowHasher *
content_hasher(const IloadColumns *columns, const IloadMergeKey *key)
{
	AttrNumber *attnums = palloc(columns->desc->natts * sizeof(AttrNumber));
	int			n = 0;

	for (int i = 0; i < columns->ncompared; i++)
	{
		if (!iload_merge_key_has(key, columns->compared[i]))
			attnums[n++] = columns->compared[i];
	}
	return iload_row_hasher_create(columns->desc, n, attnums);
}

static int
version_index(const IloadMergeKey *key)
{
	return CANDIDATE_KEY + key->ncolumns;
}

static TupleDesc
candidate_desc(const IloadMergeKey *key, TupleDesc columns)
{
	TupleDesc	desc = CreateTemplateTupleDesc(version_index(key) + (key->version != NULL));

	for (int i = 0; i < CANDIDATE_KEY; i++)
		TupleDescInitEntry(desc, i + 1, "candidate", INT8OID, -1, 0);
	for (int i = 0; i < key->ncolumns; i++)
		TupleDescCopyEntry(desc, CANDIDATE_KEY + i + 1, columns, key->columns[i].position);
	if (key->version != NULL)
		TupleDescCopyEntry(desc, version_index(key) + 1, columns, key->version->position);
	return desc;
}

static void
put_candidate(Merge *merge, TupleTableSlot *row, int64 ordinal, IloadRowHash hash)
{
	const IloadMergeKey *key = merge->key;
	Datum		values[CANDIDATE_KEY + ILOAD_MERGE_KEY_MAX + 1];
	bool		isnull[CANDIDATE_KEY + ILOAD_MERGE_KEY_MAX + 1] = {false};
	uint32		nulls = 0;

	values[CANDIDATE_ORDINAL] = Int64GetDatum(ordinal);
	values[CANDIDATE_LO] = Int64GetDatum((int64) hash.lo);
	values[CANDIDATE_HI] = Int64GetDatum((int64) hash.hi);
	for (int i = 0; i < key->ncolumns; i++)
	{
		int			n = CANDIDATE_KEY + i;

		values[n] = slot_getattr(row, key->columns[i].position, &isnull[n]);
		if (isnull[n])
			nulls |= (uint32) 1 << i;
	}
	if (key->version != NULL)
		values[version_index(key)] = slot_getattr(row, key->version->position,
												  &isnull[version_index(key)]);
	tuplestore_putvalues(merge->candidates, merge->desc, values, isnull);
	merge->ncandidates++;
	if (merge->nulls == NIL || linitial_int(merge->nulls) != (int) nulls)
		merge->nulls = list_append_unique_int(merge->nulls, (int) nulls);
}

/* Collect the rows of the spool of which it is not known that an equal one is stored. */
static void
collect_candidates(Merge *merge, IloadDuplicates *duplicates, IloadRowHasher *hasher)
{
	IloadStage *stage = merge->stage;
	TupleTableSlot *row = MakeSingleTupleTableSlot(stage->columns->desc, &TTSOpsMinimalTuple);
	int64		ordinal = -1;

	merge->desc = candidate_desc(merge->key, stage->columns->desc);
	merge->candidates = tuplestore_begin_heap(false, false, work_mem / 8);
	tuplestore_rescan(stage->spool);
	while (tuplestore_gettupleslot(stage->spool, true, false, row))
	{
		bool		should_free;
		MinimalTuple minimal;

		CHECK_FOR_INTERRUPTS();
		if (iload_duplicates_skip(duplicates, ++ordinal))
			continue;
		minimal = ExecFetchSlotMinimalTuple(row, &should_free);
		if (merge->use_sketch &&
			!iload_sketch_differs(stage->sketch, iload_row_hash_minimal(hasher, minimal)))
			continue;
		put_candidate(merge, row, ordinal, iload_row_hash_minimal(merge->content, minimal));
	}
	ExecDropSingleTupleTableSlot(row);
}

/*
 * SQL text that looks up the keys of the candidates of which the columns in the mask
 * "nulls" are null.  Their columns go by names of ours, since the target's may be any.
 */
static char *
match_text(const Merge *merge, uint32 nulls)
{
	const IloadMergeKey *key = merge->key;
	IloadSlice *slice = merge->live->slice;
	StringInfoData names,
				where;
	const char *newer = "true";
	const char *same = "false";

	initStringInfo(&names);
	initStringInfo(&where);
	for (int i = 1; i <= key->ncolumns; i++)
	{
		appendStringInfo(&names, ", k%d", i);
		appendStringInfo(&where, "%ss.k%d IS%s NULL", i > 1 ? " AND " : "", i,
						 (nulls >> (i - 1) & 1) != 0 ? "" : " NOT");
	}
	if (key->version != NULL)
	{
		const char *name = key->version->name;

		appendStringInfoString(&names, ", version");
		newer = psprintf("s.version %s t.%s OR t.%s IS NULL AND s.version IS NOT NULL",
						 key->version->op_gt, name, name);
		same = psprintf("s.version %s t.%s OR t.%s IS NULL AND s.version IS NULL",
						key->version->op_eq, name, name);
	}
	return psprintf(ILOAD_QUERY_MARK "SELECT s.ordinal, s.lo, s.hi, t.tableoid, %s, %s, %s, %s"
					" FROM " CANDIDATES_NAME " AS s (ordinal, lo, hi%s)"
					" LEFT JOIN %s AS t ON %s AND %s WHERE %s",
					merge->live->no_ctids == NULL ? "t.ctid" : "NULL::pg_catalog.tid",
					newer, same, iload_columns_list(merge->stage->columns, "t"),
					names.data, iload_slice_table(slice),
					iload_merge_key_condition(key, "s", nulls),
					iload_slice_predicate(slice, "t"), where.data);
}

static Verdict
judge(Merge *merge, const Datum *values, const bool *isnull)
{
	IloadRowHash stored;

	if (isnull[MATCH_LEAF])
		return VERDICT_ABSENT;
	stored = iload_row_hash_values(merge->content, values + MATCH_COLUMNS, isnull + MATCH_COLUMNS);
	if (stored.lo == (uint64) DatumGetInt64(values[MATCH_LO]) &&
		stored.hi == (uint64) DatumGetInt64(values[MATCH_HI]))
		return VERDICT_EQUAL;
	if (!isnull[MATCH_NEWER] && DatumGetBool(values[MATCH_NEWER]))
		return VERDICT_OLDER;
	if (!isnull[MATCH_SAME_VERSION] && DatumGetBool(values[MATCH_SAME_VERSION]))
		return VERDICT_SAME_VERSION;
	return VERDICT_NEWER;
}

static void
match_row(TupleTableSlot *slot, void *arg)
{
	Merge	   *merge = arg;
	IloadRowHash place;
	Verdict		verdict;
	Oid			leaf = InvalidOid;
	int64		tid = 0;

	slot_getallattrs(slot);
	verdict = judge(merge, slot->tts_values, slot->tts_isnull);
	if (verdict == VERDICT_ABSENT)
		merge->nabsent++;
	else
		leaf = DatumGetObjectId(slot->tts_values[MATCH_LEAF]);
	if (!slot->tts_isnull[MATCH_TID])
		tid = iload_place_encode((ItemPointer) DatumGetPointer(slot->tts_values[MATCH_TID]));
	place.hi = (uint64) DatumGetInt64(slot->tts_values[MATCH_ORDINAL]);
	place.lo = verdict;
	iload_place_sort_put(&merge->matches, place, leaf, tid);
	iload_progress_rows(++merge->nmatches);
}

/* Look up the keys of the candidates in the slice. */
static void
match_candidates(Merge *merge)
{
	IloadSlice *slice = merge->live->slice;
	QueryEnvironment *env = create_queryEnv();
	Oid			types[ILOAD_SLICE_NPARAMS];
	ListCell   *lc;

	register_ENR(env, iload_named_store_make(CANDIDATES_NAME, merge->desc, merge->candidates,
											 merge->ncandidates));
	iload_slice_param_types(slice, types);
	foreach(lc, merge->nulls)
	{
		char	   *text = match_text(merge, (uint32) lfirst_int(lc));
		Query	   *query = iload_query_analyze(iload_query_parse(text, "comparison"), text,
												"comparison", types, ILOAD_SLICE_NPARAMS, env);

		(void) iload_query_run(query, text, iload_slice_params(slice), env, merge->snapshot,
							   match_row, merge);
	}
}

static void
several_stored(Merge *merge, TupleTableSlot *row)
{
	ereport(ERROR,
			(errcode(ERRCODE_CARDINALITY_VIOLATION),
			 errmsg("slice %s of table \"%s\" has more than one row for a key that the query returned",
					iload_slice_text(merge->live->slice), merge->live->slice->table_name),
			 errdetail("The key is %s.", iload_merge_key_text(merge->key, row)),
			 errhint("Remove all but one of them, or name more columns in the key."),
			 iload_errtable(merge->live->slice->target)));
}

/* The staged row at an ordinal, at or behind the current one. */
static void
seek_row(Merge *merge, TupleTableSlot *row, int64 *current, int64 ordinal)
{
	while (*current < ordinal)
	{
		CHECK_FOR_INTERRUPTS();
		if (!tuplestore_gettupleslot(merge->stage->spool, true, false, row))
			elog(ERROR, "spool ended before row " INT64_FORMAT, ordinal);
		(*current)++;
	}
}

/* Add a row to those that are to be updated. */
static void
put_changed(IloadRewrite *rewrite, TupleTableSlot *changed, TupleTableSlot *row, Oid leaf,
			int64 place)
{
	int			nplace = changed->tts_tupleDescriptor->natts - row->tts_tupleDescriptor->natts;
	ItemPointerData tid;

	iload_place_decode(place, &tid);
	slot_getallattrs(row);
	ExecClearTuple(changed);
	changed->tts_values[0] = ObjectIdGetDatum(leaf);
	changed->tts_values[1] = PointerGetDatum(&tid);
	memset(changed->tts_isnull, false, nplace * sizeof(bool));
	for (int i = 0; i < row->tts_tupleDescriptor->natts; i++)
	{
		changed->tts_values[nplace + i] = row->tts_values[i];
		changed->tts_isnull[nplace + i] = row->tts_isnull[i];
	}
	ExecStoreVirtualTuple(changed);
	tuplestore_puttupleslot(rewrite->changed, changed);
	rewrite->nchanged++;
}

/* Tell the user of rows that are not what the query returned, and stay. */
static void
warn_same_version(Merge *merge, const char *key)
{
	ereport(WARNING,
			(errmsg("query returned " UINT64_FORMAT " rows with the version of the stored row and other content",
					merge->nsame_version),
			 errdetail("The stored rows stay as they are. The first key is %s.", key),
			 errhint("A row is updated by one with a higher version.")));
}

/* Sort out the matches: the rows to update and those to insert. */
static void
collect_changes(Merge *merge, IloadRewrite *rewrite)
{
	IloadPlaceSort *matches = &merge->matches;
	TupleDesc	desc = merge->stage->columns->desc;
	TupleTableSlot *row = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	TupleTableSlot *changed = MakeSingleTupleTableSlot(iload_rewrite_changed_desc(merge->stage->columns),
													   &TTSOpsVirtual);
	int64		current = -1;
	char	   *first_key = NULL;

	tuplestore_rescan(merge->stage->spool);
	while (!matches->done)
	{
		int64		ordinal = iload_place_sort_get(matches, ILOAD_PLACE_HI);
		Verdict		verdict = (Verdict) iload_place_sort_get(matches, ILOAD_PLACE_LO);
		Oid			leaf = (Oid) iload_place_sort_get(matches, ILOAD_PLACE_LEAF);
		int64		place = iload_place_sort_get(matches, ILOAD_PLACE_ROW);
		int			n = 0;

		for (; !matches->done && iload_place_sort_get(matches, ILOAD_PLACE_HI) == ordinal; n++)
			iload_place_sort_next(matches);
		if (verdict == VERDICT_EQUAL || (verdict == VERDICT_NEWER && n == 1))
			continue;
		seek_row(merge, row, &current, ordinal);
		if (n > 1)
			several_stored(merge, row);
		if (verdict == VERDICT_OLDER)
			put_changed(rewrite, changed, row, leaf, place);
		else if (verdict == VERDICT_ABSENT)
		{
			tuplestore_puttupleslot(rewrite->fresh, row);
			rewrite->nfresh++;
		}
		else if (merge->nsame_version++ == 0)
			first_key = iload_merge_key_text(merge->key, row);
	}
	ExecDropSingleTupleTableSlot(changed);
	ExecDropSingleTupleTableSlot(row);
	if (merge->nsame_version > 0)
		warn_same_version(merge, first_key);
}

/* The columns that an UPDATE sets: all that the query gives, but for the key. */
static Bitmapset *
columns_to_set(const IloadColumns *columns, const IloadMergeKey *key)
{
	Bitmapset  *set = NULL;

	for (int i = 1; i <= columns->desc->natts; i++)
	{
		if (!iload_merge_key_has(key, i))
			set = bms_add_member(set, i);
	}
	return set;
}

/* SQL text that finds the stored row of one to update by its key; rarely needed. */
static char *
changed_key(const Merge *merge)
{
	const IloadMergeKey *key = merge->key;
	StringInfoData text;

	initStringInfo(&text);
	for (int i = 0; i < key->ncolumns; i++)
	{
		const IloadMergeColumn *column = &key->columns[i];

		appendStringInfo(&text, "%s(t.%s %s u.c%d OR t.%s IS NULL AND u.c%d IS NULL)",
						 i > 0 ? " AND " : "", column->name, column->op_eq, column->position,
						 column->name, column->position);
	}
	return text.data;
}

/* Compare the hashes of all rows first, where that leaves out many of them. */
static void
finish_sketch(Merge *merge)
{
	double		staged = merge->stage->fingerprint.rows;

	if (staged < SKETCH_SHARE * iload_live_expected_rows(merge->live))
		return;
	(void) iload_live_fingerprint(merge->live, merge->snapshot, merge->stage->sketch);
	iload_sketch_finish(merge->stage->sketch);
	merge->use_sketch = iload_sketch_narrows(merge->stage->sketch);
}

/*
 * Find the rows to update and to insert in the slice as "snapshot" sees it, and put
 * them into "rewrite", for iload_merge_apply.
 *
 * Errors: a key that has several rows, staged or stored, none of which can be preferred.
 */
void
iload_merge_find(IloadStage *stage, IloadLive *live, const IloadMergeKey *key,
				 Snapshot snapshot, IloadRewrite *rewrite)
{
	Merge		merge = {.stage = stage,.live = live,.key = key,.snapshot = snapshot};
	IloadRowHasher *hasher = iload_columns_hasher(stage->columns);
	IloadDuplicates duplicates;

	merge.content = content_hasher(stage->columns, key);
	iload_duplicates_find(&duplicates, stage, key, merge.content);
	finish_sketch(&merge);

	iload_progress_phase(live->slice->target, ILOAD_PHASE_SEARCHING, 0);
	collect_candidates(&merge, &duplicates, hasher);
	iload_duplicates_end(&duplicates);
	iload_place_sort_begin(&merge.matches, ILOAD_PLACE_HI, work_mem / 8);
	match_candidates(&merge);
	tuplestore_end(merge.candidates);
	iload_place_sort_perform(&merge.matches);

	rewrite->set = columns_to_set(stage->columns, key);
	if (live->no_ctids != NULL)
		rewrite->changed_key = changed_key(&merge);
	if (merge.nabsent == stage->fingerprint.rows)
	{
		rewrite->fresh = stage->spool;
		rewrite->nfresh = merge.nabsent;
	}
	else
	{
		rewrite->fresh = tuplestore_begin_heap(false, false, work_mem / 16);
		rewrite->changed = tuplestore_begin_heap(false, false, work_mem / 16);
		collect_changes(&merge, rewrite);
	}
	iload_place_sort_end(&merge.matches);
}

/* Write what has been found, and release it. */
void
iload_merge_apply(IloadRewrite *rewrite, IloadStage *stage)
{
	if (rewrite->nchanged > 0 || rewrite->nfresh > 0)
		iload_rewrite_apply(rewrite);
	if (rewrite->changed != NULL)
		tuplestore_end(rewrite->changed);
	if (rewrite->fresh != stage->spool)
		tuplestore_end(rewrite->fresh);
}
