/*
 * lint_text.c
 *		What can be told from the text of a query or a function.
 *
 * The text is cut into tokens by the server's own scanner, which is told of no
 * keywords: each word is then an identifier.  What a token is, is seen by how it
 * begins, since the scanner's numbers for tokens are not public.
 */
#include "postgres.h"

#include <ctype.h>

#include "common/kwlookup.h"
#include "mb/pg_wchar.h"
#include "parser/scanner.h"

#include "lint_text.h"

static const ScanKeywordList no_keywords = {"", NULL, NULL, 0, 0};

/* Does a string constant begin here?  One in dollars, $tag$, does; $1 does not. */
static bool
begins_string(const char *here)
{
	if (*here == '$')
		return !isdigit((unsigned char) here[1]);
	if (*here == '\'')
		return true;
	if (*here == 'e' || *here == 'E')
		return here[1] == '\'';
	return (*here == 'u' || *here == 'U') && here[1] == '&' && here[2] == '\'';
}

static bool
begins_word(const char *here)
{
	return isalpha((unsigned char) *here) || *here == '_' || *here == '"' || IS_HIGHBIT_SET(*here);
}

static core_yyscan_t
begin_scan(const char *text, core_yy_extra_type *extra)
{
	core_yyscan_t scanner = scanner_init(text, extra, &no_keywords, NULL);

	/* it has been warned of where the text is run */
	extra->escape_string_warning = false;
	return scanner;
}

/* Get the next token; false at the end of the text. */
static bool
next_token(core_yyscan_t scanner, const char *text, IloadToken *token)
{
	core_YYSTYPE value;
	YYLTYPE		location;
	int			kind = core_yylex(&value, &location, scanner);
	const char *here = &text[location];

	memset(token, 0, sizeof(IloadToken));
	if (kind == 0)
		return false;
	token->location = location;
	if (begins_string(here))
		token->string = value.str;
	else if (begins_word(here))
		token->word = value.str;
	else if (kind < 128)
		token->character = kind;
	return true;
}

/*
 * The tokens of a text, as a list of IloadToken in the current context.
 *
 * Errors: a string or a comment that does not end.
 */
List *
iload_text_tokens(const char *text)
{
	core_yy_extra_type extra;
	core_yyscan_t scanner = begin_scan(text, &extra);
	List	   *tokens = NIL;
	IloadToken	token;

	while (next_token(scanner, text, &token))
	{
		IloadToken *copy = palloc(sizeof(IloadToken));

		*copy = token;
		tokens = lappend(tokens, copy);
	}
	scanner_finish(scanner);
	return tokens;
}

/* The value of the string constant at a place in a text, or NULL. */
char *
iload_text_string_at(const char *text, int location)
{
	core_yy_extra_type extra;
	core_yyscan_t scanner;
	IloadToken	token;

	if (!begins_string(&text[location]))
		return NULL;
	scanner = begin_scan(&text[location], &extra);
	(void) next_token(scanner, &text[location], &token);
	scanner_finish(scanner);
	return token.string;
}

/* Line and column, in characters and from 1, of a byte in a text. */
void
iload_text_position(const char *text, int location, int *line, int *column)
{
	const char *start = text;

	*line = 1;
	for (const char *here = text; here < &text[location]; here++)
	{
		if (*here == '\n')
		{
			(*line)++;
			start = here + 1;
		}
	}
	*column = pg_mbstrlen_with_len(start, &text[location] - start) + 1;
}

/*
 * Does a text, read as a date or a time, hold a word that the clock gives its
 * meaning?
 */
bool
iload_text_has_clock_word(const char *text)
{
	static const char *const words[] = {"now", "today", "tomorrow", "yesterday"};

	for (const char *here = text; *here != '\0';)
	{
		size_t		length = 0;

		while (isalpha((unsigned char) here[length]))
			length++;
		for (size_t i = 0; i < lengthof(words); i++)
		{
			if (length == strlen(words[i]) && pg_strncasecmp(here, words[i], length) == 0)
				return true;
		}
		here += Max(length, 1);
	}
	return false;
}
