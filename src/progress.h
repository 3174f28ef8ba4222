/*
 * progress.h
 *		Progress of a load, as pg_stat_progress_load shows it.
 */
#ifndef ILOAD_PROGRESS_H
#define ILOAD_PROGRESS_H

/* What a load is doing; names are in progress.c. */
typedef enum IloadPhase
{
	ILOAD_PHASE_LOCKING,
	ILOAD_PHASE_STAGING,
	ILOAD_PHASE_AUDITING,
	ILOAD_PHASE_COMPARING,
	ILOAD_PHASE_CREATING_PARTITIONS,
	ILOAD_PHASE_SEARCHING,
	ILOAD_PHASE_DELETING,
	ILOAD_PHASE_UPDATING,
	ILOAD_PHASE_INSERTING,
	ILOAD_PHASE_FIRING_TRIGGERS,
	ILOAD_PHASE_WAITING_SNAPSHOTS,
	ILOAD_PHASE_FILLING,
	ILOAD_PHASE_WAITING_LOCKS,
	ILOAD_PHASE_EXCHANGING,
	ILOAD_PHASE_ANALYZING,
	ILOAD_PHASE_RECORDING
} IloadPhase;

extern void iload_progress_phase(Oid target, IloadPhase phase, uint64 rows_total);
extern void iload_progress_rows(uint64 rows);
extern void iload_progress_end(void);

#endif
