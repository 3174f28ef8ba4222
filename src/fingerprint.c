/*
 * fingerprint.c
 *		The fingerprint: an order-independent digest of a multiset of rows.
 *
 * The hashes of the rows are added modulo 2^128, with their count.  So order
 * does not matter, duplicates do, two empty sets are equal, and fingerprints of
 * parts can be added up, which makes the aggregate fit for parallel plans.
 *
 * Written as "version:rows:sum", so that a stored value says by which rules it
 * was made.
 */
#include "postgres.h"

#include <inttypes.h>

#include "access/htup_details.h"
#include "fmgr.h"
#include "libpq/pqformat.h"
#include "utils/builtins.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "fingerprint.h"

PG_FUNCTION_INFO_V1(iload_fingerprint_transition);
PG_FUNCTION_INFO_V1(iload_fingerprint_merge);
PG_FUNCTION_INFO_V1(iload_fingerprint_serial);
PG_FUNCTION_INFO_V1(iload_fingerprint_deserial);
PG_FUNCTION_INFO_V1(iload_fingerprint_final);

/* The hash that stands for a record that is null as a whole. */
static const IloadRowHash null_record = {0, 0};

/* The written form, allocated in the current context. */
char *
iload_fingerprint_text(const IloadFingerprint *fingerprint)
{
	return psprintf("%d:" UINT64_FORMAT ":%016" PRIx64 "%016" PRIx64,
					ILOAD_ROW_HASH_VERSION, fingerprint->rows,
					fingerprint->hi, fingerprint->lo);
}

/* 32 hexadecimal digits that stand for a text, such as a query. */
char *
iload_text_digest(const char *text)
{
	XXH128_hash_t hash = XXH3_128bits(text, strlen(text));

	return psprintf("%016" PRIx64 "%016" PRIx64,
					(uint64) hash.high64, (uint64) hash.low64);
}

/* Hash a record; what that needs is kept from call to call. */
static IloadRowHash
record_hash(FunctionCallInfo fcinfo, HeapTupleHeader record)
{
	IloadRecordHasher *records = fcinfo->flinfo->fn_extra;

	if (records == NULL)
	{
		records = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(IloadRecordHasher));
		records->parent = fcinfo->flinfo->fn_mcxt;
		fcinfo->flinfo->fn_extra = records;
	}
	return iload_row_hash_record(records, record);
}

static MemoryContext
aggregate_context(FunctionCallInfo fcinfo)
{
	MemoryContext context;

	if (!AggCheckCallContext(fcinfo, &context))
		elog(ERROR, "function called outside of an aggregate");
	return context;
}

/*
 * fingerprint(record), transition: add one row.  A record that is null as a
 * whole counts as a row too, as in count(*).
 */
Datum
iload_fingerprint_transition(PG_FUNCTION_ARGS)
{
	MemoryContext context = aggregate_context(fcinfo);
	IloadFingerprint *state;

	state = PG_ARGISNULL(0) ? MemoryContextAllocZero(context, sizeof(IloadFingerprint))
		: (IloadFingerprint *) PG_GETARG_POINTER(0);
	iload_fingerprint_add(state, PG_ARGISNULL(1) ? null_record :
						  record_hash(fcinfo, PG_GETARG_HEAPTUPLEHEADER(1)));
	PG_RETURN_POINTER(state);
}

/* fingerprint(record), combine: the sum of two partial states. */
Datum
iload_fingerprint_merge(PG_FUNCTION_ARGS)
{
	MemoryContext context = aggregate_context(fcinfo);
	IloadFingerprint *state;

	state = PG_ARGISNULL(0) ? MemoryContextAllocZero(context, sizeof(IloadFingerprint))
		: (IloadFingerprint *) PG_GETARG_POINTER(0);
	if (!PG_ARGISNULL(1))
		iload_fingerprint_combine(state, (IloadFingerprint *) PG_GETARG_POINTER(1));
	PG_RETURN_POINTER(state);
}

Datum
iload_fingerprint_serial(PG_FUNCTION_ARGS)
{
	IloadFingerprint *state = (IloadFingerprint *) PG_GETARG_POINTER(0);
	StringInfoData buf;

	pq_begintypsend(&buf);
	pq_sendint64(&buf, state->rows);
	pq_sendint64(&buf, state->lo);
	pq_sendint64(&buf, state->hi);
	PG_RETURN_BYTEA_P(pq_endtypsend(&buf));
}

Datum
iload_fingerprint_deserial(PG_FUNCTION_ARGS)
{
	bytea	   *serial = PG_GETARG_BYTEA_PP(0);
	IloadFingerprint *state = palloc(sizeof(IloadFingerprint));
	StringInfoData buf;

	initStringInfo(&buf);
	appendBinaryStringInfo(&buf, VARDATA_ANY(serial), VARSIZE_ANY_EXHDR(serial));
	state->rows = pq_getmsgint64(&buf);
	state->lo = pq_getmsgint64(&buf);
	state->hi = pq_getmsgint64(&buf);
	pq_getmsgend(&buf);
	PG_RETURN_POINTER(state);
}

/* fingerprint(record), final: the written form; of no rows, that of zero. */
Datum
iload_fingerprint_final(PG_FUNCTION_ARGS)
{
	IloadFingerprint none = {0, 0, 0};

	PG_RETURN_TEXT_P(cstring_to_text(iload_fingerprint_text(PG_ARGISNULL(0) ? &none :
															(IloadFingerprint *) PG_GETARG_POINTER(0))));
}
