/*
 * fingerprint.h
 *		The fingerprint: an order-independent digest of a multiset of rows.
 */
#ifndef ILOAD_FINGERPRINT_H
#define ILOAD_FINGERPRINT_H

#include "row_hash.h"

typedef struct IloadFingerprint
{
	uint64		rows;
	uint64		lo;				/* sum of the hashes, modulo 2^128 */
	uint64		hi;
} IloadFingerprint;

static inline void
iload_fingerprint_combine(IloadFingerprint *sum, const IloadFingerprint *other)
{
	uint64		lo = sum->lo + other->lo;

	sum->rows += other->rows;
	sum->hi += other->hi + (lo < sum->lo);
	sum->lo = lo;
}

static inline void
iload_fingerprint_add(IloadFingerprint *sum, IloadRowHash hash)
{
	IloadFingerprint one = {1, hash.lo, hash.hi};

	iload_fingerprint_combine(sum, &one);
}

static inline bool
iload_fingerprint_equal(const IloadFingerprint *a, const IloadFingerprint *b)
{
	return a->rows == b->rows && a->lo == b->lo && a->hi == b->hi;
}

extern char *iload_fingerprint_text(const IloadFingerprint *fingerprint);
extern char *iload_text_digest(const char *text);

#endif
