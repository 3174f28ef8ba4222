/*
 * shuffle.c
 *		Tables read in another order.
 *
 * The order in which a table's rows are read is nobody's promise, but on an unchanged
 * table it is the same again and again, whatever the plan.  A query that relies on it
 * is found by giving it the rows in another order: each table that it reads becomes a
 * subquery, ordered by a hash of where its rows lie.  The planner still moves
 * conditions into the subquery, so that indexes are used and partitions pruned.
 *
 * Left as they are: tables that the query writes or locks rows of, since these must
 * be tables; tables of which it reads system columns or rows as a whole; samples;
 * catalogs; and foreign tables, whose rows have no place.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/typcache.h"

#include "compat.h"
#include "shuffle.h"

/* Looks for Vars that only a table has. */
typedef struct TableVarContext
{
	int			varno;
	int			levelsup;
} TableVarContext;

static bool
table_var_walker(Node *node, TableVarContext *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var))
	{
		Var		   *var = (Var *) node;

		return var->varno == context->varno && (int) var->varlevelsup == context->levelsup &&
			var->varattno <= 0;
	}
	if (IsA(node, Query))
	{
		bool		found;

		context->levelsup++;
		found = query_tree_walker((Query *) node, table_var_walker, context, 0);
		context->levelsup--;
		return found;
	}
	return expression_tree_walker(node, table_var_walker, context);
}

static bool
locks_rows(Query *query, int rti)
{
	ListCell   *lc;

	foreach(lc, query->rowMarks)
	{
		if (lfirst_node(RowMarkClause, lc)->rti == (Index) rti)
			return true;
	}
	return false;
}

static bool
can_shuffle(Query *query, int rti)
{
	RangeTblEntry *rte = rt_fetch(rti, query->rtable);
	TableVarContext context = {.varno = rti};

	return rte->rtekind == RTE_RELATION && rte->relid >= FirstNormalObjectId &&
		(rte->relkind == RELKIND_RELATION || rte->relkind == RELKIND_MATVIEW ||
		 rte->relkind == RELKIND_PARTITIONED_TABLE) &&
		rte->tablesample == NULL && rti != query->resultRelation &&
		!(query->commandType == CMD_MERGE &&
		  rte->relid == rt_fetch(query->resultRelation, query->rtable)->relid) &&
		!locks_rows(query, rti) &&
		!query_tree_walker(query, table_var_walker, &context, 0);
}

/* One entry for each column of the table, in place, dropped ones too. */
static List *
table_columns(Oid relid)
{
	Relation	rel = table_open(relid, NoLock);
	List	   *entries = NIL;

	for (int i = 0; i < RelationGetNumberOfAttributes(rel); i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), i);
		Expr	   *value;

		if (att->attisdropped)
			value = (Expr *) makeNullConst(INT4OID, -1, InvalidOid);
		else
			value = (Expr *) makeVar(1, att->attnum, att->atttypid, att->atttypmod,
									 att->attcollation, 0);
		entries = lappend(entries, makeTargetEntry(value, i + 1, pstrdup(NameStr(att->attname)), false));
	}
	table_close(rel, NoLock);
	return entries;
}

/* ORDER BY a hash of ctid. */
static void
order_by_place(Query *query, int seed)
{
	Var		   *place = makeVar(1, SelfItemPointerAttributeNumber, TIDOID, -1, InvalidOid, 0);
	Const	   *constant = makeConst(INT8OID, -1, InvalidOid, sizeof(int64),
									 Int64GetDatum(seed), false, FLOAT8PASSBYVAL);
	FuncExpr   *hash = makeFuncExpr(F_HASHTIDEXTENDED, INT8OID, list_make2(place, constant),
									InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
	TargetEntry *entry = makeTargetEntry((Expr *) hash, list_length(query->targetList) + 1,
										 NULL, true);
	SortGroupClause *sort = makeNode(SortGroupClause);
	TypeCacheEntry *int8 = lookup_type_cache(INT8OID, TYPECACHE_EQ_OPR | TYPECACHE_LT_OPR);

	entry->ressortgroupref = 1;
	query->targetList = lappend(query->targetList, entry);
	sort->tleSortGroupRef = 1;
	sort->eqop = int8->eq_opr;
	sort->sortop = int8->lt_opr;

	sort->hashable = true;
	query->sortClause = list_make1(sort);
}

/* SELECT all columns of the table, shuffled.  Its rights and policies come along. */
static Query *
shuffled_table(Query *outer, RangeTblEntry *rte, int seed)
{
	Query	   *query = makeNode(Query);
	RangeTblRef *ref = makeNode(RangeTblRef);
	RangeTblEntry *table = copyObject(rte);

	ref->rtindex = 1;
	query->commandType = CMD_SELECT;
	query->querySource = QSRC_ORIGINAL;
	query->canSetTag = true;
	query->rtable = list_make1(table);
	iload_rte_move_permissions(outer, rte, query, table);
	query->jointree = makeFromExpr(list_make1(ref), NULL);
	query->hasSubLinks = outer->hasSubLinks;
	query->targetList = table_columns(rte->relid);
	order_by_place(query, seed);
	return query;
}

static void
shuffle_table(Query *query, RangeTblEntry *rte, int seed)
{
	rte->subquery = shuffled_table(query, rte, seed);
	rte->security_barrier = rte->securityQuals != NIL;
	rte->rtekind = RTE_SUBQUERY;
	rte->relid = InvalidOid;
	rte->relkind = '\0';
	rte->rellockmode = NoLock;
	rte->inh = false;
	rte->securityQuals = NIL;
}

static bool
shuffle_walker(Node *node, int *seed)
{
	Query	   *query = (Query *) node;

	if (node == NULL)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, shuffle_walker, seed);

	/* what is below first, so that the new subqueries are not walked into */
	check_stack_depth();
	(void) query_tree_walker(query, shuffle_walker, seed, 0);
	for (int rti = 1; rti <= list_length(query->rtable); rti++)
	{
		if (can_shuffle(query, rti))
			shuffle_table(query, rt_fetch(rti, query->rtable), *seed);
	}
	return false;
}

/*
 * Let a rewritten query read its tables in an order that depends on "seed".  The
 * query is changed in place.  The tables are locked already.
 */
void
iload_shuffle_tables(Query *query, int seed)
{
	if (query->commandType != CMD_UTILITY)
		(void) shuffle_walker((Node *) query, &seed);
}
