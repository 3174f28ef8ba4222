"""The ways to load, and the states of the table that each is measured in."""

import collections
import os

BEGIN_NEW_LEAF = """
BEGIN;
CREATE TABLE {leaf}_new (LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS,
    CONSTRAINT {leaf}_bounds CHECK (d >= '{day}' AND d < '{next}'));
INSERT INTO {leaf}_new SELECT * FROM {source} WHERE d = '{day}';
ALTER TABLE {leaf}_new ADD PRIMARY KEY (d, id);
CREATE INDEX ON {leaf}_new (n);
"""

# The CHECK constraint lets ATTACH do without a scan.
ATTACH_NEW_LEAF = """
ALTER TABLE {table} ATTACH PARTITION {leaf}_new FOR VALUES FROM ('{day}') TO ('{next}');
ALTER TABLE {leaf}_new RENAME TO {leaf};
ALTER TABLE {leaf} DROP CONSTRAINT {leaf}_bounds;
COMMIT;
"""


def ours(method):
    return ("SELECT method FROM replace_partition('{table}', '{day}', "
        "'SELECT * FROM {source} WHERE d = $1', method => '%s');" % method)


# what loads the date by hand
COMMANDS = {
    'delete_insert': """
DELETE FROM {table} WHERE d = {date};
INSERT INTO {table} SELECT * FROM {source} WHERE d = {date};
""",
    'on_conflict': """
INSERT INTO {table} SELECT * FROM {source} WHERE d = {date}
ON CONFLICT (d, id) DO UPDATE
SET n = excluded.n, t = excluded.t, v = excluded.v, w = excluded.w;
""",
}


def by_hand(command):
    return COMMANDS[command].replace('{date}', "'{day}'")


def undone(command, runs):
    return ("BEGIN;%sROLLBACK;\n" % by_hand(command)) * runs


def create_job(definition):
    return ("SELECT drop_job('{table}', if_exists => true);\n"
        "SELECT create_job('{table}', %s);" % definition)


def create_command_job(command):
    return create_job("command => $$%s$$" % COMMANDS[command].replace('{date}', '$1'))


CREATE_LOAD_JOB = create_job("'{table}', 'SELECT * FROM {source} WHERE d = $1'")


def backfill(workers):
    return "CALL backfill('{table}', '{first}', '{last}', workers => %d);" % workers


# a check that does not pass, or does another number of runs, has another answer
CHECK = "SELECT bool_and(passed), 1 + sum(runs) FROM check_idempotent('{table}', '{day}');"


def dbt(delete):
    """What dbt-postgres sends for an incremental model with delete+insert."""
    return """
BEGIN;
CREATE TEMPORARY TABLE dbt_tmp AS (SELECT * FROM {source} WHERE d = '{day}');
""" + delete + """
INSERT INTO {table} (id, d, n, t, v, w) (SELECT id, d, n, t, v, w FROM dbt_tmp);
COMMIT;
DROP TABLE IF EXISTS dbt_tmp CASCADE;
"""


def on_one_core(query):
    return ("SET max_parallel_workers_per_gather = 0;\n%s\n"
        "RESET max_parallel_workers_per_gather;" % query)


WAYS = {
    # by hand
    'delete_insert': "BEGIN;%sCOMMIT;" % by_hand('delete_insert'),
    'truncate_insert': """
BEGIN;
TRUNCATE {leaf};
INSERT INTO {table} SELECT * FROM {source} WHERE d = '{day}';
COMMIT;
""",
    'create_attach': BEGIN_NEW_LEAF + """
ALTER TABLE {table} DETACH PARTITION {leaf};
DROP TABLE {leaf};
""" + ATTACH_NEW_LEAF,
    'create_attach_first': BEGIN_NEW_LEAF + ATTACH_NEW_LEAF,
    # unique_key as a list of columns, as older and newer versions of dbt send it
    'dbt_using': dbt("""
DELETE FROM {table} USING dbt_tmp WHERE (dbt_tmp.d = {table}.d AND dbt_tmp.id = {table}.id);
"""),
    'dbt_in': dbt("""
DELETE FROM {table} AS dbt_internal_dest WHERE (d, id) IN (
    SELECT DISTINCT d, id FROM dbt_tmp AS dbt_internal_source);
"""),
    'on_conflict': by_hand('on_conflict'),
    # ours
    'auto': ours('auto'),
    'retry': ours('auto'),
    'swap': ours('swap'),
    'diff': ours('diff'),
    'delete': ours('delete'),
    'merge': """
SELECT method FROM merge_rows('{table}', '{day}', 'SELECT * FROM {source} WHERE d = $1',
    ARRAY['d', 'id']);
""",
    'backfill': backfill(1),
    'backfill_retry': backfill(1),
    'backfill_2_workers': backfill(2),
    # checks of jobs, and as many runs of each by hand, undone
    'check_delete_insert': CHECK,
    'runs_delete_insert': undone('delete_insert', 4),
    'check_on_conflict': CHECK,
    'runs_on_conflict': undone('on_conflict', 2),
    # for comparison
    'idle': "SELECT pg_sleep(%s);" % os.environ['BENCH_IDLE'],
    'reindex': "REINDEX TABLE {leaf};",
    'partition_fingerprint': on_one_core(
        "SELECT partition_fingerprint('{table}', '{day}');"),
    'fingerprint': on_one_core(
        "SELECT fingerprint(f) FROM {table} f WHERE d = '{day}';"),
    'sum_of_record_hashes': on_one_core(
        "SELECT count(*), sum(hash_record_extended(f, 0)) FROM {table} f WHERE d = '{day}';"),
    'sum_of_text_hashes': on_one_core(
        "SELECT count(*), sum(hashtextextended(f::text, 0)) FROM {table} f WHERE d = '{day}';"),
}
# these load all days of a table by one call, the others each day by one
BACKFILLS = {'backfill', 'backfill_retry', 'backfill_2_workers'}
OURS = {'auto', 'retry', 'swap', 'diff', 'delete', 'merge'}
# what has happened before a way is measured: the load that is tried again, the job
BEFORE = {
    'retry': ours('auto'),
    'backfill': CREATE_LOAD_JOB,
    'backfill_retry': CREATE_LOAD_JOB + backfill(1),
    'backfill_2_workers': CREATE_LOAD_JOB,
    'check_delete_insert': create_command_job('delete_insert'),
    'check_on_conflict': create_command_job('on_conflict'),
}
# what a way has to answer
ANSWERS = {'check_delete_insert': 't|4', 'check_on_conflict': 't|2'}
READS = {'idle', 'partition_fingerprint', 'fingerprint', 'sum_of_record_hashes', 'sum_of_text_hashes'}


# before: the day is 'missing' (no partition), 'empty' or 'full'
# share: percent of its rows that the source has changed
State = collections.namedtuple('State', 'before share touched')

STATES = {
    'missing': State('missing', 100, False),
    'empty': State('empty', 100, False),
    'unchanged': State('full', 0, False),
    'unchanged touched': State('full', 0, True),
    '1%': State('full', 1, False),
    '1% touched': State('full', 1, True),
    '20%': State('full', 20, False),
    '100%': State('full', 100, False),
}

# What is measured, in this order in each repetition. A load of unchanged rows is
# the same by each of our methods; "retry" comes after a load by the same query.
CASES = {
    'day': [
        ('unchanged', 'idle partition_fingerprint fingerprint'
            ' sum_of_record_hashes sum_of_text_hashes reindex auto retry merge'),
        ('unchanged touched', 'retry'),
        ('missing', 'create_attach_first auto swap'),
        ('empty', 'delete_insert auto swap diff delete'),
        ('1%', 'delete_insert auto swap diff on_conflict merge'),
        ('1% touched', 'delete_insert diff on_conflict merge'),
        ('20%', 'auto swap diff delete'),
        ('100%', 'delete_insert truncate_insert create_attach dbt_using dbt_in on_conflict'
            ' auto swap diff delete merge'),
    ],
    'wide': [
        ('unchanged', 'auto'),
        ('1%', 'diff'),
        ('100%', 'delete_insert truncate_insert create_attach auto swap diff'),
    ],
    'year': [
        ('unchanged', 'delete_insert auto retry backfill_retry'),
        ('100%', 'delete_insert auto swap diff backfill'),
    ],
    'large': [
        ('unchanged', 'backfill_retry'),
        ('100%', 'backfill backfill_2_workers'),
    ],
    'check': [
        ('unchanged', 'check_delete_insert runs_delete_insert check_on_conflict runs_on_conflict'),
    ],
}
