/*
 * wait_point.h
 *		Named steps of a load at which a test can stop it.
 */
#ifndef ILOAD_WAIT_POINT_H
#define ILOAD_WAIT_POINT_H

extern void iload_wait_point(const char *name);

#endif
