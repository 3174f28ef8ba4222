/*
 * options.h
 *		The options of a load, from arguments and from words.
 */
#ifndef ILOAD_OPTIONS_H
#define ILOAD_OPTIONS_H

#include "fmgr.h"

#include "load.h"

extern const char *const iload_load_methods[];
extern const char *const iload_job_methods[];

extern void iload_options_set_words(IloadOptions *options, const char *const *methods,
									char *method, char *on_empty, char *if_running);
extern void iload_options_read(FunctionCallInfo fcinfo, int first, const char *const *methods,
							   IloadOptions *options);
extern const char *iload_options_on_empty(const IloadOptions *options);
extern const char *iload_options_if_running(const IloadOptions *options);

#endif
