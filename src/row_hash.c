/*
 * row_hash.c
 *		The 128-bit hash of one row.
 *
 * Two rows have the same hash where a reader could not tell them apart.  The
 * hash is that of the row's canonical image: the bytes that the server's own
 * tuple layout gives to the picked columns, in their order, with
 *
 *	- out-of-line and compressed values fetched and expanded, and a short header
 *	  wherever one fits,
 *	- one NaN, whatever bits it was computed with, in arrays too,
 *	- arrays without a null bitmap unless an element is null,
 *	- composites, whose stored form carries traces of where they came from, as
 *	  the hash of their own columns by these same rules, and arrays of them as
 *	  their shape and the hashes of their elements,
 *	- ranges of composites in the form of their binary send function.
 *
 * The null bitmap, where there is one, goes into the seed.
 *
 * So a stored tuple that happens to be canonical already, as nearly all are, is
 * hashed where it lies, in one run: the fast path.  Everything else is brought
 * into canonical form first: the slow path.  The two agree on every row.
 *
 * A hasher lives in the context that was current when it was made, with a
 * scratch context below it that is reset for each row.
 */
#include "postgres.h"

#include <math.h>

#include "access/detoast.h"
#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/float.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/typcache.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "compat.h"
#include "row_hash.h"

/* What can keep a stored value from being in canonical form. */
typedef enum CanonicalCheck
{
	CHECK_NOTHING,
	CHECK_FLOAT4,				/* it may be a NaN */
	CHECK_FLOAT8,
	CHECK_VARLENA,				/* its header */
	CHECK_ARRAY,				/* its header, and its null bitmap */
	CHECK_FLOAT_ARRAY,			/* elements may be NaN: not looked at */
	CHECK_COMPOSITE,			/* from here on: never in canonical form */
	CHECK_COMPOSITE_ARRAY,
	CHECK_SENT
} CanonicalCheck;

typedef struct HashedColumn
{
	AttrNumber	attnum;			/* in the tuple descriptor given */
	CanonicalCheck check;
	int16		attlen;
	uint8		alignby;		/* bytes */
	Oid			type;			/* base type */
	Oid			send;			/* where that is the canonical form */
	IloadRecordHasher *records; /* of a composite type, or an array of one */
	Oid			element;		/* of an array */
	int16		elmlen;
	bool		elmbyval;
	char		elmalign;
} HashedColumn;

struct IloadRowHasher
{
	TupleDesc	desc;			/* as given; not owned */
	int			natts;
	HashedColumn *columns;
	TupleDesc	canonical;		/* layout of the canonical image */
	bool		same_layout;	/* a tuple of "desc" may be canonical */
	int			first_checked;	/* columns before it need no check, */
	Size		first_offset;	/* and without nulls it is here, unaligned */
	int			last_checked;	/* columns behind it need no check */
	MemoryContext scratch;
	Datum	   *values;			/* of the canonical image */
	bool	   *isnull;
	Datum	   *deformed;		/* of a tuple of "desc" */
	bool	   *deformed_null;
	bits8	   *bitmap;
	Size		image_size;
	char	   *image;
};

static bool
is_composite(Oid type)
{
	type = getBaseType(type);
	return type == RECORDOID || get_typtype(type) == TYPTYPE_COMPOSITE;
}

/* Is a type built of a composite: an array, a range, a domain over one? */
static bool
is_built_of_composites(Oid type)
{
	Oid			inner;

	check_stack_depth();
	type = getBaseType(type);
	inner = get_element_type(type);
	if (!OidIsValid(inner))
		inner = get_range_subtype(type);
	if (!OidIsValid(inner) && type_is_multirange(type))
		inner = get_range_subtype(get_multirange_range(type));
	if (OidIsValid(inner))
		return is_built_of_composites(inner);
	return is_composite(type);
}

static uint8
alignment_bytes(char attalign)
{
	switch (attalign)
	{
		case TYPALIGN_CHAR:
			return 1;
		case TYPALIGN_SHORT:
			return ALIGNOF_SHORT;
		case TYPALIGN_INT:
			return ALIGNOF_INT;
		case TYPALIGN_DOUBLE:
			return ALIGNOF_DOUBLE;
	}
	elog(ERROR, "unknown alignment \"%c\"", attalign);
	return 0;
}

static void
describe_column(HashedColumn *column, Form_pg_attribute att)
{
	column->attnum = att->attnum;
	column->attlen = att->attlen;
	column->alignby = alignment_bytes(att->attalign);
	column->type = getBaseType(att->atttypid);
	column->check = CHECK_NOTHING;

	if (column->type == FLOAT4OID)
		column->check = CHECK_FLOAT4;
	else if (column->type == FLOAT8OID)
		column->check = CHECK_FLOAT8;
	else if (att->attlen == -1)
	{
		bool		varlena;

		column->check = CHECK_VARLENA;
		column->element = get_element_type(column->type);
		column->records = palloc0(sizeof(IloadRecordHasher));
		column->records->parent = CurrentMemoryContext;
		if (is_composite(column->type))
			column->check = CHECK_COMPOSITE;
		else if (OidIsValid(column->element) && is_composite(column->element))
		{
			column->check = CHECK_COMPOSITE_ARRAY;
			get_typlenbyvalalign(column->element, &column->elmlen,
								 &column->elmbyval, &column->elmalign);
		}
		else if (is_built_of_composites(column->type))
		{
			column->check = CHECK_SENT;
			getTypeBinaryOutputInfo(column->type, &column->send, &varlena);
		}
		else if (OidIsValid(column->element))
		{
			column->check = CHECK_ARRAY;
			if (getBaseType(column->element) == FLOAT4OID ||
				getBaseType(column->element) == FLOAT8OID)
				column->check = CHECK_FLOAT_ARRAY;
			get_typlenbyvalalign(column->element, &column->elmlen,
								 &column->elmbyval, &column->elmalign);
		}
	}
}

/*
 * Find the columns that need a check to see whether a tuple is canonical.  What
 * comes before the first one has a fixed width unless it is null, so that it
 * need not be walked over.
 */
static void
find_checked_columns(IloadRowHasher *hasher)
{
	bool		fixed = true;

	for (int i = 0; i < hasher->natts; i++)
	{
		HashedColumn *column = &hasher->columns[i];

		if (column->check != CHECK_NOTHING)
			hasher->last_checked = i + 1;
		fixed = fixed && column->check == CHECK_NOTHING && column->attlen > 0;
		if (fixed)
		{
			hasher->first_checked = i + 1;
			hasher->first_offset = TYPEALIGN(column->alignby, hasher->first_offset) +
				column->attlen;
		}
	}
}

/*
 * A hasher for rows of "desc", of which the columns "attnums" count, in that
 * order; they must not be dropped ones.  "desc" must outlive the hasher.
 */
IloadRowHasher *
iload_row_hasher_create(TupleDesc desc, int natts, const AttrNumber *attnums)
{
	IloadRowHasher *hasher = palloc0(sizeof(IloadRowHasher));

	hasher->desc = desc;
	hasher->natts = natts;
	hasher->columns = palloc0(natts * sizeof(HashedColumn));
	hasher->canonical = CreateTemplateTupleDesc(natts);
	hasher->same_layout = (natts == desc->natts);
	hasher->values = palloc(natts * sizeof(Datum));
	hasher->isnull = palloc(natts * sizeof(bool));
	hasher->deformed = palloc(desc->natts * sizeof(Datum));
	hasher->deformed_null = palloc(desc->natts * sizeof(bool));
	hasher->bitmap = palloc0(BITMAPLEN(natts));
	hasher->image_size = 1024;
	hasher->image = palloc(hasher->image_size);
	hasher->scratch = AllocSetContextCreate(CurrentMemoryContext,
											"idempotent_load row hash",
											ALLOCSET_DEFAULT_SIZES);

	for (int i = 0; i < natts; i++)
	{
		HashedColumn *column = &hasher->columns[i];
		Form_pg_attribute att = TupleDescAttr(desc, attnums[i] - 1);

		Assert(!att->attisdropped);
		describe_column(column, att);
		if (column->check >= CHECK_COMPOSITE || attnums[i] != i + 1)
			hasher->same_layout = false;

		/* every varlena may have a short header, whatever its storage */
		TupleDescCopyEntry(hasher->canonical, i + 1, desc, attnums[i]);
		if (column->attlen == -1)
			TupleDescAttr(hasher->canonical, i)->attstorage = TYPSTORAGE_EXTENDED;
		iload_attribute_changed(hasher->canonical, i);
	}
	find_checked_columns(hasher);
	return hasher;
}

static inline IloadRowHash
hash_image(const void *data, Size size, uint64 seed)
{
	XXH128_hash_t hash = XXH3_128bits_withSeed(data, size, seed);
	IloadRowHash result = {hash.low64, hash.high64};

	return result;
}

/*
 * The seed of a row: its number of columns, and which are null.  Bits beyond
 * the last column are zero, as the server makes them.
 */
static inline uint64
row_seed(int natts, const bits8 *bitmap)
{
	if (likely(bitmap == NULL))
		return natts;
	return XXH3_64bits_withSeed(bitmap, BITMAPLEN(natts), natts);
}

static inline bool
varlena_is_canonical(const char *ptr)
{
	if (VARATT_IS_1B(ptr))
		return !VARATT_IS_1B_E(ptr);
	return VARATT_IS_4B_U(ptr) && !VARATT_CAN_MAKE_SHORT(ptr);
}

/* Arrays with a short header may lie unaligned, so the field is copied out. */
static inline bool
array_has_bitmap(const char *ptr)
{
	int32		dataoffset;

	memcpy(&dataoffset, VARDATA_ANY(ptr) + offsetof(ArrayType, dataoffset) - VARHDRSZ,
		   sizeof(dataoffset));
	return dataoffset != 0;
}

static bool
column_is_canonical(const HashedColumn *column, const char *ptr)
{
	float4		f4;
	float8		f8;

	switch (column->check)
	{
		case CHECK_NOTHING:
			return true;
		case CHECK_FLOAT4:
			memcpy(&f4, ptr, sizeof(f4));
			return !isnan(f4);
		case CHECK_FLOAT8:
			memcpy(&f8, ptr, sizeof(f8));
			return !isnan(f8);
		case CHECK_VARLENA:
			return varlena_is_canonical(ptr);
		case CHECK_ARRAY:
			return varlena_is_canonical(ptr) && !array_has_bitmap(ptr);
		case CHECK_FLOAT_ARRAY:
		case CHECK_COMPOSITE:
		case CHECK_COMPOSITE_ARRAY:
		case CHECK_SENT:
			return false;
	}
	return false;
}

/* Are the columns of a tuple, which has them all, stored in canonical form? */
static inline bool
columns_are_canonical(const IloadRowHasher *hasher, HeapTupleHeader header)
{
	const char *data = (const char *) header + header->t_hoff;
	const bits8 *bitmap = header->t_infomask & HEAP_HASNULL ? header->t_bits : NULL;
	Size		off = bitmap != NULL ? 0 : hasher->first_offset;

	for (int i = bitmap != NULL ? 0 : hasher->first_checked; i < hasher->last_checked; i++)
	{
		const HashedColumn *column = &hasher->columns[i];

		if (bitmap != NULL && att_isnull(i, bitmap))
			continue;

		/* most varlenas: a short header lies unaligned and is canonical */
		if (column->check == CHECK_VARLENA && VARATT_IS_SHORT(data + off))
		{
			off += VARSIZE_SHORT(data + off);
			continue;
		}
		if (column->attlen != -1 || !VARATT_NOT_PAD_BYTE(data + off))
			off = TYPEALIGN(column->alignby, off);
		if (!column_is_canonical(column, data + off))
			return false;
		off = att_addlength_pointer(off, column->attlen, data + off);
	}
	return true;
}

/*
 * The fast path: hash a tuple of the hasher's descriptor where it lies.
 * Returns false, and leaves "hash" alone, where the tuple is not in canonical
 * form.
 */
static bool
hash_in_place(IloadRowHasher *hasher, HeapTuple tuple, IloadRowHash *hash)
{
	HeapTupleHeader header = tuple->t_data;

	if (!hasher->same_layout ||
		HeapTupleHeaderGetNatts(header) != hasher->natts ||
		(header->t_infomask & HEAP_HASEXTERNAL) != 0 ||
		!columns_are_canonical(hasher, header))
		return false;
	*hash = hash_image((const char *) header + header->t_hoff,
					   tuple->t_len - header->t_hoff,
					   row_seed(hasher->natts,
								header->t_infomask & HEAP_HASNULL ? header->t_bits : NULL));
	return true;
}

static Datum
canonical_float4(Datum value)
{
	return isnan(DatumGetFloat4(value)) ? Float4GetDatum(get_float4_nan()) : value;
}

static Datum
canonical_float8(Datum value)
{
	return isnan(DatumGetFloat8(value)) ? Float8GetDatum(get_float8_nan()) : value;
}

/* An array as the server would build it anew, of canonical elements. */
static Datum
canonical_array(const HashedColumn *column, Datum value)
{
	ArrayType  *array = DatumGetArrayTypeP(value);
	Datum	   *elements;
	bool	   *nulls;
	int			n;

	if (column->check == CHECK_ARRAY && !ARR_HASNULL(array))
		return PointerGetDatum(array);
	deconstruct_array(array, column->element, column->elmlen, column->elmbyval,
					  column->elmalign, &elements, &nulls, &n);
	for (int i = 0; i < n && column->check == CHECK_FLOAT_ARRAY; i++)
	{
		if (!nulls[i])
			elements[i] = column->elmlen == sizeof(float4) ?
				canonical_float4(elements[i]) : canonical_float8(elements[i]);
	}
	return PointerGetDatum(construct_md_array(elements, nulls, ARR_NDIM(array),
											  ARR_DIMS(array), ARR_LBOUND(array),
											  column->element, column->elmlen,
											  column->elmbyval, column->elmalign));
}

static Datum
bytes_as_varlena(const void *bytes, Size size)
{
	struct varlena *result = palloc(VARHDRSZ + size);

	SET_VARSIZE(result, VARHDRSZ + size);
	memcpy(VARDATA(result), bytes, size);
	return PointerGetDatum(result);
}

static Datum
canonical_composite(const HashedColumn *column, Datum value)
{
	IloadRowHash hash = iload_row_hash_record(column->records, DatumGetHeapTupleHeader(value));

	return bytes_as_varlena(&hash, sizeof(hash));
}

/* The shape of an array, then for each element the hash, or a mark for null. */
static Datum
canonical_composite_array(const HashedColumn *column, Datum value)
{
	ArrayType  *array = DatumGetArrayTypeP(value);
	int			ndim = ARR_NDIM(array);
	StringInfoData image;
	Datum	   *elements;
	bool	   *nulls;
	int			n;

	initStringInfo(&image);
	appendBinaryStringInfo(&image, (const char *) &ndim, sizeof(ndim));
	appendBinaryStringInfo(&image, (const char *) ARR_DIMS(array), ndim * sizeof(int));
	appendBinaryStringInfo(&image, (const char *) ARR_LBOUND(array), ndim * sizeof(int));
	deconstruct_array(array, column->element, column->elmlen, column->elmbyval,
					  column->elmalign, &elements, &nulls, &n);
	for (int i = 0; i < n; i++)
	{
		IloadRowHash hash;

		appendStringInfoChar(&image, nulls[i] ? 'n' : 'v');
		if (nulls[i])
			continue;
		hash = iload_row_hash_record(column->records, DatumGetHeapTupleHeader(elements[i]));
		appendBinaryStringInfo(&image, (const char *) &hash, sizeof(hash));
	}
	return bytes_as_varlena(image.data, image.len);
}

/* A value in canonical form, allocated in the current context if at all. */
static Datum
canonical_value(const HashedColumn *column, Datum value)
{
	switch (column->check)
	{
		case CHECK_FLOAT4:
			return canonical_float4(value);
		case CHECK_FLOAT8:
			return canonical_float8(value);
		case CHECK_VARLENA:
			if (varlena_is_canonical(DatumGetPointer(value)))
				return value;
			return PointerGetDatum(PG_DETOAST_DATUM(value));
		case CHECK_ARRAY:
		case CHECK_FLOAT_ARRAY:
			return canonical_array(column, value);
		case CHECK_COMPOSITE:
			return canonical_composite(column, value);
		case CHECK_COMPOSITE_ARRAY:
			return canonical_composite_array(column, value);
		case CHECK_SENT:
			return PointerGetDatum(OidSendFunctionCall(column->send, value));
		case CHECK_NOTHING:
			break;
	}
	return value;
}

/*
 * The slow path: hash a row given by values and nulls of all the columns of
 * the hasher's descriptor.
 */
IloadRowHash
iload_row_hash_values(IloadRowHasher *hasher, const Datum *values, const bool *isnull)
{
	MemoryContext old = MemoryContextSwitchTo(hasher->scratch);
	bool		hasnull = false;
	uint16		infomask = 0;
	Size		size;

	for (int i = 0; i < hasher->natts; i++)
	{
		const HashedColumn *column = &hasher->columns[i];

		hasher->isnull[i] = isnull[column->attnum - 1];
		if (hasher->isnull[i])
			hasnull = true;
		else
			hasher->values[i] = canonical_value(column, values[column->attnum - 1]);
	}
	MemoryContextSwitchTo(old);

	size = heap_compute_data_size(hasher->canonical, hasher->values, hasher->isnull);
	if (size > hasher->image_size)
	{
		hasher->image_size = size + size / 2;
		hasher->image = repalloc_huge(hasher->image, hasher->image_size);
	}
	/* padding counts, so it must be zero, as in a stored tuple */
	memset(hasher->image, 0, size);
	heap_fill_tuple(hasher->canonical, hasher->values, hasher->isnull,
					hasher->image, size, &infomask,
					hasnull ? hasher->bitmap : NULL);
	MemoryContextReset(hasher->scratch);

	return hash_image(hasher->image, size,
					  row_seed(hasher->natts, hasnull ? hasher->bitmap : NULL));
}

/*
 * Hash a tuple of the hasher's descriptor by whichever path fits.  Columns
 * that were added after it was stored have their values as of then.
 */
IloadRowHash
iload_row_hash_tuple(IloadRowHasher *hasher, HeapTuple tuple)
{
	IloadRowHash hash;

	if (likely(hash_in_place(hasher, tuple, &hash)))
		return hash;
	heap_deform_tuple(tuple, hasher->desc, hasher->deformed, hasher->deformed_null);
	return iload_row_hash_values(hasher, hasher->deformed, hasher->deformed_null);
}

/* The same for a minimal tuple, which is a heap tuple without its first bytes. */
IloadRowHash
iload_row_hash_minimal(IloadRowHasher *hasher, MinimalTuple minimal)
{
	HeapTupleData tuple;

	tuple.t_len = minimal->t_len + MINIMAL_TUPLE_OFFSET;
	ItemPointerSetInvalid(&tuple.t_self);
	tuple.t_tableOid = InvalidOid;
	tuple.t_data = (HeapTupleHeader) ((char *) minimal - MINIMAL_TUPLE_OFFSET);
	return iload_row_hash_tuple(hasher, &tuple);
}

/* The hasher for records of a type, made again when the type changes. */
static IloadRowHasher *
hasher_for_type(IloadRecordHasher *records, Oid type, int32 typmod)
{
	MemoryContext old;
	TupleDesc	desc;
	AttrNumber *attnums;
	int			natts = 0;

	if (records->context != NULL && records->type == type && records->typmod == typmod)
		return records->hasher;

	if (records->context != NULL)
		MemoryContextDelete(records->context);
	records->context = AllocSetContextCreate(records->parent, "idempotent_load record hash",
											 ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(records->context);
	desc = lookup_rowtype_tupdesc_copy(type, typmod);
	attnums = palloc(desc->natts * sizeof(AttrNumber));
	for (int i = 0; i < desc->natts; i++)
	{
		if (!TupleDescAttr(desc, i)->attisdropped)
			attnums[natts++] = i + 1;
	}
	records->hasher = iload_row_hasher_create(desc, natts, attnums);
	records->type = type;
	records->typmod = typmod;
	MemoryContextSwitchTo(old);
	return records->hasher;
}

/* Hash a composite value, by all its columns. */
IloadRowHash
iload_row_hash_record(IloadRecordHasher *records, HeapTupleHeader record)
{
	IloadRowHasher *hasher = hasher_for_type(records, HeapTupleHeaderGetTypeId(record),
											 HeapTupleHeaderGetTypMod(record));
	HeapTupleData tuple;

	check_stack_depth();
	tuple.t_len = HeapTupleHeaderGetDatumLength(record);
	ItemPointerSetInvalid(&tuple.t_self);
	tuple.t_tableOid = InvalidOid;
	tuple.t_data = record;
	return iload_row_hash_tuple(hasher, &tuple);
}
