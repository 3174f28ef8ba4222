/*
 * swap_gate.h
 *		The gate: may the leaves of a slice be swapped?
 */
#ifndef ILOAD_SWAP_GATE_H
#define ILOAD_SWAP_GATE_H

#include "live.h"

extern char *iload_swap_refusal(Relation target, IloadLive *live);

#endif
