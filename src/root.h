/*
 * root.h
 *		The table that a partition belongs to in the end.
 */
#ifndef ILOAD_ROOT_H
#define ILOAD_ROOT_H

extern Oid	iload_root(Oid relid);

#endif
