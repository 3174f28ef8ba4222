/*
 * row_hash.h
 *		The 128-bit hash of one row.
 */
#ifndef ILOAD_ROW_HASH_H
#define ILOAD_ROW_HASH_H

#include "access/htup.h"
#include "access/tupdesc.h"

/* Part of every stored fingerprint; a change of any rule here changes it. */
#define ILOAD_ROW_HASH_VERSION	1

/*
 * Rows and what is counted by their hashes lie all over memory.  Ask for what is
 * needed a little later, so as not to wait for it then; any address will do.
 */
#ifdef __GNUC__
#define iload_prefetch(address) __builtin_prefetch(address)
#else
#define iload_prefetch(address) ((void) (address))
#endif

typedef struct IloadRowHash
{
	uint64		lo;
	uint64		hi;
} IloadRowHash;

/* How the rows of one tuple descriptor are hashed. */
typedef struct IloadRowHasher IloadRowHasher;

/*
 * Hashes composite values, whose type may change from value to value.  Starts
 * zeroed but for "parent", the context that it lives in.
 */
typedef struct IloadRecordHasher
{
	MemoryContext parent;
	MemoryContext context;		/* of the hasher; ends with it */
	Oid			type;
	int32		typmod;
	IloadRowHasher *hasher;
} IloadRecordHasher;

extern IloadRowHash iload_row_hash_record(IloadRecordHasher *records, HeapTupleHeader record);
extern IloadRowHasher *iload_row_hasher_create(TupleDesc desc, int natts,
											   const AttrNumber *attnums);
extern IloadRowHash iload_row_hash_tuple(IloadRowHasher *hasher, HeapTuple tuple);
extern IloadRowHash iload_row_hash_minimal(IloadRowHasher *hasher, MinimalTuple minimal);
extern IloadRowHash iload_row_hash_values(IloadRowHasher *hasher,
										  const Datum *values, const bool *isnull);

#endif
