/*
 * named_store.h
 *		Tuplestores that statements read under a name.
 */
#ifndef ILOAD_NAMED_STORE_H
#define ILOAD_NAMED_STORE_H

#include "access/tupdesc.h"
#include "utils/queryenvironment.h"
#include "utils/tuplestore.h"

extern EphemeralNamedRelation iload_named_store_make(const char *name, TupleDesc desc,
													 Tuplestorestate *store, uint64 rows);
extern void iload_named_store_register(const char *name, TupleDesc desc,
									   Tuplestorestate *store, uint64 rows);

#endif
