/*
 * previous.c
 *		The rows of a slice as they were before its last load.
 *
 * A load that is to keep them copies them, before it writes, into a table beside the
 * target that is made for that: one version a slice.  It belongs to the target's owner,
 * and is written with the user's rights.  The extension's table previous_versions tells which slices
 * have a version there, and by which load it was kept: a later load that changed the
 * slice without keeping anything makes it no longer the previous one.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "error_fields.h"
#include "own_table.h"
#include "previous.h"
#include "query.h"
#include "root.h"

#define PREVIOUS_TABLE "previous_versions"

static void
add_slice(IloadOwnValues *values, const IloadSlice *slice)
{
	iload_own_values_add(values, REGCLASSOID, ObjectIdGetDatum(slice->target), false);
	iload_own_values_add_text(values, slice->lower_text);
	iload_own_values_add_text(values, slice->upper_text);
}

/* The first column of the first row of a query on the table, or InvalidOid. */
static Oid
select_oid(Oid schema, const char *text, IloadOwnValues *values)
{
	Oid			result = InvalidOid;
	bool		isnull;

	SPI_connect();
	iload_own_table_execute(schema, PREVIOUS_TABLE, text, values, false, SPI_OK_SELECT);
	if (SPI_processed > 0)
		result = DatumGetObjectId(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1,
												&isnull));
	SPI_finish();
	return result;
}

static Oid
owner_of(Oid relid)
{
	HeapTuple	tup = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid			owner;

	if (!HeapTupleIsValid(tup))
		elog(ERROR, "cache lookup failed for relation %u", relid);
	owner = ((Form_pg_class) GETSTRUCT(tup))->relowner;
	ReleaseSysCache(tup);
	return owner;
}

/*
 * Whoever owns the table can put triggers on it, which run as whoever loads.  So it is
 * owned by whom loaders trust already.
 */
static void
check_owner(Oid relid, Oid target)
{
	if (owner_of(relid) == owner_of(target))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("table \"%s\" of kept rows is not owned by the owner of table \"%s\"",
					get_rel_name(relid), get_rel_name(target)),
			 errhint("Use ALTER TABLE ... OWNER TO, or drop it: the next load makes it anew."),
			 iload_errtable(relid)));
}

/* The table that holds versions of slices of a target, or InvalidOid. */
static Oid
find_table(Oid schema, Oid target)
{
	IloadOwnValues values = {0};
	Oid			relid;

	iload_own_values_add(&values, REGCLASSOID, ObjectIdGetDatum(target), false);
	relid = select_oid(schema,
					   psprintf("SELECT p.kept_in::pg_catalog.oid FROM %s AS p"
								" JOIN pg_catalog.pg_class AS c"
								" ON c.oid OPERATOR(pg_catalog.=) p.kept_in::pg_catalog.oid"
								" WHERE p.target OPERATOR(pg_catalog.=) $1 LIMIT 1",
								iload_own_table_name(schema, PREVIOUS_TABLE)),
					   &values);
	if (OidIsValid(relid))
		check_owner(relid, target);
	return relid;
}

static void
execute(const char *text, int expected)
{
	SPI_connect();
	if (SPI_execute(text, false, 0) != expected)
		elog(ERROR, "could not execute \"%s\"", text);
	SPI_finish();
}

/*
 * Make the table as the target's owner, whose rights the user must have, with an index
 * on the key column.  It has the loaded columns of the target, and no constraints.
 */
static Oid
make_table(const IloadSlice *slice, const IloadColumns *columns)
{
	Oid			namespace = get_rel_namespace(slice->target);
	char	   *name = ChooseRelationName(get_rel_name(slice->target), NULL, "previous", namespace,
										  false);
	char	   *qualified = quote_qualified_identifier(get_namespace_name(namespace), name);
	Oid			owner = owner_of(slice->target);
	Oid			user;
	int			context;

	if (!has_privs_of_role(GetUserId(), owner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("cannot make the table of kept rows of table \"%s\"", slice->table_name),
				 errdetail("It belongs to the table's owner, whose rights you do not have."),
				 errhint("Let the owner run the first load with keep_previous => true."),
				 iload_errtable(slice->target)));
	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(owner, context | SECURITY_LOCAL_USERID_CHANGE);
	execute(psprintf(ILOAD_QUERY_MARK "CREATE TABLE %s AS SELECT %s FROM %s AS t WITH NO DATA",
					 qualified, iload_columns_list(columns, "t"), iload_slice_table(slice)),
			SPI_OK_UTILITY);
	execute(psprintf(ILOAD_QUERY_MARK "CREATE INDEX ON %s (%s)", qualified,
					 quote_identifier(slice->key->name)),
			SPI_OK_UTILITY);
	execute(psprintf(ILOAD_QUERY_MARK "COMMENT ON TABLE %s IS %s", qualified,
					 quote_literal_cstr(psprintf("slices of %s before their last load",
												 iload_slice_table(slice)))),
			SPI_OK_UTILITY);
	SetUserIdAndSecContext(user, context);
	return get_relname_relid(name, namespace);
}

/* Change or delete what is noted of the slice. */
static void
change_version(Oid schema, const IloadSlice *slice, const char *command, const char *clause,
			   int expected)
{
	IloadOwnValues values = {0};

	add_slice(&values, slice);
	SPI_connect();
	iload_own_table_execute(schema, PREVIOUS_TABLE,
							psprintf("%s %s %s WHERE target OPERATOR(pg_catalog.=) $1"
									 " AND lower_bound OPERATOR(pg_catalog.=) $2"
									 " AND upper_bound IS NOT DISTINCT FROM $3",
									 command, iload_own_table_name(schema, PREVIOUS_TABLE), clause),
							&values, false, expected);
	SPI_finish();
}

/* Note that the slice has a version in a table. */
static void
note_version(Oid schema, const IloadSlice *slice, Oid relid, TimestampTz started)
{
	IloadOwnValues values = {0};

	add_slice(&values, slice);
	iload_own_values_add(&values, REGCLASSOID, ObjectIdGetDatum(relid), false);
	iload_own_values_add(&values, TIMESTAMPTZOID, TimestampTzGetDatum(started), false);
	SPI_connect();
	iload_own_table_execute(schema, PREVIOUS_TABLE,
							psprintf("INSERT INTO %s (target, lower_bound, upper_bound, kept_in, kept_at)"
									 " VALUES ($1, $2, $3, $4, $5)",
									 iload_own_table_name(schema, PREVIOUS_TABLE)),
							&values, false, SPI_OK_INSERT);
	SPI_finish();
}

/*
 * Keep the rows of the slice, instead of what was kept of it before.  "started" is when
 * the load began, as the history will say.
 *
 * Locks: SHARE UPDATE EXCLUSIVE on the target while there is no table yet.
 * Errors: a lack of rights on the schema or the table; columns of the target that the
 * table lacks.
 */
void
iload_previous_keep(Oid schema, const IloadSlice *slice, const IloadColumns *columns,
					TimestampTz started)
{
	Oid			relid = find_table(schema, slice->target);
	char	   *list = iload_columns_list(columns, NULL);

	if (!OidIsValid(relid))
	{
		/* loads of other slices may be about to make it, too */
		LockRelationOid(slice->target, ShareUpdateExclusiveLock);
		relid = find_table(schema, slice->target);
	}
	if (!OidIsValid(relid))
		relid = make_table(slice, columns);
	change_version(schema, slice, "DELETE FROM", "", SPI_OK_DELETE);
	execute(psprintf(ILOAD_QUERY_MARK "DELETE FROM %s AS t WHERE %s", iload_table_name(relid),
					 iload_slice_literal_predicate(slice)),
			SPI_OK_DELETE);
	execute(psprintf(ILOAD_QUERY_MARK "INSERT INTO %s (%s) SELECT %s FROM %s AS t WHERE %s",
					 iload_table_name(relid), list, iload_columns_list(columns, "t"),
					 iload_slice_table(slice), iload_slice_literal_predicate(slice)),
			SPI_OK_INSERT);
	note_version(schema, slice, relid, started);
}

/*
 * The table that holds the rows of the slice as they were before its last load that
 * changed it; InvalidOid where that load kept nothing.
 */
Oid
iload_previous_find(Oid schema, const IloadSlice *slice)
{
	IloadOwnValues values = {0};
	char	   *history = iload_own_table_name(schema, "load_history");
	Oid			relid;

	/*
	 * by id: a load that waited for a later one began before it, but came
	 * after it
	 */
	add_slice(&values, slice);
	relid = select_oid(schema,
					   psprintf("SELECT p.kept_in::pg_catalog.oid FROM %s AS p"
								" WHERE p.target OPERATOR(pg_catalog.=) $1"
								" AND p.lower_bound OPERATOR(pg_catalog.=) $2"
								" AND p.upper_bound IS NOT DISTINCT FROM $3 AND p.kept_at IS NOT NULL"
								" AND NOT EXISTS (SELECT FROM %s AS h"
								" WHERE h.target OPERATOR(pg_catalog.=) $1"
								" AND h.lower_bound OPERATOR(pg_catalog.=) $2"
								" AND h.upper_bound IS NOT DISTINCT FROM $3"
								" AND h.method OPERATOR(pg_catalog.<>) ALL ('{none,adopt}')"
								" AND h.id OPERATOR(pg_catalog.>) COALESCE((SELECT pg_catalog.max(k.id)"
								" FROM %s AS k WHERE k.target OPERATOR(pg_catalog.=) $1"
								" AND k.lower_bound OPERATOR(pg_catalog.=) $2"
								" AND k.upper_bound IS NOT DISTINCT FROM $3"
								" AND k.started_at OPERATOR(pg_catalog.=) p.kept_at), 0))",
								iload_own_table_name(schema, PREVIOUS_TABLE), history, history),
					   &values);
	if (!OidIsValid(relid) || get_rel_name(relid) == NULL)
		return InvalidOid;
	check_owner(relid, slice->target);
	return relid;
}

/* The version of the slice is used up; the table stays known. */
void
iload_previous_forget(Oid schema, const IloadSlice *slice)
{
	change_version(schema, slice, "UPDATE", "SET kept_at = NULL", SPI_OK_UPDATE);
}
