/*
 * observe.c
 *		What a run of a job does: tables written, statements, calls.
 *
 * Which tables were written, and how many rows, the server counts itself, for each
 * subtransaction, wherever a row is inserted, updated or deleted: by a statement, a
 * trigger, a cascade, COPY or TRUNCATE, in any language.  So a run is observed in a
 * subtransaction of its own, and the counters of its level are read when it is done.
 * What no counter tells comes from hooks: tables that are made, altered or dropped
 * (object access), what a statement looks like (the planner's hook in world.c), tables
 * whose access method does not count (executor), and what cannot be undone (utility).
 *
 * Left out: temporary tables, which are the job's own; catalogs; and the tables of
 * this extension, which note each run.
 *
 * The hooks are installed once.  While nothing is observed they cost a pointer test.
 * What they note lives in the context of the observation, which outlives the run.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_largeobject.h"
#include "commands/extension.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "mb/pg_wchar.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "pgstat.h"
#include "rewrite/rewriteHandler.h"
#include "tcop/cmdtag.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/pgstat_internal.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "compat.h"
#include "inline.h"
#include "lint_text.h"
#include "observe.h"
#include "query.h"
#include "root.h"

/* More statements, or calls, than these are not told apart: one is enough to blame. */
#define MAX_NOTED	500
/* Bytes of a statement that a message may quote. */
#define MAX_QUOTED	400

static ExecutorEnd_hook_type prev_ExecutorEnd = NULL;
static ProcessUtility_hook_type prev_ProcessUtility = NULL;
static object_access_hook_type prev_object_access = NULL;

static IloadObservation *observation = NULL;

bool
iload_observe_is_on(void)
{
	return observation != NULL;
}

static char *
root_name(Oid relid)
{
	return iload_table_name(iload_root(relid));
}

/* Note, once, something that cannot be undone or was not seen: a full sentence. */
void
iload_observe_note(const char *format,...)
{
	char		note[1024];
	va_list		args;
	ListCell   *lc;
	MemoryContext old;

	if (observation == NULL)
		return;
	va_start(args, format);
	vsnprintf(note, sizeof(note), _(format), args);
	va_end(args);
	foreach(lc, observation->notes)
	{
		if (strcmp(lfirst(lc), note) == 0)
			return;
	}
	old = MemoryContextSwitchTo(observation->context);
	observation->notes = lappend(observation->notes, pstrdup(note));
	MemoryContextSwitchTo(old);
}

/* Is it a table whose rows are to be compared? */
static bool
is_observed(Oid relid)
{
	HeapTuple	tup = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Form_pg_class form;
	bool		observed;
	Oid			extension;

	if (!HeapTupleIsValid(tup))
		return false;
	form = (Form_pg_class) GETSTRUCT(tup);
	observed = relid >= FirstNormalObjectId &&
		(form->relkind == RELKIND_RELATION || form->relkind == RELKIND_MATVIEW) &&
		form->relpersistence != RELPERSISTENCE_TEMP;
	ReleaseSysCache(tup);
	if (!observed)
		return false;
	extension = getExtensionOfObject(RelationRelationId, relid);
	return !OidIsValid(extension) ||
		strcmp(get_extension_name(extension), "idempotent_load") != 0;
}

/* The entry of a table among those written, made where there is none. */
static IloadWrite *
find_write(List **writes, char *name, char *root)
{
	IloadWrite *write;
	ListCell   *lc;

	foreach(lc, *writes)
	{
		write = lfirst(lc);
		if (strcmp(write->name, name) == 0)
			return write;
	}
	write = palloc0(sizeof(IloadWrite));
	write->name = name;
	write->root = root;
	*writes = lappend(*writes, write);
	return write;
}

static IloadWrite *
add_write(Oid relid)
{
	return find_write(&observation->writes, iload_table_name(relid), root_name(relid));
}

/* Read the server's counters of this subtransaction level. */
static void
collect_counted(void)
{
	PgStat_TableXactStatus *table =
	pgstat_get_xact_stack_level(observation->nest_level)->first;

	for (; table != NULL; table = table->next)
	{
		Oid			relid = iload_pgstat_table_id(table->parent);
		IloadWrite *write;

		if (table->tuples_inserted + table->tuples_updated + table->tuples_deleted == 0 &&
			!table->truncdropped)
			continue;
		if (relid == LargeObjectRelationId)
			iload_observe_note("Large objects are written; they are not compared.");
		if (!is_observed(relid))
			continue;
		write = add_write(relid);
		write->inserted += table->tuples_inserted;
		write->updated += table->tuples_updated;
		write->deleted += table->tuples_deleted;
	}
}

/* Has a table that was written constraints or triggers left that wait for the commit? */
bool
iload_observe_has_deferred(void)
{
	PgStat_TableXactStatus *table =
	pgstat_get_xact_stack_level(observation->nest_level)->first;

	for (; table != NULL; table = table->next)
	{
		if (AfterTriggerPendingOnRel(iload_pgstat_table_id(table->parent)))
			return true;
	}
	return false;
}

/* Tables that were made, altered or dropped, under the names that they have now. */
static void
collect_defined(void)
{
	ListCell   *lc;

	foreach(lc, observation->defined)
	{
		Oid			relid = lfirst_oid(lc);

		if (is_observed(relid))
			(void) add_write(relid);
		else if (list_member_oid(observation->made, relid) &&
				 isTempNamespace(get_rel_namespace(relid)))
			observation->temporary = lappend_oid(observation->temporary, relid);
	}
	foreach(lc, observation->dropped)
	{
		IloadWrite *dropped = lfirst(lc);

		(void) find_write(&observation->writes, dropped->name, dropped->root);
	}
}

/*
 * Observe from now on what is done in the present subtransaction, which the caller has
 * just begun.  What is noted lives in "context".
 */
IloadObservation *
iload_observe_begin(MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);

	Assert(observation == NULL);
	observation = palloc0(sizeof(IloadObservation));
	observation->context = context;
	observation->nest_level = GetCurrentTransactionNestLevel();
	observation->base_stack = GetErrorContextStack();
	MemoryContextSwitchTo(old);
	return observation;
}

/* The run is done, in the same subtransaction: see what it wrote. */
void
iload_observe_end(void)
{
	MemoryContext old = MemoryContextSwitchTo(observation->context);

	Assert(observation->nest_level == GetCurrentTransactionNestLevel());
	CommandCounterIncrement();
	collect_counted();
	collect_defined();
	MemoryContextSwitchTo(old);
	observation = NULL;
}

/* Stop observing, after an error.  What was noted until then stays. */
void
iload_observe_cancel(void)
{
	observation = NULL;
}

/* A part of a text, without blanks around it, shortened. */
static char *
quote_text(const char *text, int location, int len)
{
	if (location > 0)
		text	  +=location;

	if (len <= 0)
		len = strlen(text);
	while (len > 0 && isspace((unsigned char) *text))
	{
		text	  ++;

		len--;
	}
	while (len > 0 && (isspace((unsigned char) text[len - 1]) || text[len - 1] == ';'))
		len--;
	if (len <= MAX_QUOTED)
		return pnstrdup(text, len);
	return psprintf("%.*s...", pg_mbcliplen(text, len, MAX_QUOTED), text);
}

/* The function, and the line in it, that is being run: a line of error context. */
static char *
current_function(void)
{
	char	   *stack = GetErrorContextStack();
	char	   *line = stack;
	size_t		len;

	if (stack == NULL)
		return NULL;
	len = strlen(stack);
	if (observation->base_stack != NULL)
		len -= Min(len, strlen(observation->base_stack));
	stack[len] = '\0';
	while (line != NULL)
	{
		char	   *end = line + strcspn(line, "\n");
		char	   *word = strstr(line, " function ");

		/* not an assignment or expression of PL/pgSQL: the function is below */
		if ((strncmp(line, "PL/", 3) == 0 && word != NULL && word < end) ||
			strncmp(line, "SQL function", 12) == 0)
		{
			char	   *startup;

			line = pnstrdup(line, end - line);
			startup = strstr(line, " during startup");
			if (startup != NULL)
				*startup = '\0';
			return line;
		}
		line = strchr(line, '\n');
		if (line != NULL)
			line++;
	}
	return NULL;
}

static int
line_of(const char *source, int location)
{
	int			line = 0;
	int			column;

	if (source != NULL && location >= 0)
		iload_text_position(source, location, &line, &column);
	return line;
}

/* Collects the tables that a query reads, and the queries in it that write. */
typedef struct QueryParts
{
	List	   *reads;			/* names of roots */
	List	   *writers;		/* Query */
} QueryParts;

static void
add_read(QueryParts *parts, Query *query, int rti)
{
	RangeTblEntry *rte = rt_fetch(rti, query->rtable);
	char	   *name;

	if (rte->rtekind != RTE_RELATION || rte->relid < FirstNormalObjectId ||
		rti == query->resultRelation || !rte->inFromCl)
		return;
	name = root_name(rte->relid);
	if (name != NULL && !list_member(parts->reads, makeString(name)))
		parts->reads = lappend(parts->reads, makeString(name));
}

static bool
parts_walker(Node *node, QueryParts *parts)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		Query	   *query = (Query *) node;

		for (int rti = 1; rti <= list_length(query->rtable); rti++)
			add_read(parts, query, rti);
		if (query->commandType != CMD_SELECT && query->resultRelation > 0)
			parts->writers = lappend(parts->writers, query);
		return query_tree_walker(query, parts_walker, parts, 0);
	}
	return expression_tree_walker(node, parts_walker, parts);
}

static bool
target_var_walker(Node *node, Query *query)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var))
		return ((Var *) node)->varno == query->resultRelation &&
			((Var *) node)->varlevelsup == 0 && ((Var *) node)->varattno > 0;
	return expression_tree_walker(node, target_var_walker, query);
}

/* Is a column set from what the table has, as in n = n + 1?  Not by itself alone. */
static bool
sets_from_self(Query *query, List *entries)
{
	ListCell   *lc;

	foreach(lc, entries)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, lc);

		if (!entry->resjunk && !IsA(entry->expr, Var) &&
			target_var_walker((Node *) entry->expr, query))
			return true;
	}
	return false;
}

static bool
updates_from_self(Query *query)
{
	ListCell   *lc;

	if (query->commandType == CMD_UPDATE)
		return sets_from_self(query, query->targetList);
	if (query->onConflict != NULL)
		return sets_from_self(query, query->onConflict->onConflictSet);
	foreach(lc, query->mergeActionList)
	{
		MergeAction *action = lfirst_node(MergeAction, lc);

		if (action->commandType == CMD_UPDATE && sets_from_self(query, action->targetList))
			return true;
	}
	return false;
}

static bool
is_known_statement(const IloadStatement *statement)
{
	ListCell   *lc;

	foreach(lc, observation->statements)
	{
		IloadStatement *other = lfirst(lc);

		if (other->command == statement->command && strcmp(other->text, statement->text) == 0 &&
			(other->target == NULL ? statement->target == NULL :
			 statement->target != NULL && strcmp(other->target, statement->target) == 0))
			return true;
	}
	return false;
}

static char *
copy_text(const char *text)
{
	return text == NULL ? NULL : pstrdup(text);
}

/* Note a statement, unless it is known; copies all of it but the tag. */
static void
add_statement(const IloadStatement *statement)
{
	IloadStatement *copy;
	MemoryContext old;

	if (list_length(observation->statements) >= MAX_NOTED || is_known_statement(statement))
		return;
	old = MemoryContextSwitchTo(observation->context);
	copy = palloc(sizeof(IloadStatement));
	*copy = *statement;
	copy->target = copy_text(statement->target);
	copy->reads = copyObject(statement->reads);
	copy->text = pstrdup(statement->text);
	copy->where = current_function();
	observation->statements = lappend(observation->statements, copy);
	MemoryContextSwitchTo(old);
}

static const char *
command_tag(CmdType command)
{
	switch (command)
	{
		case CMD_INSERT:
			return "INSERT";
		case CMD_UPDATE:
			return "UPDATE";
		case CMD_DELETE:
			return "DELETE";
		case CMD_MERGE:
			return "MERGE";
		default:
			return "SELECT";
	}
}

static char *
target_name(Query *query)
{
	return query->resultRelation == 0 ? NULL :
		root_name(rt_fetch(query->resultRelation, query->rtable)->relid);
}

static bool
is_known_call(const IloadCall *call)
{
	ListCell   *lc;

	foreach(lc, observation->calls)
	{
		IloadCall  *other = lfirst(lc);

		if (strcmp(other->name, call->name) == 0 && other->line == call->line &&
			strcmp(other->text, call->text) == 0 &&
			(call->column == NULL || (other->column != NULL && strcmp(other->column, call->column) == 0)))
			return true;
	}
	return false;
}

/* Note a call, unless it is known. */
static void
add_call(const IloadImpure *impure, Query *query, const char *text, char *quoted, bool unplanned)
{
	IloadCall	call = {
		.kind = impure->kind,
		.name = impure->name,
		.column = impure->column,
		.target = target_name(query),
		.line = line_of(text, impure->location),
		.text = quoted,
		.unplanned = unplanned
	};
	IloadCall  *copy;
	MemoryContext old;

	if (impure->kind == ILOAD_IMPURE_EFFECT)
		iload_observe_note("The effect of %s is not undone, or cannot be seen.", impure->name);
	if (list_length(observation->calls) >= MAX_NOTED || is_known_call(&call))
		return;
	old = MemoryContextSwitchTo(observation->context);
	copy = palloc(sizeof(IloadCall));
	*copy = call;
	copy->name = pstrdup(call.name);
	copy->column = copy_text(call.column);
	copy->target = copy_text(call.target);
	copy->text = pstrdup(call.text);
	copy->where = current_function();
	observation->calls = lappend(observation->calls, copy);
	MemoryContextSwitchTo(old);
}

/* A literal has been read from the clock, while a query was analyzed. */
void
iload_observe_clock_literal(Query *query, const char *text, const char *word, int location)
{
	IloadImpure impure = {.kind = ILOAD_IMPURE_CLOCK,.location = location};

	if (observation == NULL)
		return;
	impure.name = psprintf("'%s'", word);
	add_call(&impure, query, text, quote_text(text, query->stmt_location, query->stmt_len), false);
}

/* Is it a query by which the server checks a foreign key? */
static bool
checks_foreign_key(Query *query, const char *text)
{
	return query->rowMarks != NIL && strncmp(text, "SELECT 1 FROM ", strlen("SELECT 1 FROM ")) == 0;
}

/* Note what a query reads, writes and calls. */
static void
observe_parts(Query *query, const char *text)
{
	QueryParts	parts = {0};
	char	   *quoted = quote_text(text, query->stmt_location, query->stmt_len);
	ListCell   *lc;

	(void) parts_walker((Node *) query, &parts);
	foreach(lc, parts.writers)
	{
		Query	   *writer = lfirst_node(Query, lc);
		IloadStatement statement = {
			.tag = command_tag(writer->commandType),
			.command = writer->commandType,
			.from_self = updates_from_self(writer),
			.target = target_name(writer),
			.reads = parts.reads,
			.text = quoted
		};

		add_statement(&statement);
	}
	if (parts.writers == NIL && parts.reads != NIL)
	{
		IloadStatement statement = {
			.tag = command_tag(CMD_SELECT),
			.command = CMD_SELECT,
			.reads = parts.reads,
			.text = quoted
		};

		add_statement(&statement);
	}
	foreach(lc, iload_impure_find(query))
		add_call(lfirst(lc), query, text, quoted, false);
}

/*
 * A query is being planned, which has been rewritten and inlined.  "text" is the text
 * that holds it.
 */
void
iload_observe_query(Query *query, const char *text)
{
	MemoryContext context;
	MemoryContext old;

	if (observation == NULL || text == NULL || checks_foreign_key(query, text))
		return;
	context = AllocSetContextCreate(CurrentMemoryContext, "idempotent_load statement",
									ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	observe_parts(query, text);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

/*
 * A table that a statement may have written, of which the server's counters tell
 * nothing.
 */
static void
observe_result_relation(ResultRelInfo *info)
{
	Relation	rel = info->ri_RelationDesc;

	if (rel->rd_rel->relkind == RELKIND_FOREIGN_TABLE)
		iload_observe_note("Foreign table \"%s\" is written; that may not be undone, and is not compared.",
						   RelationGetRelationName(rel));
	else if (rel->rd_rel->relkind == RELKIND_RELATION &&
			 rel->rd_tableam != GetHeapamTableAmRoutine())
		observation->defined = list_append_unique_oid(observation->defined,
													  RelationGetRelid(rel));
}

static void
iload_ExecutorEnd(QueryDesc *desc)
{
	if (unlikely(observation != NULL))
	{
		MemoryContext old = MemoryContextSwitchTo(observation->context);
		ListCell   *lc;

		foreach(lc, desc->estate->es_opened_result_relations)
			observe_result_relation(lfirst(lc));
		foreach(lc, desc->estate->es_tuple_routing_result_relations)
			observe_result_relation(lfirst(lc));
		MemoryContextSwitchTo(old);
	}
	if (prev_ExecutorEnd)
		prev_ExecutorEnd(desc);
	else
		standard_ExecutorEnd(desc);
}

/* The tables that a utility statement names, if it writes their rows. */
static List *
utility_targets(Node *statement)
{
	if (IsA(statement, CopyStmt) && ((CopyStmt *) statement)->is_from)
		return list_make1(((CopyStmt *) statement)->relation);
	if (IsA(statement, TruncateStmt))
		return ((TruncateStmt *) statement)->relations;
	return NIL;
}

/*
 * COPY evaluates the defaults of columns that it does not name without planning them,
 * so what they call is looked for here.
 */
static void
observe_copy_defaults(CopyStmt *copy, Oid relid, char *quoted)
{
	Relation	rel = table_open(relid, AccessShareLock);
	RangeTblEntry *rte = makeNode(RangeTblEntry);
	Query	   *query = makeNode(Query);
	ListCell   *lc;

	rte->rtekind = RTE_RELATION;
	rte->relid = relid;
	query->commandType = CMD_INSERT;
	query->rtable = list_make1(rte);
	query->resultRelation = 1;
	for (int i = 0; i < RelationGetNumberOfAttributes(rel); i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), i);
		char	   *name = NameStr(att->attname);
		Node	   *value;

		if (att->attisdropped || att->attgenerated != '\0' || copy->attlist == NIL ||
			list_member(copy->attlist, makeString(name)))
			continue;
		value = build_column_default(rel, att->attnum);
		if (value != NULL)
			query->targetList = lappend(query->targetList,
										makeTargetEntry((Expr *) value, att->attnum,
														pstrdup(name), false));
	}
	foreach(lc, iload_impure_find(iload_inline_functions(query)))
		add_call(lfirst(lc), query, NULL, quoted, true);
	table_close(rel, NoLock);
}

static void
observe_utility(PlannedStmt *planned, const char *text)
{
	Node	   *statement = planned->utilityStmt;
	ListCell   *lc;

	foreach(lc, utility_targets(statement))
	{
		Oid			relid = RangeVarGetRelid(lfirst_node(RangeVar, lc), NoLock, true);

		IloadStatement written = {
			.tag = IsA(statement, CopyStmt) ? "COPY FROM" : "TRUNCATE",
			.command = CMD_UTILITY,
			.text = quote_text(text, planned->stmt_location, planned->stmt_len)
		};

		if (!OidIsValid(relid))
			continue;
		written.target = root_name(relid);
		add_statement(&written);
		if (IsA(statement, CopyStmt))
			observe_copy_defaults((CopyStmt *) statement, relid, written.text);
	}
	if (IsA(statement, NotifyStmt))
		iload_observe_note("NOTIFY \"%s\" is sent at each commit of the job; here it was not.",
						   ((NotifyStmt *) statement)->conditionname);
	if (IsA(statement, CopyStmt) && !((CopyStmt *) statement)->is_from)
		iload_observe_note("COPY TO writes outside of the database; that is not undone.");
}

static void
iload_ProcessUtility(PlannedStmt *planned, const char *text, bool read_only_tree,
					 ProcessUtilityContext context, ParamListInfo params,
					 QueryEnvironment *env, DestReceiver *dest, QueryCompletion *completion)
{
	if (unlikely(observation != NULL))
		observe_utility(planned, text);
	(prev_ProcessUtility ? prev_ProcessUtility : standard_ProcessUtility)
		(planned, text, read_only_tree, context, params, env, dest, completion);
}

/* A table is being dropped, and still has its name. */
static void
observe_drop(Oid relid)
{
	MemoryContext old = MemoryContextSwitchTo(observation->context);

	if (is_observed(relid))
		(void) find_write(&observation->dropped, iload_table_name(relid),
						  root_name(relid));
	MemoryContextSwitchTo(old);
}

static void
iload_object_access(ObjectAccessType access, Oid class_id, Oid object_id, int sub_id, void *arg)
{
	if (prev_object_access)
		prev_object_access(access, class_id, object_id, sub_id, arg);
	if (likely(observation == NULL) || class_id != RelationRelationId)
		return;
	if (access == OAT_DROP && sub_id == 0)
		observe_drop(object_id);
	else if (access == OAT_POST_CREATE || access == OAT_POST_ALTER || access == OAT_DROP)
	{
		MemoryContext old = MemoryContextSwitchTo(observation->context);

		observation->defined = list_append_unique_oid(observation->defined, object_id);
		if (access == OAT_POST_CREATE && sub_id == 0)
			observation->made = lappend_oid(observation->made, object_id);
		MemoryContextSwitchTo(old);
	}
}

/* Called once, when the library is loaded. */
void
iload_observe_init(void)
{
	prev_ExecutorEnd = ExecutorEnd_hook;
	ExecutorEnd_hook = iload_ExecutorEnd;
	prev_ProcessUtility = ProcessUtility_hook;
	ProcessUtility_hook = iload_ProcessUtility;
	prev_object_access = object_access_hook;
	object_access_hook = iload_object_access;
}
