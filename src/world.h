/*
 * world.h
 *		What a run sees of the world: the clock, and the order of tables.
 */
#ifndef ILOAD_WORLD_H
#define ILOAD_WORLD_H

/* What is other than usual. */
typedef struct IloadWorld
{
	int			clock_shift;	/* seconds */
	int			shuffle_seed;	/* 0: tables are read in their own order */
} IloadWorld;

extern void iload_world_init(void);
extern void iload_world_enter(const IloadWorld *world);
extern void iload_world_leave(void);
extern bool iload_world_has_other_planner(void);

#endif
