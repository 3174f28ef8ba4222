/*
 * difference.c
 *		In which rows, and in what of them, two images of a table differ.
 *
 * Rows that both images have, as multisets, cancel each other out; what is left is
 * counted, a few rows are shown, and the columns that differ are named.  For that rows
 * are paired: by the primary key, or else by the columns whose values, taken together,
 * are the same on both sides.
 *
 * Memory is bounded: the rows are in tuplestores, the sorts share work_mem, and pairs
 * are looked for among as many rows as fit into it.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/bitmapset.h"
#include "nodes/value.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "difference.h"
#include "place_sort.h"

/* Rows of each side that are shown, and bytes of a row. */
#define MAX_SAMPLES		5
#define MAX_SAMPLE_SIZE 300

/* One side: its rows, and which of them the other side has not. */
typedef struct Side
{
	const IloadImage *image;
	Tuplestorestate *rows;
	Tuplestorestate *only;		/* rows that only this side has */
	uint64		nonly;
} Side;

static void
sort_side(Side *side, IloadPlaceSort *places)
{
	IloadRowHasher *hasher = iload_image_hasher(side->image);
	TupleTableSlot *slot = MakeSingleTupleTableSlot(side->image->desc, &TTSOpsMinimalTuple);
	int64		ordinal = 0;

	iload_place_sort_begin(places, ILOAD_PLACE_HI, work_mem / 8);
	tuplestore_rescan(side->rows);
	while (tuplestore_gettupleslot(side->rows, true, false, slot))
	{
		bool		should_free;
		MinimalTuple minimal = ExecFetchSlotMinimalTuple(slot, &should_free);

		CHECK_FOR_INTERRUPTS();
		iload_place_sort_put(places, iload_row_hash_minimal(hasher, minimal), InvalidOid, ordinal++);
	}
	ExecDropSingleTupleTableSlot(slot);
	iload_place_sort_perform(places);
}

/* The rows of the ordinals that were put into "found". */
static void
collect_only(Side *side, IloadPlaceSort *found)
{
	TupleTableSlot *slot = MakeSingleTupleTableSlot(side->image->desc, &TTSOpsMinimalTuple);
	int64		ordinal = -1;

	side->only = tuplestore_begin_heap(true, false, work_mem / 8);
	tuplestore_rescan(side->rows);
	for (iload_place_sort_perform(found); !found->done; iload_place_sort_next(found))
	{
		while (ordinal < iload_place_sort_get(found, ILOAD_PLACE_ROW))
		{
			if (!tuplestore_gettupleslot(side->rows, true, false, slot))
				elog(ERROR, "rows of table %s ended early", side->image->name);
			ordinal++;
		}
		tuplestore_puttupleslot(side->only, slot);
		side->nonly++;
	}
	ExecDropSingleTupleTableSlot(slot);
}

/* Let the rows that both sides have cancel each other out. */
static void
subtract_sides(Side *old, Side *new)
{
	IloadPlaceSort old_places,
				new_places,
				only_old,
				only_new;

	sort_side(old, &old_places);
	sort_side(new, &new_places);
	iload_place_sort_begin(&only_old, ILOAD_PLACE_LEAF, work_mem / 8);
	iload_place_sort_begin(&only_new, ILOAD_PLACE_LEAF, work_mem / 8);
	while (!old_places.done || !new_places.done)
	{
		int			cmp = iload_place_sort_cmp(&old_places, &new_places);

		if (cmp < 0)
			iload_place_sort_put_current(&only_old, &old_places);
		else if (cmp > 0)
			iload_place_sort_put_current(&only_new, &new_places);
		if (cmp <= 0)
			iload_place_sort_next(&old_places);
		if (cmp >= 0)
			iload_place_sort_next(&new_places);
	}
	collect_only(old, &only_old);
	collect_only(new, &only_new);
	iload_place_sort_end(&only_old);
	iload_place_sort_end(&only_new);
	iload_place_sort_end(&old_places);
	iload_place_sort_end(&new_places);
}

/* A row as text, in the manner of a composite value. */
static char *
row_text(TupleTableSlot *slot)
{
	TupleDesc	desc = slot->tts_tupleDescriptor;
	StringInfoData text;
	bool		first = true;

	initStringInfo(&text);
	slot_getallattrs(slot);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		Oid			output;
		bool		varlena;

		if (att->attisdropped)
			continue;
		appendStringInfoString(&text, first ? "(" : ", ");
		first = false;
		if (slot->tts_isnull[i])
		{
			appendStringInfoString(&text, "null");
			continue;
		}
		getTypeOutputInfo(att->atttypid, &output, &varlena);
		appendStringInfoString(&text, OidOutputFunctionCall(output, slot->tts_values[i]));
	}
	appendStringInfoChar(&text, ')');
	if (text.len > MAX_SAMPLE_SIZE)
	{
		text.		len = pg_mbcliplen(text.data, text.len, MAX_SAMPLE_SIZE);
		text.		data[text.len] = '\0';

		appendStringInfoString(&text, "...");
	}
	return text.data;
}

static List *
show_rows(Side *side, List *samples)
{
	TupleTableSlot *slot;

	if (side->nonly == 0)
		return samples;
	slot = MakeSingleTupleTableSlot(side->image->desc, &TTSOpsMinimalTuple);
	tuplestore_rescan(side->only);
	while (list_length(samples) < MAX_SAMPLES &&
		   tuplestore_gettupleslot(side->only, true, false, slot))
		samples = lappend(samples, makeString(row_text(slot)));
	ExecDropSingleTupleTableSlot(slot);
	return samples;
}

/* Have both sides the same columns in the same places? */
static bool
same_columns(const IloadImage *a, const IloadImage *b)
{
	if (!OidIsValid(a->relid) || !OidIsValid(b->relid) ||
		a->desc->natts != b->desc->natts || a->ncompared != b->ncompared)
		return false;
	for (int i = 0; i < a->ncompared; i++)
	{
		Form_pg_attribute att_a = TupleDescAttr(a->desc, a->compared[i] - 1);
		Form_pg_attribute att_b = TupleDescAttr(b->desc, b->compared[i] - 1);

		if (a->compared[i] != b->compared[i] || att_a->atttypid != att_b->atttypid)
			return false;
	}
	return true;
}

/* Hashers of single columns, in the order of the compared ones. */
static IloadRowHasher **
column_hashers(const IloadImage *image)
{
	IloadRowHasher **hashers = palloc(image->ncompared * sizeof(IloadRowHasher *));

	for (int i = 0; i < image->ncompared; i++)
		hashers[i] = iload_row_hasher_create(image->desc, 1, &image->compared[i]);
	return hashers;
}

/* The fingerprints of each single column over the rows that only this side has. */
static IloadFingerprint *
sum_columns(Side *side)
{
	const IloadImage *image = side->image;
	IloadRowHasher **hashers = column_hashers(image);
	IloadFingerprint *sums = palloc0(image->ncompared * sizeof(IloadFingerprint));
	TupleTableSlot *slot = MakeSingleTupleTableSlot(image->desc, &TTSOpsMinimalTuple);

	tuplestore_rescan(side->only);
	while (tuplestore_gettupleslot(side->only, true, false, slot))
	{
		slot_getallattrs(slot);
		for (int i = 0; i < image->ncompared; i++)
			iload_fingerprint_add(&sums[i],
								  iload_row_hash_values(hashers[i], slot->tts_values,
														slot->tts_isnull));
	}
	ExecDropSingleTupleTableSlot(slot);
	return sums;
}

/* Which compared columns, by position, have not the same values on both sides? */
static Bitmapset *
columns_with_other_values(Side *old, Side *new)
{
	IloadFingerprint *sums_old = sum_columns(old);
	IloadFingerprint *sums_new = sum_columns(new);
	Bitmapset  *differing = NULL;

	for (int i = 0; i < old->image->ncompared; i++)
	{
		if (!iload_fingerprint_equal(&sums_old[i], &sums_new[i]))
			differing = bms_add_member(differing, i);
	}
	return differing;
}

/* The positions of the primary key among the compared columns; NULL where there is none. */
static Bitmapset *
primary_key(const IloadImage *image)
{
	Relation	rel = try_relation_open(image->relid, NoLock);
	Bitmapset  *attnums;
	Bitmapset  *key = NULL;

	if (rel == NULL)
		return NULL;
	attnums = RelationGetIndexAttrBitmap(rel, INDEX_ATTR_BITMAP_PRIMARY_KEY);
	for (int i = 0; i < image->ncompared; i++)
	{
		if (bms_is_member(image->compared[i] - FirstLowInvalidHeapAttributeNumber, attnums))
			key = bms_add_member(key, i);
	}
	if (bms_num_members(key) != bms_num_members(attnums))
		key = NULL;
	relation_close(rel, NoLock);
	return key;
}

/* A row that waits for its partner. */
typedef struct PairEntry
{
	IloadRowHash key;
	MinimalTuple row;
} PairEntry;

static IloadRowHasher *
key_hasher(const IloadImage *image, Bitmapset *key)
{
	AttrNumber *attnums = palloc(image->ncompared * sizeof(AttrNumber));
	int			n = 0;

	for (int i = bms_next_member(key, -1); i >= 0; i = bms_next_member(key, i))
		attnums[n++] = image->compared[i];
	return iload_row_hasher_create(image->desc, n, attnums);
}

/*
 * The rows that only this side has, by key, as far as they fit into work_mem.  All is in
 * "context".
 */
static HTAB *
rows_by_key(Side *side, IloadRowHasher *hasher, MemoryContext context)
{
	HASHCTL		control = {
		.keysize = sizeof(IloadRowHash),
		.entrysize = sizeof(PairEntry),
		.hcxt = context
	};
	HTAB	   *table = hash_create("idempotent_load pairs", 256, &control,
									HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	TupleTableSlot *slot = MakeSingleTupleTableSlot(side->image->desc, &TTSOpsMinimalTuple);
	Size		size = 0;

	tuplestore_rescan(side->only);
	while (size < (Size) work_mem * 1024 / 2 &&
		   tuplestore_gettupleslot(side->only, true, false, slot))
	{
		bool		should_free;
		MinimalTuple minimal = ExecFetchSlotMinimalTuple(slot, &should_free);
		IloadRowHash key = iload_row_hash_minimal(hasher, minimal);
		bool		found;
		PairEntry  *entry = hash_search(table, &key, HASH_ENTER, &found);
		MemoryContext old;

		if (found)
			continue;
		old = MemoryContextSwitchTo(context);
		entry->row = ExecCopySlotMinimalTuple(slot);
		MemoryContextSwitchTo(old);
		size += minimal->t_len + sizeof(PairEntry);
	}
	ExecDropSingleTupleTableSlot(slot);
	return table;
}

/* By how much of the greater one do two floating-point values differ? */
static double
relative_difference(Oid type, Datum a, Datum b)
{
	double		x = type == FLOAT4OID ? DatumGetFloat4(a) : DatumGetFloat8(a);
	double		y = type == FLOAT4OID ? DatumGetFloat4(b) : DatumGetFloat8(b);

	if (isnan(x) || isnan(y) || isinf(x) || isinf(y))
		return HUGE_VAL;
	return fabs(x - y) / Max(fabs(x), fabs(y));
}

/* What the comparison of pairs finds. */
typedef struct PairResult
{
	uint64		npairs;
	Bitmapset  *differing;		/* positions of columns */
	double		relative;
} PairResult;

static void
compare_pair(const IloadImage *image, IloadRowHasher **hashers,
			 TupleTableSlot *a, TupleTableSlot *b, PairResult *result)
{
	slot_getallattrs(a);
	slot_getallattrs(b);
	result->npairs++;
	for (int i = 0; i < image->ncompared; i++)
	{
		IloadRowHash hash_a = iload_row_hash_values(hashers[i], a->tts_values, a->tts_isnull);
		IloadRowHash hash_b = iload_row_hash_values(hashers[i], b->tts_values, b->tts_isnull);
		int			column = image->compared[i] - 1;
		Oid			type = getBaseType(TupleDescAttr(image->desc, column)->atttypid);

		if (hash_a.lo == hash_b.lo && hash_a.hi == hash_b.hi)
			continue;
		result->differing = bms_add_member(result->differing, i);
		if (type != FLOAT4OID && type != FLOAT8OID)
			continue;
		if (a->tts_isnull[column] || b->tts_isnull[column])
			result->relative = HUGE_VAL;
		else
			result->relative = Max(result->relative,
								   relative_difference(type, a->tts_values[column],
													   b->tts_values[column]));
	}
}

/* Pair rows of both sides by a key, and see in which columns they differ. */
static PairResult
compare_pairs(Side *old, Side *new, Bitmapset *key)
{
	const IloadImage *image = old->image;
	IloadRowHasher *hasher = key_hasher(image, key);
	IloadRowHasher **hashers = column_hashers(image);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "idempotent_load pairs",
												  ALLOCSET_DEFAULT_SIZES);
	HTAB	   *rows = rows_by_key(old, hasher, context);
	TupleTableSlot *slot = MakeSingleTupleTableSlot(image->desc, &TTSOpsMinimalTuple);
	TupleTableSlot *partner = MakeSingleTupleTableSlot(image->desc, &TTSOpsMinimalTuple);
	PairResult	result = {0};

	tuplestore_rescan(new->only);
	while (tuplestore_gettupleslot(new->only, true, false, slot))
	{
		bool		should_free;
		IloadRowHash hash;
		PairEntry  *entry;

		CHECK_FOR_INTERRUPTS();
		hash = iload_row_hash_minimal(hasher, ExecFetchSlotMinimalTuple(slot, &should_free));
		entry = hash_search(rows, &hash, HASH_FIND, NULL);
		if (entry == NULL)
			continue;
		ExecStoreMinimalTuple(entry->row, partner, false);
		compare_pair(image, hashers, partner, slot, &result);
	}
	ExecDropSingleTupleTableSlot(slot);
	ExecDropSingleTupleTableSlot(partner);
	MemoryContextDelete(context);
	return result;
}

static Bitmapset *
other_columns(const IloadImage *image, Bitmapset *columns)
{
	return bms_difference(bms_add_range(NULL, 0, image->ncompared - 1), columns);
}

/* Are all these columns of floating-point type? */
static bool
all_floats(const IloadImage *image, Bitmapset *columns)
{
	for (int i = bms_next_member(columns, -1); i >= 0; i = bms_next_member(columns, i))
	{
		Oid			type = getBaseType(TupleDescAttr(image->desc, image->compared[i] - 1)->atttypid);

		if (type != FLOAT4OID && type != FLOAT8OID)
			return false;
	}
	return true;
}

/*
 * Name the columns that differ.  Where rows can be paired by the primary key, these
 * pairs tell.  Else, where as many rows are added as are missing, the columns that have
 * not the same values on both sides are it, and the others pair the rows.
 */
static void
compare_columns(Side *old, Side *new, IloadDifference *difference)
{
	const IloadImage *image = old->image;
	Bitmapset  *key = primary_key(image);
	PairResult	pairs = {0};
	Bitmapset  *differing;

	if (key != NULL)
		pairs = compare_pairs(old, new, key);
	differing = pairs.differing;
	if (pairs.npairs == 0 && old->nonly == new->nonly)
	{
		differing = columns_with_other_values(old, new);
		key = other_columns(image, differing);
		if (differing == NULL)
			difference->permuted = true;
		else if (key != NULL)
			pairs = compare_pairs(old, new, key);
	}
	for (int i = bms_next_member(differing, -1); i >= 0; i = bms_next_member(differing, i))
	{
		char	   *name = NameStr(TupleDescAttr(image->desc, image->compared[i] - 1)->attname);

		if (!list_member(difference->columns, makeString(name)))
			difference->columns = lappend(difference->columns, makeString(pstrdup(name)));
	}
	if (!all_floats(image, differing) || differing == NULL || old->nonly != new->nonly)
		difference->floats = false;
	difference->relative = Max(difference->relative, pairs.relative);
}

static IloadDifference *
find_difference(List **differences, char *relation)
{
	IloadDifference *difference;
	ListCell   *lc;

	foreach(lc, *differences)
	{
		difference = lfirst(lc);
		if (strcmp(difference->relation, relation) == 0)
			return difference;
	}
	difference = palloc0(sizeof(IloadDifference));
	difference->relation = relation;
	difference->floats = true;
	difference->readable = true;
	*differences = lappend(*differences, difference);
	return difference;
}

/*
 * Add the difference of two images of a table to a list of IloadDifference, one for each
 * root.  "old" and "new" are the rows that one of them may have more often than the
 * other, and are ended.  Allocates in the current context.
 */
List *
iload_difference_add(List *differences, const IloadImage *earlier, const IloadImage *later,
					 Tuplestorestate *old_rows, Tuplestorestate *new_rows)
{
	IloadDifference *difference = find_difference(&differences, later->root);
	Side		old = {.image = earlier,.rows = old_rows};
	Side		new = {.image = later,.rows = new_rows};

	subtract_sides(&old, &new);
	if (earlier->fingerprint.rows + new.nonly != later->fingerprint.rows + old.nonly)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not compare the rows of table %s", later->name),
				 errdetail("Another session has written rows that the job wrote, too."),
				 errhint("Run the check again.")));
	difference->added += new.nonly;
	difference->missing += old.nonly;
	difference->readable = difference->readable &&
		(earlier->readable || old.nonly == 0) && (later->readable || new.nonly == 0);
	if (difference->readable)
	{
		difference->missing_rows = show_rows(&old, difference->missing_rows);
		difference->added_rows = show_rows(&new, difference->added_rows);
	}
	if (old.nonly > 0 && new.nonly > 0 && same_columns(earlier, later))
		compare_columns(&old, &new, difference);
	else
		difference->floats = false;
	tuplestore_end(old.only);
	tuplestore_end(new.only);
	tuplestore_end(old_rows);
	tuplestore_end(new_rows);
	return differences;
}
