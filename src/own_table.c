/*
 * own_table.c
 *		The extension's own tables, read and written as their owner.
 *
 * They belong to the extension's owner, and nobody else may write them.  Here is
 * the one place where that owner's rights are taken on, for statements whose text
 * is ours and depends on no search_path.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "own_table.h"
#include "query.h"

/* Add a parameter. */
void
iload_own_values_add(IloadOwnValues *values, Oid type, Datum value, bool isnull)
{
	Assert(values->n < ILOAD_OWN_NPARAMETERS);
	values->types[values->n] = type;
	values->values[values->n] = value;
	values->nulls[values->n] = isnull ? 'n' : ' ';
	values->n++;
}

/* Add one of type text; NULL is a null. */
void
iload_own_values_add_text(IloadOwnValues *values, const char *text)
{
	iload_own_values_add(values, TEXTOID,
						 text == NULL ? (Datum) 0 : CStringGetTextDatum(text), text == NULL);
}

/* The owner of a table of ours.  "schema" is the extension's, here and below. */
Oid
iload_own_table_owner(Oid schema, const char *table)
{
	Oid			relid = get_relname_relid(table, schema);
	HeapTuple	tup = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid			owner;

	if (!HeapTupleIsValid(tup))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("table \"%s\" of extension idempotent_load does not exist", table)));
	owner = ((Form_pg_class) GETSTRUCT(tup))->relowner;
	ReleaseSysCache(tup);
	return owner;
}

/* The name of a table of ours in SQL text. */
char *
iload_own_table_name(Oid schema, const char *table)
{
	return quote_qualified_identifier(get_namespace_name(schema), table);
}

/*
 * Run a statement on a table of ours with its owner's rights.  "text" is ours, and
 * qualifies every name and operator; "expected" is what SPI says when it has been
 * run.  The caller has connected to SPI and finds the rows there.
 */
void
iload_own_table_execute(Oid schema, const char *table, const char *text,
						IloadOwnValues *values, bool read_only, int expected)
{
	Oid			owner = iload_own_table_owner(schema, table);
	Oid			user;
	int			context;

	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(owner, context | SECURITY_LOCAL_USERID_CHANGE);
	if (SPI_execute_with_args(psprintf(ILOAD_QUERY_MARK "%s", text),
							  values->n, values->types, values->values, values->nulls,
							  read_only, 0) != expected)
		elog(ERROR, "could not run a statement on table \"%s\"", table);
	SetUserIdAndSecContext(user, context);
}
