"""The medians, and the ratios with what is wanted of them."""

import collections
import csv
import os
import platform
import re
import statistics

import hooks

NUMBERS = ('seconds', 'wal_bytes', 'dead_tuples', 'heap_bytes', 'wait_same_day', 'wait_other_day')


# undefined function, invalid option, feature not supported: this version lacks it
NOT_SUPPORTED = re.compile('ERROR: +(42883|22023|0A000): ')


def has_failed(error):
    return error and not NOT_SUPPORTED.match(error)


def compute_medians(measurements):
    """(data, state, way) -> the median of each number that was measured, and each time"""
    groups = collections.defaultdict(list)
    for m in measurements:
        groups[m.data, m.state, m.way].append(m)
    return {key: {name: statistics.median(values) for name in NUMBERS
            if (values := [getattr(m, name) for m in group if getattr(m, name) != ''])}
            | {'each': [m.seconds for m in group]}
        for key, group in groups.items()}


# Longer than that, a reader's wait is measurably longer than on the idle server:
# about what a process waits for a core when all are busy.
SCHEDULING = 0.02

# The record of a load in load_history, with its index entries and the commit.
HISTORY_ROW = 1024


def ratio(number, numerator, denominator):
    """The keys are (data, state, way)."""
    return lambda m: m[numerator][number] / m[denominator][number]


def bytes_per_second(m):
    stored = m['day', 'unchanged', 'partition_fingerprint']
    return stored['heap_bytes'] / stored['seconds']


def times_sum_of_hashes(m):
    fastest = min(m['day', 'unchanged', way]['seconds']
        for way in ('sum_of_record_hashes', 'sum_of_text_hashes'))
    return fastest / m['day', 'unchanged', 'partition_fingerprint']['seconds']


def wait_beyond_idle(way):
    return lambda m: (m['day', '100%', way]['wait_other_day']
        - m['day', 'unchanged', 'idle']['wait_other_day'])


def wait_beside_rebuild(m):
    return m['day', '100%', 'swap']['wait_same_day'] / m['day', 'unchanged', 'reindex']['seconds']


# pgbench -S: the library costs nothing measurable if that is less than the noise.
# A round is without, with, without.

def rounds(m, protocol):
    return list(zip(*(m['hooks', protocol, way]['each'] for way in hooks.WAYS)))


def hooks_cost(protocol):
    return lambda m: statistics.median(
        loaded / ((before + after) / 2) for before, loaded, after in rounds(m, protocol))


def hooks_noise(protocol):
    """1 and twice the standard error of such a median, by the two that are the same."""
    def noise(m):
        ratios = [after / before for before, _, after in rounds(m, protocol)]
        middle = statistics.median(ratios)
        # of a normal distribution; a stray ratio does not count for more
        deviation = 1.48 * statistics.median(abs(ratio - middle) for ratio in ratios)
        return 1 + 2 * 1.25 * deviation / len(ratios) ** 0.5
    return noise


BASE = ('day', '100%', 'delete_insert')

# figure, how it is computed from the medians, at most or at least, wanted: a number, or how
# it is computed
FIGURES = [
    ('all rows changed: swap / DELETE+INSERT, time',
        ratio('seconds', ('day', '100%', 'swap'), BASE), 'at most', 0.25),
    ('all rows changed: swap / DELETE+INSERT, WAL',
        ratio('wal_bytes', ('day', '100%', 'swap'), BASE), 'at most', 0.25),
    ('first load: swap / DELETE+INSERT of a loaded day, time',
        ratio('seconds', ('day', 'empty', 'swap'), BASE), 'at most', 0.25),
    ('first load: swap / DELETE+INSERT of a loaded day, WAL',
        ratio('wal_bytes', ('day', 'empty', 'swap'), BASE), 'at most', 0.25),
    ('first load: swap / DELETE+INSERT of an empty day, time',
        ratio('seconds', ('day', 'empty', 'swap'), ('day', 'empty', 'delete_insert')), 'at most', 0.25),
    ('first load: swap / DELETE+INSERT of an empty day, WAL',
        ratio('wal_bytes', ('day', 'empty', 'swap'), ('day', 'empty', 'delete_insert')), 'at most', 0.25),
    ('all rows changed: swap / CREATE+ATTACH, time',
        ratio('seconds', ('day', '100%', 'swap'), ('day', '100%', 'create_attach')), 'at most', 1.0),
    ('first load, no partition: swap / CREATE+ATTACH, time',
        ratio('seconds', ('day', 'missing', 'swap'), ('day', 'missing', 'create_attach_first')),
        'at most', 1.0),
    ('unchanged, another query than before: auto / DELETE+INSERT, time',
        ratio('seconds', ('day', 'unchanged', 'auto'), BASE), 'at most', 0.05),
    ('unchanged retry, hashed without a spool: auto / DELETE+INSERT, time',
        ratio('seconds', ('day', 'unchanged', 'retry'), BASE), 'at most', 0.03),
    ('unchanged retry: WAL bytes (the history row)',
        lambda m: m['day', 'unchanged touched', 'retry']['wal_bytes'], 'at most', HISTORY_ROW),
    ('1 % changed: diff / DELETE+INSERT, time',
        ratio('seconds', ('day', '1%', 'diff'), ('day', '1%', 'delete_insert')), 'at most', 0.15),
    ('1 % changed: diff / DELETE+INSERT, WAL, pages touched since the checkpoint',
        ratio('wal_bytes', ('day', '1% touched', 'diff'), ('day', '1% touched', 'delete_insert')),
        'at most', 0.03),
    ('1 % changed: diff / DELETE+INSERT, WAL, right after a checkpoint',
        ratio('wal_bytes', ('day', '1%', 'diff'), ('day', '1%', 'delete_insert')), 'at most', 0.3),
    ('1 % changed: merge / INSERT ON CONFLICT, time',
        ratio('seconds', ('day', '1%', 'merge'), ('day', '1%', 'on_conflict')), 'at most', 0.35),
    ('1 % changed: merge / INSERT ON CONFLICT, WAL, pages touched since the checkpoint',
        ratio('wal_bytes', ('day', '1% touched', 'merge'), ('day', '1% touched', 'on_conflict')),
        'at most', 0.1),
    ('fingerprint of a stored day, bytes a second on one core',
        bytes_per_second, 'at least', 1e9),
    ('fingerprint of a stored day, times as fast as the SQL sum of hashes',
        times_sum_of_hashes, 'at least', 6),
    ('many small days, all rows changed: auto / DELETE+INSERT, time',
        ratio('seconds', ('year', '100%', 'auto'), ('year', '100%', 'delete_insert')), 'at most', 1.0),
    ('many small days, unchanged: auto / DELETE+INSERT, time',
        ratio('seconds', ('year', 'unchanged', 'auto'), ('year', 'unchanged', 'delete_insert')),
        'at most', 0.35),
    ('backfill of many small days, all rows changed: one worker / DELETE+INSERT, time',
        ratio('seconds', ('year', '100%', 'backfill'), ('year', '100%', 'delete_insert')), 'at most', 1.0),
    ('backfill of many small days, unchanged: one worker / DELETE+INSERT, time',
        ratio('seconds', ('year', 'unchanged', 'backfill_retry'), ('year', 'unchanged', 'delete_insert')),
        'at most', 0.35),
    ('backfill of large days, all rows changed: two workers, times as fast as one',
        ratio('seconds', ('large', '100%', 'backfill'), ('large', '100%', 'backfill_2_workers')),
        'at least', 1.5),
    ('reader of another day, swap: longest wait beyond that on the idle server, s',
        wait_beyond_idle('swap'), 'at most', SCHEDULING),
    ('reader of another day, diff: longest wait beyond that on the idle server, s',
        wait_beyond_idle('diff'), 'at most', SCHEDULING),
    ('reader of the same day, swap: longest wait / time of REINDEX',
        wait_beside_rebuild, 'at most', 1.0),
    ('check of DELETE+INSERT / its runs by hand, time',
        ratio('seconds', ('check', 'unchanged', 'check_delete_insert'),
            ('check', 'unchanged', 'runs_delete_insert')), 'at most', 1.6),
    ('check of ON CONFLICT / its runs by hand, time',
        ratio('seconds', ('check', 'unchanged', 'check_on_conflict'),
            ('check', 'unchanged', 'runs_on_conflict')), 'at most', 1.6),
    ('no check going on, pgbench -S, simple: with the library / without, time',
        hooks_cost('simple'), 'at most', hooks_noise('simple')),
    ('no check going on, pgbench -S, prepared: with the library / without, time',
        hooks_cost('prepared'), 'at most', hooks_noise('prepared')),
]


NUMBER = re.compile(r'-?[0-9.]+(e[-+]?[0-9]+)?')


def print_table(rows):
    """The first row is the header; what looks like a number is set to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows)]
    for row in rows:
        print('  '.join(cell.rjust(width) if NUMBER.fullmatch(cell) else cell.ljust(width)
            for cell, width in zip(row, widths)).rstrip())
    print()


def print_surroundings(session, all_data):
    def first(path, key):
        with open(path, encoding='utf-8') as file:
            return next((line.split(':', 1)[1].strip() for line in file if line.startswith(key)),
                'unknown')

    print('machine:  %s, %d cores, %d GB of RAM, %s %s' % (
        first('/proc/cpuinfo', 'model name'), len(os.sched_getaffinity(0)),
        round(int(first('/proc/meminfo', 'MemTotal').split()[0]) / 1024 ** 2),
        platform.system(), platform.release()))
    print('server:   %s' % session.run("SELECT version();")[0])
    print('settings: %s' % ', '.join(session.run("""
SELECT name || ' = ' || current_setting(name) FROM pg_settings WHERE name IN (
    'autovacuum', 'checkpoint_timeout', 'fsync', 'full_page_writes', 'jit', 'maintenance_work_mem',
    'max_parallel_maintenance_workers', 'max_parallel_workers_per_gather', 'max_wal_size',
    'min_wal_size', 'shared_buffers', 'synchronous_commit', 'wal_compression', 'wal_level', 'work_mem')
ORDER BY 1;""")))
    for data in all_data:
        print('%-9s %d days of %d rows, loaded: %d' % (
            data.name + ':', len(data.days), data.rows, len(data.loaded)))
    print(flush=True)


def print_medians(measurements, medians):
    methods = collections.defaultdict(set)
    wrong = collections.Counter()
    for m in measurements:
        methods[m.data, m.state, m.way].update(m.method.split())
        wrong[m.data, m.state, m.way] += m.wrong_answers or 0
    rows = [('data', 'state', 'way', 'method', 'seconds', 'WAL MB', 'dead tuples',
        'same day ms', 'other day ms', 'wrong')]
    for key, numbers in medians.items():
        def cell(name, unit=1, digits=0):
            return '%.*f' % (digits, numbers[name] / unit) if name in numbers else ''
        rows.append(key + (' '.join(sorted(methods[key])),
            cell('seconds', 1, 6 if key[0] == hooks.DATA else 3) or 'error',
            cell('wal_bytes', 1e6, 2), cell('dead_tuples'),
            cell('wait_same_day', 1e-3, 1), cell('wait_other_day', 1e-3, 1), str(wrong[key] or '')))
    print('\nMedians; waits are the longest ones of a reader; wrong: answers of readers that were'
        ' errors or\nneither the old nor the new number of rows\n')
    print_table(rows)
    for key, error in dict.fromkeys(((m.data, m.state, m.way), m.error) for m in measurements):
        if error:
            print('%s: %s: %s' % ('failed' if has_failed(error) else 'not supported',
                ', '.join(key), error))


def report_ratios(folder, medians):
    rows = []
    for figure, compute, bound, wanted in FIGURES:
        try:
            value = compute(medians)
            if callable(wanted):
                wanted = wanted(medians)
            met = value <= wanted if bound == 'at most' else value >= wanted
            rows.append((figure, '%.4g' % value, '%s %.4g' % (bound, wanted), 'met' if met else 'not met'))
        except KeyError:
            rows.append((figure, '', bound if callable(wanted) else '%s %.4g' % (bound, wanted),
                'not measured'))
    rows.insert(0, ('figure', 'value', 'wanted', 'verdict'))
    print()
    print_table(rows)
    with open(os.path.join(folder, 'ratios.csv'), 'w', newline='') as file:
        csv.writer(file).writerows(rows)
