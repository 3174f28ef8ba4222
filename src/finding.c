/*
 * finding.c
 *		What lint finds: codes, and the list of findings.
 */
#include "postgres.h"

#include "finding.h"
#include "lint_text.h"

/* What is fixed of each code, in the order of IloadLintCode. */
static const struct
{
	const char *name;
	bool		warning;
	const char *hint;
}			codes[] =

{
	{"clock_read", true, "Use the logical date, $1, instead."},
	{"clock_literal", true, "Use the logical date, $1, instead."},
	{"random_value", true, "Derive the value from the row, for instance from a hash of its key."},
	{"sequence_value", true, "Derive the value from the row, or use its natural key."},
	{"transaction_value", true, "Leave it out: it is another one in each run."},
	{"session_value", false, "Leave it out, if it is another one where the job runs by another session or role."},
	{"session_cast", false, "Say the time zone with AT TIME ZONE and the format with to_char, or run it where these settings are always the same."},
	{"reads_target", true, "Read the source instead, or only rows of the slice: where the key is $1, or from $1 up to, not including, $2."},
	{"reads_target", false, "That carries rows over: each rerun starts from the result of the last one."},
	{"limit_without_order", true, "Give it an ORDER BY that ends in a unique key."},
	{"limit_with_ties", true, "End the ORDER BY in a unique key."},
	{"distinct_on_ties", true, "End the ORDER BY in a unique key."},
	{"window_ties", true, "End the ORDER BY of the window in a unique key."},
	{"order_dependent_aggregate", true, "Write an ORDER BY that ends in a unique key into the aggregate."},
	{"float_aggregate", false, "Aggregate numeric values: the sum of floating-point values depends on their order."},
	{"append", true, "Remove the rows that it adds first, or use replace_partition."},
	{"insert_if_absent", true, "Replace the rows instead: what a broken run has left stays as it is."},
	{"insert_if_absent", false, "Rows that are there already keep what they have."},
	{"merge", false, "Rows that the source no longer has stay in the table."},
	{"replace_slice", false, NULL},
	{"full_reload", false, NULL},
	{"update_in_place", false, "It can be repeated if what it sets follows from what it does not change."},
	{"counter", true, "Compute the value from the source instead: each run counts once more."},
	{"delete_only", false, NULL}
};

StaticAssertDecl(lengthof(codes) == ILOAD_LINT_DELETE_ONLY + 1,
				 "each code of lint has its entry");

const char *
iload_finding_code(const IloadFinding *finding)
{
	return codes[finding->code].name;
}

const char *
iload_finding_severity(const IloadFinding *finding)
{
	return codes[finding->code].warning ? "warning" : "info";
}

static bool
same_text(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* Was the same found at the same place?  A view may be read twice. */
static bool
is_known(IloadLint *lint, const IloadFinding *finding)
{
	ListCell   *lc;

	foreach(lc, lint->findings)
	{
		IloadFinding *known = lfirst(lc);

		if (known->code == finding->code && known->line == finding->line &&
			known->column == finding->column && same_text(known->object, finding->object) &&
			strcmp(known->message, finding->message) == 0)
			return true;
	}
	return false;
}

/*
 * Take note of a finding, in the current context.  "location" is a byte in the text
 * of the source, or -1; a "hint" that is NULL is that of the code.
 */
void
iload_finding_add(IloadLint *lint, IloadLintCode code, const IloadSource *source,
				  int location, char *message, const char *hint)
{
	IloadFinding *finding;

	if (lint->brief && code > ILOAD_LINT_SEQUENCE_VALUE)
		return;
	finding = palloc0(sizeof(IloadFinding));
	finding->code = code;
	finding->message = message;
	finding->object = source->object;
	finding->hint = hint != NULL ? hint : codes[code].hint;
	if (source->text !=NULL && location >= 0)
		iload_text_position(source->text, location, &finding->line, &finding->column);
	else if (source->object == NULL && lint->output != NULL)
		finding->object = psprintf("column \"%s\"", lint->output);
	if (!is_known(lint, finding))
		lint->findings = lappend(lint->findings, finding);
}

/* Is there one of the same code and object before it? */
bool
iload_finding_is_reported(const IloadLint *lint, const IloadFinding *finding)
{
	ListCell   *lc;

	foreach(lc, lint->findings)
	{
		IloadFinding *before = lfirst(lc);

		if (before == finding)
			return false;
		if (before->code == finding->code && same_text(before->object, finding->object))
			return true;
	}
	return false;
}
