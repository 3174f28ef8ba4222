/*
 * idempotent_load.c
 *		The module: its magic block, and each part's set-up in order.
 *
 * Works without shared_preload_libraries: the first call in a session loads it.
 */
#include "postgres.h"

#include "fmgr.h"

#include "guc.h"
#include "observe.h"
#include "world.h"

PG_MODULE_MAGIC;

extern void _PG_init(void);

void
_PG_init(void)
{
	iload_guc_init();
	iload_observe_init();
	iload_world_init();
}
