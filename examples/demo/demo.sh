#!/usr/bin/env bash
# The demo: loads that are cut off and run again, by jobs made by hand and by
# replace_partition, backfills of a month, and what assert_idempotent says of each job.
# "make demo" runs it on a throwaway server.
#
# It needs PGHOST, PGPORT, PGUSER (a superuser) and PGDATABASE (an empty
# database). The crashes are real: a job's session is ended by
# pg_terminate_backend when it has come to a certain step. Every figure is
# compared with the one that is written here; on any difference the script tells
# it and ends with status 1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

bold='' green='' red='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
	bold=$'\e[1m' green=$'\e[32m' red=$'\e[31m' plain=$'\e[0m'
fi
checks=0 differences=() gate_pid='' sum_width=13

finish() {
	local status=$?
	[ -z "$gate_pid" ] || kill "$gate_pid" 2>/dev/null || true
	exit $status
}
trap finish EXIT

# sql [OPTION...]: run the statements on standard input
sql() { psql -XqAt -v ON_ERROR_STOP=1 "$@"; }
query() { sql <<<"$1"; }

title() { printf '\n%s%s%s\n' "$bold" "$1" "$plain"; }

# expect WHAT EXPECTED FOUND
expect() {
	checks=$((checks + 1))
	[ "$2" != "$3" ] || return 0
	differences+=("$1: expected \"$2\", found \"$3\"")
}

# totals RELATION [CONDITION]: "rows|sum"
totals() {
	query "SELECT to_char(count(*), 'FM999,990'),
			to_char(coalesce(sum(amount_eur), 0), 'FM999,999,990.00')
		FROM $1 WHERE ${2:-true}"
}

# wrap: what psql said, indented, in lines that are not too long
wrap() { expand -t 2 | fold -s -w 86 | sed 's/ *$//; s/^/  /'; }

# show TOTALS [RIGHT]: rows and sum, right-aligned; where RIGHT is given, green
# if they are the same and red if not
show() {
	local colour=''
	[ -z "${2:-}" ] || colour=$green
	[ "$1" = "${2:-$1}" ] || colour=$red
	printf '%s%7s%*s%s' "$colour" "${1%|*}" "$sum_width" "${1#*|}" "${colour:+$plain}"
}

# line LABEL CELLS...
line() {
	printf '  %-18s' "$1"
	shift
	printf '%s' "$@"
	echo
}

# The gate: a session with the advisory locks for which a job waits at the step
# at which it is to be killed. At the steps of a load the extension itself waits,
# if the setting idempotent_load.wait_point tells it to.
open_gate() {
	coproc GATE { exec psql -XqAt -v ON_ERROR_STOP=1; }
	# shellcheck disable=SC2153 # set by coproc
	gate_pid=$GATE_PID
	echo "SELECT count(pg_advisory_lock(hashtext('idempotent_load'), hashtext(step)))
		FROM unnest('{crash,staged,deleted,inserted,recorded}'::text[]) AS step;" >&"${GATE[1]}"
	read -r _ <&"${GATE[0]}"
}

# what a job made by hand runs at the step at which it is to be killed
wait_at_gate="SELECT pg_advisory_lock_shared(hashtext('idempotent_load'), hashtext('crash'))"

# crash NAME: run the statements on standard input in a session of their own, and
# kill it when it waits at the gate
crash() {
	local victim pid='' try status=0
	PGAPPNAME=$1 sql >/dev/null 2>&1 <&0 &
	victim=$!
	for ((try = 0; try < 200; try++)); do
		pid=$(query "SELECT pid FROM pg_locks JOIN pg_stat_activity USING (pid)
			WHERE locktype = 'advisory' AND NOT granted AND application_name = '$1'")
		[ -z "$pid" ] || break
		sleep 0.05
	done
	[ -z "$pid" ] || query "SELECT pg_terminate_backend($pid, 10000)" >/dev/null
	wait $victim || status=$?
	expect "the job \"$1\"" 'killed' "$([ -n "$pid" ] && ((status)) && echo killed || echo 'not killed')"
}

# load TARGET DATE SOURCE [OPTION]: the statement that a job made with the
# extension runs; it returns "method|inserted|deleted"
load() {
	local column=sale_date
	[ "$3" != orders ] || column=order_date
	echo "SELECT method, inserted, deleted FROM replace_partition('$1', '$2',
		'SELECT * FROM $3 WHERE $column >= \$1 AND $column < \$2');"
}

# The job of 2026-08-25, made by hand: two batches, each committed.
# payout_job TARGET [CONFLICT [END]]: END comes before the last commit
payout_job() {
	local rows="SELECT * FROM owed WHERE sale_date = '2026-08-25' ORDER BY sale_id"
	echo "INSERT INTO $1 $rows LIMIT 1247 ${2:-}; BEGIN;"
	echo "INSERT INTO $1 $rows OFFSET 1247 ${2:-}; ${3:-} COMMIT;"
}

# payout TARGET LABEL AFTER_RETRY_1 AFTER_RETRY_2: crash, retry, retry; the
# retry is the SQL on standard input, and what it returns is left in "did"
payout() {
	local target=$1 label=$2 right='2,000|299,730.00' retry crashed first second
	retry=$(cat)
	payout_job "$target" '' "$wait_at_gate;" | crash "$target"
	crashed=$(totals "$target")
	did=$(query "$retry")
	first=$(totals "$target")
	did+=" $(query "$retry")"
	second=$(totals "$target")
	line "$label" "$(show "$crashed")" "$(show "$first" "$right")" "$(show "$second" "$right")"
	expect "$label, after the crash" '1,247|187,015.80' "$crashed"
	expect "$label, after retry 1" "$3" "$first"
	expect "$label, after retry 2" "$4" "$second"
}

story_payout() {
	local did right='2,000|299,730.00'
	title 'A. The payout that ran twice'
	cat <<-'TEXT'
		60,000 sales, 2,000 a day. A payout is 60 % of the price. The job of 2026-08-25
		is killed when 1,247 of its rows are committed; then it is run again, twice.

	TEXT
	sql -f payouts.sql >/dev/null
	expect 'sales' '60,000|14,983,500.00' "$(totals '(SELECT price_eur AS amount_eur FROM sales) s')"
	printf '  %-18s%20s%20s%20s\n' 'rows, EUR' 'after the crash' 'after retry 1' 'after retry 2'
	payout payouts_append append '3,247|486,745.80' '5,247|786,475.80' \
		< <(payout_job payouts_append)
	payout payouts_merge 'merge on sale_id' "$right" "$right" \
		< <(payout_job payouts_merge 'ON CONFLICT (sale_id) DO UPDATE SET amount_eur = EXCLUDED.amount_eur')
	payout payouts replace_partition "$right" "$right" < <(load payouts 2026-08-25 owed)
	expect 'what the retries did' 'diff|753|0 none|0|0' "$did"
	cat <<-'TEXT'

		The merge, an INSERT ... ON CONFLICT, needs a unique key and removes no row.
		replace_partition: retry 1 inserted the 753 missing rows, retry 2 wrote nothing.

		  SELECT * FROM replace_partition('payouts', '2026-08-25', '
		    SELECT sale_id, sale_date, round(price_eur * 0.60, 2) AS amount_eur
		    FROM sales WHERE sale_date >= $1 AND sale_date < $2');
	TEXT
}

# run_backfill JOB FROM TO [OPTION]: leaves in "said" what it says, and in "did" what its
# loads have committed: "loads|rows inserted|rows deleted"
run_backfill() {
	local before
	before=$(query 'SELECT coalesce(max(id), 0) FROM load_history')
	said=$(query "CALL backfill('$1', '$2', '$3'${4:+, $4})" 2>&1) || true
	did=$(query "SELECT count(*), coalesce(sum(inserted), 0), coalesce(sum(deleted), 0)
		FROM load_history WHERE id > $before")
}

# august [OPTION]: the payouts of the month
august() { run_backfill payouts_daily 2026-08-01 2026-08-30 "$@"; }

# pay_by SOURCE
pay_by() {
	query "SELECT alter_job('payouts_daily', query => 'SELECT * FROM $1 WHERE sale_date = \$1')" >/dev/null
}

# measured DAY: what the dry run has said of it, "rows|sum" as it is and as it would be
measured() {
	local live_rows rows live sum
	read -r live_rows rows live sum < <(sed -nE "s/^NOTICE: +$1: rows (.*) -> (.*), \
sum\(sale_id\) .*, sum\(amount_eur\) (.*) -> (.*)$/\1 \2 \3 \4/p" <<<"$said") || true
	query "SELECT to_char(r, 'FM999,990') || '|' || to_char(s, 'FM999,999,990.00')
		FROM (VALUES (${live_rows:-0}, ${live:-0}), (${rows:-0}, ${sum:-0})) AS v (r, s)"
}

# dry_run DAY AS_IT_IS AS_IT_WOULD_BE
dry_run() {
	local live staged
	{ read -r live && read -r staged; } < <(measured "$1")
	line "$1" "$(show "$live")" "$(show "$staged")"
	expect "$1, as it is" "$2" "$live"
	expect "$1, as it would be" "$3" "$staged"
}

# correct LABEL WRITTEN NOTE: the month once more
correct() {
	local after right='60,000|8,771,588.64'
	august
	after=$(totals payouts)
	line "$1" "$(show "$after" "$right")" "   $3"
	expect "$1, August" "$right" "$after"
	expect "$1, what was written" "$2" "$did"
}

story_contract() {
	local said did paid appended right='60,000|8,990,100.00'
	title 'The contract, read again: a price of 400 or more pays 0.55, not 0.60'
	august
	paid=$(totals payouts)
	expect 'August as it was paid' "$right" "$paid"
	cat <<-'TEXT'
		August is paid. The query of its job is mended, and a dry run tells what a backfill
		would change, here of three days:

		  SELECT alter_job('payouts_daily',
		    query => 'SELECT * FROM owed_fixed WHERE sale_date = $1');
		  CALL backfill('payouts_daily', '2026-08-01', '2026-08-03', dry_run => true);

	TEXT
	pay_by owed_fixed
	run_backfill payouts_daily 2026-08-01 2026-08-03 'dry_run => true'
	printf '  %-18s%20s%20s\n' 'rows, EUR' 'as it is' 'as it would be'
	dry_run 2026-08-01 '2,000|299,010.00' '2,000|291,753.78'
	dry_run 2026-08-02 '2,000|299,400.00' '2,000|292,142.88'
	dry_run 2026-08-03 '2,000|299,790.00' '2,000|292,531.98'
	expect 'August after the dry run' "$right" "$(totals payouts)"
	cat <<-'TEXT'

		The whole month is one line, with a commit after each day, and may be repeated:

		  CALL backfill('payouts_daily', '2026-08-01', '2026-08-30');

	TEXT
	query 'TRUNCATE payouts_append;
		INSERT INTO payouts_append SELECT * FROM owed;
		INSERT INTO payouts_append SELECT * FROM owed_fixed'
	appended=$(totals payouts_append)
	expect 'August, corrected by append' '120,000|17,761,688.64' "$appended"
	local sum_width=16
	line 'August, as paid' "$(show "$paid")"
	line append "$(show "$appended" '60,000|8,771,588.64')" '   all of it paid twice'
	correct backfill '30|9996|9996' '9,996 payouts written'
	correct 'the same again' '30|0|0' 'nothing written'
	correct 'a third time' '30|0|0' 'nothing written'
}

# halves: the totals of the days before the 19th, and of those from then on
halves() {
	echo "$(totals payouts "sale_date < '2026-08-19'") $(totals payouts "sale_date >= '2026-08-19'")"
}

# split LABEL EXPECTED FOUND: what halves gives
split() {
	line "$1" "$(show "${3% *}" "${corrected[0]}")" "$(show "${3#* }" "${corrected[1]}")"
	expect "$1, days 1 to 18 and 19 to 30" "$2" "$3"
}

story_failure() {
	local said did before
	local -a paid=('36,000|5,394,600.00' '24,000|3,595,500.00')
	local -a corrected=('36,000|5,263,440.00' '24,000|3,508,148.64')
	title 'The backfill that fails at day 19'
	cat <<-'TEXT'
		The month again, set back to what was paid by a backfill of the old query. The job
		gets an audit, and a sale of the 19th comes with a price below 0:

		  SELECT alter_job('payouts_daily', audit => 'SELECT min(amount_eur) > 0 FROM staged');
		  CALL backfill('payouts_daily', '2026-08-01', '2026-08-30');
	TEXT
	pay_by owed
	august
	before=$(halves)
	pay_by owed_fixed
	query "SELECT alter_job('payouts_daily', audit => 'SELECT min(amount_eur) > 0 FROM staged');
		UPDATE sales SET price_eur = -price_eur WHERE sale_id = 37000" >/dev/null
	august
	sed -n '/^ERROR/,$p' <<<"$said" | wrap
	expect 'days that the failed backfill has loaded' 18 "${did%%|*}"
	echo
	echo '  SELECT logical_date, sqlstate, detail FROM load_failures;'
	query 'SELECT logical_date, sqlstate, detail FROM load_failures' | sed 's/|/ | /g; s/^/  /'
	expect 'the failure on record' '2026-08-19|IL003|payouts_daily' \
		"$(query 'SELECT logical_date, sqlstate, job FROM load_failures')"
	printf '\n  %-18s%20s%20s\n' 'rows, EUR' 'days 1 to 18' 'days 19 to 30'
	split 'as paid' "${paid[*]}" "$before"
	split 'after the failure' "${corrected[0]} ${paid[1]}" "$(halves)"
	query 'UPDATE sales SET price_eur = -price_eur WHERE sale_id = 37000'
	august 'resume => true'
	split resumed "${corrected[*]}" "$(halves)"
	expect 'loads after the failure' '12|3996|3996' "$did"
	printf '\nWith resume => true only the 12 days that were left were run.\n'
}

# violation JOB [COLUMNS [OPTION]]: what the first rerun that does not pass has shown
violation() {
	query "SELECT ${2:-rerun, cause, added, missing}
		FROM check_idempotent('$1', '2026-08-25'${3:+, $3}) WHERE NOT passed LIMIT 1"
}

# assert JOB [OPTION...]
assert() {
	local job=$1
	shift
	sql "$@" <<<"SELECT assert_idempotent('$job', '2026-08-25')" 2>&1 || true
}

# show_violation JOB: what assert_idempotent says, but for the rows
show_violation() {
	echo "  SELECT assert_idempotent('$1', '2026-08-25');"
	assert "$1" | sed -n '/^ERROR/p; /^Cause/,$p' | wrap
}

# nightly DAY
nightly() { totals payouts_nightly "sale_date = '$1'"; }

story_clock() {
	local month="'payouts_nightly', '2026-08-01', '2026-08-30'" days=(2026-08-{24..26})
	local today day k dates missing said did owed by_clock=() by_date later
	title 'The job that asks the clock'
	cat <<-'TEXT'
		A job loads "yesterday", each night. Its run for the 25th fails and is repeated on the
		27th: it loads the 26th. No run has an error, and the newest row looks fresh. But a load
		has a history:

		  SELECT * FROM load_calendar('payouts_nightly', '2026-08-01', '2026-08-30');
	TEXT
	# each day is loaded on the next, but for the run on the 26th
	for today in 2026-08-{02..25} 2026-08-27 2026-08-{27..31}; do
		load payouts_nightly "$(date -u -d "$today - 1 day" +%F)" owed_fixed
	done | sql >/dev/null
	psql -Xq -P footer=off -v ON_ERROR_STOP=1 -c "SELECT * FROM load_calendar($month)" |
		sed '/^$/d' | wrap
	expect 'the 25th in the calendar' '25 ?' \
		"$(query "SELECT ltrim(tue) FROM load_calendar($month) WHERE week LIKE '2026-W35 %'")"
	dates=$(query "SELECT * FROM missing_dates($month)")
	printf '\n  SELECT * FROM missing_dates(%s);\n  %s\n' "$month" "${dates/|/ | }"
	expect 'missing dates' '2026-08-25|never loaded' "$dates"
	printf '\n  SELECT assert_loaded(%s);\n' "$month"
	{ query "SELECT assert_loaded($month)" 2>&1 || true; } | wrap
	missing=$(totals '(SELECT * FROM owed_fixed
		WHERE sale_id NOT IN (SELECT sale_id FROM payouts_nightly)) AS missing')
	expect 'missing payouts' '2,000|292,470.58' "$missing"
	printf '\n%s payouts are missing, %s EUR. A job that is told its date:\n\n' "${missing%|*}" "${missing#*|}"
	for day in "${days[@]}"; do
		by_clock+=("$(nightly "$day")")
	done
	query "SELECT create_job('payouts_nightly', 'payouts_nightly',
		'SELECT * FROM owed_fixed WHERE sale_date = \$1')" >/dev/null
	run_backfill payouts_nightly 2026-08-24 2026-08-26
	echo "  CALL backfill('payouts_nightly', '2026-08-24', '2026-08-26');"
	grep -o '^[^(]*' <<<"$said" | wrap
	expect 'what that has loaded' '3|2000|0' "$did"
	printf '\n  %-18s%20s%20s%20s\n' 'rows, EUR' 'owed' 'loaded by the clock' 'loaded by its date'
	for k in "${!days[@]}"; do
		day=${days[k]}
		owed=$(totals owed_fixed "sale_date = '$day'")
		by_date=$(nightly "$day")
		line "$day" "$(show "$owed")" "$(show "${by_clock[k]}" "$owed")" "$(show "$by_date" "$owed")"
		expect "$day, loaded by its date" "$owed" "$by_date"
	done
	expect '24th to 26th, loaded by the clock' '2,000|291,815.18 0|0.00 2,000|292,859.68' "${by_clock[*]}"
	expect 'all days are loaded' t \
		"$(query "SELECT assert_loaded($month)")"
	cat <<-'TEXT'

		assert_idempotent tells it before the first night. It runs the job, and again with
		the clock moved, and undoes all of it:

	TEXT
	show_violation 'current_date - 1'
	expect 'the clock reads that are named' 'CURRENT_DATE, line 2 CURRENT_DATE, line 4' \
		"$(violation 'current_date - 1' source | grep -o 'CURRENT_DATE, line [0-9]*' | paste -sd ' ')"
	later=$(violation 'current_date - 1' 'added, missing' "clock_shift => '1 day'")
	printf "\nWith clock_shift => '1 day' the rerun of the 25th loads the 26th: %s rows added.\n" "${later%|*}"
	expect 'the 25th, a day later' '2000|0' "$later"
}

# rerun TARGET LABEL EXPECTED: the job loads the day and dies while it publishes
# its report; it is run again. The load is the SQL on standard input.
rerun() {
	local target=$1 label=$2 job before after
	job=$(cat)
	crash "$target" <<<"$job $wait_at_gate;"
	query "$job" >/dev/null
	before=$(totals "$target" "order_date = '2026-10-06'")
	after=$(totals "$target" "order_date = '2026-10-07'")
	line "$label" "$(show "$before" '6|1,730.00')" "$(show "$after" '8|2,050.00')"
	expect "$label, 2026-10-06" '6|1,730.00' "$before"
	expect "$label, 2026-10-07" "$3" "$after"
}

story_revenue() {
	title 'B. One rerun doubled the revenue'
	cat <<-'TEXT'
		The 8 orders of 2026-10-07 are loaded and committed. The session is killed while
		it publishes the report, and the scheduler runs all of it again.

	TEXT
	sql -f revenue.sql
	printf '  %-18s%20s%20s\n' 'rows, EUR' '2026-10-06' '2026-10-07'
	rerun revenue_append append '16|4,100.00' \
		<<<"INSERT INTO revenue_append SELECT * FROM orders WHERE order_date = '2026-10-07';"
	rerun revenue replace_partition '8|2,050.00' < <(load revenue 2026-10-07 orders)
}

# found LABEL EXPECTED RIGHT: what a reader finds of the day
found() {
	local after
	after=$(totals "$4" "order_date = '2026-10-07'")
	printf '  %-40s%s\n' "$1" "$(show "$after" "$3")"
	expect "$1" "$2" "$after"
}

story_trap() {
	local step old='8|2,050.00' new='9|2,110.00' before
	title 'The trap: a DELETE and an INSERT that are not one transaction'
	cat <<-'TEXT'
		An order is corrected and one comes late: the day is loaded again, and each job
		is killed in the middle. What readers then find of 2026-10-07:

	TEXT
	query "UPDATE orders SET amount_eur = 160.00 WHERE order_id = 7;
		INSERT INTO orders VALUES (15, '2026-10-07', 50.00);
		TRUNCATE revenue_append; INSERT INTO revenue_append SELECT * FROM revenue"
	crash trap <<<"DELETE FROM revenue_append WHERE order_date = '2026-10-07';
		$wait_at_gate;
		INSERT INTO revenue_append SELECT * FROM orders WHERE order_date = '2026-10-07';"
	found 'DELETE, killed before the INSERT' '0|0.00' "$old" revenue_append
	before=$(query 'SELECT count(*) FROM load_history')
	for step in staged deleted inserted recorded; do
		{
			echo "LOAD 'idempotent_load'; SET idempotent_load.wait_point = '$step';"
			load revenue 2026-10-07 orders
		} | crash "$step"
		found "replace_partition, killed when $step" "$old" "$old" revenue
	done
	expect 'loads in the history' "$before" "$(query 'SELECT count(*) FROM load_history')"
	expect 'the last run' 'diff|2|1' "$(load revenue 2026-10-07 orders | sql)"
	found 'replace_partition, run again' "$new" "$new" revenue
	expect 'the day before' '6|1,730.00' "$(totals revenue "order_date = '2026-10-06'")"
}

# proof JOB VERDICT [VIOLATION]
proof() {
	local verdict violation cells colour=$green
	verdict=$(assert "$1" -v VERBOSITY=sqlstate)
	case $verdict in
		t) verdict=passes ;;
		*'ERROR:  IL006') verdict=fails colour=$red ;;
	esac
	violation=$(violation "$1")
	IFS='|' read -ra cells <<<"$violation"
	printf '  %-18s%s%s%s' "$1" "$colour" "$verdict" "${colour:+$plain}"
	[ -z "$violation" ] || printf '   %-7s%-17s%8s%9s' "${cells[@]}"
	echo
	expect "$1, verdict" "$2" "$verdict"
	expect "$1, violation" "${3:-}" "$violation"
}

story_proof() {
	local target
	title 'C. The test that each job must pass'
	cat <<-'TEXT'
		Each job runs, and runs again: at once, after a crash that lost half of its rows, and
		with the clock moved. Results are compared row by row, and all of it is undone.

	TEXT
	sql -f jobs.sql >/dev/null
	printf '  %-26s%-7s%-17s%8s%9s\n' job rerun cause added missing
	proof append fails 'same|append|2000|0'
	proof 'skip if present' fails 'crash|skip_if_present|0|1000'
	proof 'current_date - 1' fails 'clock|clock|0|1000'
	proof 'merge on sale_id' passes
	proof replace_partition passes
	for target in payouts_append payouts_by_clock payouts_merge payouts; do
		expect "rows that the checks left in $target" '0|0.00' "$(totals "$target")"
	done
	echo
	show_violation 'skip if present'
}

open_gate
story_payout
story_contract
story_failure
story_clock
story_revenue
story_trap
story_proof

if ((${#differences[@]})); then
	printf '\n%s%d of %d figures differ:%s\n' "$red" ${#differences[@]} $checks "$plain"
	printf '  %s\n' "${differences[@]}"
	exit 1
fi
printf '\nAll %d figures are as expected.\n' $checks
