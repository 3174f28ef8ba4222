"""What the extension's hooks cost while no check is going on.

pgbench -S on one connection, with the library loaded at its start and without. A round
is without, with, and without again: how far the two without are apart is the noise.
"""

import os
import re
import subprocess
import sys

DATA = 'hooks'
PROTOCOLS = ('simple', 'prepared')
PRELOAD = '-c session_preload_libraries=idempotent_load'
# what pgbench is told by PGOPTIONS
WAYS = {'without': '', 'with': PRELOAD, 'without_again': ''}

TPS = re.compile(r'^tps = ([0-9.]+) ', re.MULTILINE)


def run(command, options=''):
    return subprocess.run(command, env={**os.environ, 'PGOPTIONS': options}, check=True,
        capture_output=True, text=True).stdout


def is_loaded(options):
    return run(['psql', '-XqAtc',
        "SELECT count(*) > 0 FROM pg_settings WHERE name LIKE 'idempotent_load.%'"], options) == 't\n'


def prepare(scale):
    run(['pgbench', '--initialize', '--quiet', '--scale=%d' % scale])
    for way, options in WAYS.items():
        if is_loaded(options) != (way == 'with'):
            sys.exit('error: the library is loaded, or not, against what "%s" says' % way)


def seconds_per_transaction(protocol, way, duration):
    output = run(['pgbench', '--select-only', '--no-vacuum', '--protocol=%s' % protocol,
        '--time=%d' % duration], WAYS[way])
    return 1 / float(TPS.search(output).group(1))
