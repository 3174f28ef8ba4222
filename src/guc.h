/*
 * guc.h
 *		The settings idempotent_load.*.
 */
#ifndef ILOAD_GUC_H
#define ILOAD_GUC_H

/* name of the wait point at which this session stops, or "" */
extern char *iload_wait_point_name;

extern void iload_guc_init(void);

#endif
