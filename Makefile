# idempotent_load - build and tests
#
#   make, make install      build and install for the pg_config in PATH (or PG_CONFIG=...)
#   make test               every test, on a throwaway server; installs what is missing
#   make test-clients       drivers and a pooler, on a throwaway server
#   make test-dbt           the dbt package of examples/dbt, likewise
#   make test-airflow       the Airflow DAGs of examples/airflow, likewise
#   make demo               the demo, on a throwaway server
#   make bench              all ways to load, by hand and ours, measured side by side
#   make check-format       does pgindent leave src/ as it is?
#   make format             let pgindent rewrite src/
#
# CONTRIBUTING.md tells more.

EXTENSION = idempotent_load
MODULE_big = idempotent_load
OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/*.c)))
DATA = idempotent_load--1.0.sql

# Only the names listed there leave the library.
SHLIB_EXPORTS = exports.txt

# The server's own headers, and functions of its hooks and of SQL, have unused
# parameters; all else of -Wextra is on.
PG_CFLAGS = -Wall -Wextra -Wno-unused-parameter

# Tests are listed by name, so that a forgotten file is noticed (test/run-suites
# fails for a file that is not in its list).
REGRESS = \
	install \
	replace \
	replace_slice \
	slice \
	partition \
	columns \
	query_shape \
	lint \
	stray \
	on_empty_audit \
	methods \
	swap \
	swap_gate \
	statistics \
	fingerprint \
	slice_fingerprint \
	history \
	jobs \
	alter_job \
	undo \
	merge \
	merge_job \
	assert \
	coverage \
	adopt \
	prune \
	preview \
	run_once \
	backfill \
	error_fields \
	privileges
ISOLATION = \
	same_day \
	old_snapshot \
	first_load \
	other_days \
	if_running \
	lock_timeout \
	deadlock \
	append \
	readers \
	writer \
	prepared \
	swap_readers \
	swap_patience \
	swap_loads \
	swap_undo \
	run_once \
	adopt \
	backfill \
	progress \
	assert_source \
	assert_conflict \
	assert_readers \
	merge
ISOLATION_OPTS = --inputdir=test/isolation

# prove fails if it is given no file.
ifneq ($(wildcard test/t/*.pl),)
TAP_TESTS = 1
PROVE_TESTS ?= test/t/*.pl
endif

# The bitcode is only for inlining by the JIT, which has nothing to gain here;
# without it no clang is needed. "make with_llvm=yes" builds it all the same.
ifneq ($(origin with_llvm),command line)
override with_llvm = no
endif

# Without the server's development files only the targets below the endif work:
# they need no pg_config, and install what they need.
PG_CONFIG ?= pg_config
PGXS := $(wildcard $(shell $(PG_CONFIG) --pgxs 2>/dev/null))

ifneq ($(PGXS),)
include $(PGXS)

$(OBJS): $(wildcard src/*.h)
else
all install installcheck clean:
	@echo "'$(PG_CONFIG) --pgxs' names no file: install the server's development files" >&2
	@echo "(on Debian: postgresql-server-dev-15), or say PG_CONFIG=/path/to/pg_config" >&2
	@exit 1
.PHONY: all install installcheck clean
endif

test:
	test/run-suites

test-clients test-dbt test-airflow:
	test/run-python $(@:test-%=%)

demo:
	test/run-demo

bench:
	test/bench/run

check-format:
	ci/format

format:
	ci/format --write

.PHONY: test test-clients test-dbt test-airflow demo bench check-format format
