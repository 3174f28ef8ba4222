/*
 * argument.c
 *		Arguments of SQL functions, as C values.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "nodes/value.h"
#include "utils/builtins.h"

#include "argument.h"

/*
 * The position of an option's value in a list of words that ends with NULL; of
 * a null, that of the first one, which is the default.
 */
int
iload_argument_word(const char *option, char *value, const char *const *words)
{
	StringInfoData list;

	if (value == NULL)
		return 0;
	initStringInfo(&list);
	for (int i = 0; words[i] != NULL; i++)
	{
		if (strcmp(value, words[i]) == 0)
			return i;
		appendStringInfo(&list, "%s\"%s\"", i > 0 ? ", " : "", words[i]);
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid value for option \"%s\": \"%s\"", option, value),
			 errhint("Valid values are %s.", list.data)));
}

/* A text argument, or NULL. */
char *
iload_argument_text(FunctionCallInfo fcinfo, int argno)
{
	return PG_ARGISNULL(argno) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(argno));
}

void
iload_argument_require(FunctionCallInfo fcinfo, int argno, const char *name)
{
	if (PG_ARGISNULL(argno))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not be null", name)));
}

/* A list of String nodes from an array of type text[].  "name" is for messages. */
List *
iload_array_names(ArrayType *array, const char *name)
{
	List	   *names = NIL;
	Datum	   *elements;
	bool	   *nulls;
	int			n;

	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &elements, &nulls, &n);
	for (int i = 0; i < n; i++)
	{
		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("%s must not contain nulls", name)));
		names = lappend(names, makeString(TextDatumGetCString(elements[i])));
	}
	return names;
}

/* A list of String nodes from a text[] argument. */
List *
iload_argument_names(FunctionCallInfo fcinfo, int argno, const char *name)
{
	return PG_ARGISNULL(argno) ? NIL : iload_array_names(PG_GETARG_ARRAYTYPE_P(argno), name);
}

/* A period, which is a day where the argument is null. */
Interval *
iload_argument_period(FunctionCallInfo fcinfo, int argno)
{
	if (!PG_ARGISNULL(argno))
		return PG_GETARG_INTERVAL_P(argno);
	return DatumGetIntervalP(DirectFunctionCall3(interval_in, CStringGetDatum("1 day"),
												 ObjectIdGetDatum(InvalidOid),
												 Int32GetDatum(-1)));
}
