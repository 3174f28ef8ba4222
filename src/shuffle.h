/*
 * shuffle.h
 *		Tables read in another order.
 */
#ifndef ILOAD_SHUFFLE_H
#define ILOAD_SHUFFLE_H

#include "nodes/parsenodes.h"

extern void iload_shuffle_tables(Query *query, int seed);

#endif
