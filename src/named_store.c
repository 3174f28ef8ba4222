/*
 * named_store.c
 *		Tuplestores that statements read under a name.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "utils/queryenvironment.h"

#include "named_store.h"

/*
 * Let the statements of this SPI level read "store" under a name.  "rows" is what the
 * planner shall expect.
 */
void
iload_named_store_register(const char *name, TupleDesc desc, Tuplestorestate *store, uint64 rows)
{
	EphemeralNamedRelation enr = palloc0(sizeof(EphemeralNamedRelationData));

	enr->md.name = pstrdup(name);
	enr->md.reliddesc = InvalidOid;
	enr->md.tupdesc = desc;
	enr->md.enrtype = ENR_NAMED_TUPLESTORE;
	enr->md.enrtuples = rows;
	enr->reldata = store;
	if (SPI_register_relation(enr) != SPI_OK_REL_REGISTER)
		elog(ERROR, "could not register relation \"%s\"", name);
}
