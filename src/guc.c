/*
 * guc.c
 *		The settings idempotent_load.*, sorted by name.
 */
#include "postgres.h"

#include "utils/guc.h"

#include "guc.h"

char	   *iload_wait_point_name = NULL;

/*
 * Define the settings and reserve their prefix.  Called once, when the library
 * is loaded.
 */
void
iload_guc_init(void)
{
	DefineCustomStringVariable("idempotent_load.wait_point",
							   "Names the step of a load at which this session waits for an advisory lock.",
							   "For tests. The lock is (hashtext('idempotent_load'), hashtext(name)).",
							   &iload_wait_point_name,
							   "",
							   PGC_SUSET,
							   GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE,
							   NULL, NULL, NULL);

	MarkGUCPrefixReserved("idempotent_load");
}
