/*
 * target.h
 *		The target: the table whose slices are loaded.
 */
#ifndef ILOAD_TARGET_H
#define ILOAD_TARGET_H

#include "storage/lockdefs.h"
#include "utils/relcache.h"

extern Relation iload_target_open(Oid relid, LOCKMODE lockmode);
extern Relation iload_target_open_for_merge(Oid relid);

#endif
