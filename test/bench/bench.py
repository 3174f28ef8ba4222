"""Load the same data by all ways, measure each, and print medians and ratios.

test/bench/run starts the server and calls this with the folder for the CSV
files. Sizes come from the environment; they are told of there.

Each measurement begins with the table in the same state: its day made anew,
vacuumed and analyzed, the source read once, then a CHECKPOINT. In the states
"touched" the CHECKPOINT comes before the day is made, so that no page of it
needs a full-page image any more. After each, the rows of the day and of the
other days are compared with what they should be.

A check is compared with as many runs by hand as it makes, each of them undone, as it
undoes its own. What the hooks cost while no check is going on is told of in hooks.py.

While a load runs, two other sessions count 1000 rows by primary key ten times a
second, one in the day that is loaded and one in another. That costs each 0.3 ms
on an idle server and disturbs all ways alike; what is long is a wait for a lock
(or, with as many busy processes as cores, for a core).
"""

import collections
import csv
import datetime
import os
import subprocess
import sys
import threading
import time

import hooks
import report
from ways import ANSWERS, BACKFILLS, BEFORE, CASES, OURS, READS, STATES, WAYS

FIRST_DAY = datetime.date(2026, 1, 1)
END = '-- end --'
TOUCH_HISTORY = "SELECT replace_partition('touch', '%s', 'SELECT $1 AS d');" % FIRST_DAY


class SqlError(Exception):
    pass


class Session:
    """A psql that stays open."""

    def __init__(self):
        self.psql = subprocess.Popen(['psql', '-XqAt'], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.run("\\set VERBOSITY verbose\nSET client_min_messages = warning;")

    def run(self, sql):
        """Return the lines of the result; SqlError if a statement failed."""
        self.psql.stdin.write('%s\n\\echo %s\n' % (sql, END))
        self.psql.stdin.flush()
        lines = []
        while (line := self.psql.stdout.readline()) != END + '\n':
            if not line:
                sys.exit('error: psql ended: %s' % lines)
            lines.append(line.rstrip('\n'))
        errors = [line for line in lines if line.startswith('ERROR:')]
        if errors:
            raise SqlError(errors[0])
        return lines


class Reader(threading.Thread):
    """Counts the same rows ten times a second and notes what took longest."""

    def __init__(self, session, query, right):
        super().__init__(daemon=True)
        self.session, self.query, self.right = session, query, right
        self.longest = 0
        self.wrong = 0
        self.stopped = threading.Event()

    def answer(self):
        try:
            return self.session.run(self.query)[0]
        except SqlError as error:
            return str(error)

    def run(self):
        tick = time.monotonic()
        while not self.stopped.is_set():
            start = time.monotonic()
            self.wrong += self.answer() not in self.right
            end = time.monotonic()
            self.longest = max(self.longest, end - start)
            tick = max(tick + 0.1, end)
            self.stopped.wait(tick - end)


class Data:
    """A table partitioned by day, and for each share of changed rows a source.

    Loaded are all its days, or the second, in which case the others must stay as
    they are.
    """

    def __init__(self, name, table, days, rows, text, load_all=False):
        self.name, self.table, self.rows, self.text = name, table, rows, text
        self.days = [FIRST_DAY + datetime.timedelta(k) for k in range(days)]
        self.loaded = self.days if load_all else [self.days[1]]
        self.states = {state for state, _ in CASES[name]}

    def leaf(self, day):
        return '%s_%s' % (self.table, day.strftime('%Y_%m_%d'))

    def source(self, share):
        return '%s_source_%d' % (self.table, share)

    def fill(self, template, day, share):
        return template.format(table=self.table, leaf=self.leaf(day), day=day,
            next=day + datetime.timedelta(1), source=self.source(share),
            first=self.loaded[0], last=self.loaded[-1])

    def scripts(self, templates, way, share):
        """What a way runs: for each day, or once for all of them."""
        days = self.loaded[:1] if way in BACKFILLS else self.loaded
        return [self.fill(templates[way], day, share) for day in days]

    def is_loaded(self):
        return "d BETWEEN '%s' AND '%s'" % (self.loaded[0], self.loaded[-1])

    def totals(self, session, relation):
        return session.run("SELECT %s, count(*), sum(v) FROM %s GROUP BY 1 ORDER BY 1;"
            % (self.is_loaded(), relation))

    def build(self, session):
        session.run("CREATE TABLE %s (id bigint, d date, n int, t text, v numeric, w text)"
            " PARTITION BY RANGE (d);" % self.table)
        for day in self.days:
            session.run(self.fill("CREATE TABLE {leaf} PARTITION OF {table}"
                " FOR VALUES FROM ('{day}') TO ('{next}');", day, 0))
        # hashes and a factor without common divisors scatter values and changes
        session.run("""
INSERT INTO {table}
SELECT id, d, (hashint8extended(id, 0) % 100000)::int, left(md5(id::text), 10),
    round(id % 99991 / 100.0, 2), {text}
FROM (SELECT k::bigint * {rows} + i AS id, date '{first}' + k AS d
    FROM generate_series(0, {days} - 1) k, generate_series(1, {rows}) i) AS ids;
ALTER TABLE {table} ADD PRIMARY KEY (d, id);
CREATE INDEX ON {table} (n);
""".format(table=self.table, text=self.text, rows=self.rows, first=FIRST_DAY, days=len(self.days)))
        for share in sorted({STATES[state].share for state in self.states}):
            session.run("""
CREATE TABLE {source} AS
SELECT id, d, n, t, CASE WHEN id * 37 % 100 < {share} THEN v + 1 ELSE v END AS v, w
FROM {table} WHERE {is_loaded};
""".format(source=self.source(share), share=share, table=self.table, is_loaded=self.is_loaded()))
            if len(self.loaded) > 1:
                session.run("CREATE INDEX ON %s (d);" % self.source(share))
            session.run("VACUUM ANALYZE %s;" % self.source(share))
        session.run("VACUUM ANALYZE %s;" % self.table)
        self.others = [line for line in self.totals(session, self.table) if line.startswith('f')]

    def reset(self, session, state):
        """Bring the table into the state, as if it had been so for long."""
        if state.touched:
            session.run("CHECKPOINT;")
        if len(self.loaded) > 1:
            session.run("TRUNCATE {0};\nINSERT INTO {0} SELECT * FROM {1};\nVACUUM ANALYZE {0};"
                .format(self.table, self.source(0)))
        else:
            make = {
                'missing': '',
                'empty': "CREATE TABLE {leaf} PARTITION OF {table}"
                    " FOR VALUES FROM ('{day}') TO ('{next}');",
                'full': WAYS['create_attach_first'] + "VACUUM ANALYZE {leaf};",
            }
            session.run(self.fill("DROP TABLE IF EXISTS {leaf};\n" + make[state.before],
                self.loaded[0], 0))
        # what all this DDL leaves behind, autovacuum being off
        session.run("\n".join("VACUUM pg_catalog.%s;" % catalog for catalog in (
            'pg_class', 'pg_attribute', 'pg_index', 'pg_type', 'pg_depend', 'pg_shdepend',
            'pg_constraint', 'pg_inherits', 'pg_statistic')))
        session.run("SELECT count(v) FROM %s;" % self.source(state.share))
        session.run(TOUCH_HISTORY if state.touched else "CHECKPOINT;")

    def check(self, session, state, way):
        expected = self.others + self.totals(session, self.source(state.share))
        found = self.totals(session, self.table)
        if found != expected:
            sys.exit('error: wrong rows after %s: %s instead of %s' % (way, found, expected))

    def readers(self, sessions, state):
        if len(self.loaded) > 1:
            return []
        width = min(1000, self.rows // 2)
        right = {str(width)} | ({'0'} if state.before != 'full' else set())
        readers = []
        for session, k, right in zip(sessions, (1, 0), (right, {str(width)})):
            first = k * self.rows + self.rows // 2
            readers.append(Reader(session, "SELECT count(*) FROM %s WHERE d = '%s'"
                " AND id BETWEEN %d AND %d;" % (self.table, self.days[k], first, first + width - 1),
                right))
        return readers


def all_data():
    env = os.environ
    text_8kb = """(SELECT string_agg(encode(sha512(convert_to(id || '/' || j, 'UTF8')), 'base64'), '')
        FROM generate_series(1, 90) j)"""
    return [data for data in (
        Data('day', 'fact', 3, int(env['BENCH_ROWS']), 'md5(id::text)'),
        Data('wide', 'wide', 3, int(env['BENCH_WIDE_ROWS']), text_8kb),
        Data('year', 'year', int(env['BENCH_DAYS']), int(env['BENCH_DAY_ROWS']), 'md5(id::text)',
            load_all=True),
        Data('large', 'large', int(env['BENCH_LARGE_DAYS']), int(env['BENCH_LARGE_ROWS']), 'md5(id::text)',
            load_all=True),
        Data('check', 'checked', 3, int(env['BENCH_CHECK_ROWS']), 'md5(id::text)'),
    ) if data.name in env['BENCH_DATA'].split()]


# one line of measurements.csv; what was not measured is ''
Measurement = collections.namedtuple('Measurement', 'repetition data state way method seconds'
    ' wal_bytes dead_tuples heap_bytes wait_same_day wait_other_day wrong_answers error')


class Bench:
    def __init__(self, folder):
        self.start = time.monotonic()
        self.folder = folder
        self.session = Session()
        self.reader_sessions = [Session(), Session()]
        self.repetitions = int(os.environ['BENCH_REPEAT'])
        self.ways = os.environ['BENCH_WAYS'].split() or list(WAYS)
        self.data = all_data()
        self.measurements = []
        self.prepared = None
        self.session.run("CREATE EXTENSION idempotent_load;")
        self.session.run("CREATE TABLE touch (d date);")
        self.session.run(TOUCH_HISTORY)     # the library is loaded from here on
        try:
            self.session.run("CREATE EXTENSION pgstattuple;")
            self.has_pgstattuple = True
        except SqlError:
            self.has_pgstattuple = False

    def say(self, text):
        print('# %5.0f s  %s' % (time.monotonic() - self.start, text), flush=True)

    def value(self, query):
        return self.session.run(query)[0]

    def measure(self, repetition, data, state_name, way):
        state = STATES[state_name]
        if self.prepared != (data, state_name):
            data.reset(self.session, state)
        self.prepared = (data, state_name) if way in READS else None
        if way in BEFORE:
            for script in data.scripts(BEFORE, way, state.share):
                self.session.run(script)
        scripts = data.scripts(WAYS, way, state.share)
        readers = data.readers(self.reader_sessions, state)
        error, answers = '', set()

        for reader in readers:
            reader.answer()         # reads again what the reset invalidated
        lsn = self.value("SELECT pg_current_wal_insert_lsn();")
        for reader in readers:
            reader.start()
        start = time.monotonic()
        try:
            for script in scripts:
                answers.update(self.session.run(script))
        except SqlError as failure:
            error = str(failure)
        seconds = time.monotonic() - start
        for reader in readers:
            reader.stopped.set()
            reader.join()
        if error:
            self.session.run("ROLLBACK;\nRESET ALL;\nSET client_min_messages = warning;")
            return Measurement(repetition, data.name, state_name, way, *[''] * 8, error)

        if way in ANSWERS and answers != {ANSWERS[way]}:
            sys.exit('error: %s answered %s instead of %s' % (way, answers, ANSWERS[way]))
        if way in BACKFILLS:
            answers = self.methods(len(data.loaded))
        wal = int(self.value("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '%s');" % lsn))
        # before any scan, since scans prune
        dead = self.sum_over_leaves(data, "(pgstattuple(leaf)).dead_tuple_count") \
            if self.has_pgstattuple else ''
        heap = self.sum_over_leaves(data, "pg_relation_size(leaf)")
        if way not in READS:
            data.check(self.session, state, way)
        waits = [reader.longest for reader in readers] or ['', '']
        return Measurement(repetition, data.name, state_name, way,
            ' '.join(sorted(answers)) if way in OURS | BACKFILLS else '', seconds, wal, dead, heap,
            *waits, sum(reader.wrong for reader in readers), '')

    def methods(self, loads):
        """The methods of the last loads."""
        return set(self.session.run(
            "SELECT method FROM load_history ORDER BY id DESC LIMIT %d;" % loads))

    def measure_hooks(self, note):
        rounds = int(os.environ['BENCH_HOOKS_ROUNDS'])
        hooks.prepare(int(os.environ['BENCH_HOOKS_SCALE']))
        for k in range(1, rounds + 1):
            for protocol in hooks.PROTOCOLS:
                for way in hooks.WAYS:
                    seconds = hooks.seconds_per_transaction(protocol, way,
                        int(os.environ['BENCH_HOOKS_SECONDS']))
                    note(Measurement(k, hooks.DATA, protocol, way, '', seconds, *[''] * 7), rounds)

    def sum_over_leaves(self, data, expression):
        leaves = ', '.join("'%s'" % data.leaf(day) for day in data.loaded)
        return int(self.value("SELECT sum(%s) FROM unnest(ARRAY[%s]::regclass[]) AS leaf;"
            % (expression, leaves)))

    def run(self):
        for data in self.data:
            self.say('building the table "%s" and its sources' % data.table)
            data.build(self.session)
        with open(os.path.join(self.folder, 'measurements.csv'), 'w', newline='') as file:
            writer = csv.writer(file)
            writer.writerow(Measurement._fields)

            def note(m, repetitions):
                self.measurements.append(m)
                writer.writerow(m)
                file.flush()
                self.say('%d of %d  %-5s  %-17s  %-21s  %s' % (m.repetition, repetitions, m.data,
                    m.state, m.way, m.error or '%11.6f s' % m.seconds))

            for repetition in range(1, self.repetitions + 1):
                for data in self.data:
                    for state, ways in CASES[data.name]:
                        for way in ways.split():
                            if way not in self.ways:
                                continue
                            note(self.measure(repetition, data, state, way), self.repetitions)
            if hooks.DATA in os.environ['BENCH_DATA'].split():
                self.measure_hooks(note)


def main():
    folder = sys.argv[1]
    bench = Bench(folder)
    report.print_surroundings(bench.session, bench.data)
    bench.run()
    medians = report.compute_medians(bench.measurements)
    report.print_medians(bench.measurements, medians)
    report.report_ratios(folder, medians)
    if any(report.has_failed(m.error) for m in bench.measurements):
        sys.exit('error: some ways failed')


main()
