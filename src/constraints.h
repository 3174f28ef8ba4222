/*
 * constraints.h
 *		When deferrable constraints and triggers are checked.
 */
#ifndef ILOAD_CONSTRAINTS_H
#define ILOAD_CONSTRAINTS_H

extern void iload_constraints_check(void);
extern void iload_constraints_defer(void);

#endif
