/*
 * attempt.h
 *		Something that may fail without failing the load.
 */
#ifndef ILOAD_ATTEMPT_H
#define ILOAD_ATTEMPT_H

typedef void (*IloadAttemptFunction) (void *arg);

extern ErrorData *iload_attempt(IloadAttemptFunction function, void *arg);
extern ErrorData *iload_rehearse(IloadAttemptFunction function, void *arg);

#endif
