/*
 * swap_gate.c
 *		The gate: may the leaves of a slice be swapped?
 *
 * A swap must mean the same as DELETE and INSERT to whoever looks at the table
 * afterwards.  It does not where something acts on rows that are written one by
 * one: triggers, foreign keys, rules, policies, logical decoding; where the files
 * hold more than the slice; or where the rows are not in the files at all.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/catalog.h"
#include "catalog/pg_publication.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "replication/slot.h"
#include "storage/lwlock.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/rls.h"

#include "swap_gate.h"

/* Each leaf takes a transient heap, a batch of rows and exclusive locks. */
#define MAX_SWAPPED_LEAVES	64

static bool
is_user_function(Oid function, void *context)
{
	return function >= FirstNormalObjectId;
}

static bool
calls_user_function(Node *node, void *context)
{
	if (node == NULL)
		return false;
	return check_functions_in_node(node, is_user_function, context) ||
		expression_tree_walker(node, calls_user_function, context);
}

/*
 * Why a new index would not do as for INSERT, or NULL: that of a deferrable
 * constraint checks later, and one that is not ready, as a failed CREATE INDEX
 * CONCURRENTLY leaves it, nothing.  Functions are called by the caller then, but by
 * the owner, and with another search_path, when an index is built.
 */
static char *
index_refusal(Relation rel, Oid relid)
{
	Relation	index = index_open(relid, AccessShareLock);
	char	   *reason = NULL;

	if (!index->rd_index->indimmediate)
		reason = psprintf("constraint \"%s\" of \"%s\" is deferrable",
						  RelationGetRelationName(index), RelationGetRelationName(rel));
	else if (!index->rd_index->indisready)
		reason = psprintf("index \"%s\" of \"%s\" is not ready",
						  RelationGetRelationName(index), RelationGetRelationName(rel));
	else if (calls_user_function((Node *) RelationGetIndexExpressions(index), NULL) ||
			 calls_user_function((Node *) RelationGetIndexPredicate(index), NULL))
		reason = psprintf("index \"%s\" of \"%s\" calls a function that is not the server's",
						  RelationGetRelationName(index), RelationGetRelationName(rel));
	index_close(index, AccessShareLock);
	return reason;
}

static char *
indexes_refusal(Relation rel)
{
	List	   *indexes = RelationGetIndexList(rel);
	char	   *reason = NULL;
	ListCell   *lc;

	foreach(lc, indexes)
	{
		if (reason == NULL)
			reason = index_refusal(rel, lfirst_oid(lc));
	}
	list_free(indexes);
	return reason;
}

/* A trigger that would fire for DELETE or INSERT, or NULL. */
static char *
active_trigger(Relation rel)
{
	for (int i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
	{
		Trigger    *trigger = &rel->trigdesc->triggers[i];

		if (trigger->tgenabled == TRIGGER_DISABLED ||
			!(TRIGGER_FOR_DELETE(trigger->tgtype) || TRIGGER_FOR_INSERT(trigger->tgtype)))
			continue;
		switch (RI_FKey_trigger_type(trigger->tgfoid))
		{
			case RI_TRIGGER_PK:
				return psprintf("a foreign key refers to \"%s\"", RelationGetRelationName(rel));
			case RI_TRIGGER_FK:
				return psprintf("\"%s\" has a foreign key", RelationGetRelationName(rel));
			default:
				return psprintf("\"%s\" has trigger \"%s\"", RelationGetRelationName(rel),
								trigger->tgname);
		}
	}
	return NULL;
}

/* A logical replication slot of this database, or NULL. */
static char *
logical_slot(void)
{
	char	   *name = NULL;

	LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
	for (int i = 0; i < max_replication_slots && name == NULL; i++)
	{
		ReplicationSlot *slot = &ReplicationSlotCtl->replication_slots[i];

		if (slot->in_use && SlotIsLogical(slot) && slot->data.database == MyDatabaseId)
			name = pstrdup(NameStr(slot->data.name));
	}
	LWLockRelease(ReplicationSlotControlLock);
	return name;
}

/* Why somebody who decodes the WAL would miss the rows of a leaf, or NULL. */
static char *
decoded(Relation rel)
{
	PublicationDesc publications;
	char	   *slot;

	RelationBuildPublicationDesc(rel, &publications);
	if (publications.pubactions.pubinsert || publications.pubactions.pubdelete)
		return psprintf("\"%s\" is published for logical replication",
						RelationGetRelationName(rel));
	if (!RelationIsLogicallyLogged(rel))
		return NULL;
	slot = logical_slot();
	if (slot == NULL)
		return NULL;
	return psprintf("logical replication slot \"%s\" may decode changes of \"%s\"",
					slot, RelationGetRelationName(rel));
}

/* Why a leaf may not be swapped, or NULL.  "nopen" is how often we have it open. */
static char *
leaf_refusal(Relation leaf, int nopen)
{
	char	   *reason = indexes_refusal(leaf);

	if (reason == NULL)
		reason = active_trigger(leaf);
	if (reason == NULL && leaf->rd_rules != NULL)
		reason = psprintf("\"%s\" has rules", RelationGetRelationName(leaf));
	if (reason == NULL && RelationIsUsedAsCatalogTable(leaf))
		reason = psprintf("\"%s\" is a catalog table for logical decoding",
						  RelationGetRelationName(leaf));
	if (reason == NULL)
		reason = decoded(leaf);
	if (reason == NULL &&
		(leaf->rd_refcnt > nopen || AfterTriggerPendingOnRel(RelationGetRelid(leaf))))
		reason = psprintf("\"%s\" is in use by a query of this session",
						  RelationGetRelationName(leaf));
	return reason;
}

/*
 * Why the slice may not be swapped, in words for a message, or NULL where it may.
 * "target" is open once, and its leaves are locked.
 */
char *
iload_swap_refusal(Relation target, IloadLive *live)
{
	IloadLeaves *leaves = live->leaves;
	char	   *reason;
	ListCell   *lc;

	if (live->no_ctids != NULL)
		return live->no_ctids;
	foreach(lc, leaves->leaves)
	{
		IloadLeaf  *leaf = lfirst(lc);

		if (!leaf->exact)
			return psprintf("\"%s\" may hold rows that are not of the slice",
							get_rel_name(leaf->relid));
	}
	if (list_length(leaves->leaves) > MAX_SWAPPED_LEAVES)
		return psprintf("the slice has more than %d partitions", MAX_SWAPPED_LEAVES);
	if (check_enable_rls(RelationGetRelid(target), InvalidOid, true) == RLS_ENABLED)
		return psprintf("row-level security of \"%s\" applies", RelationGetRelationName(target));
	if (target->rd_rules != NULL)
		return psprintf("\"%s\" has rules", RelationGetRelationName(target));
	/* a deferrable constraint has a trigger too */
	reason = indexes_refusal(target);
	if (reason == NULL)
		reason = active_trigger(target);
	foreach(lc, leaves->leaves)
	{
		Oid			relid = ((IloadLeaf *) lfirst(lc))->relid;
		Relation	leaf;

		if (reason != NULL)
			break;
		leaf = table_open(relid, NoLock);
		reason = leaf_refusal(leaf, relid == RelationGetRelid(target) ? 2 : 1);
		table_close(leaf, NoLock);
	}
	return reason;
}
