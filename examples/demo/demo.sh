#!/usr/bin/env bash
# The demo: loads that are cut off and run again, by jobs made by hand and by
# replace_partition, and what assert_idempotent says of each. "make demo" runs it on a
# throwaway server.
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

# month SOURCE: a load, and a commit, for each day; rows inserted and deleted
month() {
	local day
	for day in {01..30}; do
		load payouts "2026-08-$day" "$1"
	done | sql | awk -F '|' '{ inserted += $2; deleted += $3 } END { print inserted "|" deleted }'
}

story_contract() {
	local paid appended once again written right='60,000|8,771,588.64' sum_width=16
	title 'The contract, read again: a price of 400 or more pays 0.55, not 0.60'
	month owed >/dev/null
	paid=$(totals payouts)
	expect 'August as it was paid' '60,000|8,990,100.00' "$paid"
	query 'TRUNCATE payouts_append;
		INSERT INTO payouts_append SELECT * FROM owed;
		INSERT INTO payouts_append SELECT * FROM owed_fixed'
	appended=$(totals payouts_append)
	expect 'August, corrected by append' '120,000|17,761,688.64' "$appended"
	month owed_fixed >/dev/null
	once=$(totals payouts)
	expect 'August, corrected' "$right" "$once"
	written=$(month owed_fixed)
	again=$(totals payouts)
	expect 'August, corrected again' "$right" "$again"
	expect 'rows written by the second correction' '0|0' "$written"
	line 'August, as paid' "$(show "$paid")"
	line 'append' "$(show "$appended" "$right")" '   all of it paid twice'
	line 'replace_partition' "$(show "$once" "$right")" '   a load for each of the 30 days'
	line 'the same again' "$(show "$again" "$right")" '   nothing written'
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
	assert "$1" | sed -n '/^ERROR/p; /^Cause/,$p' | expand -t 2 | fold -s -w 86 | sed 's/ *$//; s/^/  /'
}

# Which days between two have no load of TARGET in the history?
never_loaded() {
	query "SELECT string_agg(day::date::text, ' ' ORDER BY day)
		FROM generate_series(date '2026-08-24', '2026-08-26', '1 day') AS day
		WHERE NOT EXISTS (SELECT FROM load_history
			WHERE target = '$1'::regclass AND logical_date = day)"
}

story_clock() {
	local today day owed clock dated later
	title 'The job that asks the clock'
	cat <<-'TEXT'
		A job loads "yesterday". Its run for the 25th fails and is repeated on the 27th.
		Told its date instead, it loads the day that is asked for, whenever it runs.

	TEXT
	# each day at its time, but that of the 25th, on the 26th, fails
	for today in 2026-08-25 2026-08-27 2026-08-27; do
		load payouts_by_clock "$(date -u -d "$today - 1 day" +%F)" owed_fixed
	done | sql >/dev/null
	for day in 2026-08-24 2026-08-26 2026-08-25; do
		load payouts_by_date "$day" owed_fixed
	done | sql >/dev/null
	printf '  %-18s%20s%20s%20s\n' 'rows, EUR' 'owed' 'loaded by the clock' 'loaded by its date'
	for day in 2026-08-24 2026-08-25 2026-08-26; do
		owed=$(totals owed_fixed "sale_date = '$day'")
		clock=$(totals payouts_by_clock "sale_date = '$day'")
		dated=$(totals payouts_by_date "sale_date = '$day'")
		line "$day" "$(show "$owed")" "$(show "$clock" "$owed")" "$(show "$dated" "$owed")"
		expect "$day, loaded by its date" "$owed" "$dated"
		case $day in
			*25)
				expect "$day, owed" '2,000|292,470.58' "$owed"
				expect "$day, loaded by the clock" '0|0.00' "$clock"
				;;
			*) expect "$day, loaded by the clock" "$owed" "$clock" ;;
		esac
	done
	expect 'days never loaded, by the clock' 2026-08-25 "$(never_loaded payouts_by_clock)"
	expect 'days never loaded, by date' '' "$(never_loaded payouts_by_date)"
	cat <<-'TEXT'

		2,000 payouts are missing, and the newest row looks fresh. load_history tells:
		of the 24th to the 26th, the 25th was never loaded.

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
