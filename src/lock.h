/*
 * lock.h
 *		The slice lock: one load of a slice at a time.
 */
#ifndef ILOAD_LOCK_H
#define ILOAD_LOCK_H

#include "storage/lock.h"

#include "slice.h"

/* What to do where another load of the slice is running. */
typedef enum IloadIfRunning
{
	ILOAD_RUNNING_WAIT,
	ILOAD_RUNNING_FAIL,
	ILOAD_RUNNING_SKIP,
	ILOAD_RUNNING_CANCEL
} IloadIfRunning;

extern bool iload_lock_slice(IloadSlice *slice, IloadIfRunning if_running);
extern VirtualTransactionId *iload_lock_loads(int *n);
extern VirtualTransactionId *iload_lock_waiters(int *n);
extern VirtualTransactionId *iload_lock_holders(List *relids, int *n);

#endif
