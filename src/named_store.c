/*
 * named_store.c
 *		Tuplestores that statements read under a name.
 */
#include "postgres.h"

#include "executor/spi.h"

#include "named_store.h"

/*
 * A tuplestore under a name, for a query environment.  "rows" is what the planner
 * shall expect.
 */
EphemeralNamedRelation
iload_named_store_make(const char *name, TupleDesc desc, Tuplestorestate *store, uint64 rows)
{
	EphemeralNamedRelation enr = palloc0(sizeof(EphemeralNamedRelationData));

	enr->md.name = pstrdup(name);
	enr->md.reliddesc = InvalidOid;
	enr->md.tupdesc = desc;
	enr->md.enrtype = ENR_NAMED_TUPLESTORE;
	enr->md.enrtuples = rows;
	enr->reldata = store;
	return enr;
}

/* Let the statements of this SPI level read "store" under a name. */
void
iload_named_store_register(const char *name, TupleDesc desc, Tuplestorestate *store, uint64 rows)
{
	if (SPI_register_relation(iload_named_store_make(name, desc, store, rows)) !=
		SPI_OK_REL_REGISTER)
		elog(ERROR, "could not register relation \"%s\"", name);
}
