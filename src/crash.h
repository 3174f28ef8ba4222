/*
 * crash.h
 *		The state that a crash between commits would have left.
 */
#ifndef ILOAD_CRASH_H
#define ILOAD_CRASH_H

#include "image.h"

/* Which of the rows that a run inserted into a table are lost. */
typedef enum IloadLoss
{
	ILOAD_LOSE_NOTHING,
	ILOAD_LOSE_TAIL,			/* the later half */
	ILOAD_LOSE_HEAD				/* the earlier half */
} IloadLoss;

extern uint64 iload_crash_count(const IloadImage *image, IloadLoss loss);
extern void iload_crash_lose(List *images, const IloadLoss *losses, TransactionId since);

#endif
