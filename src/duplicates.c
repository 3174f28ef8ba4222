/*
 * duplicates.c
 *		Staged rows with the same key, of which a merge writes one.
 *
 * The row with the highest version is written, and null is the lowest.  Rows of
 * that version that are equal in all compared columns count as one, the first; where
 * they are not, nobody can tell which one is meant, and that is an error.
 *
 * Most batches have no such rows, and that is found out by one look at each hash of a
 * key: a bit says that it has been seen, and another one that it has been seen again.
 * Only rows with the second bit are sorted by key.  Both maps have a part of work_mem;
 * where that is small for the rows, more of them are sorted than need be.
 */
#include "postgres.h"

#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"

#include "compat.h"
#include "duplicates.h"
#include "error_fields.h"

/* Bits of a map for each row; with so many, few rows meet by chance. */
#define BITS_PER_ROW	16
#define MIN_BITS		1024

/* Which hashes of keys come more than once. */
typedef struct KeyMap
{
	uint64		mask;			/* number of bits, less one */
	uint64	   *seen;
	uint64	   *again;
	bool		any;			/* is a bit of "again" set? */
} KeyMap;

static inline bool
get_bit(const uint64 *bits, uint64 n)
{
	return (bits[n / 64] >> (n % 64) & 1) != 0;
}

static inline void
set_bit(uint64 *bits, uint64 n)
{
	bits[n / 64] |= UINT64CONST(1) << (n % 64);
}

static void
make_map(KeyMap *map, uint64 rows)
{
	uint64		wanted = Max(rows, MIN_BITS / BITS_PER_ROW) * BITS_PER_ROW;
	uint64		allowed = (uint64) work_mem * 1024 / 8 * BITS_PER_BYTE;
	uint64		nbits = pg_prevpower2_64(Min(wanted * 2, allowed));

	map->mask = nbits - 1;
	map->seen = MemoryContextAllocHuge(CurrentMemoryContext, nbits / BITS_PER_BYTE);
	map->again = MemoryContextAllocHuge(CurrentMemoryContext, nbits / BITS_PER_BYTE);
	memset(map->seen, 0, nbits / BITS_PER_BYTE);
	memset(map->again, 0, nbits / BITS_PER_BYTE);
	map->any = false;
}

static void
fill_map(KeyMap *map, IloadStage *stage, const IloadMergeKey *key)
{
	TupleTableSlot *row = MakeSingleTupleTableSlot(stage->columns->desc, &TTSOpsMinimalTuple);

	tuplestore_rescan(stage->spool);
	while (tuplestore_gettupleslot(stage->spool, true, false, row))
	{
		uint64		n = iload_merge_key_hash(key, row) & map->mask;

		CHECK_FOR_INTERRUPTS();
		if (get_bit(map->seen, n))
		{
			set_bit(map->again, n);
			map->any = true;
		}
		set_bit(map->seen, n);
	}
	ExecDropSingleTupleTableSlot(row);
}

/* Columns of a suspect, before those of its key, and behind them the version. */
enum
{
	SUSPECT_ORDINAL = 1,
	SUSPECT_LO,					/* hash of its content, see merge.c */
	SUSPECT_HI,
	SUSPECT_FIRST_KEY
};

static AttrNumber
version_attnum(const IloadMergeKey *key)
{
	return SUSPECT_FIRST_KEY + key->ncolumns;
}

static TupleDesc
suspect_desc(const IloadMergeKey *key, TupleDesc columns)
{
	int			natts = SUSPECT_FIRST_KEY - 1 + key->ncolumns + (key->version != NULL);
	TupleDesc	desc = CreateTemplateTupleDesc(natts);

	for (AttrNumber i = SUSPECT_ORDINAL; i < SUSPECT_FIRST_KEY; i++)
		TupleDescInitEntry(desc, i, "suspect", INT8OID, -1, 0);
	for (int i = 0; i < key->ncolumns; i++)
		TupleDescCopyEntry(desc, SUSPECT_FIRST_KEY + i, columns, key->columns[i].position);
	if (key->version != NULL)
		TupleDescCopyEntry(desc, version_attnum(key), columns, key->version->position);
	return desc;
}

/* By key, then the highest version first, then in the order of the query. */
static Tuplesortstate *
begin_sort(const IloadMergeKey *key, TupleDesc desc)
{
	int			n = 0;
	AttrNumber	attnums[ILOAD_MERGE_KEY_MAX + 2];
	Oid			operators[ILOAD_MERGE_KEY_MAX + 2];
	Oid			collations[ILOAD_MERGE_KEY_MAX + 2];
	bool		nulls_first[ILOAD_MERGE_KEY_MAX + 2] = {false};

	for (; n < key->ncolumns; n++)
	{
		attnums[n] = SUSPECT_FIRST_KEY + n;
		operators[n] = key->columns[n].type->lt_opr;
		collations[n] = key->columns[n].att->attcollation;
	}
	if (key->version != NULL)
	{
		attnums[n] = version_attnum(key);
		operators[n] = key->version->type->gt_opr;
		collations[n++] = key->version->att->attcollation;
	}
	attnums[n] = SUSPECT_ORDINAL;
	operators[n] = Int8LessOperator;
	collations[n++] = InvalidOid;
	return tuplesort_begin_heap(desc, n, attnums, operators, collations, nulls_first,
								work_mem / 8, NULL, TUPLESORT_NONE);
}

static void
put_suspect(Tuplesortstate *sort, TupleTableSlot *suspect, const IloadMergeKey *key,
			TupleTableSlot *row, int64 ordinal, IloadRowHash hash)
{
	ExecClearTuple(suspect);
	memset(suspect->tts_isnull, false, suspect->tts_tupleDescriptor->natts * sizeof(bool));
	suspect->tts_values[SUSPECT_ORDINAL - 1] = Int64GetDatum(ordinal);
	suspect->tts_values[SUSPECT_LO - 1] = Int64GetDatum((int64) hash.lo);
	suspect->tts_values[SUSPECT_HI - 1] = Int64GetDatum((int64) hash.hi);
	for (int i = 0; i < key->ncolumns; i++)
	{
		int			n = SUSPECT_FIRST_KEY - 1 + i;

		suspect->tts_values[n] = slot_getattr(row, key->columns[i].position,
											  &suspect->tts_isnull[n]);
	}
	if (key->version != NULL)
	{
		int			n = version_attnum(key) - 1;

		suspect->tts_values[n] = slot_getattr(row, key->version->position,
											  &suspect->tts_isnull[n]);
	}
	ExecStoreVirtualTuple(suspect);
	tuplesort_puttupleslot(sort, suspect);
}

/* Sort the rows whose key may come more than once. */
static void
put_suspects(Tuplesortstate *sort, TupleDesc desc, const KeyMap *map, IloadStage *stage,
			 const IloadMergeKey *key, IloadRowHasher *hasher)
{
	TupleTableSlot *row = MakeSingleTupleTableSlot(stage->columns->desc, &TTSOpsMinimalTuple);
	TupleTableSlot *suspect = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	int64		ordinal = 0;

	tuplestore_rescan(stage->spool);
	while (tuplestore_gettupleslot(stage->spool, true, false, row))
	{
		CHECK_FOR_INTERRUPTS();
		if (get_bit(map->again, iload_merge_key_hash(key, row) & map->mask))
		{
			bool		should_free;
			MinimalTuple minimal = ExecFetchSlotMinimalTuple(row, &should_free);

			put_suspect(sort, suspect, key, row, ordinal,
						iload_row_hash_minimal(hasher, minimal));
		}
		ordinal++;
	}
	ExecDropSingleTupleTableSlot(suspect);
	ExecDropSingleTupleTableSlot(row);
}

static bool
same_key(const IloadMergeKey *key, TupleTableSlot *a, TupleTableSlot *b)
{
	for (int i = 0; i < key->ncolumns; i++)
	{
		if (!iload_merge_key_same_value(key, &key->columns[i], SUSPECT_FIRST_KEY + i, a, b))
			return false;
	}
	return true;
}

static int64
get_number(TupleTableSlot *suspect, AttrNumber attnum)
{
	bool		isnull;

	return DatumGetInt64(slot_getattr(suspect, attnum, &isnull));
}

/* The row of the spool at an ordinal; for messages only. */
static TupleTableSlot *
fetch_row(IloadStage *stage, int64 ordinal)
{
	TupleTableSlot *row = MakeSingleTupleTableSlot(stage->columns->desc, &TTSOpsMinimalTuple);

	tuplestore_rescan(stage->spool);
	for (int64 i = 0; i <= ordinal; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!tuplestore_gettupleslot(stage->spool, true, false, row))
			elog(ERROR, "spool ended before row " INT64_FORMAT, ordinal);
	}
	return row;
}

/* A row comes behind the one of its key that is written: must it give way? */
static void
check_tie(IloadStage *stage, const IloadMergeKey *key, TupleTableSlot *winner,
		  TupleTableSlot *suspect)
{
	if (key->version != NULL &&
		!iload_merge_key_same_value(key, key->version, version_attnum(key), winner, suspect))
		return;
	if (get_number(winner, SUSPECT_LO) == get_number(suspect, SUSPECT_LO) &&
		get_number(winner, SUSPECT_HI) == get_number(suspect, SUSPECT_HI))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_CARDINALITY_VIOLATION),
			 key->version == NULL ?
			 errmsg("query returned more than one row for a key of slice %s of table \"%s\"",
					iload_slice_text(stage->slice), stage->slice->table_name) :
			 errmsg("query returned more than one row with the highest version for a key of slice %s of table \"%s\"",
					iload_slice_text(stage->slice), stage->slice->table_name),
			 errdetail("The key is %s.",
					   iload_merge_key_text(key, fetch_row(stage,
														   get_number(suspect, SUSPECT_ORDINAL)))),
			 key->version == NULL ?
			 errhint("Let the query return one row for each key, or name a column that tells which row is newer, with version => '...'.") :
			 errhint("Let the query return one row for each key and version."),
			 iload_errtable(stage->slice->target)));
}

/* Walk over the sorted suspects and put the ordinals of those that are not written. */
static void
put_duplicates(IloadDuplicates *duplicates, Tuplesortstate *sort, TupleDesc desc,
			   IloadStage *stage, const IloadMergeKey *key)
{
	TupleTableSlot *winner = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	TupleTableSlot *suspect = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);

	duplicates->ordinals = tuplesort_begin_datum(INT8OID, Int8LessOperator, InvalidOid, false,
												 work_mem / 16, NULL, TUPLESORT_NONE);
	while (tuplesort_gettupleslot(sort, true, false, suspect, NULL))
	{
		CHECK_FOR_INTERRUPTS();
		if (TTS_EMPTY(winner) || !same_key(key, winner, suspect))
		{
			ExecCopySlot(winner, suspect);
			continue;
		}
		check_tie(stage, key, winner, suspect);
		tuplesort_putdatum(duplicates->ordinals,
						   Int64GetDatum(get_number(suspect, SUSPECT_ORDINAL)), false);
	}
	ExecDropSingleTupleTableSlot(suspect);
	ExecDropSingleTupleTableSlot(winner);
}

static void
next_duplicate(IloadDuplicates *duplicates)
{
	Datum		ordinal;
	bool		isnull;

	duplicates->next = -1;
	if (duplicates->ordinals != NULL &&
		iload_tuplesort_getdatum(duplicates->ordinals, true, &ordinal, &isnull))
		duplicates->next = DatumGetInt64(ordinal);
}

/*
 * Find the rows of the spool that are not to be written.  "hasher" is that of the
 * columns in which equal rows count as one.
 *
 * Errors: rows that are tied.
 */
void
iload_duplicates_find(IloadDuplicates *duplicates, IloadStage *stage,
					  const IloadMergeKey *key, IloadRowHasher *hasher)
{
	KeyMap		map;

	duplicates->ordinals = NULL;
	make_map(&map, stage->fingerprint.rows);
	fill_map(&map, stage, key);
	if (map.any)
	{
		TupleDesc	desc = suspect_desc(key, stage->columns->desc);
		Tuplesortstate *sort = begin_sort(key, desc);

		put_suspects(sort, desc, &map, stage, key, hasher);
		tuplesort_performsort(sort);
		put_duplicates(duplicates, sort, desc, stage, key);
		tuplesort_end(sort);
		tuplesort_performsort(duplicates->ordinals);
	}
	pfree(map.seen);
	pfree(map.again);
	next_duplicate(duplicates);
}

/* Is a row not to be written?  To be asked for one row after the other. */
bool
iload_duplicates_skip(IloadDuplicates *duplicates, int64 ordinal)
{
	if (ordinal != duplicates->next)
		return false;
	next_duplicate(duplicates);
	return true;
}

void
iload_duplicates_end(IloadDuplicates *duplicates)
{
	if (duplicates->ordinals != NULL)
		tuplesort_end(duplicates->ordinals);
}
