/*
 * own_table.h
 *		The extension's own tables, read and written as their owner.
 */
#ifndef ILOAD_OWN_TABLE_H
#define ILOAD_OWN_TABLE_H

#include "postgres_ext.h"

#define ILOAD_OWN_NPARAMETERS 24

/* Parameters of a statement, $1 and up. */
typedef struct IloadOwnValues
{
	int			n;
	Oid			types[ILOAD_OWN_NPARAMETERS];
	Datum		values[ILOAD_OWN_NPARAMETERS];
	char		nulls[ILOAD_OWN_NPARAMETERS];
} IloadOwnValues;

extern void iload_own_values_add(IloadOwnValues *values, Oid type, Datum value, bool isnull);
extern void iload_own_values_add_text(IloadOwnValues *values, const char *text);
extern Oid	iload_own_table_owner(Oid schema, const char *table);
extern char *iload_own_table_name(Oid schema, const char *table);
extern void iload_own_table_execute(Oid schema, const char *table, const char *text,
									IloadOwnValues *values, bool read_only, int expected);

#endif
