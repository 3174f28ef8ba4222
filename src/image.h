/*
 * image.h
 *		The rows of a table at one moment of a check.
 */
#ifndef ILOAD_IMAGE_H
#define ILOAD_IMAGE_H

#include "access/htup.h"
#include "executor/tuptable.h"
#include "nodes/pg_list.h"
#include "utils/relcache.h"
#include "utils/tuplestore.h"

#include "fingerprint.h"

typedef struct IloadImage
{
	char	   *name;			/* of the table, schema-qualified and quoted */
	char	   *root;			/* name of its topmost ancestor, or its own */
	Oid			relid;			/* InvalidOid: it did not exist */
	Oid			file;			/* relfilenode */
	bool		rewritten;		/* since the image it is compared with, or not
								 * known */
	bool		readable;		/* may the user see the rows? */
	TupleDesc	desc;
	int			ncompared;
	AttrNumber *compared;
	IloadFingerprint fingerprint;	/* of the compared columns */
	uint64		ninserted;		/* rows that the run inserted */
} IloadImage;

/* One row of a table; the slot is good until the function returns. */
typedef void (*IloadImageFunction) (TupleTableSlot *slot, HeapTuple tuple, void *arg);

extern IloadImage *iload_image_take(char *name, char *root, List *ignored, TransactionId since);
extern void iload_image_scan(const IloadImage *image, IloadImageFunction function, void *arg);
extern bool iload_image_compares(const IloadImage *image, const char *column);
extern IloadRowHasher *iload_image_hasher(const IloadImage *image);
extern bool iload_image_inserted(HeapTuple tuple, TransactionId since);
extern void iload_image_spool_new(const IloadImage *image, TransactionId since,
								  Tuplestorestate *store);
extern void iload_image_spool_old(const IloadImage *image, const IloadImage *later,
								  TransactionId since, Tuplestorestate *store);

#endif
