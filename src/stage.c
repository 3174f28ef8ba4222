/*
 * stage.c
 *		The stage: the query's rows, spooled, checked and fingerprinted.
 *
 * The query runs as the caller, and nothing is in the target yet.  Around
 * its parse tree a SELECT is built that has the loaded columns of the target:
 * each one of the query's, by name and cast as in an assignment, or else the
 * default that INSERT would give it.  A row that is not of the slice ends the
 * load.  The spool goes to a temporary file beyond its share of work_mem.
 *
 * A query that is cheap and has no volatile functions may be run for its
 * fingerprint first: where that tells that nothing has changed, no spool is needed.
 *
 * Where the slice is empty, many rows are expected, and new files may take the
 * place of its leaves, the rows go straight into these files: there is nothing to
 * compare them with.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parse_coerce.h"
#include "parser/parse_node.h"
#include "parser/parse_relation.h"
#include "rewrite/rewriteHandler.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "errcodes.h"
#include "progress.h"
#include "query.h"
#include "stage.h"

/* The output columns of the query that the user can see, as target entries. */
static List *
output_columns(Query *query)
{
	List	   *output = NIL;
	ListCell   *lc;

	foreach(lc, query->targetList)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, lc);

		if (!entry->resjunk)
			output = lappend(output, entry);
	}
	return output;
}

/*
 * The values of a bare VALUES list have no names.  They are taken by position,
 * as in INSERT: the first for the first loaded column of the target.
 */
static void
name_values_columns(List *output, const IloadColumns *columns)
{
	ListCell   *lc;

	if (list_length(output) > columns->desc->natts)
		ereport(ERROR,
				(errcode(ERRCODE_ILOAD_QUERY_SHAPE),
				 errmsg("VALUES list of the query has more columns than the target"),
				 errdetail("It has %d, the target has %d that can be loaded.",
						   list_length(output), columns->desc->natts)));
	foreach(lc, output)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, lc);

		entry->resname = pstrdup(NameStr(TupleDescAttr(columns->desc,
													   foreach_current_index(lc))->attname));
	}
}

static void
append_name(StringInfo list, const char *name)
{
	appendStringInfo(list, "%s\"%s\"", list->len > 0 ? ", " : "", name);
}

/* Names of the query's columns that the target lacks, or that come twice. */
static void
check_names(Relation target, const IloadSlice *slice, List *output)
{
	StringInfoData unknown,
				twice,
				generated;
	int			unnamed = 0;
	ListCell   *lc;

	initStringInfo(&unknown);
	initStringInfo(&twice);
	initStringInfo(&generated);
	foreach(lc, output)
	{
		char	   *name = lfirst_node(TargetEntry, lc)->resname;
		AttrNumber	attnum;

		if (name == NULL || strcmp(name, "?column?") == 0)
		{
			unnamed++;
			continue;
		}
		attnum = get_attnum(RelationGetRelid(target), name);
		if (attnum <= 0)
			append_name(&unknown, name);
		else if (TupleDescAttr(RelationGetDescr(target), attnum - 1)->attgenerated != '\0')
			append_name(&generated, name);
		for (int i = 0; i < foreach_current_index(lc); i++)
		{
			char	   *other = list_nth_node(TargetEntry, output, i)->resname;

			if (other != NULL && strcmp(other, name) == 0)
			{
				append_name(&twice, name);
				break;
			}
		}
	}
	if (unknown.len > 0 || unnamed > 0)
		ereport(ERROR,
				(errcode(ERRCODE_ILOAD_QUERY_SHAPE),
				 errmsg("query has columns that table \"%s\" does not have", slice->table_name),
				 unknown.len > 0 && unnamed > 0 ?
				 errdetail("Unknown columns: %s; columns without a name: %d.", unknown.data, unnamed) :
				 unknown.len > 0 ? errdetail("Unknown columns: %s.", unknown.data) :
				 errdetail("Columns without a name: %d.", unnamed),
				 errhint("Columns are matched by name. Name each one with AS, after a column of the target."),
				 errtable(target)));
	if (twice.len > 0)
		ereport(ERROR,
				(errcode(ERRCODE_ILOAD_QUERY_SHAPE),
				 errmsg("query has more than one column of the same name"),
				 errdetail("Names given more than once: %s.", twice.data)));
	if (generated.len > 0)
		ereport(ERROR,
				(errcode(ERRCODE_GENERATED_ALWAYS),
				 errmsg("query supplies generated columns of table \"%s\"", slice->table_name),
				 errdetail("Generated columns: %s.", generated.data),
				 errhint("Leave them out: the server computes them."),
				 errtable(target)));
}

/* The query's column of a name, or NULL. */
static TargetEntry *
find_output(List *output, const char *name)
{
	ListCell   *lc;

	foreach(lc, output)
	{
		if (strcmp(lfirst_node(TargetEntry, lc)->resname, name) == 0)
			return lfirst_node(TargetEntry, lc);
	}
	return NULL;
}

/* The query's column as an expression of the SELECT around it, cast. */
static Expr *
supplied_expression(Relation target, Form_pg_attribute att, TargetEntry *entry, bool literals)
{
	ParseState *pstate = make_parsestate(NULL);
	Node	   *value = (Node *) entry->expr;
	Oid			type = exprType(value);
	Node	   *cast;

	if (att->attidentity == ATTRIBUTE_IDENTITY_ALWAYS)
		ereport(ERROR,
				(errcode(ERRCODE_GENERATED_ALWAYS),
				 errmsg("query supplies identity column \"%s\" of table \"%s\"",
						NameStr(att->attname), RelationGetRelationName(target)),
				 errdetail("The column is defined as GENERATED ALWAYS."),
				 errhint("Leave it out, or define it as GENERATED BY DEFAULT."),
				 errtablecol(target, att->attnum)));

	/*
	 * a literal of unknown type is moved up, so that it can be read as the
	 * type
	 */
	if (type != UNKNOWNOID || !IsA(value, Const))
		value = (Node *) makeVar(1, entry->resno, type, exprTypmod(value),
								 exprCollation(value), 0);
	cast = coerce_to_target_type(pstate, value, type, att->atttypid, att->atttypmod,
								 COERCION_ASSIGNMENT, COERCE_IMPLICIT_CAST, -1);

	/*
	 * in VALUES, plain literals have become text by the time that they get
	 * here
	 */
	if (cast == NULL && literals && type == TEXTOID)
		cast = coerce_to_target_type(pstate, value, type, att->atttypid, att->atttypmod,
									 COERCION_EXPLICIT, COERCE_IMPLICIT_CAST, -1);
	if (cast == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" is of type %s but the query's column is of type %s",
						NameStr(att->attname),
						format_type_with_typemod(att->atttypid, att->atttypmod),
						format_type_be(type)),
				 errhint("Cast it in the query."),
				 errtablecol(target, att->attnum)));
	free_parsestate(pstate);
	return (Expr *) cast;
}

/* What INSERT through the target would put into a column that is not given. */
static Expr *
default_expression(Relation target, Form_pg_attribute att)
{
	Node	   *value = build_column_default(target, att->attnum);

	if (value == NULL)
		value = coerce_to_domain((Node *) makeNullConst(getBaseType(att->atttypid), -1,
														att->attcollation),
								 InvalidOid, -1, att->atttypid,
								 COERCION_IMPLICIT, COERCE_IMPLICIT_CAST, -1, false);
	return (Expr *) value;
}

/*
 * The SELECT around the query that has the loaded columns of the target.
 * "literals" are the positions of columns that the query gives as literals in a
 * bare VALUES list.
 */
static Query *
wrap_query(Relation target, const IloadSlice *slice, const IloadColumns *columns,
		   Query *inner, List *output, Bitmapset *literals)
{
	Query	   *outer = makeNode(Query);
	RangeTblEntry *rte = makeNode(RangeTblEntry);
	RangeTblRef *ref = makeNode(RangeTblRef);
	List	   *names = NIL;
	ListCell   *lc;

	if (find_output(output, slice->key->name) == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_ILOAD_QUERY_SHAPE),
				 errmsg("query lacks the key column \"%s\" of table \"%s\"",
						slice->key->name, slice->table_name),
				 errhint("Each row must say to which slice it belongs."),
				 errtablecol(target, slice->key->attnum)));

	for (int i = 0; i < columns->desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(target),
											  columns->attnums[i] - 1);
		TargetEntry *entry = find_output(output, NameStr(att->attname));
		Expr	   *value;

		if (entry != NULL)
			value = supplied_expression(target, att, entry,
										bms_is_member(entry->resno, literals));
		else
			value = default_expression(target, att);
		outer->targetList = lappend(outer->targetList,
									makeTargetEntry(value, i + 1,
													pstrdup(NameStr(att->attname)), false));
	}
	foreach(lc, output)
		names = lappend(names, makeString(lfirst_node(TargetEntry, lc)->resname));

	rte->rtekind = RTE_SUBQUERY;
	rte->subquery = inner;
	rte->eref = makeAlias("query", names);
	rte->inFromCl = true;
	ref->rtindex = 1;
	outer->commandType = CMD_SELECT;
	outer->querySource = QSRC_ORIGINAL;
	outer->canSetTag = true;
	outer->rtable = list_make1(rte);
	outer->jointree = makeFromExpr(list_make1(ref), NULL);
	return outer;
}

/*
 * The positions of columns of a bare VALUES list that hold nothing but literals
 * without a type.  They are read as the target's type, as in INSERT.
 */
static Bitmapset *
literal_columns(SelectStmt *select)
{
	Bitmapset  *literals = NULL;
	ListCell   *lrow,
			   *lvalue;

	if (select->valuesLists == NIL)
		return NULL;
	foreach(lvalue, linitial_node(List, select->valuesLists))
		literals = bms_add_member(literals, foreach_current_index(lvalue) + 1);
	foreach(lrow, select->valuesLists)
	{
		foreach(lvalue, lfirst_node(List, lrow))
		{
			A_Const    *value = lfirst(lvalue);

			if (!IsA(value, A_Const) || (!value->isnull && !IsA(&value->val, String)))
				literals = bms_del_member(literals, foreach_current_index(lvalue) + 1);
		}
	}
	return literals;
}

/* Parse the query and bring its columns into the target's shape. */
static Query *
build_query(Relation target, IloadSlice *slice, const IloadColumns *columns, const char *text)
{
	SelectStmt *select = iload_query_parse(text, "query");
	Bitmapset  *literals = literal_columns(select);
	Oid			types[ILOAD_SLICE_NPARAMS];
	Query	   *query;
	List	   *output;

	iload_slice_param_types(slice, types);
	query = iload_query_analyze(select, text, "query", types, 2, NULL);
	output = output_columns(query);
	if (select->valuesLists != NIL)
		name_values_columns(output, columns);
	check_names(target, slice, output);
	return wrap_query(target, slice, columns, query, output, literals);
}

/* State of the run of the query. */
typedef struct StageRun
{
	IloadStage *stage;
	int			key;			/* position of the key column, from 0 */
	Datum		first_key;		/* surely in the slice */
	IloadRowHasher *hasher;
	TupleDesc	desc;			/* of the last slot that had a tuple */
	bool		same_layout;	/* tuples of "desc" can be spooled */
	TupleTableSlot *row;		/* a row, out-of-line values fetched */
	TupleTableSlot *stored;		/* the same as it goes into a new file */
	bool		probe;			/* rows are hashed only */
	MemoryContext row_context;
} StageRun;

/* The value of a stray key, and where the slice lies, as an error. */
static void
stray_row(StageRun *run, Datum value, bool isnull)
{
	IloadSlice *slice = run->stage->slice;
	DateADT		date;
	bool		not_a_day = false;

	if (!isnull && slice->by_date)
		not_a_day = !iload_key_is_day(slice->key, value, &date);
	ereport(ERROR,
			(errcode(ERRCODE_ILOAD_STRAY_ROW),
			 errmsg("query returned a row that is not in slice %s of table \"%s\"",
					iload_slice_text(slice), slice->table_name),
			 isnull ? errdetail("Its \"%s\" is null.", slice->key->name) :
			 not_a_day ? errdetail("Its \"%s\" is %s, which is not a day.", slice->key->name,
								   iload_key_quoted(slice->key, value)) :
			 errdetail("Its \"%s\" is %s.", slice->key->name,
					   iload_key_quoted(slice->key, value)),
			 slice->single ? errhint("Let the query keep to rows with the value $1.") :
			 slice->by_date ?
			 errhint("Let the query keep to rows of the period that starts on $1 and ends before $2. The time zone is \"%s\".",
					 slice->timezone) :
			 errhint("Let the query keep to rows from $1 up to, not including, $2."),
			 errtablecol(run->stage->target, slice->key->attnum)));
}

/* Fetch out-of-line values: the rows that own them may be replaced. */
static void
fetch_external(TupleTableSlot *slot)
{
	TupleDesc	desc = slot->tts_tupleDescriptor;

	for (int i = 0; i < desc->natts; i++)
	{
		if (!slot->tts_isnull[i] && TupleDescAttr(desc, i)->attlen == -1 &&
			VARATT_IS_EXTERNAL(DatumGetPointer(slot->tts_values[i])))
			slot->tts_values[i] =
				PointerGetDatum(detoast_external_attr((struct varlena *)
													  DatumGetPointer(slot->tts_values[i])));
	}
}

/* Has a tuple of "desc" the loaded columns, in the form of the spool? */
static bool
has_spool_layout(const StageRun *run, TupleDesc desc)
{
	TupleDesc	spool = run->stage->columns->desc;

	if (desc->natts != spool->natts)
		return false;
	for (int i = 0; i < spool->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		Form_pg_attribute other = TupleDescAttr(spool, i);

		if (att->attisdropped || att->attlen != other->attlen ||
			att->attalign != other->attalign)
			return false;
	}
	return true;
}

/*
 * The tuple that lies in the slot, if it can go into the spool as it is: one
 * that was read from a table or a sort, with nothing computed from it.  Else
 * NULL.
 */
static HeapTuple
tuple_in_slot(StageRun *run, TupleTableSlot *slot)
{
	TupleDesc	desc = slot->tts_tupleDescriptor;
	HeapTuple	tuple = NULL;

	if (TTS_IS_BUFFERTUPLE(slot) || TTS_IS_HEAPTUPLE(slot))
		tuple = ((HeapTupleTableSlot *) slot)->tuple;
	else if (TTS_IS_MINIMALTUPLE(slot) && ((MinimalTupleTableSlot *) slot)->mintuple != NULL)
		tuple = ((MinimalTupleTableSlot *) slot)->tuple;
	if (tuple == NULL || HeapTupleHasExternal(tuple) ||
		HeapTupleHeaderGetNatts(tuple->t_data) != desc->natts)
		return NULL;

	/* the slots of an Append take turns; all of them outlive the run */
	if (desc != run->desc)
	{
		run->desc = desc;
		run->same_layout = has_spool_layout(run, desc);
	}
	return run->same_layout ? tuple : NULL;
}

/* A new tuple of the values in the slot, in the current context. */
static HeapTuple
form_tuple(StageRun *run, TupleTableSlot *slot)
{
	int			natts = run->row->tts_tupleDescriptor->natts;
	bool		should_free;

	slot_getallattrs(slot);
	ExecClearTuple(run->row);
	memcpy(run->row->tts_values, slot->tts_values, natts * sizeof(Datum));
	memcpy(run->row->tts_isnull, slot->tts_isnull, natts * sizeof(bool));
	ExecStoreVirtualTuple(run->row);
	fetch_external(run->row);
	return ExecFetchSlotHeapTuple(run->row, false, &should_free);
}

static void
keep_row(StageRun *run, HeapTuple tuple, IloadRowHash hash)
{
	IloadStage *stage = run->stage;

	iload_sketch_add(stage->sketch, hash);
	if (stage->transients != NULL)
		iload_transients_put(stage->transients,
							 ExecStoreHeapTuple(tuple, run->stored, false));
	else
		tuplestore_puttuple(stage->spool, tuple);
}

/* One row of the query: check it, hash it, keep it. */
static void
stage_row(TupleTableSlot *slot, void *arg)
{
	StageRun   *run = arg;
	MemoryContext old;
	Datum		key;
	bool		isnull;
	HeapTuple	tuple;
	IloadRowHash hash;

	MemoryContextReset(run->row_context);
	old = MemoryContextSwitchTo(run->row_context);
	key = slot_getattr(slot, run->key + 1, &isnull);
	if (isnull ||
		(key != run->first_key && !iload_slice_contains(run->stage->slice, key)))
		stray_row(run, key, isnull);

	tuple = tuple_in_slot(run, slot);
	if (tuple == NULL)
		tuple = form_tuple(run, slot);
	hash = iload_row_hash_tuple(run->hasher, tuple);
	iload_fingerprint_add(&run->stage->fingerprint, hash);
	iload_progress_rows(run->stage->fingerprint.rows);
	run->stage->size += tuple->t_len;
	if (!run->probe)
		keep_row(run, tuple, hash);
	MemoryContextSwitchTo(old);
}

static int
key_position(const IloadColumns *columns, const IloadSlice *slice)
{
	for (int i = 0; i < columns->desc->natts; i++)
	{
		if (columns->attnums[i] == slice->key->attnum)
			return i;
	}
	elog(ERROR, "key column \"%s\" is not loaded", slice->key->name);
	return -1;
}

static Tuplestorestate *
begin_spool(void)
{
	return tuplestore_begin_heap(false, false, work_mem / 2);
}

/*
 * Check all of the query that can be checked without a plan.
 *
 * Errors: a query of another shape.
 */
void
iload_stage_check(Relation target, IloadSlice *slice, const IloadColumns *columns,
				  const char *query)
{
	(void) build_query(target, slice, columns, query);
}

/*
 * Parse and plan the query, whose rows are going to be staged.  The result lives in
 * the current context.
 *
 * Errors: a query of another shape.
 */
IloadStage *
iload_stage_create(Relation target, IloadSlice *slice, IloadColumns *columns,
				   const char *query, Snapshot snapshot)
{
	IloadStage *stage = palloc0(sizeof(IloadStage));
	Query	   *tree;

	stage->target = target;
	stage->slice = slice;
	stage->columns = columns;
	stage->query = query;
	tree = iload_query_rewrite(build_query(target, slice, columns, query));
	stage->repeatable = !contain_volatile_functions((Node *) tree);
	PushActiveSnapshot(snapshot);
	stage->plan = iload_query_plan(tree, query, iload_slice_params(slice));
	PopActiveSnapshot();
	return stage;
}

/* Run the query and do with each row as "run" says. */
static void
run_query(StageRun *run, Snapshot snapshot)
{
	IloadStage *stage = run->stage;

	memset(&stage->fingerprint, 0, sizeof(stage->fingerprint));
	stage->size = 0;
	run->key = key_position(stage->columns, stage->slice);
	run->first_key = stage->slice->lower;
	run->hasher = iload_columns_hasher(stage->columns);
	run->row = MakeSingleTupleTableSlot(stage->columns->desc, &TTSOpsVirtual);
	run->stored = MakeSingleTupleTableSlot(stage->columns->desc, &TTSOpsHeapTuple);
	run->row_context = AllocSetContextCreate(CurrentMemoryContext,
											 "idempotent_load staged row",
											 ALLOCSET_DEFAULT_SIZES);
	(void) iload_query_execute(stage->plan, stage->query, iload_slice_params(stage->slice),
							   NULL, snapshot, stage_row, run);
	ExecDropSingleTupleTableSlot(run->stored);
	ExecDropSingleTupleTableSlot(run->row);
	MemoryContextDelete(run->row_context);
}

/* The bytes of the rows that the planner expects. */
static double
expected_size(const PlannedStmt *plan)
{
	return plan->planTree->plan_rows * plan->planTree->plan_width;
}

/*
 * Is it no matter if the query is run once more?  It has no volatile functions, and
 * is expected to cost no more than to write the spool and read it.
 */
bool
iload_stage_can_probe(const IloadStage *stage)
{
	Plan	   *plan = stage->plan->planTree;

	return stage->repeatable &&
		plan->total_cost <= plan->plan_rows * cpu_tuple_cost +
		2 * expected_size(stage->plan) / BLCKSZ * seq_page_cost;
}

/*
 * Run the query with the snapshot given for the fingerprint of its rows, and keep
 * none of them.
 *
 * Errors: a stray row, and whatever the query raises.
 */
void
iload_stage_probe(IloadStage *stage, Snapshot snapshot)
{
	StageRun	run = {.stage = stage,.probe = true};

	run_query(&run, snapshot);
}

/*
 * Run the query with the snapshot given and spool its rows.  Where "leaves" is not
 * NULL and rows of "min_size" bytes or more are expected, they go into new files
 * for these leaves instead.
 *
 * The spool is released by iload_stage_end, or with the transaction.
 *
 * Errors: a stray row, and whatever the query raises.
 */
void
iload_stage_run(IloadStage *stage, Snapshot snapshot, IloadLeaves *leaves, Size min_size)
{
	StageRun	run = {.stage = stage};

	stage->sketch = iload_sketch_create();
	if (leaves != NULL && expected_size(stage->plan) >= min_size &&
		!(stage->plan->parallelModeNeeded && iload_transients_call_functions(leaves)))
		stage->transients = iload_transients_begin(stage->target, leaves, stage->columns);
	else
		stage->spool = begin_spool();
	run_query(&run, snapshot);
	if (stage->transients != NULL)
		iload_transients_finish(stage->transients);
}

/* Put the spooled rows into new files. */
void
iload_stage_fill(IloadStage *stage, IloadTransients *transients)
{
	TupleTableSlot *row = MakeSingleTupleTableSlot(stage->columns->desc, &TTSOpsMinimalTuple);
	uint64		rows = 0;

	tuplestore_rescan(stage->spool);
	while (tuplestore_gettupleslot(stage->spool, true, false, row))
	{
		CHECK_FOR_INTERRUPTS();
		iload_transients_put(transients, row);
		iload_progress_rows(++rows);
	}
	ExecDropSingleTupleTableSlot(row);
}

/* State of reading rows back from new files. */
typedef struct StageUnload
{
	Tuplestorestate *spool;
	MemoryContext row_context;
} StageUnload;

static void
unload_row(TupleTableSlot *row, void *arg)
{
	StageUnload *unload = arg;
	MemoryContext old;

	MemoryContextReset(unload->row_context);
	old = MemoryContextSwitchTo(unload->row_context);
	fetch_external(row);
	tuplestore_puttupleslot(unload->spool, row);
	MemoryContextSwitchTo(old);
}

/* Spool the rows after all, where the new files cannot take the leaves' place. */
void
iload_stage_unload(IloadStage *stage)
{
	StageUnload unload = {
		.spool = begin_spool(),
		.row_context = AllocSetContextCreate(CurrentMemoryContext, "idempotent_load staged row",
											 ALLOCSET_DEFAULT_SIZES)
	};

	iload_transients_scan(stage->transients, unload_row, &unload);
	iload_transients_drop(stage->transients);
	MemoryContextDelete(unload.row_context);
	stage->transients = NULL;
	stage->spool = unload.spool;
}

/*
 * Has a staged row a key from "lower" up to, not including, "upper", or where
 * "single", the key "lower"?
 */
bool
iload_stage_has_key(IloadStage *stage, bool single, Datum lower, Datum upper)
{
	TupleTableSlot *row = MakeSingleTupleTableSlot(stage->columns->desc, &TTSOpsMinimalTuple);
	AttrNumber	attnum = key_position(stage->columns, stage->slice) + 1;
	bool		found = false;

	tuplestore_rescan(stage->spool);
	while (!found && tuplestore_gettupleslot(stage->spool, true, false, row))
	{
		bool		isnull;
		Datum		key = slot_getattr(row, attnum, &isnull);
		int			cmp = iload_key_cmp(stage->slice->key, key, lower);

		CHECK_FOR_INTERRUPTS();
		found = single ? cmp == 0 : cmp >= 0 && iload_key_cmp(stage->slice->key, key, upper) < 0;
	}
	ExecDropSingleTupleTableSlot(row);
	return found;
}

/* Release the spool and its temporary file, and new files that are not used. */
void
iload_stage_end(IloadStage *stage)
{
	if (stage->spool != NULL)
		tuplestore_end(stage->spool);
	if (stage->transients != NULL)
		iload_transients_drop(stage->transients);
	stage->spool = NULL;
	stage->transients = NULL;
}
