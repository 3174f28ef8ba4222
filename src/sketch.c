/*
 * sketch.c
 *		The sketch: in which parts of the hash space two multisets differ.
 *
 * The hash space is cut into buckets.  The hashes of the staged rows are added
 * to their buckets, modulo 2^128, and those of the stored rows subtracted.  A
 * bucket that comes to zero holds the same rows on both sides, as two equal
 * fingerprints do, so a search for differences may pass over it.  Where few rows
 * have changed, that leaves little to sort.
 *
 * The sketch is filled while rows are staged and compared, which costs less
 * than reading them once more.  It has a fixed size, taken only when there are
 * rows enough to gain from it: the first staged hashes are kept in a list until
 * then.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"

#include "sketch.h"

/* staged rows below which everything is sorted */
#define MAX_PENDING		4096
#define MAX_SKETCH_SIZE ((Size) 16 * 1024 * 1024)

/*
 * A bucket is rarely in the processor's cache.  It is asked for when a change
 * of it is known, and changed so many changes later.
 */
#define CHANGES_AHEAD	16
#ifdef __GNUC__
#define prefetch(address) __builtin_prefetch(address, 1)
#else
#define prefetch(address) ((void) 0)
#endif

typedef struct BucketChange
{
	IloadRowHash *bucket;
	IloadRowHash summand;
} BucketChange;

struct IloadSketch
{
	MemoryContext context;
	int			npending;
	IloadRowHash pending[MAX_PENDING];
	uint64		mask;			/* number of buckets less one */
	IloadRowHash *buckets;		/* NULL until there are rows enough */
	uint32		nchanges;		/* so far; the last ones are not yet made */
	BucketChange ahead[CHANGES_AHEAD];
};

/* An empty sketch in the current context. */
IloadSketch *
iload_sketch_create(void)
{
	IloadSketch *sketch = palloc(sizeof(IloadSketch));

	sketch->context = CurrentMemoryContext;
	sketch->npending = 0;
	sketch->mask = 0;
	sketch->buckets = NULL;
	sketch->nchanges = 0;
	memset(sketch->ahead, 0, sizeof(sketch->ahead));
	return sketch;
}

static inline IloadRowHash *
bucket_of(const IloadSketch *sketch, IloadRowHash hash)
{
	return &sketch->buckets[hash.hi & sketch->mask];
}

static inline void
make_change(const BucketChange *change)
{
	IloadRowHash *bucket = change->bucket;
	uint64		lo;

	if (bucket == NULL)
		return;
	lo = bucket->lo + change->summand.lo;
	bucket->hi += change->summand.hi + (lo < bucket->lo);
	bucket->lo = lo;
}

/* Add a summand to a bucket, some changes from now. */
static inline void
change_bucket(IloadSketch *sketch, IloadRowHash *bucket, IloadRowHash summand)
{
	BucketChange *change = &sketch->ahead[sketch->nchanges++ % CHANGES_AHEAD];

	make_change(change);
	change->bucket = bucket;
	change->summand = summand;
	prefetch(bucket);
}

/* Take the buckets, within work_mem, and move the pending hashes there. */
static void
start_buckets(IloadSketch *sketch)
{
	Size		size = Min((Size) work_mem * 1024, MAX_SKETCH_SIZE);
	uint64		n = pg_prevpower2_size_t(size / sizeof(IloadRowHash));

	sketch->mask = n - 1;
	sketch->buckets = MemoryContextAllocExtended(sketch->context, n * sizeof(IloadRowHash),
												 MCXT_ALLOC_ZERO);
	for (int i = 0; i < sketch->npending; i++)
		change_bucket(sketch, bucket_of(sketch, sketch->pending[i]), sketch->pending[i]);
}

/* Add a staged row.  All of them come before the first stored one. */
void
iload_sketch_add(IloadSketch *sketch, IloadRowHash hash)
{
	if (sketch->buckets == NULL)
	{
		if (sketch->npending < MAX_PENDING)
		{
			sketch->pending[sketch->npending++] = hash;
			return;
		}
		start_buckets(sketch);
	}
	change_bucket(sketch, bucket_of(sketch, hash), hash);
}

/* Subtract a stored row. */
void
iload_sketch_subtract(IloadSketch *sketch, IloadRowHash hash)
{
	IloadRowHash negative;

	if (sketch->buckets == NULL)
		return;
	negative.lo = -hash.lo;
	negative.hi = -hash.hi - (hash.lo != 0);
	change_bucket(sketch, bucket_of(sketch, hash), negative);
}

/* Make the changes that are still ahead; before the sketch is asked. */
void
iload_sketch_finish(IloadSketch *sketch)
{
	for (int i = 0; i < CHANGES_AHEAD; i++)
	{
		make_change(&sketch->ahead[i]);
		sketch->ahead[i].bucket = NULL;
	}
}

/* May rows with this hash be more on one side than on the other? */
bool
iload_sketch_differs(const IloadSketch *sketch, IloadRowHash hash)
{
	IloadRowHash *bucket;

	if (sketch->buckets == NULL)
		return true;
	bucket = bucket_of(sketch, hash);
	return bucket->lo != 0 || bucket->hi != 0;
}
