/*
 * lint_job.c
 *		The SQL functions lint_query and lint_job.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "parser/analyze.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "argument.h"
#include "attempt.h"
#include "finding.h"
#include "function_body.h"
#include "job_run.h"
#include "lint_plpgsql.h"
#include "lint_slice.h"
#include "lint_walk.h"
#include "pattern.h"
#include "raw_table.h"
#include "shape.h"
#include "statement.h"
#include "target.h"

PG_FUNCTION_INFO_V1(iload_lint_query_rows);
PG_FUNCTION_INFO_V1(iload_lint_job_rows);

static int
cmp_text(const char *a, const char *b)
{
	if (a == NULL || b == NULL)
		return (a != NULL) - (b != NULL);
	return strcmp(a, b);
}

/* In the order of the text; then what is elsewhere. */
static int
cmp_findings(const ListCell *a, const ListCell *b)
{
	const IloadFinding *first = lfirst(a);
	const IloadFinding *second = lfirst(b);
	int			cmp = (first->line == 0) - (second->line == 0);

	if (cmp == 0)
		cmp = first->line - second->line;
	if (cmp == 0)
		cmp = first->column - second->column;
	if (cmp == 0)
		cmp = cmp_text(first->object, second->object);
	if (cmp == 0)
		cmp = (int) first->code - (int) second->code;
	return cmp != 0 ? cmp : strcmp(first->message, second->message);
}

/* Columns of the result of both functions. */
typedef enum LintColumn
{
	LINT_SEVERITY,
	LINT_CODE,
	LINT_MESSAGE,
	LINT_OBJECT,
	LINT_LINE,
	LINT_COLUMN,
	LINT_HINT,
	LINT_NCOLUMNS
} LintColumn;

static void
return_findings(FunctionCallInfo fcinfo, IloadLint *lint)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	ListCell   *lc;

	InitMaterializedSRF(fcinfo, 0);
	list_sort(lint->findings, cmp_findings);
	foreach(lc, lint->findings)
	{
		IloadFinding *finding = lfirst(lc);
		Datum		values[LINT_NCOLUMNS] = {0};
		bool		nulls[LINT_NCOLUMNS] = {false};

		values[LINT_SEVERITY] = CStringGetTextDatum(iload_finding_severity(finding));
		values[LINT_CODE] = CStringGetTextDatum(iload_finding_code(finding));
		values[LINT_MESSAGE] = CStringGetTextDatum(finding->message);
		nulls[LINT_OBJECT] = finding->object == NULL;
		if (finding->object != NULL)
			values[LINT_OBJECT] = CStringGetTextDatum(finding->object);
		nulls[LINT_LINE] = nulls[LINT_COLUMN] = finding->line == 0;
		values[LINT_LINE] = Int32GetDatum(finding->line);
		values[LINT_COLUMN] = Int32GetDatum(finding->column);
		nulls[LINT_HINT] = finding->hint == NULL;
		if (finding->hint != NULL)
			values[LINT_HINT] = CStringGetTextDatum(finding->hint);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
}

/* A query, to be brought into the shape of its target. */
typedef struct LoadQuery
{
	Relation	target;
	IloadSlice	slice;			/* only what the shape needs */
	IloadColumns *columns;
	const char *text;
	Query	   *query;			/* the result */
} LoadQuery;

static void
shape_query(void *arg)
{
	LoadQuery  *load = arg;

	load->query = iload_shape_query(load->target, &load->slice, load->columns, load->text);
}

/*
 * Analyze the query, for replace_partition if that can be, else for replace_slice: $1
 * is a date, or of the key's own type.
 */
static void
analyze_load_query(LoadQuery *load)
{
	IloadKey   *key = load->slice.key;

	load->slice.param_type = DATEOID;
	if (key->kind == ILOAD_KEY_DATE ||
		(key->kind != ILOAD_KEY_OTHER && iload_attempt(shape_query, load) == NULL))
	{
		if (load->query == NULL)
			shape_query(load);
		return;
	}
	load->slice.param_type = key->type;
	shape_query(load);
}

/* Look for findings in the query of a load. */
static void
lint_load_query(IloadLint *lint, Oid relid, const char *date_column, const char *text)
{
	IloadSource source = {.lower = 1,.upper = 2};
	LoadQuery	load = {0};

	source.text = load.text = text;

	load.target = iload_target_open(relid, AccessShareLock);
	load.slice.target = relid;
	load.slice.table_name = get_rel_name(relid);
	load.slice.key = iload_key_find(load.target, date_column, false);
	load.columns = iload_columns_create(load.target, load.slice.key->name, lint->ignored);
	analyze_load_query(&load);
	lint->target = relid;
	lint->key = load.slice.key->name;
	iload_lint_query(lint, load.query, &source);
	iload_lint_slice_judge(lint);
	table_close(load.target, NoLock);
}

/* The key column of a table, looked for in an attempt: it may have none. */
typedef struct FindKey
{
	Relation	table;
	char	   *name;
} FindKey;

static void
find_key(void *arg)
{
	FindKey    *find = arg;

	find->name = iload_key_find(find->table, NULL, false)->name;
}

/*
 * Look for findings in a statement that has been analyzed.  One that inserts may read
 * its table, if "judge_reads".
 */
static void
lint_statement(IloadLint *lint, Query *query, const IloadSource *source, bool judge_reads)
{
	FindKey		find = {0};

	if (query->commandType == CMD_UTILITY && IsA(query->utilityStmt, CreateTableAsStmt))
		query = castNode(Query, ((CreateTableAsStmt *) query->utilityStmt)->query);
	if (query->commandType == CMD_INSERT && judge_reads)
	{
		lint->target = rt_fetch(query->resultRelation, query->rtable)->relid;
		find.table = table_open(lint->target, AccessShareLock);
		(void) iload_attempt(find_key, &find);
		table_close(find.table, NoLock);
		lint->key = find.name;
	}
	iload_lint_query(lint, query, source);
	iload_lint_slice_judge(lint);
	lint->target = InvalidOid;
}

/* A statement of a command, to be analyzed by itself. */
typedef struct CommandStatement
{
	RawStmt    *raw;
	const char *text;
	Query	   *query;			/* the result */
} CommandStatement;

static void
analyze_statement(void *arg)
{
	static const Oid types[] = {DATEOID};
	CommandStatement *statement = arg;

	statement->query = parse_analyze_fixedparams(statement->raw, statement->text, types,
												 lengthof(types), NULL);
}

/*
 * Look for findings in a command.  What is wrong with a statement that cannot be
 * analyzed is no finding: it may need what an earlier one makes.
 */
static void
lint_command(IloadLint *lint, const char *text)
{
	IloadSource source = {.lower = 1};
	List	   *statements = iload_statements_parse(text);
	ListCell   *lc;

	source.text = text;

	iload_pattern_find(lint, statements, &source);
	foreach(lc, statements)
	{
		CommandStatement command = {.raw = ((IloadRawStatement *) lfirst(lc))->raw};
		InsertStmt *insert = (InsertStmt *) command.raw->stmt;
		bool		judge_reads = IsA(insert, InsertStmt) && insert->selectStmt != NULL &&
		iload_raw_table_absence(insert->relation, insert->selectStmt) == ILOAD_RAW_NOT_ASKED;

		command.text = text;

		if (iload_attempt(analyze_statement, &command) == NULL)
			lint_statement(lint, command.query, &source, judge_reads);
	}
}

/* The statements of BEGIN ATOMIC, which are kept as no text, written out again. */
static List *
atomic_statements(Oid function)
{
	static const char begin[] = "BEGIN ATOMIC";
	char	   *body = TextDatumGetCString(OidFunctionCall1(F_PG_GET_FUNCTION_SQLBODY,
															ObjectIdGetDatum(function)));
	List	   *statements;
	ListCell   *lc;

	if (strncmp(body, begin, strlen(begin)) != 0)
		return NIL;
	body[strlen(body) - strlen("END")] = '\0';
	statements = iload_statements_parse(body + strlen(begin));
	foreach(lc, statements)
		((IloadRawStatement *) lfirst(lc))->offset = -1;
	return statements;
}

static void
lint_function(IloadLint *lint, Oid function)
{
	IloadSource caller = {.lower = 1};
	IloadBody  *body = iload_body_read(function, NULL, &caller);
	List	   *statements;
	ListCell   *lc;

	if (body == NULL)
		return;
	lint->functions = list_make1_oid(function);
	if (body->source.text == NULL)
		statements = atomic_statements(function);
	else
		statements = body->plpgsql ? iload_statements_cut(body->source.text) :
			iload_statements_parse(body->source.text);
	iload_pattern_find(lint, statements, &body->source);
	foreach(lc, body->queries)
		lint_statement(lint, lfirst_node(Query, lc), &body->source, true);
	if (body->plpgsql)
		iload_lint_plpgsql(lint, &body->source);
}

/*
 * lint_query(target regclass, query text, date_column text) returns setof record
 */
Datum
iload_lint_query_rows(PG_FUNCTION_ARGS)
{
	IloadLint	lint = {0};

	iload_argument_require(fcinfo, 0, "target");
	iload_argument_require(fcinfo, 1, "query");
	lint_load_query(&lint, PG_GETARG_OID(0), iload_argument_text(fcinfo, 2),
					iload_argument_text(fcinfo, 1));
	return_findings(fcinfo, &lint);
	return (Datum) 0;
}

/* lint_job(name text) returns setof record */
Datum
iload_lint_job_rows(PG_FUNCTION_ARGS)
{
	IloadLint	lint = {0};
	IloadJob   *job;
	int			nestlevel;

	iload_argument_require(fcinfo, 0, "name");
	job = iload_job_find(get_func_namespace(fcinfo->flinfo->fn_oid), iload_argument_text(fcinfo, 0));
	nestlevel = NewGUCNestLevel();
	iload_job_set_environment(job);
	lint.pinned = job->timezone != NULL;
	lint.ignored = job->options.ignore_columns;
	switch (job->kind)
	{
		case ILOAD_JOB_QUERY:
			lint_load_query(&lint, job->target, job->options.date_column, job->text);
			break;
		case ILOAD_JOB_COMMAND:
			lint_command(&lint, job->text);
			break;
		case ILOAD_JOB_FUNCTION:
			lint_function(&lint, job->function);
			break;
	}
	AtEOXact_GUC(true, nestlevel);
	return_findings(fcinfo, &lint);
	return (Datum) 0;
}
