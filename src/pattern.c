/*
 * pattern.c
 *		How the statements of a job write: append, merge, replace, ...
 *
 * Statements are looked at as they are written, in their order, so that those can be
 * judged too that need a table which is made earlier in the same job.  An INSERT is
 * judged by what was removed from the table before it and by what it looks for in
 * the table.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "lib/stringinfo.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"

#include "impure.h"
#include "pattern.h"
#include "raw_table.h"
#include "statement.h"

/* How rows were removed from a table, or that it is the job's own. */
typedef enum Removal
{
	REMOVAL_OWN,				/* the job has made it */
	REMOVAL_ALL,				/* TRUNCATE, DELETE without WHERE, DROP */
	REMOVAL_SLICE,				/* DELETE by a condition */
	REMOVAL_JOINED				/* DELETE of rows that another table has */
} Removal;

typedef struct Removed
{
	RangeVar   *table;
	Removal		how;
	bool		used;			/* rows were inserted after it */
	int			offset;			/* of its statement */
} Removed;

typedef struct PatternContext
{
	IloadLint  *lint;
	const IloadSource *source;
	const IloadRawStatement *statement;
	List	   *removed;		/* of Removed */
} PatternContext;

static void find_in_statement(PatternContext *context, Node *stmt);

static void
add(PatternContext *context, IloadLintCode code, const RangeVar *table, int offset, char *message)
{
	IloadSource source = *context->source;

	source.object = psprintf("table \"%s\"", iload_raw_table_name(table));
	iload_finding_add(context->lint, code, &source,
					  offset >= 0 && table->location >= 0 ? offset + table->location : -1,
					  message, NULL);
}

static void
add_here(PatternContext *context, IloadLintCode code, const RangeVar *table, char *message)
{
	add(context, code, table, context->statement->offset, message);
}

static Removed *
find_removed(PatternContext *context, const RangeVar *table)
{
	Removed    *found = NULL;
	ListCell   *lc;

	foreach(lc, context->removed)
	{
		Removed    *removed = lfirst(lc);

		if (iload_raw_table_same(removed->table, table))
			found = removed;
	}
	return found;
}

static void
note_removed(PatternContext *context, RangeVar *table, Removal how)
{
	Removed    *removed = palloc0(sizeof(Removed));
	Removed    *before = find_removed(context, table);

	if (before != NULL && before->how == REMOVAL_OWN)
		return;
	if (before != NULL)
		before->used = true;
	removed->table = table;
	removed->how = how;
	removed->offset = context->statement->offset;
	context->removed = lappend(context->removed, removed);
}

/* Does a condition read the clock? */
static bool
reads_clock_walker(Node *node, void *arg)
{
	IloadImpureKind kind;

	if (node == NULL)
		return false;
	if (IsA(node, SQLValueFunction) &&
		((SQLValueFunction *) node)->op <= SVFOP_LOCALTIMESTAMP_N)
		return true;
	if (IsA(node, FuncCall) &&
		iload_impure_function(NULL, strVal(llast(((FuncCall *) node)->funcname)), &kind) &&
		kind == ILOAD_IMPURE_CLOCK)
		return true;
	return raw_expression_tree_walker(node, reads_clock_walker, arg);
}

static bool
has_walker(Node *node, NodeTag *tag)
{
	if (node == NULL)
		return false;
	return nodeTag(node) == *tag || raw_expression_tree_walker(node, has_walker, tag);
}

static bool
has_node(Node *node, NodeTag tag)
{
	return has_walker(node, &tag);
}

static void
find_in_delete(PatternContext *context, DeleteStmt *stmt)
{
	if (stmt->whereClause == NULL && stmt->usingClause == NIL)
		note_removed(context, stmt->relation, REMOVAL_ALL);
	else if (stmt->usingClause != NIL || has_node(stmt->whereClause, T_SubLink))
		note_removed(context, stmt->relation, REMOVAL_JOINED);
	else if (!reads_clock_walker(stmt->whereClause, NULL) || has_node(stmt->whereClause, T_ParamRef))
		note_removed(context, stmt->relation, REMOVAL_SLICE);
	else

		/*
		 * old rows that are cleared away do not make room for those of this
		 * run
		 */
		add_here(context, ILOAD_LINT_DELETE_ONLY, stmt->relation,
				 pstrdup("deletes rows by a condition that reads the clock"));
}

/* Is an assignment one of a column that is reckoned from itself? */
typedef struct SelfReference
{
	const char *column;
	const RangeVar *table;
	bool		reckoned;		/* within arithmetic */
} SelfReference;

static bool
is_reckoning(Node *node)
{
	static const char *const operators[] = {"+", "-", "*", "/", "||"};
	static const char *const functions[] = {"array_append", "array_cat", "array_prepend", "concat"};
	const char *name;

	if (IsA(node, A_Expr) && ((A_Expr *) node)->kind == AEXPR_OP)
	{
		name = strVal(llast(((A_Expr *) node)->name));
		for (size_t i = 0; i < lengthof(operators); i++)
		{
			if (strcmp(name, operators[i]) == 0)
				return true;
		}
	}
	if (IsA(node, FuncCall))
	{
		name = strVal(llast(((FuncCall *) node)->funcname));
		for (size_t i = 0; i < lengthof(functions); i++)
		{
			if (strcmp(name, functions[i]) == 0)
				return true;
		}
	}
	return false;
}

static bool
self_reference_walker(Node *node, SelfReference *self)
{
	SelfReference inner = *self;

	if (node == NULL || IsA(node, SubLink))
		return false;
	if (IsA(node, ColumnRef))
		return self->reckoned &&
			iload_raw_table_column(self->table, (ColumnRef *) node) != NULL &&
			strcmp(iload_raw_table_column(self->table, (ColumnRef *) node), self->column) == 0;
	inner.reckoned = self->reckoned || is_reckoning(node);
	return raw_expression_tree_walker(node, self_reference_walker, &inner);
}

/* Tell of assignments like n = n + 1.  Returns whether there is one. */
static bool
find_counter(PatternContext *context, RangeVar *table, List *assignments)
{
	bool		found = false;
	ListCell   *lc;

	foreach(lc, assignments)
	{
		ResTarget  *target = lfirst_node(ResTarget, lc);
		SelfReference self = {.column = target->name,.table = table};

		if (target->name != NULL && self_reference_walker(target->val, &self))
		{
			add_here(context, ILOAD_LINT_COUNTER, table,
					 psprintf("column \"%s\" is set from itself", target->name));
			found = true;
		}
	}
	return found;
}

static void
find_in_update(PatternContext *context, UpdateStmt *stmt)
{
	Removed    *removed = find_removed(context, stmt->relation);

	if (removed != NULL && removed->how == REMOVAL_OWN)
		return;
	if (!find_counter(context, stmt->relation, stmt->targetList))
		add_here(context, ILOAD_LINT_UPDATE_IN_PLACE, stmt->relation, pstrdup("updates rows in place"));
}

static char *
names_text(List *names)
{
	StringInfoData list;
	ListCell   *lc;

	initStringInfo(&list);
	foreach(lc, names)
		appendStringInfo(&list, "%s%s", foreach_current_index(lc) > 0 ? ", " : "", strVal(lfirst(lc)));
	return list.data;
}

/* The columns that ON CONFLICT names, or those of any unique key that is given. */
static char *
conflict_target(InsertStmt *stmt)
{
	InferClause *infer = stmt->onConflictClause->infer;
	List	   *names = NIL;
	ListCell   *lc;

	foreach(lc, infer != NULL ? infer->indexElems : NIL)
	{
		IndexElem  *element = lfirst_node(IndexElem, lc);

		names = lappend(names, makeString(element->name != NULL ? element->name : "an expression"));
	}
	if (infer != NULL && infer->conname != NULL)
		return psprintf("constraint %s", infer->conname);
	if (names == NIL)
		names = iload_raw_table_key(stmt->relation, iload_raw_table_given(stmt));
	return names != NIL ? psprintf("(%s)", names_text(names)) : NULL;
}

static void
find_in_conflict(PatternContext *context, InsertStmt *stmt)
{
	OnConflictClause *clause = stmt->onConflictClause;
	char	   *target = conflict_target(stmt);

	if (clause->action == ONCONFLICT_UPDATE)
	{
		add_here(context, ILOAD_LINT_MERGE, stmt->relation, psprintf("merge on %s", target));
		(void) find_counter(context, stmt->relation, clause->targetList);
	}
	else if (target != NULL || !iload_raw_table_exists(stmt->relation))
		add_here(context, ILOAD_LINT_INSERT_IF_ABSENT_BY_KEY, stmt->relation,
				 psprintf("inserts rows that do not conflict, %s", target != NULL ? psprintf("by %s", target) : "by any key"));
	else
		add_here(context, ILOAD_LINT_APPEND, stmt->relation,
				 pstrdup("appends rows: ON CONFLICT never applies, for no unique key is among the columns given"));
}

/* What the query of an INSERT looks for in the table. */
static bool
find_absence(PatternContext *context, InsertStmt *stmt)
{
	IloadRawAbsence absence = ILOAD_RAW_NOT_ASKED;
	ListCell   *lc;

	if (stmt->selectStmt != NULL)
		absence = iload_raw_table_absence(stmt->relation, stmt->selectStmt);
	foreach(lc, context->statement->guards)
	{
		if (iload_raw_table_is_read(stmt->relation, lfirst(lc)))
			absence = ILOAD_RAW_ASKED;
	}
	if (absence == ILOAD_RAW_ASKED)
		add_here(context, ILOAD_LINT_INSERT_IF_ABSENT, stmt->relation,
				 pstrdup("inserts rows only where it finds none in the table"));
	else if (absence == ILOAD_RAW_ASKED_BY_KEY)
		add_here(context, ILOAD_LINT_INSERT_IF_ABSENT_BY_KEY, stmt->relation,
				 pstrdup("inserts rows that it does not find in the table"));
	else if (absence == ILOAD_RAW_WATERMARK)
		add_here(context, ILOAD_LINT_INSERT_IF_ABSENT, stmt->relation,
				 pstrdup("inserts rows that come after those in the table"));
	return absence != ILOAD_RAW_NOT_ASKED;
}

/* Rows are added to a table; true if they take the place of others. */
static bool
find_replacement(PatternContext *context, RangeVar *table)
{
	Removed    *removed = find_removed(context, table);

	if (removed == NULL)
		return false;
	removed->used = true;
	switch (removed->how)
	{
		case REMOVAL_OWN:
			break;
		case REMOVAL_ALL:
			add_here(context, ILOAD_LINT_FULL_RELOAD, table, pstrdup("removes all rows and inserts"));
			break;
		case REMOVAL_SLICE:
			add_here(context, ILOAD_LINT_REPLACE_SLICE, table,
					 pstrdup("deletes rows by a condition and inserts"));
			break;
		case REMOVAL_JOINED:
			add_here(context, ILOAD_LINT_MERGE, table,
					 pstrdup("deletes the rows that another table has and inserts"));
			break;
	}
	return true;
}

/* WITH done AS (UPDATE table ...) INSERT INTO table ... that reads "done". */
static bool
find_update_beside(PatternContext *context, InsertStmt *stmt)
{
	ListCell   *lc;

	foreach(lc, stmt->withClause != NULL ? stmt->withClause->ctes : NIL)
	{
		CommonTableExpr *cte = lfirst_node(CommonTableExpr, lc);

		if (IsA(cte->ctequery, UpdateStmt) && stmt->selectStmt != NULL &&
			iload_raw_table_same(((UpdateStmt *) cte->ctequery)->relation, stmt->relation) &&
			iload_raw_table_is_read(makeRangeVar(NULL, cte->ctename, -1), stmt->selectStmt))
		{
			add_here(context, ILOAD_LINT_MERGE, stmt->relation,
					 pstrdup("updates the rows that are there and inserts the others"));
			return true;
		}
	}
	return false;
}

static void
find_in_insert(PatternContext *context, InsertStmt *stmt)
{
	if (stmt->onConflictClause != NULL)
		find_in_conflict(context, stmt);
	else if (find_update_beside(context, stmt))
		return;
	else if (!find_replacement(context, stmt->relation) && !find_absence(context, stmt))
		add_here(context, ILOAD_LINT_APPEND, stmt->relation,
				 pstrdup("appends rows, and nothing before removes those of an earlier run"));
}

static void
find_in_merge(PatternContext *context, MergeStmt *stmt)
{
	List	   *columns = iload_raw_table_columns_in(stmt->relation, stmt->joinCondition);
	ListCell   *lc;

	add_here(context, ILOAD_LINT_MERGE, stmt->relation, psprintf("merge on (%s)", names_text(columns)));
	foreach(lc, stmt->mergeWhenClauses)
	{
		MergeWhenClause *clause = lfirst_node(MergeWhenClause, lc);

		if (clause->commandType == CMD_UPDATE)
			(void) find_counter(context, stmt->relation, clause->targetList);
	}
}

/* The call of a function of ours that replaces a slice. */
static bool
find_load_walker(Node *node, PatternContext *context)
{
	FuncCall   *call = (FuncCall *) node;
	const char *name;

	if (node == NULL)
		return false;
	if (!IsA(node, FuncCall))
		return raw_expression_tree_walker(node, find_load_walker, context);
	name = strVal(llast(call->funcname));
	if ((strcmp(name, "replace_partition") == 0 || strcmp(name, "replace_slice") == 0) &&
		call->args != NIL)
	{
		A_Const    *first = linitial(call->args);
		IloadSource source = *context->source;

		if (IsA(first, A_Const) && !first->isnull && IsA(&first->val, String))
			source.object = psprintf("table \"%s\"", strVal(&first->val));
		iload_finding_add(context->lint, ILOAD_LINT_REPLACE_SLICE, &source,
						  context->statement->offset >= 0 ? context->statement->offset + call->location : -1,
						  psprintf("%s() replaces a slice", name), NULL);
	}
	return raw_expression_tree_walker((Node *) call->args, find_load_walker, context);
}

static void
find_in_with(PatternContext *context, WithClause *with)
{
	ListCell   *lc;

	foreach(lc, with != NULL ? with->ctes : NIL)
		find_in_statement(context, lfirst_node(CommonTableExpr, lc)->ctequery);
}

/* Tables that are dropped, truncated or made. */
static void
find_in_utility(PatternContext *context, Node *stmt)
{
	ListCell   *lc;

	if (IsA(stmt, TruncateStmt))
	{
		foreach(lc, ((TruncateStmt *) stmt)->relations)
			note_removed(context, lfirst_node(RangeVar, lc), REMOVAL_ALL);
	}
	else if (IsA(stmt, DropStmt) && ((DropStmt *) stmt)->removeType == OBJECT_TABLE)
	{
		foreach(lc, ((DropStmt *) stmt)->objects)
			note_removed(context, makeRangeVarFromNameList(lfirst_node(List, lc)), REMOVAL_ALL);
	}
	else if (IsA(stmt, CreateStmt) && !((CreateStmt *) stmt)->if_not_exists &&
			 find_removed(context, ((CreateStmt *) stmt)->relation) == NULL)
		note_removed(context, ((CreateStmt *) stmt)->relation, REMOVAL_OWN);
	else if (IsA(stmt, CreateStmt) &&
			 ((CreateStmt *) stmt)->relation->relpersistence == RELPERSISTENCE_TEMP)
		note_removed(context, ((CreateStmt *) stmt)->relation, REMOVAL_OWN);
	else if (IsA(stmt, CreateTableAsStmt))
	{
		RangeVar   *table = ((CreateTableAsStmt *) stmt)->into->rel;

		if (table->relpersistence == RELPERSISTENCE_TEMP || !find_replacement(context, table))
			note_removed(context, table, REMOVAL_OWN);
	}
	else if (IsA(stmt, RefreshMatViewStmt))
		add_here(context, ILOAD_LINT_FULL_RELOAD, ((RefreshMatViewStmt *) stmt)->relation,
				 pstrdup("computes a materialized view anew"));
	else if (IsA(stmt, CopyStmt) && ((CopyStmt *) stmt)->is_from &&
			 !find_replacement(context, ((CopyStmt *) stmt)->relation))
		add_here(context, ILOAD_LINT_APPEND, ((CopyStmt *) stmt)->relation,
				 pstrdup("appends rows, and nothing before removes those of an earlier run"));
	else if (IsA(stmt, CallStmt))
		(void) find_load_walker((Node *) ((CallStmt *) stmt)->funccall, context);
}

static void
find_in_statement(PatternContext *context, Node *stmt)
{
	switch (nodeTag(stmt))
	{
		case T_SelectStmt:
			find_in_with(context, ((SelectStmt *) stmt)->withClause);
			(void) find_load_walker(stmt, context);
			if (((SelectStmt *) stmt)->intoClause != NULL)
				note_removed(context, ((SelectStmt *) stmt)->intoClause->rel, REMOVAL_OWN);
			break;
		case T_InsertStmt:
			find_in_with(context, ((InsertStmt *) stmt)->withClause);
			find_in_insert(context, (InsertStmt *) stmt);
			break;
		case T_DeleteStmt:
			find_in_with(context, ((DeleteStmt *) stmt)->withClause);
			find_in_delete(context, (DeleteStmt *) stmt);
			break;
		case T_UpdateStmt:
			find_in_with(context, ((UpdateStmt *) stmt)->withClause);
			find_in_update(context, (UpdateStmt *) stmt);
			break;
		case T_MergeStmt:
			find_in_with(context, ((MergeStmt *) stmt)->withClause);
			find_in_merge(context, (MergeStmt *) stmt);
			break;
		default:
			find_in_utility(context, stmt);
	}
}

/*
 * Name the write pattern of each statement, a list of IloadRawStatement in the order in
 * which they run.  "source" is where they are written.
 */
void
iload_pattern_find(IloadLint *lint, List *statements, const IloadSource *source)
{
	PatternContext context = {.lint = lint,.source = source};
	ListCell   *lc;

	foreach(lc, statements)
	{
		context.statement = lfirst(lc);
		find_in_statement(&context, context.statement->raw->stmt);
	}
	foreach(lc, context.removed)
	{
		Removed    *removed = lfirst(lc);

		if (!removed->used && removed->how != REMOVAL_OWN)
			add(&context, ILOAD_LINT_DELETE_ONLY, removed->table, removed->offset,
				pstrdup("deletes rows and inserts none"));
	}
}
