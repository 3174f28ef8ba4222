/*
 * rewrite.c
 *		Writing to the target by SQL: DELETE, UPDATE and INSERT.
 *
 * All writes are statements on the target, run by the executor as the caller,
 * so tuple routing, constraints, triggers, foreign keys, row security, rules
 * and logical replication mean what they always mean, and tables of every kind
 * that takes SQL can be loaded.  The rows come from tuplestores that the
 * statements read as named relations.
 *
 * The statements share one level of AFTER triggers, which fire at the end, as if
 * they were one: so a row that is replaced by one with the same key does not break a
 * foreign key that refers to it.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "catalog/partition.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/plancache.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/typcache.h"

#include "error_fields.h"
#include "named_store.h"
#include "progress.h"
#include "query.h"
#include "rewrite.h"
#include "wait_point.h"

/* Names of the relations that the statements read. */
#define DOOMED_NAME "iload_doomed"
#define CHANGED_NAME "iload_changed"
#define FRESH_NAME	"iload_fresh"

/* Columns that say where a row lies, the first ones of rows to delete or update. */
#define NPLACE		2

/* The columns of a tuplestore of rows to delete: where each one lies. */
TupleDesc
iload_rewrite_doomed_desc(void)
{
	TupleDesc	desc = CreateTemplateTupleDesc(NPLACE);

	TupleDescInitEntry(desc, 1, "relation", OIDOID, -1, 0);
	TupleDescInitEntry(desc, 2, "tid", TIDOID, -1, 0);
	return desc;
}

/* The same of rows to update, and behind it their new values in the loaded columns. */
TupleDesc
iload_rewrite_changed_desc(const IloadColumns *columns)
{
	TupleDesc	place = iload_rewrite_doomed_desc();
	TupleDesc	desc = CreateTemplateTupleDesc(NPLACE + columns->desc->natts);

	for (int i = 0; i < desc->natts; i++)
	{
		if (i < NPLACE)
			TupleDescCopyEntry(desc, i + 1, place, i + 1);
		else
			TupleDescCopyEntry(desc, i + 1, columns->desc, i + 1 - NPLACE);
	}
	return desc;
}

/*
 * Run a statement, with the slice's bounds as $3 and $4, without firing the
 * AFTER triggers that it queues.  Returns the number of rows; none where a rule
 * has turned the statement into another kind than "expected".
 */
static uint64
run_statement(IloadSlice *slice, const char *text, int expected)
{
	Oid			types[ILOAD_SLICE_NPARAMS];
	Datum		values[ILOAD_SLICE_NPARAMS];
	char		nulls[ILOAD_SLICE_NPARAMS];
	ParamListInfo params = iload_slice_params(slice);
	SPIPlanPtr	plan;
	int			result;

	for (int i = 0; i < ILOAD_SLICE_NPARAMS; i++)
	{
		types[i] = params->params[i].ptype;
		values[i] = params->params[i].value;
		nulls[i] = params->params[i].isnull ? 'n' : ' ';
	}
	plan = SPI_prepare(text, ILOAD_SLICE_NPARAMS, types);
	if (plan == NULL)
		elog(ERROR, "SPI_prepare failed: %s", SPI_result_code_string(SPI_result));
	result = SPI_execute_snapshot(plan, values, nulls, InvalidSnapshot, InvalidSnapshot,
								  false, false, 0);
	if (result < 0)
		elog(ERROR, "SPI_execute_snapshot failed: %s", SPI_result_code_string(result));
	return result == expected ? SPI_processed : 0;
}

/* SQL text that picks the rows of the target "t" at the places in "alias". */
static char *
place_predicate(const char *alias)
{
	return psprintf("t.ctid OPERATOR(pg_catalog.=) %s.tid"
					" AND t.tableoid OPERATOR(pg_catalog.=) %s.relation", alias, alias);
}

/*
 * SQL text that picks the rows to delete of the target "t": all of the slice,
 * or those at the places in "d", where "slice" is about the slice.
 */
static char *
doomed_predicate(const IloadRewrite *rewrite, const char *slice)
{
	if (rewrite->doomed == NULL)
		return pstrdup(slice);
	return psprintf("%s AND %s", place_predicate("d"), slice);
}

/*
 * "AND t.a = s.a AND t.b = s.b" over the columns of "relid" in an array of
 * numbers.  The target has columns of the same names.  Generated ones are not
 * among the rows to insert; without them more rows may count as the same.
 */
static char *
same_key_predicate(Oid relid, ArrayType *attnums)
{
	Datum	   *numbers;
	int			n;
	StringInfoData text;

	deconstruct_array(attnums, INT2OID, sizeof(int16), true, TYPALIGN_SHORT,
					  &numbers, NULL, &n);
	initStringInfo(&text);
	for (int i = 0; i < n; i++)
	{
		AttrNumber	attnum = DatumGetInt16(numbers[i]);
		TypeCacheEntry *entry = lookup_type_cache(get_atttype(relid, attnum), TYPECACHE_EQ_OPR);
		const char *name = quote_identifier(get_attname(relid, attnum, false));

		if (get_attgenerated(relid, attnum) != '\0')
			continue;
		appendStringInfo(&text, " AND t.%s %s s.%s", name,
						 iload_operator_text(entry->eq_opr), name);
	}
	return text.data;
}

/*
 * A foreign key that refers to the target and acts when a row is deleted would
 * act on a row that is only replaced by one with the same key: its referring
 * rows would be deleted, or lose their reference, though the key stays.
 */
static void
check_cascade(IloadRewrite *rewrite, const char *constraint, Oid conrelid, Oid relid,
			  ArrayType *attnums)
{
	uint64		found;

	found = run_statement(rewrite->slice,
						  psprintf(ILOAD_QUERY_MARK "SELECT FROM %s AS t, " FRESH_NAME " AS s%s WHERE %s%s LIMIT 1",
								   iload_slice_table(rewrite->slice),
								   rewrite->doomed != NULL ? ", " DOOMED_NAME " AS d" : "",
								   doomed_predicate(rewrite,
													iload_slice_predicate(rewrite->slice, "t")),
								   same_key_predicate(relid, attnums)),
						  SPI_OK_SELECT);
	if (found > 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot replace rows of table \"%s\" that foreign key \"%s\" refers to",
						rewrite->slice->table_name, constraint),
				 errdetail("The foreign key acts on the referring rows when a row is deleted, and would do so for rows that are replaced by others with the same key."),
				 errhint("Define the foreign key as ON DELETE NO ACTION, which allows rows to be replaced."),
				 iload_errtable(conrelid),
				 err_generic_string(PG_DIAG_CONSTRAINT_NAME, constraint)));
}

/* The OIDs of the leaves and of the tables above them, as an array. */
static Datum
tree_oids(IloadLeaves *leaves)
{
	List	   *relids = NIL;
	Datum	   *oids;
	ListCell   *lc;

	foreach(lc, leaves->leaves)
	{
		Oid			leaf = ((IloadLeaf *) lfirst(lc))->relid;

		relids = lappend_oid(relids, leaf);
		if (get_rel_relispartition(leaf))
			relids = list_concat_unique_oid(relids, get_partition_ancestors(leaf));
	}
	oids = palloc(list_length(relids) * sizeof(Datum));
	foreach(lc, relids)
		oids[foreach_current_index(lc)] = ObjectIdGetDatum(lfirst_oid(lc));
	return PointerGetDatum(construct_array(oids, list_length(relids), OIDOID,
										   sizeof(Oid), true, TYPALIGN_INT));
}

/*
 * Check the foreign keys that refer to the target, and those that refer to a
 * part of it, such as one leaf.
 */
static void
check_cascades(IloadRewrite *rewrite)
{
	Oid			types[2] = {OIDOID, OIDARRAYOID};
	Datum		values[2];
	uint64		n;
	SPITupleTable *constraints;

	values[0] = ObjectIdGetDatum(rewrite->slice->target);
	values[1] = tree_oids(rewrite->leaves);
	if (SPI_execute_with_args(ILOAD_QUERY_MARK "SELECT DISTINCT ON (c.confrelid, c.confkey)"
							  " c.conname, c.conrelid, c.confrelid, c.confkey"
							  " FROM pg_catalog.pg_constraint c"
							  " WHERE (c.confrelid OPERATOR(pg_catalog.=) $1"
							  " OR c.confrelid OPERATOR(pg_catalog.=) ANY ($2)"
							  " AND c.conparentid OPERATOR(pg_catalog.=) 0)"
							  " AND c.contype OPERATOR(pg_catalog.=) 'f'"
							  " AND c.confdeltype OPERATOR(pg_catalog.=) ANY ('{c,n,d}')"
							  " ORDER BY c.confrelid, c.confkey, c.conname",
							  2, types, values, NULL, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not read pg_constraint");
	n = SPI_processed;
	constraints = SPI_tuptable;
	for (uint64 i = 0; i < n; i++)
	{
		HeapTuple	row = constraints->vals[i];
		bool		isnull;
		Datum		conrelid = SPI_getbinval(row, constraints->tupdesc, 2, &isnull);
		Datum		confrelid = SPI_getbinval(row, constraints->tupdesc, 3, &isnull);
		Datum		confkey = SPI_getbinval(row, constraints->tupdesc, 4, &isnull);

		check_cascade(rewrite, SPI_getvalue(row, constraints->tupdesc, 1),
					  DatumGetObjectId(conrelid), DatumGetObjectId(confrelid),
					  DatumGetArrayTypeP(confkey));
	}
}

/*
 * Let the planner fetch rows by their place: for each in turn, by its ctid.  It
 * would prefer to read the whole leaf for a join where the rows are many but
 * still a small part, and for each of them where it takes the leaf for small.
 */
static void
plan_by_place(void)
{
	static const struct
	{
		const char *name;
		const char *value;
	}			settings[] = {
		{"enable_bitmapscan", "off"},
		{"enable_hashjoin", "off"},
		{"enable_indexscan", "off"},
		{"enable_mergejoin", "off"},
		{"enable_nestloop", "on"},
		{"enable_seqscan", "off"},
		{"enable_tidscan", "on"}
	};

	for (int i = 0; i < (int) lengthof(settings); i++)
		(void) set_config_option(settings[i].name, settings[i].value,
								 PGC_USERSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
}

/*
 * Run a statement on rows named by their place, as run_statement does.  One without
 * parameters has one plan, which is made here, with settings of our own, and found
 * again when it is run, without them: so they do not reach what triggers plan
 * meanwhile.
 */
static uint64
run_by_place(const char *text, int expected)
{
	SPIPlanPtr	plan = SPI_prepare(text, 0, NULL);
	CachedPlan *cached;
	int			nestlevel;
	int			result;

	if (plan == NULL)
		elog(ERROR, "SPI_prepare failed: %s", SPI_result_code_string(SPI_result));
	nestlevel = NewGUCNestLevel();
	plan_by_place();
	cached = SPI_plan_get_cached_plan(plan);
	AtEOXact_GUC(true, nestlevel);
	result = SPI_execute_snapshot(plan, NULL, NULL, InvalidSnapshot, InvalidSnapshot,
								  false, false, 0);
	if (result < 0)
		elog(ERROR, "SPI_execute_snapshot failed: %s", SPI_result_code_string(result));
	if (cached != NULL)
		ReleaseCachedPlan(cached, NULL);
	return result == expected ? SPI_processed : 0;
}

/*
 * Delete the rows to delete; those named by their place are fetched by it.  Not
 * so under row security, where no condition of ours may come before those of the
 * policies, and the planner needs all its ways.
 */
static void
delete_doomed(IloadRewrite *rewrite)
{
	IloadSlice *slice = rewrite->slice;

	if (rewrite->doomed != NULL &&
		check_enable_rls(slice->target, InvalidOid, true) != RLS_ENABLED)
	{
		rewrite->deleted =
			run_by_place(psprintf(ILOAD_QUERY_MARK "DELETE FROM %s AS t USING " DOOMED_NAME " AS d WHERE %s",
								  iload_slice_table(slice),
								  doomed_predicate(rewrite, iload_slice_literal_predicate(slice))),
						 SPI_OK_DELETE);
		return;
	}
	rewrite->deleted =
		run_statement(slice,
					  psprintf(ILOAD_QUERY_MARK "DELETE FROM %s AS t%s WHERE %s", iload_slice_table(slice),
							   rewrite->doomed != NULL ? " USING " DOOMED_NAME " AS d" : "",
							   doomed_predicate(rewrite, iload_slice_predicate(slice, "t"))),
					  SPI_OK_DELETE);
}

/*
 * SQL text of the UPDATE, but for what it says about the slice.  The columns of the
 * tuplestore go by names of ours, since the target's may be any.
 */
static char *
update_text(const IloadRewrite *rewrite)
{
	TupleDesc	desc = rewrite->columns->desc;
	StringInfoData set,
				names;

	initStringInfo(&set);
	initStringInfo(&names);
	for (int i = 1; i <= desc->natts; i++)
	{
		appendStringInfo(&names, ", c%d", i);
		if (bms_is_member(i, rewrite->set))
			appendStringInfo(&set, "%s%s = u.c%d", set.len > 0 ? ", " : "",
							 quote_identifier(NameStr(TupleDescAttr(desc, i - 1)->attname)), i);
	}
	return psprintf(ILOAD_QUERY_MARK "UPDATE %s AS t SET %s FROM " CHANGED_NAME
					" AS u (relation, tid%s) WHERE %s",
					iload_slice_table(rewrite->slice), set.data, names.data,
					rewrite->changed_key != NULL ? rewrite->changed_key : place_predicate("u"));
}

/* Update the rows to update; by their place under the conditions of delete_doomed. */
static void
update_changed(IloadRewrite *rewrite)
{
	IloadSlice *slice = rewrite->slice;

	if (rewrite->changed_key == NULL &&
		check_enable_rls(slice->target, InvalidOid, true) != RLS_ENABLED)
		rewrite->updated = run_by_place(psprintf("%s AND %s", update_text(rewrite),
												 iload_slice_literal_predicate(slice)),
										SPI_OK_UPDATE);
	else
		rewrite->updated = run_statement(slice,
										 psprintf("%s AND %s", update_text(rewrite),
												  iload_slice_predicate(slice, "t")),
										 SPI_OK_UPDATE);
}

/*
 * Insert the rows to insert.  They have all their values, also those of
 * identity columns, which a default has already drawn.
 */
static void
insert_fresh(IloadRewrite *rewrite)
{
	rewrite->inserted = run_statement(rewrite->slice,
									  psprintf(ILOAD_QUERY_MARK "INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE"
											   " SELECT %s FROM " FRESH_NAME " AS s",
											   iload_slice_table(rewrite->slice),
											   iload_columns_list(rewrite->columns, NULL),
											   iload_columns_list(rewrite->columns, "s")),
									  SPI_OK_INSERT);
}

/* Has a table a trigger that can keep a row from being deleted, or updated? */
static bool
has_keeping_trigger(Oid relid, bool update)
{
	Relation	rel = table_open(relid, NoLock);
	bool		result = rel->trigdesc != NULL &&
	(update ? rel->trigdesc->trig_update_before_row : rel->trigdesc->trig_delete_before_row);

	table_close(rel, NoLock);
	return result;
}

/*
 * The part of a table that kept rows from being deleted, or updated, as far as it
 * may: a policy, a rule or a trigger; or NULL.
 */
static const char *
keeper_of_rows(IloadRewrite *rewrite, bool update)
{
	Relation	target = table_open(rewrite->slice->target, NoLock);
	bool		has_rules = target->rd_rules != NULL;
	ListCell   *lc;

	table_close(target, NoLock);
	if (check_enable_rls(rewrite->slice->target, InvalidOid, true) == RLS_ENABLED)
		return "policy";
	if (has_rules)
		return "rule";
	foreach(lc, rewrite->leaves->leaves)
	{
		if (has_keeping_trigger(((IloadLeaf *) lfirst(lc))->relid, update))
			return "trigger";
	}
	/* of a table that is not partitioned, the children by inheritance too */
	if (get_rel_relkind(rewrite->slice->target) == RELKIND_RELATION)
	{
		foreach(lc, find_all_inheritors(rewrite->slice->target, AccessShareLock, NULL))
		{
			if (has_keeping_trigger(lfirst_oid(lc), update))
				return "trigger";
		}
	}
	return NULL;
}

/*
 * All rows that were to be deleted, or updated, must have been, or the slice would
 * hold old rows beside the new ones.
 *
 * In a leaf that other slices share, writers that do not come through us can
 * change a row between the comparison and our statement, which then misses it.
 * That is a serialization failure, as it would be for an UPDATE of theirs that
 * came first.
 */
static void
check_done(IloadRewrite *rewrite, bool update, uint64 wanted, uint64 done)
{
	const char *keeper;

	if (done >= wanted)
		return;
	keeper = keeper_of_rows(rewrite, update);
	if (keeper != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION),
				 errmsg("rows of slice %s of table \"%s\" could not be %s",
						iload_slice_text(rewrite->slice), rewrite->slice->table_name,
						update ? "updated" : "deleted"),
				 errdetail("Of " UINT64_FORMAT " rows to %s, " UINT64_FORMAT " were. A %s of the table keeps the others.",
						   wanted, update ? "update" : "delete", done, keeper),
				 iload_errtable(rewrite->slice->target)));
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("could not serialize access due to concurrent update"),
			 errdetail("Rows of slice %s of table \"%s\" were changed while it was being loaded.",
					   iload_slice_text(rewrite->slice), rewrite->slice->table_name),
			 errhint("The transaction might succeed if retried."),
			 iload_errtable(rewrite->slice->target)));
}

/*
 * Delete, update and insert, as the caller.  The first statement that writes comes
 * after everything that can be checked beforehand; the server's own checks of
 * constraints and triggers come with the statements.
 */
void
iload_rewrite_apply(IloadRewrite *rewrite)
{
	SPI_connect();
	if (rewrite->doomed != NULL)
		iload_named_store_register(DOOMED_NAME, iload_rewrite_doomed_desc(), rewrite->doomed,
								   rewrite->ndoomed);
	if (rewrite->changed != NULL)
		iload_named_store_register(CHANGED_NAME, iload_rewrite_changed_desc(rewrite->columns),
								   rewrite->changed, rewrite->nchanged);
	iload_named_store_register(FRESH_NAME, rewrite->columns->desc, rewrite->fresh, rewrite->nfresh);
	if (rewrite->ndoomed > 0 && rewrite->nfresh > 0)
		check_cascades(rewrite);

	AfterTriggerBeginQuery();
	iload_progress_phase(rewrite->slice->target, ILOAD_PHASE_DELETING, rewrite->ndoomed);
	if (rewrite->ndoomed > 0)
		delete_doomed(rewrite);
	check_done(rewrite, false, rewrite->ndoomed, rewrite->deleted);
	iload_wait_point("deleted");
	if (rewrite->nchanged > 0)
	{
		iload_progress_phase(rewrite->slice->target, ILOAD_PHASE_UPDATING, rewrite->nchanged);
		update_changed(rewrite);
		check_done(rewrite, true, rewrite->nchanged, rewrite->updated);
	}
	iload_progress_phase(rewrite->slice->target, ILOAD_PHASE_INSERTING, rewrite->nfresh);
	if (rewrite->nfresh > 0)
		insert_fresh(rewrite);
	iload_wait_point("inserted");

	iload_progress_phase(rewrite->slice->target, ILOAD_PHASE_FIRING_TRIGGERS, 0);
	PushActiveSnapshot(GetTransactionSnapshot());
	AfterTriggerEndQuery(NULL);
	PopActiveSnapshot();
	CommandCounterIncrement();
	SPI_finish();
}
