/*
 * sketch.h
 *		The sketch: in which parts of the hash space two multisets differ.
 */
#ifndef ILOAD_SKETCH_H
#define ILOAD_SKETCH_H

#include "row_hash.h"

typedef struct IloadSketch IloadSketch;

extern IloadSketch *iload_sketch_create(void);
extern void iload_sketch_add(IloadSketch *sketch, IloadRowHash hash);
extern void iload_sketch_subtract(IloadSketch *sketch, IloadRowHash hash);
extern void iload_sketch_finish(IloadSketch *sketch);
extern double iload_sketch_differences(const IloadSketch *sketch);
extern bool iload_sketch_differs(const IloadSketch *sketch, IloadRowHash hash);
extern bool iload_sketch_narrows(const IloadSketch *sketch);

#endif
