/*
 * difference.h
 *		In which rows, and in what of them, two images of a table differ.
 */
#ifndef ILOAD_DIFFERENCE_H
#define ILOAD_DIFFERENCE_H

#include "image.h"

/* Of a table, with its partitions. */
typedef struct IloadDifference
{
	char	   *relation;		/* name of the root */
	uint64		added;			/* rows that only the later image has */
	uint64		missing;		/* rows that only the earlier image has */
	List	   *columns;		/* String: where rows can be paired, what
								 * differs in them */
	bool		permuted;		/* all columns have the same values, in other
								 * rows */
	bool		floats;			/* only columns of floating-point type differ, */
	double		relative;		/* by so much of their value at most */
	List	   *added_rows;		/* String: samples */
	List	   *missing_rows;
	bool		readable;		/* may the user see rows? */
} IloadDifference;

extern List *iload_difference_add(List *differences, const IloadImage *earlier,
								  const IloadImage *later,
								  Tuplestorestate *old, Tuplestorestate *new);

#endif
