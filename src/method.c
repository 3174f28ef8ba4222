/*
 * method.c
 *		The method: how a slice is brought to the staged rows.
 */
#include "postgres.h"

#include "guc.h"
#include "method.h"

const char *
iload_method_name(IloadMethod method)
{
	static const char *const names[] = {"auto", "swap", "diff", "delete", "merge", "none", "skipped", "adopt"};

	return names[method];
}

/*
 * The method that auto takes.
 *
 * diff writes what has changed and nothing else, but reads both sides once more;
 * where one side is empty, not even that.  The others pay where much is to be
 * written.  delete costs the same for each row, changed or not.  swap costs a share
 * of that for each row, and some work on files and catalogs, which is that of writing
 * so many bytes by diff.
 */
IloadMethod
iload_method_choose(const IloadMethodFacts *facts)
{
	double		overhead = iload_swap_min_size * 1024.0;

	if (facts->can_swap &&
		facts->share * facts->size >= iload_swap_threshold * facts->size + overhead)
		return ILOAD_METHOD_SWAP;
	if (!facts->can_diff)
		return ILOAD_METHOD_DELETE;
	if (facts->size >= overhead && facts->share >= iload_delete_threshold &&
		!facts->must_diff && !facts->one_sided)
		return ILOAD_METHOD_DELETE;
	return ILOAD_METHOD_DIFF;
}
