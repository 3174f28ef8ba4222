/*
 * lag.h
 *		How far standbys are behind.
 */
#ifndef ILOAD_LAG_H
#define ILOAD_LAG_H

extern void iload_lag_parse(const char *text, int64 *bytes, int64 *microseconds);
extern bool iload_lag_exceeds(int64 bytes, int64 microseconds);

#endif
