/*
 * method.h
 *		The method: how a slice is brought to the staged rows.
 */
#ifndef ILOAD_METHOD_H
#define ILOAD_METHOD_H

typedef enum IloadMethod
{
	ILOAD_METHOD_AUTO,
	ILOAD_METHOD_SWAP,
	ILOAD_METHOD_DIFF,
	ILOAD_METHOD_DELETE,
	ILOAD_METHOD_MERGE,			/* jobs and merge_rows only */
	ILOAD_METHOD_NONE,			/* only as an outcome */
	ILOAD_METHOD_SKIPPED,		/* likewise: another load was running */
	ILOAD_METHOD_ADOPT			/* no load: what is there was recorded */
} IloadMethod;

/* What the choice depends on, where the slice and the staged rows differ. */
typedef struct IloadMethodFacts
{
	bool		can_swap;
	bool		can_diff;
	bool		must_diff;		/* unchanged rows are to be kept as they are */
	bool		one_sided;		/* no row before, or none after */
	uint64		size;			/* bytes of the slice, or of the staged rows
								 * where that is more */
	double		share;			/* of rows that differ, about; 1.0 is all */
} IloadMethodFacts;

extern const char *iload_method_name(IloadMethod method);
extern Size iload_method_swap_cost(void);
extern IloadMethod iload_method_choose(const IloadMethodFacts *facts);

#endif
