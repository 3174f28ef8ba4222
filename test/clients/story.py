"""The payout that ran twice: 30 days of sales, and the payouts of one day after a crash.

Figures are those of the README's first story, in euros.
"""

import datetime
from decimal import Decimal

DAY = datetime.date(2026, 8, 25)
FIRST, LAST = datetime.date(2026, 8, 1), datetime.date(2026, 8, 30)

# Rows and euros of DAY: after the crash, and as they should be.
OLD = (1247, Decimal("187015.80"))
NEW = (2000, Decimal("299730.00"))
# All days, by the same contract.
MONTH = (60000, Decimal("8990100.00"))

# The % is here for what clients make of it.
QUERY = """
    SELECT sale_id, sale_date, round(price_eur * 0.60, 2) AS amount_eur
    FROM sales WHERE sale_date >= $1 AND sale_date < $2 AND sale_id % 1 = 0"""

LOAD = "SELECT * FROM replace_partition({}, {}, {})"
BACKFILL = "CALL backfill('payouts_daily', {}, {})"

SET_UP = """
    CREATE TABLE sales (sale_id bigint, sale_date date, price_eur numeric(10,2));
    INSERT INTO sales
      SELECT i, date '2026-08-01' + (i - 1) / 2000, round(25 + ((i * 37) % 900) * 0.5, 2)
      FROM generate_series(1, 60000) AS i;
    CREATE TABLE payouts (
      sale_id bigint,
      sale_date date NOT NULL,
      amount_eur numeric(10,2) NOT NULL CONSTRAINT payouts_amount_check CHECK (amount_eur > 0),
      PRIMARY KEY (sale_id, sale_date)
    ) PARTITION BY RANGE (sale_date);
    CREATE TABLE payouts_20260825 PARTITION OF payouts
      FOR VALUES FROM ('2026-08-25') TO ('2026-08-26');
    INSERT INTO payouts
      SELECT sale_id, sale_date, round(price_eur * 0.60, 2)
      FROM sales WHERE sale_date = '2026-08-25' ORDER BY sale_id LIMIT 1247;
"""


def set_up(warehouse):
    """Make the tables, and the job payouts_daily."""
    warehouse.run(SET_UP)
    warehouse.run(f"SELECT create_job('payouts_daily', 'payouts', $job${QUERY}$job$)")


def day(warehouse):
    """Rows and euros of DAY."""
    return warehouse.row(
        "SELECT count(*), sum(amount_eur) FROM payouts WHERE sale_date = %s", DAY
    )


def month(warehouse):
    """Rows and euros of all days."""
    return warehouse.row("SELECT count(*), sum(amount_eur) FROM payouts")


def places(warehouse):
    """Where the rows of DAY are stored, and by which transaction they were written."""
    return warehouse.rows(
        "SELECT tableoid, ctid, xmin::text FROM payouts WHERE sale_date = %s ORDER BY ctid", DAY
    )


def loads(warehouse):
    """What load_history has of DAY: methods, in order."""
    return [
        method
        for (method,) in warehouse.rows(
            "SELECT method FROM load_history WHERE logical_date = %s ORDER BY id", DAY
        )
    ]
