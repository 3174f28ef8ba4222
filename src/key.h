/*
 * key.h
 *		The key column: which it is, and its values.
 */
#ifndef ILOAD_KEY_H
#define ILOAD_KEY_H

#include "fmgr.h"
#include "utils/date.h"
#include "utils/relcache.h"

/* How a day is written in the key's type. */
typedef enum IloadKeyKind
{
	ILOAD_KEY_DATE,
	ILOAD_KEY_TIMESTAMP,
	ILOAD_KEY_TIMESTAMPTZ,
	ILOAD_KEY_INTEGER,			/* int4 or int8, yyyymmdd */
	ILOAD_KEY_TEXT,				/* text, varchar or char, yyyy-mm-dd */
	ILOAD_KEY_OTHER				/* any ordered type; not for days */
} IloadKeyKind;

typedef struct IloadKey
{
	AttrNumber	attnum;			/* in the target */
	char	   *name;
	IloadKeyKind kind;
	Oid			type;			/* the base type, where it is a domain */
	Oid			optype;			/* what the operators take: text for varchar */
	bool		typbyval;
	int16		typlen;
	Oid			collation;
	Oid			opclass;		/* the default btree one */
	Oid			opfamily;
	FmgrInfo	cmp;
	char	   *cast;			/* SQL text behind the column before an
								 * operator */
	char	   *op_lt;			/* OPERATOR(schema.<), ready for SQL text */
	char	   *op_ge;
	char	   *op_eq;
} IloadKey;

extern IloadKey *iload_key_find(Relation target, const char *column, bool by_date);
extern Datum iload_key_from_date(const IloadKey *key, DateADT date);
extern Datum iload_key_in(const IloadKey *key, const char *text);
extern char *iload_key_out(const IloadKey *key, Datum value);
extern char *iload_key_quoted(const IloadKey *key, Datum value);
extern char *iload_key_literal(const IloadKey *key, Datum value);
extern char *iload_key_condition(const IloadKey *key, const char *op, Datum value);
extern int	iload_key_cmp(IloadKey *key, Datum a, Datum b);
extern char *iload_operator_text(Oid operator);
extern int64 iload_key_integer(const IloadKey *key, Datum value);
extern bool iload_key_is_day(const IloadKey *key, Datum value, DateADT *date);

#endif
