/*
 * function_body.c
 *		The bodies of functions in SQL and PL/pgSQL.
 *
 * A body in SQL is parsed and analyzed as it is when the function is called: with
 * its settings, in which search_path may be one.  A body that cannot be analyzed
 * now, say for want of a table that it makes first, is left alone.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "commands/proclang.h"
#include "executor/functions.h"
#include "lib/stringinfo.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/analyze.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "attempt.h"
#include "compat.h"
#include "function_body.h"

static bool
collect_function(Oid function, void *arg)
{
	List	  **functions = arg;

	*functions = list_append_unique_oid(*functions, function);
	return false;
}

/* The functions that a node, itself, calls, as a list of OIDs. */
List *
iload_body_functions(Node *node)
{
	List	   *functions = NIL;

	/* an aggregate or window function has no body */
	if (!IsA(node, Aggref) && !IsA(node, WindowFunc))
		(void) check_functions_in_node(node, collect_function, &functions);
	return functions;
}

/* The defaults that stand for arguments that a call does not give. */
List *
iload_body_defaults(FuncExpr *call)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(call->funcid));
	List	   *defaults = NIL;
	ListCell   *lc;

	if (!HeapTupleIsValid(tuple))
		return NIL;
	if (list_length(call->args) < ((Form_pg_proc) GETSTRUCT(tuple))->pronargs)
	{
		List	   *given = NIL;

		foreach(lc, call->args)
		{
			Node	   *arg = lfirst(lc);

			given = lappend(given, IsA(arg, NamedArgExpr) ? (Node *) ((NamedArgExpr *) arg)->arg : arg);
		}
		foreach(lc, expand_function_arguments(list_copy(call->args), false, call->funcresulttype, tuple))
		{
			if (!list_member_ptr(given, lfirst(lc)))
				defaults = lappend(defaults, lfirst(lc));
		}
	}
	ReleaseSysCache(tuple);
	return defaults;
}

/* A function for messages: "schema.name(date)". */
char *
iload_body_function_text(Oid function)
{
	StringInfoData text;
	Oid		   *types;
	int			nargs;

	(void) get_func_signature(function, &types, &nargs);
	initStringInfo(&text);
	appendStringInfo(&text, "%s(",
					 quote_qualified_identifier(get_namespace_name(get_func_namespace(function)),
												get_func_name(function)));
	for (int i = 0; i < nargs; i++)
		appendStringInfo(&text, "%s%s", i > 0 ? ", " : "", format_type_be(types[i]));
	appendStringInfoChar(&text, ')');
	return text.data;
}

/* What is read, in an attempt. */
typedef struct ReadBody
{
	IloadBody  *body;
	HeapTuple	tuple;
	Node	   *call;
} ReadBody;

/* A column of pg_proc, or 0 where it is null. */
static Datum
attribute(HeapTuple tuple, AttrNumber attnum)
{
	bool		isnull;
	Datum		value = SysCacheGetAttr(PROCOID, tuple, attnum, &isnull);

	return isnull ? (Datum) 0 : value;
}

static void
read_string(ReadBody *read, SQLFunctionParseInfoPtr info)
{
	IloadBody  *body = read->body;
	ListCell   *lc;

	foreach(lc, pg_parse_query(body->source.text))
	{
		Query	   *query = parse_analyze_withcb(lfirst_node(RawStmt, lc), body->source.text,
												 (ParserSetupHook) sql_fn_parser_setup, info, NULL);

		if (query->commandType != CMD_UTILITY)
			body->queries = lappend(body->queries, query);
	}
}

/* The part that can fail. */
static void
read_sql(void *arg)
{
	ReadBody   *read = arg;
	Datum		settings = attribute(read->tuple, Anum_pg_proc_proconfig);
	int			nestlevel = NewGUCNestLevel();

	if (settings != (Datum) 0)
		ProcessGUCArray(DatumGetArrayTypeP(settings),
						superuser() ? PGC_SUSET : PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE);
	read_string(read, prepare_sql_fn_parse_info(read->tuple, read->call, InvalidOid));
	AtEOXact_GUC(true, nestlevel);
}

/* The queries of RETURN and BEGIN ATOMIC, which are stored analyzed. */
static List *
stored_queries(Datum value)
{
	Node	   *node = stringToNode(TextDatumGetCString(value));
	List	   *queries = NIL;
	ListCell   *lc;

	if (IsA(node, Query))
		return list_make1(node);
	foreach(lc, linitial_node(List, castNode(List, node)))
	{
		if (lfirst_node(Query, lc)->commandType != CMD_UTILITY)
			queries = lappend(queries, lfirst(lc));
	}
	return queries;
}

static Param *
argument_param(Node *call, int i)
{
	Node	   *arg;

	if (call == NULL || !IsA(call, FuncExpr) || i >= list_length(((FuncExpr *) call)->args))
		return NULL;
	arg = iload_scope_strip(list_nth(((FuncExpr *) call)->args, i));
	return arg != NULL && IsA(arg, Param) ? (Param *) arg : NULL;
}

/*
 * See which arguments the bounds of the slice are handed over in.  Without a call it
 * is the function of a job, whose one argument is the date.
 */
static void
find_bounds(IloadSource *source, Node *call, const IloadSource *caller, int nargs)
{
	if (call == NULL)
		source->lower = 1;
	for (int i = 0; i < nargs; i++)
	{
		Param	   *param = argument_param(call, i);

		if (param != NULL && param->paramid == caller->lower)
			source->lower = i + 1;
		if (param != NULL && param->paramid == caller->upper)
			source->upper = i + 1;
	}
}

/*
 * The body of a function in SQL or PL/pgSQL, or NULL: it is in another language, or
 * part of the server, or cannot be analyzed.  "call" is the node that calls it, or
 * NULL, where the function is a job.  Allocates in the current context.
 *
 * Errors: no right to call it, where it is called from the text itself.
 */
IloadBody *
iload_body_read(Oid function, Node *call, const IloadSource *caller)
{
	HeapTuple	tuple;
	Form_pg_proc form;
	IloadBody  *body;
	ReadBody	read;
	Datum		stored;

	if (function < FirstUnpinnedObjectId)
		return NULL;
	tuple = SearchSysCacheCopy1(PROCOID, ObjectIdGetDatum(function));
	if (!HeapTupleIsValid(tuple))
		return NULL;
	form = (Form_pg_proc) GETSTRUCT(tuple);
	body = palloc0(sizeof(IloadBody));
	body->plpgsql = form->prolang == get_language_oid("plpgsql", true);
	if (form->prolang != SQLlanguageId && !body->plpgsql)
		return NULL;
	if (caller->depth == 0 &&
		!DatumGetBool(DirectFunctionCall2(has_function_privilege_id, ObjectIdGetDatum(function),
										  CStringGetTextDatum("EXECUTE"))))
		aclcheck_error(ACLCHECK_NO_PRIV,
					   form->prokind == PROKIND_PROCEDURE ? OBJECT_PROCEDURE : OBJECT_FUNCTION,
					   NameStr(form->proname));

	body->source.object = psprintf("function %s", iload_body_function_text(function));
	body->source.depth = caller->depth + 1;
	find_bounds(&body->source, call, caller, form->pronargs);
	stored = attribute(tuple, Anum_pg_proc_prosqlbody);
	if (stored != (Datum) 0)
	{
		body->queries = stored_queries(stored);
		return body;
	}
	body->source.text = TextDatumGetCString(attribute(tuple, Anum_pg_proc_prosrc));
	read.body = body;
	read.tuple = tuple;
	read.call = call;
	if (!body->plpgsql && iload_attempt(read_sql, &read) != NULL)
		return NULL;
	return body;
}
