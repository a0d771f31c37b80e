
# Forgejo's runner, https://code.forgejo.org/forgejo/runner. It has no metrics and no hooks. So it is
# started again and again for one job: its exit code is 0 after a job, and 2 if there was none.

make_user
program=$(command -v forgejo-runner) &&
	[ "$("$program" --version 2>/dev/null | sed -n 's/.*version v*\([0-9]*\)\..*/\1/p')0" -ge 130 ] || {
	fetch_program
	program=$(echo "$program"/forgejo-runner-*)
}
credentials
work=$home/forgejo
as_user mkdir -p "$work"
cd "$work" || fail "could not create $work"

# How long a job can take is for Forgejo to say.
write_home forgejo/config.yaml <<END
{
  "log": {"level": "warn"},
  "runner": {"capacity": 1, "timeout": "8760h", "fetch_timeout": "5s", "labels": $host_labels},
  "cache": {"dir": "$work/cache"},
  "host": {"workdir_parent": "$work/work"},
  "server": {"connections": {"sojourn": $connection}}
}
END
unset connection

# tell_of_job NUMBER: that there is one, as soon as its environment tells which run it is of, or when
# it takes longer than asking for one.
tell_of_job() {
	looks=0
	while [ -n "$1" ] && kill -0 "$1" 2>/dev/null; do
		# shellcheck disable=SC2046 # they are numbers
		run=$(variable 's/^\(FORGEJO\|GITHUB\)_RUN_ID=\([0-9]*\)$/\2/p' $(below "$1"))
		looks=$((looks + 1))
		if [ -n "$run" ] || [ $looks -gt 20 ]; then
			echo "$1 $run" > "$told/next" && mv "$told/next" "$told/now"
		fi
		sleep 0.5
	done
}

# ask_for_job: carry it out, if there is one; $code tells.
ask_for_job() {
	as_user rm -f number
	# shellcheck disable=SC2016 # for the other shell
	as_user sh -c 'echo $$ > number && exec "$0" --config config.yaml one-job' "$program" \
		> "$state/said" 2>&1 &
	around=$!
	until [ -s number ]; do
		kill -0 "$around" 2>/dev/null || break
		sleep 0.1
	done
	tell_of_job "$(as_user head -c 20 number | tr -dc 0-9)" &
	teller=$!
	# It may have ended, which only `wait` tells; and a signal ends that.
	wait "$around"
	code=$?
	while kill -0 "$around" 2>/dev/null; do
		wait "$around"
		code=$?
	done
	kill "$teller" 2>/dev/null
	wait "$teller" 2>/dev/null
}

trap 'ending=1' TERM INT HUP
ending=
: > "$state/ends-when-asked"
: > "$state/running"
served=
failures=0
while [ -z "$ending" ] && [ ! -e "$state/end" ]; do
	ask_for_job
	case $code in
	0 | 2)
		served=1
		failures=0
		[ "$code" = 2 ] || [ -z "$single" ] || break
		# One that was short was not told of yet.
		[ "$code" = 2 ] || { echo "$around" > "$told/next" && mv "$told/next" "$told/now"; }
		;;
	*)
		rm -f "$told/now"
		[ $failures -gt 0 ] || cat "$state/said"
		failures=$((failures + 1))
		[ -n "$served" ] || [ $failures -lt 5 ] || fail "the runner did not start: exit code $code"
		;;
	esac
	sleep 2
	rm -f "$told/now"
done
rm -f "$told/now"
exit 0
