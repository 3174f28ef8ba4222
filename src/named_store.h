/*
 * named_store.h
 *		Tuplestores that statements read under a name.
 */
#ifndef ILOAD_NAMED_STORE_H
#define ILOAD_NAMED_STORE_H

#include "access/tupdesc.h"
#include "utils/tuplestore.h"

extern void iload_named_store_register(const char *name, TupleDesc desc,
									   Tuplestorestate *store, uint64 rows);

#endif
