/*
 * lint_text.h
 *		What can be told from the text of a query or a function.
 */
#ifndef ILOAD_LINT_TEXT_H
#define ILOAD_LINT_TEXT_H

#include "nodes/pg_list.h"

/* A token of SQL or PL/pgSQL. */
typedef struct IloadToken
{
	int			location;		/* byte in the text */
	char	   *word;			/* of an identifier or keyword, in lower case
								 * unless quoted; else NULL */
	char	   *string;			/* value of a string constant, else NULL */
	char		character;		/* of a token of one character, else '\0' */
} IloadToken;

extern List *iload_text_tokens(const char *text);
extern void iload_text_position(const char *text, int location, int *line, int *column);
extern bool iload_text_has_clock_word(const char *text);
extern char *iload_text_string_at(const char *text, int location);

#endif
