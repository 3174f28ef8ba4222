/*
 * sketch.c
 *		The sketch: in which parts of the hash space two multisets differ.
 *
 * The hash space is cut into buckets by the upper half of the hash.  The lower
 * halves of the staged rows are added to their buckets, modulo 2^64, and those
 * of the stored rows subtracted.  A bucket that comes to zero holds the same
 * rows on both sides, as two equal fingerprints do, so a search for differences
 * may pass over it.  Where few rows have changed, that leaves little to sort.
 *
 * The sketch is filled while rows are staged and compared, which costs less
 * than reading them once more.  It has a fixed size, taken only when there are
 * rows enough to gain from it: the first staged hashes are kept in a list until
 * then, or until the stored ones come.  More buckets would leave less to sort, but
 * each row would wait for its bucket, which is anywhere in memory.  When all rows
 * have come, a bit for each bucket is all that is left, few enough to stay in the
 * processor's cache.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/float.h"
#include "utils/memutils.h"

#include "sketch.h"

/* staged rows up to which the sketch is small, and how many buckets that has */
#define MAX_PENDING		4096
#define SMALL_SKETCH	8192
#define MAX_SKETCH_SIZE ((Size) 4 * 1024 * 1024)

/*
 * A bucket is rarely in the processor's cache.  It is asked for when a change
 * of it is known, and changed so many changes later.
 */
#define CHANGES_AHEAD	16

typedef struct BucketChange
{
	uint64	   *bucket;
	uint64		summand;
} BucketChange;

struct IloadSketch
{
	MemoryContext context;
	int			npending;
	IloadRowHash pending[MAX_PENDING];
	uint64		mask;			/* number of buckets less one */
	uint64	   *buckets;		/* NULL until there are rows enough */
	uint32		nchanges;		/* so far; the last ones are not yet made */
	BucketChange ahead[CHANGES_AHEAD];
	uint64	   *differing;		/* a bit for each bucket, in their place */
	uint64		ndiffering;
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
	sketch->differing = NULL;
	sketch->ndiffering = 0;
	return sketch;
}

static inline void
make_change(const BucketChange *change)
{
	if (change->bucket != NULL)
		*change->bucket += change->summand;
}

/* Add a summand to the bucket of a hash, some changes from now. */
static inline void
change_bucket(IloadSketch *sketch, IloadRowHash hash, uint64 summand)
{
	BucketChange *change = &sketch->ahead[sketch->nchanges++ % CHANGES_AHEAD];

	make_change(change);
	change->bucket = &sketch->buckets[hash.hi & sketch->mask];
	change->summand = summand;
	iload_prefetch(change->bucket);
}

/* Take "n" buckets, a power of two of 64 at least, and move the pending hashes there. */
static void
start_buckets(IloadSketch *sketch, uint64 n)
{
	sketch->mask = n - 1;
	sketch->buckets = MemoryContextAllocZero(sketch->context, n * sizeof(uint64));
	for (int i = 0; i < sketch->npending; i++)
		change_bucket(sketch, sketch->pending[i], sketch->pending[i].lo);
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
		start_buckets(sketch,
					  pg_prevpower2_size_t(Min((Size) work_mem * 1024, MAX_SKETCH_SIZE) /
										   sizeof(uint64)));
	}
	change_bucket(sketch, hash, hash.lo);
}

/* Subtract a stored row. */
void
iload_sketch_subtract(IloadSketch *sketch, IloadRowHash hash)
{
	if (sketch->buckets == NULL)
		start_buckets(sketch, SMALL_SKETCH);
	change_bucket(sketch, hash, -hash.lo);
}

/*
 * All rows have come: from now on the sketch can be asked.  Each bucket becomes a
 * bit, where the buckets were.
 */
void
iload_sketch_finish(IloadSketch *sketch)
{
	uint64	   *buckets = sketch->buckets;

	if (buckets == NULL)
		return;
	for (int i = 0; i < CHANGES_AHEAD; i++)
		make_change(&sketch->ahead[i]);
	for (uint64 i = 0; i <= sketch->mask; i += 64)
	{
		uint64		bits = 0;

		for (int j = 0; j < 64; j++)
			bits |= (uint64) (buckets[i + j] != 0) << j;
		buckets[i / 64] = bits;
	}
	sketch->buckets = NULL;
	sketch->differing = repalloc(buckets, (sketch->mask + 1) / BITS_PER_BYTE);
	sketch->ndiffering = pg_popcount((char *) sketch->differing,
									 (sketch->mask + 1) / BITS_PER_BYTE);
}

/*
 * About how many rows one side has and the other has not, together.
 *
 * So many are expected to leave as many buckets at zero as there are, if each falls
 * into any bucket with the same chance.  Where they are ten times as many as the
 * buckets, or more, none is left at zero, and the answer is infinite.
 */
double
iload_sketch_differences(const IloadSketch *sketch)
{
	double		n = (double) sketch->mask + 1;

	if (sketch->differing == NULL)
		return sketch->npending;
	if (sketch->ndiffering > sketch->mask)
		return get_float8_infinity();
	return n * log(n / (n - sketch->ndiffering));
}

/* May rows with this hash be more on one side than on the other? */
bool
iload_sketch_differs(const IloadSketch *sketch, IloadRowHash hash)
{
	uint64		n = hash.hi & sketch->mask;

	return sketch->differing == NULL || (sketch->differing[n / 64] >> (n % 64) & 1) != 0;
}

/* Does the sketch tell most rows to be the same on both sides? */
bool
iload_sketch_narrows(const IloadSketch *sketch)
{
	return sketch->differing != NULL && sketch->ndiffering <= sketch->mask / 4;
}
