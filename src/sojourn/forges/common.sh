# What all runners have in common on a machine. The agent is beside it: it fetches the program,
# ends the runner when nobody needs it, and keeps what is in the workdir for the next machine.
# Given before: $runner_name, $runner_url, $runner_labels, $single, $idle_timeout, $job_user, $guard,
# $docker_volumes.

state=$PWD/state     # between the agent and this script
jobs=$PWD/jobs       # jobs/now tells of a job that is being carried out
identity=$PWD/identity  # the program's own files that tell the forge who it is
mkdir -p "$jobs" "$identity"
chmod 700 "$identity"
# The end of the program is waited for, whoever ends it.
trap : TERM INT HUP

say() { echo "sojourn: $*"; }
fail() { say "$*"; exit 1; }

# Where machines are made for one task, jobs have a user of their own: the agent's files, and what
# the machine may do in its cloud, are not theirs.
make_user() {
	[ -n "$job_user" ] && [ "$(id -u)" = 0 ] || { job_user=; return; }
	id "$job_user" >/dev/null 2>&1 || useradd --create-home --shell /bin/bash "$job_user" 2>/dev/null ||
		adduser -D "$job_user" || fail "could not create the user $job_user"
	chown "$job_user" "$jobs"
	chmod 711 "$PWD"
	if [ -n "$guard" ]; then
		number=$(id -u "$job_user")
		ip rule add to 169.254.169.254/32 uidrange "$number-$number" prohibit 2>/dev/null ||
			fail "could not keep jobs from the machine's own identity; iproute2 is needed for that"
	elif command -v docker >/dev/null 2>&1; then
		# Who has Docker is root.
		usermod --append --groups docker "$job_user" 2>/dev/null || :
	fi
}

# as_user COMMAND...: run it as the user of jobs.
as_user() {
	if [ -z "$job_user" ]; then
		"$@"
		return
	fi
	home=$(eval echo "~$job_user")
	if command -v setpriv >/dev/null 2>&1; then
		HOME=$home USER=$job_user LOGNAME=$job_user setpriv --reuid="$job_user" \
			--regid="$(id -g "$job_user")" --init-groups "$@"
	else
		HOME=$home su -m -s /bin/sh "$job_user" -c 'exec "$0" "$@"' -- "$@"
	fi
}

# fetch_program: have the agent bring the program; $program is the folder that it is in.
fetch_program() {
	: > "$state/want-program"
	until [ -e "$state/program" ] || [ -e "$state/no-program" ]; do sleep 0.2; done
	[ -e "$state/program" ] || fail "$(cat "$state/no-program")"
	program=$(cat "$state/program")
	[ -z "$job_user" ] || chown -R "$job_user" "$program"
}

# credentials: set the variables of the registration, and forget them on disk.
credentials() {
	. "$state/credentials"
	rm -f "$state/credentials"
}

# A program that was killed does not say that its job is over.
forget_dead_jobs() {
	while sleep 5; do
		if [ -e "$jobs/now" ] && read -r number _ < "$jobs/now" && ! kill -0 "$number" 2>/dev/null; then
			rm -f "$jobs/now"
		fi
	done
}

