/*
 * error_fields.c
 *		The schema, table, column, type and constraint that an error names for programs.
 *
 * Clients read them as fields of the error, so that they need not take the message
 * apart.  As in the server, only an error about the table, one that a look at it or its
 * rows explains, names it; an error in the user's query does not.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "nodes/value.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "error_fields.h"

/* RAISE takes any text for a name, so it may have to be cut: not within a character. */
static void
copy_name(char *to, const char *from)
{
	if (from == NULL)
		from = "";
	strlcpy(to, from, pg_mbcliplen(from, strlen(from), NAMEDATALEN - 1) + 1);
}

/* The fields of an error that was caught. */
void
iload_error_fields_get(const ErrorData *error, IloadErrorFields *fields)
{
	copy_name(fields->schema, error->schema_name);
	copy_name(fields->table, error->table_name);
	copy_name(fields->column, error->column_name);
	copy_name(fields->datatype, error->datatype_name);
	copy_name(fields->constraint, error->constraint_name);
}

static void
set_field(int field, const char *name)
{
	if (name[0] != '\0')
		err_generic_string(field, name);
}

/* For ereport: the fields of another error. */
int
iload_errfields(const IloadErrorFields *fields)
{
	set_field(PG_DIAG_SCHEMA_NAME, fields->schema);
	set_field(PG_DIAG_TABLE_NAME, fields->table);
	set_field(PG_DIAG_COLUMN_NAME, fields->column);
	set_field(PG_DIAG_DATATYPE_NAME, fields->datatype);
	set_field(PG_DIAG_CONSTRAINT_NAME, fields->constraint);
	return 0;
}

/* For ereport: as errtable, for a table that need not be open, nor exist any more. */
int
iload_errtable(Oid relid)
{
	char	   *name = get_rel_name(relid);
	char	   *schema = get_namespace_name(get_rel_namespace(relid));

	/* without a lock it may be dropped between the two */
	if (name != NULL && schema != NULL)
	{
		err_generic_string(PG_DIAG_SCHEMA_NAME, schema);
		err_generic_string(PG_DIAG_TABLE_NAME, name);
	}
	return 0;
}

/* For ereport: the same, by its schema-qualified and quoted name. */
int
iload_errtablename(const char *name)
{
	List	   *names = iload_string_to_name_list(name);

	err_generic_string(PG_DIAG_SCHEMA_NAME, strVal(linitial(names)));
	err_generic_string(PG_DIAG_TABLE_NAME, strVal(lsecond(names)));
	return 0;
}
