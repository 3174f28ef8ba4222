/*
 * partition.h
 *		Making the partitions that a slice lacks.
 */
#ifndef ILOAD_PARTITION_H
#define ILOAD_PARTITION_H

#include "leaf.h"

extern bool iload_partition_create(IloadSlice *slice, IloadGap *gap);

#endif
