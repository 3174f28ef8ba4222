/*
 * session.h
 *		What a job leaves in the session, and no rollback takes away.
 */
#ifndef ILOAD_SESSION_H
#define ILOAD_SESSION_H

#include "nodes/pg_list.h"

typedef struct IloadSession
{
	List	   *statements;		/* String: names of prepared statements */
	List	   *cursors;		/* String: names of open cursors */
	List	   *locks;			/* String: advisory locks of the session */
} IloadSession;

extern IloadSession *iload_session_remember(void);
extern void iload_session_deallocate(const IloadSession *session);
extern void iload_session_close_cursors(const IloadSession *session);
extern void iload_session_unlock(const IloadSession *session);
extern void iload_session_drop_temporary(List *relations);

#endif
