/*
 * statement.c
 *		The statements of a command or of a function, as they are written.
 *
 * Those of PL/pgSQL are cut out of the body by its tokens, from a word that begins
 * a statement to the semicolon.  One that cannot be parsed by itself is left out.
 * With each come the queries that decide whether it is reached: conditions of the IF
 * around it, or of an earlier one with a RETURN, and queries into variables that
 * these conditions use.
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "tcop/tcopprot.h"

#include "attempt.h"
#include "lint_text.h"
#include "statement.h"

/* What is known while the tokens of a body are gone through. */
typedef struct Cutter
{
	const char *text;
	List	   *tokens;
	int			next;			/* position in the tokens */
	List	   *open;			/* of each IF that is open, a list of queries */
	List	   *returned;		/* queries that have decided for a RETURN */
	List	   *selects;		/* SelectStmts so far, the last one first */
	List	   *statements;
} Cutter;

typedef struct ParseText
{
	const char *text;
	List	   *parsed;
} ParseText;

static IloadRawStatement *
make_statement(RawStmt *raw, int offset, List *guards)
{
	IloadRawStatement *statement = palloc0(sizeof(IloadRawStatement));

	statement->raw = raw;
	statement->offset = offset;
	statement->guards = guards;
	return statement;
}

/*
 * The statements of SQL text, as a list of IloadRawStatement in the current context.
 *
 * Errors: a syntax error.
 */
List *
iload_statements_parse(const char *text)
{
	List	   *statements = NIL;
	ListCell   *lc;

	foreach(lc, pg_parse_query(text))
		statements = lappend(statements, make_statement(lfirst_node(RawStmt, lc), 0, NIL));
	return statements;
}

static void
parse_text(void *arg)
{
	ParseText  *parse = arg;

	parse->parsed = pg_parse_query(parse->text);
}

/* The one statement of a piece of text, or NULL. */
static RawStmt *
parse_one(const char *text)
{
	ParseText	parse = {0};

	parse.text = text;

	if (iload_attempt(parse_text, &parse) != NULL || list_length(parse.parsed) != 1)
		return NULL;
	return linitial_node(RawStmt, parse.parsed);
}

static bool
is_one_of(const IloadToken *token, const char *const *words)
{
	for (int i = 0; token->word != NULL && words[i] != NULL; i++)
	{
		if (strcmp(token->word, words[i]) == 0)
			return true;
	}
	return false;
}

static bool
is_word(const IloadToken *token, const char *word)
{
	return token->word != NULL && strcmp(token->word, word) == 0;
}

static bool
at_end(const Cutter *cutter)
{
	return cutter->next >= list_length(cutter->tokens);
}

static IloadToken *
current(const Cutter *cutter)
{
	return list_nth(cutter->tokens, cutter->next);
}

/*
 * Go on to a semicolon or to one of some words, outside parentheses.  Returns the
 * byte at which that begins.
 */
static int
skip_to(Cutter *cutter, const char *const *words)
{
	int			depth = 0;

	for (; !at_end(cutter); cutter->next++)
	{
		IloadToken *token = current(cutter);

		if (token->character == '(')
			depth++;
		else if (token->character == ')')
			depth--;
		else if (depth == 0 && (token->character == ';' || is_one_of(token, words)))
			return token->location;
	}
	return strlen(cutter->text);
}

/* The queries that decide whether the next statement is reached. */
static List *
current_guards(const Cutter *cutter)
{
	List	   *guards = list_copy(cutter->returned);
	ListCell   *lc;

	foreach(lc, cutter->open)
		guards = list_concat_unique_ptr(guards, lfirst(lc));
	return guards;
}

static void
add_statement(Cutter *cutter, RawStmt *raw, int offset)
{
	cutter->statements = lappend(cutter->statements,
								 make_statement(raw, offset, current_guards(cutter)));
	if (IsA(raw->stmt, SelectStmt))
		cutter->selects = lcons(raw->stmt, cutter->selects);
}

/* Take out a statement whose first token is the current one. */
static void
cut_statement(Cutter *cutter)
{
	static const char *const returning[] = {"returning", NULL};
	static const char *const nothing[] = {NULL};
	IloadToken *first = current(cutter);
	bool		with = is_word(first, "with");
	bool		perform = is_word(first, "perform");
	int			end = skip_to(cutter, with ? nothing : returning);
	char	   *text = pnstrdup(&cutter->text[first->location], end - first->location);
	RawStmt    *raw;

	/* PERFORM is SELECT; the places of what follows stay */
	if (perform)
		memcpy(text, "SELECT ", strlen("SELECT "));
	raw = parse_one(text);
	if (raw != NULL)
		add_statement(cutter, raw, first->location);
	(void) skip_to(cutter, nothing);
}

/* EXECUTE of a string constant. */
static void
cut_execute(Cutter *cutter)
{
	static const char *const ends[] = {"using", "into", NULL};
	IloadToken *string;
	int			next;

	cutter->next++;
	if (at_end(cutter))
		return;
	string = current(cutter);
	next = cutter->next + 1;
	(void) skip_to(cutter, ends);
	if (string->string != NULL && cutter->next == next)
	{
		RawStmt    *raw = parse_one(string->string);

		if (raw != NULL)
			add_statement(cutter, raw, -1);
	}
}

/* Does a condition use a variable? */
static bool
uses_variable(Node *node, void *name)
{
	if (node == NULL)
		return false;
	if (IsA(node, ColumnRef))
		return IsA(linitial(((ColumnRef *) node)->fields), String) &&
			strcmp(strVal(linitial(((ColumnRef *) node)->fields)), name) == 0;
	return raw_expression_tree_walker(node, uses_variable, name);
}

/*
 * The queries that decide about a condition: itself, the last one where it uses FOUND,
 * and those into its variables.  PL/pgSQL's INTO looks like that of SQL here.
 */
static List *
deciding_queries(const Cutter *cutter, Node *condition)
{
	List	   *queries = list_make1(condition);
	ListCell   *lc;

	foreach(lc, cutter->selects)
	{
		SelectStmt *select = lfirst_node(SelectStmt, lc);

		if ((foreach_current_index(lc) == 0 && uses_variable(condition, "found")) ||
			(select->intoClause != NULL &&
			 uses_variable(condition, select->intoClause->rel->relname)))
			queries = lappend(queries, select);
	}
	return queries;
}

/* What decides about the condition of IF, which begins after the current token. */
static List *
cut_condition(Cutter *cutter)
{
	static const char *const then[] = {"then", NULL};
	int			begin = current(cutter)->location + strlen(current(cutter)->word);
	int			end = skip_to(cutter, then);
	RawStmt    *raw = parse_one(psprintf("SELECT %.*s", end - begin, &cutter->text[begin]));

	return raw != NULL ? deciding_queries(cutter, raw->stmt) : NIL;
}

/* Go on over one statement, or over what comes before one. */
static void
cut_next(Cutter *cutter)
{
	static const char *const begins[] = {
		"insert", "update", "delete", "merge", "truncate", "with", "refresh", "create",
		"drop", "copy", "perform", "select", "call", NULL
	};
	static const char *const before[] = {"begin", "then", "else", "loop", "declare", NULL};
	IloadToken *token = current(cutter);

	if (is_one_of(token, begins))
		cut_statement(cutter);
	else if (is_word(token, "execute"))
		cut_execute(cutter);
	else if (is_word(token, "if"))
		cutter->open = lappend(cutter->open, cut_condition(cutter));
	else if (is_word(token, "elsif") && cutter->open != NIL)
		llast(cutter->open) = cut_condition(cutter);
	else if (is_word(token, "end"))
	{
		cutter->next++;
		if (!at_end(cutter) && is_word(current(cutter), "if") && cutter->open != NIL)
			cutter->open = list_delete_last(cutter->open);
		(void) skip_to(cutter, before);
	}
	else if (is_word(token, "return"))
	{
		cutter->returned = current_guards(cutter);
		(void) skip_to(cutter, before);
	}
	else if (!is_one_of(token, before))
		(void) skip_to(cutter, before);
	if (!at_end(cutter))
		cutter->next++;
}

/*
 * The statements in the body of a PL/pgSQL function, as a list of IloadRawStatement in
 * the current context.
 *
 * Errors: the body cannot be cut into tokens.
 */
List *
iload_statements_cut(const char *text)
{
	Cutter		cutter = {.tokens = iload_text_tokens(text)};

	cutter.text = text;

	while (!at_end(&cutter))
		cut_next(&cutter);
	return cutter.statements;
}
