/*
 * raw_table.c
 *		A table as it is named in a raw parse tree, and what is asked of it there.
 *
 * The table need not exist; then it is known by its name only.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/relation.h"
#include "catalog/namespace.h"
#include "catalog/pg_index.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "raw_table.h"
#include "root.h"

static Oid
table_oid(const RangeVar *table)
{
	return RangeVarGetRelid(table, AccessShareLock, true);
}

char *
iload_raw_table_name(const RangeVar *table)
{
	return table->schemaname == NULL ? table->relname :
		psprintf("%s.%s", table->schemaname, table->relname);
}

bool
iload_raw_table_exists(const RangeVar *table)
{
	return OidIsValid(table_oid(table));
}

/* Are they one table, or parts of one? */
bool
iload_raw_table_same(const RangeVar *a, const RangeVar *b)
{
	Oid			first = table_oid(a);
	Oid			second = table_oid(b);

	if (OidIsValid(first) && OidIsValid(second))
		return iload_root(first) == iload_root(second);
	return strcmp(a->relname, b->relname) == 0 &&
		(a->schemaname == NULL || b->schemaname == NULL || strcmp(a->schemaname, b->schemaname) == 0);
}

/* The column of the table that a reference names, if it may be of this table. */
const char *
iload_raw_table_column(const RangeVar *table, const ColumnRef *column)
{
	int			n = list_length(column->fields);
	const char *name;
	const char *qualifier;
	Oid			relid;

	if (!IsA(llast(column->fields), String))
		return NULL;
	name = strVal(llast(column->fields));
	if (n > 1)
	{
		qualifier = strVal(list_nth(column->fields, n - 2));
		return strcmp(qualifier, table->alias != NULL ? table->alias->aliasname : table->relname) == 0 ?
			name : NULL;
	}
	relid = table_oid(table);
	return !OidIsValid(relid) || get_attnum(relid, name) > 0 ? name : NULL;
}

/* The columns of the table that a condition equates with something, as Strings. */
List *
iload_raw_table_columns_in(const RangeVar *table, Node *condition)
{
	List	   *columns = NIL;
	ListCell   *lc;

	if (condition == NULL)
		return NIL;
	if (IsA(condition, BoolExpr) && ((BoolExpr *) condition)->boolop == AND_EXPR)
	{
		foreach(lc, ((BoolExpr *) condition)->args)
			columns = list_concat_unique(columns, iload_raw_table_columns_in(table, lfirst(lc)));
	}
	else if (IsA(condition, A_Expr) && ((A_Expr *) condition)->kind == AEXPR_OP &&
			 strcmp(strVal(llast(((A_Expr *) condition)->name)), "=") == 0)
	{
		Node	   *sides[] = {((A_Expr *) condition)->lexpr, ((A_Expr *) condition)->rexpr};

		for (int i = 0; i < 2; i++)
		{
			const char *name = NULL;

			if (sides[i] != NULL && IsA(sides[i], ColumnRef))
				name = iload_raw_table_column(table, (ColumnRef *) sides[i]);
			if (name != NULL)
				columns = list_append_unique(columns, makeString(pstrdup(name)));
		}
	}
	return columns;
}

/* The columns that an INSERT gives, as Strings; NIL for all. */
List *
iload_raw_table_given(const InsertStmt *stmt)
{
	List	   *given = NIL;
	ListCell   *lc;

	foreach(lc, stmt->cols)
		given = lappend(given, makeString(lfirst_node(ResTarget, lc)->name));
	return given;
}

/* The columns of a unique index, if all are among "columns"; else NIL. */
static List *
index_key(Relation rel, Relation index, List *columns)
{
	Form_pg_index form = index->rd_index;
	List	   *key = NIL;

	if (!form->indisunique || !form->indisvalid || RelationGetIndexPredicate(index) != NIL)
		return NIL;
	for (int i = 0; i < form->indnkeyatts; i++)
	{
		AttrNumber	attnum = form->indkey.values[i];
		String	   *name;

		if (attnum <= 0)
			return NIL;
		name = makeString(pstrdup(NameStr(TupleDescAttr(RelationGetDescr(rel), attnum - 1)->attname)));
		if (columns != NIL && !list_member(columns, name))
			return NIL;
		key = lappend(key, name);
	}
	return key;
}

/*
 * The columns of a unique key of the table that are all among "columns", as Strings;
 * NIL stands for all columns.  NIL if there is none.
 */
List *
iload_raw_table_key(const RangeVar *table, List *columns)
{
	Oid			relid = table_oid(table);
	Relation	rel;
	List	   *key = NIL;
	ListCell   *lc;

	if (!OidIsValid(relid))
		return NIL;
	rel = relation_open(relid, NoLock);
	foreach(lc, RelationGetIndexList(rel))
	{
		Relation	index = index_open(lfirst_oid(lc), AccessShareLock);

		if (key == NIL)
			key = index_key(rel, index, columns);
		index_close(index, NoLock);
	}
	relation_close(rel, NoLock);
	return key;
}

/* Is the table named in FROM of a query, at any depth?  The first place is kept. */
typedef struct ReadContext
{
	const RangeVar *table;
	RangeVar   *found;
} ReadContext;

static bool
read_walker(Node *node, ReadContext *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, RangeVar) && iload_raw_table_same((RangeVar *) node, context->table))
	{
		context->found = (RangeVar *) node;
		return true;
	}
	return raw_expression_tree_walker(node, read_walker, context);
}

static RangeVar *
find_read(const RangeVar *table, Node *query)
{
	ReadContext context = {.table = table};

	(void) read_walker(query, &context);
	return context.found;
}

bool
iload_raw_table_is_read(const RangeVar *table, Node *query)
{
	return find_read(table, query) != NULL;
}

/* Asked for rows by these conditions: are they those of a key? */
static IloadRawAbsence
judge_condition(const RangeVar *read, List *columns)
{
	return columns != NIL && iload_raw_table_key(read, columns) != NIL ?
		ILOAD_RAW_ASKED_BY_KEY : ILOAD_RAW_ASKED;
}

typedef struct AbsenceContext
{
	const RangeVar *table;
	IloadRawAbsence absence;
} AbsenceContext;

static void
found_absence(AbsenceContext *context, IloadRawAbsence absence)
{
	if (context->absence == ILOAD_RAW_NOT_ASKED)
		context->absence = absence;
}

/* NOT EXISTS (SELECT ... FROM table ...), NOT IN (SELECT column FROM table ...). */
static void
look_at_sublink(AbsenceContext *context, SubLink *sublink)
{
	SelectStmt *select = (SelectStmt *) sublink->subselect;
	RangeVar   *read = find_read(context->table, (Node *) select);
	List	   *columns;

	if (read == NULL || !IsA(select, SelectStmt))
		return;
	columns = iload_raw_table_columns_in(read, select->whereClause);
	if (sublink->subLinkType == EXISTS_SUBLINK)
		found_absence(context, judge_condition(read, columns));
	else if (sublink->subLinkType == ANY_SUBLINK)
	{
		ListCell   *lc;

		foreach(lc, select->targetList)
		{
			ColumnRef  *column = (ColumnRef *) lfirst_node(ResTarget, lc)->val;

			if (IsA(column, ColumnRef) && iload_raw_table_column(read, column) != NULL)
				columns = list_append_unique(columns,
											 makeString(pstrdup(iload_raw_table_column(read, column))));
		}
		found_absence(context, judge_condition(read, columns));
	}
	else
		found_absence(context, ILOAD_RAW_WATERMARK);
}

static bool
null_test_walker(Node *node, RangeVar *table)
{
	NullTest   *test = (NullTest *) node;

	if (node == NULL || IsA(node, SubLink))
		return false;
	if (IsA(node, NullTest))
		return test->nulltesttype == IS_NULL && IsA(test->arg, ColumnRef) &&
			iload_raw_table_column(table, (ColumnRef *) test->arg) != NULL;
	return raw_expression_tree_walker(node, null_test_walker, table);
}

/* LEFT JOIN table ON ... WHERE table.column IS NULL. */
static void
look_at_join(AbsenceContext *context, Node *from, Node *where)
{
	JoinExpr   *join = (JoinExpr *) from;

	if (!IsA(from, JoinExpr))
		return;
	look_at_join(context, join->larg, where);
	if (join->jointype == JOIN_LEFT && IsA(join->rarg, RangeVar) &&
		iload_raw_table_same((RangeVar *) join->rarg, context->table) &&
		null_test_walker(where, (RangeVar *) join->rarg))
		found_absence(context, judge_condition((RangeVar *) join->rarg,
											   join->usingClause != NIL ? join->usingClause :
											   iload_raw_table_columns_in((RangeVar *) join->rarg, join->quals)));
}

static bool
absence_walker(Node *node, AbsenceContext *context)
{
	ListCell   *lc;

	if (node == NULL)
		return false;
	if (IsA(node, SelectStmt))
	{
		SelectStmt *select = (SelectStmt *) node;

		if (select->op == SETOP_EXCEPT && find_read(context->table, (Node *) select->rarg) != NULL)
			found_absence(context, ILOAD_RAW_ASKED_BY_KEY);
		foreach(lc, select->fromClause)
			look_at_join(context, lfirst(lc), select->whereClause);
	}
	if (IsA(node, SubLink))
		look_at_sublink(context, (SubLink *) node);
	return raw_expression_tree_walker(node, absence_walker, context);
}

/* What does the query of an INSERT ask of the table that it fills? */
IloadRawAbsence
iload_raw_table_absence(const RangeVar *table, Node *query)
{
	AbsenceContext context = {.table = table};

	(void) absence_walker(query, &context);
	return context.absence;
}
