/*
 * lint.c
 *		What a load warns of before it runs its query.
 *
 * Findings are looked for in the analyzed query and in what it stands upon: views,
 * defaults of columns that are not given, SQL functions (lint_walk.c).  That is sure
 * where something is found, and cheap enough to be done in every load.
 */
#include "postgres.h"

#include "utils/rel.h"

#include "errcodes.h"
#include "guc.h"
#include "lint.h"
#include "lint_walk.h"

/* The loaded columns that are not compared, as Strings. */
static List *
ignored_columns(const IloadColumns *columns)
{
	List	   *ignored = NIL;
	int			next = 0;

	for (int i = 0; i < columns->desc->natts; i++)
	{
		if (next < columns->ncompared && columns->compared[next] == i + 1)
			next++;
		else
			ignored = lappend(ignored, makeString(NameStr(TupleDescAttr(columns->desc, i)->attname)));
	}
	return ignored;
}

/* Where something was found, in words. */
static char *
place_text(const IloadFinding *finding)
{
	if (finding->line == 0)
		return psprintf("It is in the %s.", finding->object != NULL ? finding->object : "query");
	if (finding->object != NULL)
		return psprintf("It is in the %s, line %d, column %d.",
						finding->object, finding->line, finding->column);
	return psprintf("It is in line %d, column %d of the query.", finding->line, finding->column);
}

/*
 * Warn of what makes a load another one when it is repeated, or refuse it, as the
 * setting says.  "query" is the analyzed query in the shape of the target; columns
 * that are not compared do not count.
 */
void
iload_lint_load(Relation target, Query *query, const char *text,
				const IloadColumns *columns, const char *key)
{
	IloadLint	lint = {.target = RelationGetRelid(target),.brief = true};
	IloadSource source = {.lower = 1,.upper = 2};
	ListCell   *lc;

	if (iload_lint_level == ILOAD_LINT_OFF)
		return;
	source.text = text;

	lint.key = key;
	lint.ignored = ignored_columns(columns);
	iload_lint_query(&lint, query, &source);
	foreach(lc, lint.findings)
	{
		IloadFinding *finding = lfirst(lc);

		if (iload_finding_is_reported(&lint, finding))
			continue;
		ereport(iload_lint_level == ILOAD_LINT_ERROR ? ERROR : WARNING,
				(errcode(ERRCODE_ILOAD_LINT),
				 errmsg("query may give another result when it is repeated: %s", finding->message),
				 errdetail_internal("%s", place_text(finding)),
				 errhint("%s", finding->hint)));
	}
}
