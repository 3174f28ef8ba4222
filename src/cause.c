/*
 * cause.c
 *		Why a rerun gave another result.
 *
 * The kind of the rerun, the rows that differ, and what the run was seen to do, taken
 * together, tell the cause.  Nothing is looked up here: all is in the evidence.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "nodes/value.h"

#include "cause.h"

/* The word, and what to write instead. */
typedef enum CauseName
{
	CAUSE_APPEND,
	CAUSE_SKIP_IF_PRESENT,
	CAUSE_CLOCK,
	CAUSE_RANDOM,
	CAUSE_SEQUENCE,
	CAUSE_READS_TARGET,
	CAUSE_ORDER,
	CAUSE_FLOAT,
	CAUSE_SESSION,
	CAUSE_TRANSACTION,
	CAUSE_ERROR,
	CAUSE_UNKNOWN
} CauseName;

static const struct
{
	const char *name;
	const char *hint;
}			causes[] = {

	[CAUSE_APPEND] = {
		"append",
		"Replace the rows of the date instead of adding to them: use replace_partition, or delete them in the same transaction, or merge on a key."
	},
	[CAUSE_SKIP_IF_PRESENT] = {
		"skip_if_present",
		"Rows that are there do not mean that all are: do not skip the date, replace it, as replace_partition does."
	},
	[CAUSE_CLOCK] = {
		"clock",
		"Take the date from the parameter $1, not from the clock. If the column only tells when the row was written, name it in ignore_columns."
	},
	[CAUSE_RANDOM] = {
		"random",
		"Derive the value from the row, as md5 of its key does. If it does not matter, name the column in ignore_columns."
	},
	[CAUSE_SEQUENCE] = {
		"sequence",
		"Derive the key from the row, or keep the row that is there by a merge on a key. If the number does not matter, name the column in ignore_columns."
	},
	[CAUSE_READS_TARGET] = {
		"reads_target",
		"Compute the rows from the sources alone, not from what the last run left in the table."
	},
	[CAUSE_ORDER] = {
		"order",
		"Let ORDER BY end in a unique key, for LIMIT, DISTINCT ON and window functions, and within aggregates."
	},
	[CAUSE_FLOAT] = {
		"float",
		"Sums of floating-point numbers depend on the order of the rows: add up numeric instead, or round the result."
	},
	[CAUSE_SESSION] = {
		"session",
		"Name the time zone and the format: AT TIME ZONE, to_char and to_date; or SET TimeZone and DateStyle of the function."
	},
	[CAUSE_TRANSACTION] = {
		"transaction",
		"Do not store what names the transaction or the session: each run has another one. Or name the column in ignore_columns."
	},
	[CAUSE_ERROR] = {
		"error",
		"A job must be able to run again after it has succeeded, and after it has failed half-way."
	},
	[CAUSE_UNKNOWN] = {
		"unknown",
		"Look at the rows that differ; lint_job may tell more."
	}
};

static bool
same_name(const char *a, const char *b)
{
	return a != NULL && b != NULL && strcmp(a, b) == 0;
}

/* "INSERT INTO t ... (PL/pgSQL function f(date) line 3 at SQL statement)" */
static char *
quote_source(const char *text, const char *where)
{
	return where == NULL ? psprintf("in: %s", text) : psprintf("in %s: %s", where, text);
}

/* A statement that wrote the table that differs, by the command; or any, by CMD_UNKNOWN. */
static const IloadStatement *
find_writer(const IloadEvidence *evidence, CmdType command)
{
	ListCell   *lc;

	foreach(lc, evidence->run->statements)
	{
		const IloadStatement *statement = lfirst(lc);

		if (statement->command != CMD_SELECT &&
			(command == CMD_UNKNOWN || statement->command == command) &&
			same_name(statement->target, evidence->difference->relation))
			return statement;
	}
	return NULL;
}

/*
 * The statement to blame for rows that were written otherwise.  The load of a query is
 * a statement of our own, so there it is the query.
 */
static const IloadStatement *
find_source(const IloadEvidence *evidence)
{
	static const CmdType commands[] = {CMD_INSERT, CMD_MERGE, CMD_UPDATE, CMD_UNKNOWN};
	const IloadStatement *source = NULL;
	ListCell   *lc;

	for (size_t i = 0; i < lengthof(commands) && source == NULL; i++)
		source = find_writer(evidence, commands[i]);
	foreach(lc, evidence->run->statements)
	{
		if (source == NULL && ((IloadStatement *) lfirst(lc))->target == NULL)
			source = lfirst(lc);
	}
	return source;
}

/* A statement that writes the table from what it reads of it. */
static const IloadStatement *
find_self_reader(const IloadEvidence *evidence)
{
	ListCell   *lc;

	foreach(lc, evidence->run->statements)
	{
		const IloadStatement *statement = lfirst(lc);
		String	   *relation = makeString(evidence->difference->relation);

		if (statement->from_self && same_name(statement->target, evidence->difference->relation))
			return statement;
		if ((statement->target == NULL ||
			 same_name(statement->target, evidence->difference->relation)) &&
			list_member(statement->reads, relation))
			return statement;
	}
	return NULL;
}

static bool
is_of_column(const IloadCall *call, const List *columns)
{
	return call->column != NULL && list_member(columns, makeString(call->column));
}

/*
 * A call of a kind: one that becomes a column that differs, or else one in a statement
 * that writes the table, or else, if "any", just one.
 */
static const IloadCall *
find_call(const IloadEvidence *evidence, IloadImpureKind kind, bool any)
{
	const IloadDifference *difference = evidence->difference;
	const IloadCall *best = NULL;
	int			best_rank = 0;
	ListCell   *lc;

	foreach(lc, evidence->run->calls)
	{
		const IloadCall *call = lfirst(lc);
		bool		writes = difference != NULL && same_name(call->target, difference->relation);
		int			rank = 0;

		if (call->kind != kind)
			continue;
		if (difference != NULL && is_of_column(call, difference->columns))
			rank = writes ? 4 : call->target == NULL ? 3 : 0;
		else if (any)
			rank = writes ? 2 : 1;
		if (rank > best_rank)
		{
			best = call;
			best_rank = rank;
		}
	}
	return best;
}

static char *
describe_call(const IloadCall *call)
{
	char	   *what = call->line > 0 ? psprintf("%s, line %d,", call->name, call->line) :
	psprintf("%s, through a view, default or function,", call->name);

	if (call->column != NULL)
		what = psprintf("Column \"%s\": %s", call->column, what);
	return psprintf("%s %s", what, quote_source(call->text, call->where));
}

/* Calls that are named beside the first one. */
#define MAX_OTHER_CALLS 4

/* Is this call to be named too: the source of another column, or one more of the kind? */
static bool
is_related(const IloadEvidence *evidence, const IloadCall *first, const IloadCall *call)
{
	if (call == first || call->kind > ILOAD_IMPURE_SESSION)
		return false;
	if (call->target != NULL && !same_name(call->target, evidence->difference->relation))
		return false;
	return is_of_column(call, evidence->difference->columns) ||
		(call->kind == first->kind && call->target != NULL);
}

static char *
describe_calls(const IloadEvidence *evidence, const IloadCall *first)
{
	StringInfoData text;
	int			others = 0;
	ListCell   *lc;

	initStringInfo(&text);
	appendStringInfoString(&text, describe_call(first));
	foreach(lc, evidence->run->calls)
	{
		if (evidence->difference != NULL && others < MAX_OTHER_CALLS &&
			is_related(evidence, first, lfirst(lc)))
		{
			appendStringInfo(&text, "\n%s", describe_call(lfirst(lc)));
			others++;
		}
	}
	return text.data;
}

static IloadCause *
make_cause(CauseName name, char *source)
{
	IloadCause *cause = palloc0(sizeof(IloadCause));

	cause->name = causes[name].name;
	cause->hint = pstrdup(causes[name].hint);
	cause->source = source;
	return cause;
}

static IloadCause *
cause_of_call(const IloadEvidence *evidence, CauseName name, const IloadCall *call)
{
	return make_cause(name, call == NULL ? NULL : describe_calls(evidence, call));
}

static IloadCause *
cause_of_statement(CauseName name, const IloadStatement *statement)
{
	return make_cause(name, statement == NULL ? NULL :
					  psprintf("%s, %s", statement->tag,
							   quote_source(statement->text, statement->where)));
}

/* Rows were added, and none is missing. */
static IloadCause *
cause_of_additions(const IloadEvidence *evidence)
{
	const IloadStatement *insert = find_writer(evidence, CMD_INSERT);
	const IloadStatement *reader = find_self_reader(evidence);

	if (insert == NULL)
		insert = find_writer(evidence, CMD_UTILITY);
	if (insert == NULL)
		insert = find_writer(evidence, CMD_MERGE);
	if (reader != NULL && (insert == NULL || insert == reader))
		return cause_of_statement(CAUSE_READS_TARGET, reader);
	return cause_of_statement(CAUSE_APPEND, insert);
}

/* Is a clock read that goes on within a transaction?  It ticks in every rerun. */
static bool
reads_running_clock(const IloadEvidence *evidence)
{
	ListCell   *lc;

	foreach(lc, evidence->run->calls)
	{
		const char *name = ((IloadCall *) lfirst(lc))->name;

		if (strcmp(name, "clock_timestamp()") == 0 || strcmp(name, "timeofday()") == 0)
			return true;
	}
	return false;
}

/* Rows have other values. */
static IloadCause *
cause_of_changes(const IloadEvidence *evidence)
{
	static const struct
	{
		IloadImpureKind kind;
		CauseName	name;
	}			kinds[] = {
		{ILOAD_IMPURE_RANDOM, CAUSE_RANDOM},
		{ILOAD_IMPURE_SEQUENCE, CAUSE_SEQUENCE},
		{ILOAD_IMPURE_CLOCK, CAUSE_CLOCK},
		{ILOAD_IMPURE_SESSION, CAUSE_SESSION},
		{ILOAD_IMPURE_TRANSACTION, CAUSE_TRANSACTION}
	};
	const IloadStatement *reader = find_self_reader(evidence);
	bool		running = reads_running_clock(evidence);
	const IloadCall *call;

	for (size_t i = 0; i < lengthof(kinds); i++)
	{
		call = find_call(evidence, kinds[i].kind, false);
		if (call != NULL && (kinds[i].kind != ILOAD_IMPURE_CLOCK || running))
			return cause_of_call(evidence, kinds[i].name, call);
	}
	if (reader != NULL)
		return cause_of_statement(CAUSE_READS_TARGET, reader);
	for (size_t i = 0; i < 3; i++)
	{
		call = find_call(evidence, kinds[i].kind, true);
		if (call != NULL && (kinds[i].kind != ILOAD_IMPURE_CLOCK || running))
			return cause_of_call(evidence, kinds[i].name, call);
	}
	if (evidence->difference->floats)
		return make_cause(CAUSE_FLOAT, NULL);
	return cause_of_statement(CAUSE_UNKNOWN, find_source(evidence));
}

/* Did the rerun leave more rows in the table than there were, and only insert? */
static bool
only_appends(const IloadEvidence *evidence)
{
	const IloadStatement *utility = find_writer(evidence, CMD_UTILITY);

	return evidence->difference->added > evidence->difference->missing &&
		find_writer(evidence, CMD_INSERT) != NULL &&
		(utility == NULL || strcmp(utility->tag, "TRUNCATE") != 0) &&
		find_writer(evidence, CMD_DELETE) == NULL &&
		find_writer(evidence, CMD_UPDATE) == NULL &&
		find_writer(evidence, CMD_MERGE) == NULL;
}

static IloadCause *
cause_of_difference(const IloadEvidence *evidence)
{
	const IloadDifference *difference = evidence->difference;

	if ((difference->added > 0 && difference->missing == 0) || only_appends(evidence))
		return cause_of_additions(evidence);
	if (evidence->rerun == ILOAD_RERUN_CRASH && difference->added == 0)
		return make_cause(CAUSE_SKIP_IF_PRESENT, NULL);
	return cause_of_changes(evidence);
}

/*
 * Is it a call that gives the same value in all runs of a check, since they share a
 * transaction and a session, but would not in a real rerun?
 */
bool
iload_cause_stands_still(const IloadCall *call)
{
	return call->kind == ILOAD_IMPURE_TRANSACTION ||
		(call->kind == ILOAD_IMPURE_CLOCK && call->unplanned) ||
		(call->kind == ILOAD_IMPURE_SESSION &&
		 (strcmp(call->name, "pg_backend_pid()") == 0 ||
		  strcmp(call->name, "inet_client_port()") == 0));
}

/* The cause where a column is known to be made of such a call. */
IloadCause *
iload_cause_of_call(const IloadCall *call)
{
	return make_cause(call->kind == ILOAD_IMPURE_CLOCK ? CAUSE_CLOCK : CAUSE_TRANSACTION,
					  describe_call(call));
}

/* Is it known why? */
bool
iload_cause_is_known(const IloadCause *cause)
{
	return cause->name != causes[CAUSE_UNKNOWN].name;
}

/* The rerun raised an error. */
static IloadCause *
cause_of_error(const IloadEvidence *evidence)
{
	switch (evidence->error->sqlerrcode)
	{
		case ERRCODE_UNIQUE_VIOLATION:
		case ERRCODE_EXCLUSION_VIOLATION:
			return make_cause(CAUSE_APPEND, NULL);
		default:
			return make_cause(CAUSE_ERROR, NULL);
	}
}

/* The cause, as far as it can be told.  Allocates in the current context. */
IloadCause *
iload_cause_find(const IloadEvidence *evidence)
{
	if (evidence->clock || evidence->rerun == ILOAD_RERUN_CLOCK)
		return cause_of_call(evidence, CAUSE_CLOCK, find_call(evidence, ILOAD_IMPURE_CLOCK, true));
	if (evidence->difference == NULL)
		return cause_of_error(evidence);
	if (evidence->rerun == ILOAD_RERUN_TIMEZONE)
		return cause_of_statement(CAUSE_SESSION, find_source(evidence));
	if (evidence->rerun == ILOAD_RERUN_PLAN)
		return cause_of_statement(evidence->difference->floats ? CAUSE_FLOAT : CAUSE_ORDER,
								  find_source(evidence));
	return cause_of_difference(evidence);
}
