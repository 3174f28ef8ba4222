/*
 * slice_fingerprint.h
 *		The fingerprint of a slice as it is stored now.
 */
#ifndef ILOAD_SLICE_FINGERPRINT_H
#define ILOAD_SLICE_FINGERPRINT_H

#include "utils/relcache.h"
#include "utils/snapshot.h"

#include "fingerprint.h"
#include "leaf.h"

extern IloadFingerprint iload_slice_fingerprint_compute(Relation target, IloadSlice *slice,
														IloadLeaves *leaves,
														List *ignore_columns,
														Snapshot snapshot);

#endif
