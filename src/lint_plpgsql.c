/*
 * lint_plpgsql.c
 *		Findings in the text of a PL/pgSQL function.
 *
 * Its statements cannot be analyzed without its variables, so only words are looked
 * at: calls by names of the server's, and clock literals beside the name of a type.
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/formatting.h"

#include "lint_plpgsql.h"
#include "lint_text.h"
#include "lint_value.h"

/* Values that are read without parentheses; they are reserved words. */
static const struct
{
	const char *word;
	IloadImpureKind kind;
}			values[] =

{
	{"current_catalog", ILOAD_IMPURE_SESSION},
	{"current_date", ILOAD_IMPURE_CLOCK},
	{"current_role", ILOAD_IMPURE_SESSION},
	{"current_schema", ILOAD_IMPURE_SESSION},
	{"current_time", ILOAD_IMPURE_CLOCK},
	{"current_timestamp", ILOAD_IMPURE_CLOCK},
	{"current_user", ILOAD_IMPURE_SESSION},
	{"localtime", ILOAD_IMPURE_CLOCK},
	{"localtimestamp", ILOAD_IMPURE_CLOCK},
	{"session_user", ILOAD_IMPURE_SESSION}
};

static IloadToken *
token_at(List *tokens, int i)
{
	return i >= 0 && i < list_length(tokens) ? list_nth(tokens, i) : NULL;
}

static bool
is_word(List *tokens, int i, const char *word)
{
	IloadToken *token = token_at(tokens, i);

	return token != NULL && token->word != NULL && strcmp(token->word, word) == 0;
}

static bool
is_character(List *tokens, int i, char character)
{
	IloadToken *token = token_at(tokens, i);

	return token != NULL && token->character == character;
}

static bool
is_clock_type(List *tokens, int i)
{
	return is_word(tokens, i, "date") || is_word(tokens, i, "time") ||
		is_word(tokens, i, "timetz") || is_word(tokens, i, "timestamp") ||
		is_word(tokens, i, "timestamptz");
}

static bool
is_assignment(const char *text, List *tokens, int i)
{
	IloadToken *token = token_at(tokens, i);

	return token != NULL &&
		(token->character == '=' || strncmp(&text[token->location], ":=", 2) == 0 ||
		 is_word(tokens, i, "default"));
}

/* Is the string constant given as a date or a time: cast, after the type, or as the first value of a variable? */
static bool
is_given_as_clock_type(const char *text, List *tokens, int i)
{
	IloadToken *next = token_at(tokens, i + 1);

	if (is_clock_type(tokens, i - 1))
		return true;
	if (is_clock_type(tokens, i - 2) && is_assignment(text, tokens, i - 1))
		return true;
	if (is_word(tokens, i - 1, "zone") && is_word(tokens, i - 2, "time"))
		return true;
	if (next != NULL && strncmp(&text[next->location], "::", 2) == 0)
		return is_clock_type(tokens, i + 2);
	return is_character(tokens, i - 1, '(') && is_word(tokens, i - 2, "cast") &&
		is_word(tokens, i + 1, "as") && is_clock_type(tokens, i + 2);
}

static void
check_word(IloadLint *lint, const IloadSource *source, List *tokens, int i)
{
	IloadToken *token = list_nth(tokens, i);
	IloadToken *schema = is_character(tokens, i - 1, '.') ? token_at(tokens, i - 2) : NULL;
	IloadImpureKind kind;

	for (size_t j = 0; schema == NULL && j < lengthof(values); j++)
	{
		if (strcmp(token->word, values[j].word) == 0 && source->text[token->location] != '"')
			iload_lint_impure(lint, source, values[j].kind, asc_toupper(token->word, strlen(token->word)),
							  token->location);
	}
	if (is_character(tokens, i + 1, '(') &&
		iload_impure_function(schema != NULL ? schema->word : NULL, token->word, &kind))
		iload_lint_impure(lint, source, kind, psprintf("%s()", token->word), token->location);
}

/*
 * Look at the text of a source, the body of a function.
 *
 * Errors: it cannot be cut into tokens.
 */
void
iload_lint_plpgsql(IloadLint *lint, const IloadSource *source)
{
	List	   *tokens = iload_text_tokens(source->text);

	for (int i = 0; i < list_length(tokens); i++)
	{
		IloadToken *token = list_nth(tokens, i);

		if (token->word != NULL)
			check_word(lint, source, tokens, i);
		if (token->string != NULL && iload_text_has_clock_word(token->string) &&
			is_given_as_clock_type(source->text, tokens, i))
			iload_finding_add(lint, ILOAD_LINT_CLOCK_LITERAL, source, token->location,
							  psprintf("%s is read from the clock", quote_literal_cstr(token->string)),
							  NULL);
	}
}
