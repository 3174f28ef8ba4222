/*
 * raw_table.h
 *		A table as it is named in a raw parse tree, and what is asked of it there.
 */
#ifndef ILOAD_RAW_TABLE_H
#define ILOAD_RAW_TABLE_H

#include "nodes/parsenodes.h"

/* What the query of an INSERT asks of the table that it fills. */
typedef enum IloadRawAbsence
{
	ILOAD_RAW_NOT_ASKED,
	ILOAD_RAW_ASKED,			/* whether it lacks rows */
	ILOAD_RAW_ASKED_BY_KEY,		/* of each row, by a unique key or whole */
	ILOAD_RAW_WATERMARK			/* up to where it has rows */
} IloadRawAbsence;

extern char *iload_raw_table_name(const RangeVar *table);
extern bool iload_raw_table_exists(const RangeVar *table);
extern bool iload_raw_table_same(const RangeVar *a, const RangeVar *b);
extern const char *iload_raw_table_column(const RangeVar *table, const ColumnRef *column);
extern List *iload_raw_table_columns_in(const RangeVar *table, Node *condition);
extern List *iload_raw_table_given(const InsertStmt *stmt);
extern List *iload_raw_table_key(const RangeVar *table, List *columns);
extern bool iload_raw_table_is_read(const RangeVar *table, Node *query);
extern IloadRawAbsence iload_raw_table_absence(const RangeVar *table, Node *query);

#endif
