/*
 * error_fields.h
 *		The schema, table, column, type and constraint that an error names for programs.
 */
#ifndef ILOAD_ERROR_FIELDS_H
#define ILOAD_ERROR_FIELDS_H

/* Empty strings where the error names none.  Holds no pointers, for shared memory. */
typedef struct IloadErrorFields
{
	char		schema[NAMEDATALEN];
	char		table[NAMEDATALEN];
	char		column[NAMEDATALEN];
	char		datatype[NAMEDATALEN];
	char		constraint[NAMEDATALEN];
} IloadErrorFields;

extern void iload_error_fields_get(const ErrorData *error, IloadErrorFields *fields);
extern int	iload_errfields(const IloadErrorFields *fields);
extern int	iload_errtable(Oid relid);
extern int	iload_errtablename(const char *name);

#endif
