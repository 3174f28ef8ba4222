/*
 * root.h
 *		The table that a partition belongs to in the end, and a table's name.
 */
#ifndef ILOAD_ROOT_H
#define ILOAD_ROOT_H

extern Oid	iload_root(Oid relid);
extern char *iload_table_name(Oid relid);

#endif
