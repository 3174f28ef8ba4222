/*
 * method.c
 *		The method: how a slice is brought to the staged rows.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "guc.h"
#include "method.h"

/* bytes */
#define DEFAULT_MIN_SIZE	(128 * 1024)

const char *
iload_method_name(IloadMethod method)
{
	static const char *const names[] = {"auto", "swap", "diff", "delete", "merge", "none", "skipped", "adopt"};

	return names[method];
}

/* The least size, in bytes, of what has changed for swap, and of a slice for delete. */
static Size
least_size(void)
{
	return iload_swap_min_size >= 0 ? (Size) iload_swap_min_size * 1024 : DEFAULT_MIN_SIZE;
}

/*
 * What a swap costs besides its rows, in bytes that diff would write in that time.
 *
 * Files, catalogs and ANALYZE take about as long as 128 kB.  And when the old files
 * are dropped at the commit, the server looks through all of its shared buffers, once,
 * at about 2 ms for each GB: as long as 64 kB take.
 */
Size
iload_method_swap_cost(void)
{
	return least_size() + (iload_swap_min_size < 0 ? (Size) NBuffers * BLCKSZ / 16384 : 0);
}

/*
 * The method that auto takes.
 *
 * diff writes what has changed and nothing else, but reads both sides once more;
 * where one side is empty, not even that.  The others pay where much is to be
 * written.  delete costs the same for each row, changed or not.  swap costs a share
 * of that for each row, and what iload_method_swap_cost says.
 */
IloadMethod
iload_method_choose(const IloadMethodFacts *facts)
{
	if (facts->can_swap &&
		facts->share * facts->size >=
		iload_swap_threshold * facts->size + iload_method_swap_cost())
		return ILOAD_METHOD_SWAP;
	if (!facts->can_diff)
		return ILOAD_METHOD_DELETE;
	if (facts->size >= least_size() && facts->share >= iload_delete_threshold &&
		!facts->must_diff && !facts->one_sided)
		return ILOAD_METHOD_DELETE;
	return ILOAD_METHOD_DIFF;
}
