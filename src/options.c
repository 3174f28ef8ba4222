/*
 * options.c
 *		The options of a load, from arguments and from words.
 *
 * The words are in the order of the enums; the first of each list is the default.
 */
#include "postgres.h"

#include "argument.h"
#include "options.h"

const char *const iload_load_methods[] = {"auto", "swap", "diff", "delete", NULL};
const char *const iload_job_methods[] = {"auto", "swap", "diff", "delete", "merge", NULL};
static const char *const on_empty_words[] = {"error", "replace", "keep", NULL};
static const char *const if_running_words[] = {"wait", "fail", "skip", "cancel", NULL};

/*
 * Set the options that are words; NULL is the default.  "methods" is one of the lists
 * above.  Errors: any other word.
 */
void
iload_options_set_words(IloadOptions *options, const char *const *methods,
						char *method, char *on_empty, char *if_running)
{
	options->method = iload_argument_word("method", method, methods);
	options->on_empty = iload_argument_word("on_empty", on_empty, on_empty_words);
	options->if_running = iload_argument_word("if_running", if_running, if_running_words);
}

/*
 * Read the options that come together in every function that takes them: timezone,
 * method, on_empty, audit, if_running, create_partition, ignore_columns, from the
 * argument "first" on.
 */
void
iload_options_read(FunctionCallInfo fcinfo, int first, const char *const *methods,
				   IloadOptions *options)
{
	options->timezone = iload_argument_text(fcinfo, first);
	iload_options_set_words(options, methods,
							iload_argument_text(fcinfo, first + 1),
							iload_argument_text(fcinfo, first + 2),
							iload_argument_text(fcinfo, first + 4));
	options->audit = iload_argument_text(fcinfo, first + 3);
	options->create_partition = PG_ARGISNULL(first + 5) || PG_GETARG_BOOL(first + 5);
	options->ignore_columns = iload_argument_names(fcinfo, first + 6, "ignore_columns");
}

/* The word for on_empty; that for the method is iload_method_name's. */
const char *
iload_options_on_empty(const IloadOptions *options)
{
	return on_empty_words[options->on_empty];
}

/* The word for if_running. */
const char *
iload_options_if_running(const IloadOptions *options)
{
	return if_running_words[options->if_running];
}
