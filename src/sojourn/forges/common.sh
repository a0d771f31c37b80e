# What all runners have in common on a machine. The agent is beside it: it fetches the program,
# ends the runner when nobody needs it, and keeps what is in the workdir for the next machine.
# Given before: $runner_name, $runner_url, $runner_labels, $single, $idle_timeout, $job_user,
# $hide_identity, $docker, $docker_volumes.

state=$PWD/state        # between the agent and this script
told=$PWD/jobs          # told/now tells the agent of a job that is being carried out
identity=$PWD/identity  # the program's own files that tell the forge who it is
# Whoever can write to one of these is root.
engines="/run/docker.sock /run/podman/podman.sock /run/containerd/containerd.sock
	/var/snap/lxd/common/lxd/unix.socket /var/lib/incus/unix.socket"
mkdir -p "$told" "$identity"
chmod 700 "$identity"
# The end of the program is waited for, whoever ends it.
trap : TERM INT HUP

say() { echo "sojourn: $*"; }
fail() { say "$*"; exit 1; }

# Where machines are made for one task, jobs have a user of their own: the agent's files, and what
# the machine may do in its cloud, are not theirs. $ours is a new folder for each attempt, which
# jobs can read and not change. In it, $home is theirs: as root, nothing is read or written there, for
# any name in it may lead elsewhere.
make_user() {
	if [ -z "$job_user" ] || [ "$(id -u)" != 0 ]; then
		job_user=
		ours=$(mktemp -d "$PWD/../runner.XXXXXX" 2>/dev/null || mktemp -d)
	else
		id "$job_user" >/dev/null 2>&1 ||
			useradd --create-home --shell /bin/bash "$job_user" 2>/dev/null ||
			adduser -D "$job_user" 2>/dev/null ||
			add_user || fail "could not create the user $job_user: the image has no useradd"
		home=$(eval echo "~$job_user")
		above=$(dirname "$home")
		[ -d "$above" ] && [ "$above" != / ] || above=/tmp
		# That of busybox cannot do it.
		switch="setpriv --reuid=$job_user --regid=$(id -g "$job_user") --init-groups"
		$switch true 2>/dev/null || switch=
		ours=$(mktemp -d "$above/sojourn.XXXXXX") || fail "could not create a folder in $above"
		chmod 755 "$ours"
		remove_former
		# Whoever has Docker is root: the launcher was told.
		[ -z "$docker" ] || usermod --append --groups docker "$job_user" 2>/dev/null ||
			fail "jobs cannot use Docker: the image has no Docker (make one that has it with: sojourn image make)"
	fi
	home=$ours/home
	mkdir -m 700 "$home" && own "$home" || fail "could not create $home"
	[ -z "$hide_identity" ] || hide_identity
	find_authorities
	[ -z "$brought" ] && [ ! -e "$state/certificates" ] || trust_certificates
	jobs=$home/.sojourn-jobs  # jobs/now is written by what carries out a job: PID RUN ATTEMPT
	as_user mkdir -p "$jobs"
}

# own PATH...: give the user of jobs what is in a folder of ours.
own() { [ -z "$job_user" ] || chown -h "$job_user" "$@"; }

# remove_former: what former attempts on this machine left. Jobs can change what is in their folders
# at any moment, so it is removed as their user.
remove_former() {
	for former in "$above"/sojourn.??????; do
		[ "$former" != "$ours" ] && [ -d "$former" ] && [ ! -L "$former" ] || continue
		[ "$(stat -c %u "$former")" = 0 ] || continue
		# shellcheck disable=SC2016 # for the other shell
		home=/ as_user sh -c 'rm -rf "$1"/*/* "$1"/*/.[!.]*' sh "$former"
		rm -f "$former/arguments" "$former/certificates.pem" "$former"/job-*.sh
		rmdir "$former/home" "$former/runner-program" "$former" 2>/dev/null
	done
}

# write_home NAME: have the user of jobs write a file in $home, for nobody else to read.
write_home() {
	# shellcheck disable=SC2016 # for the other shell
	as_user sh -c 'umask 077; rm -f "$1"; cat > "$1"' sh "$home/$1"
}

# add_user: as useradd would, in a small image without it.
add_user() {
	number=1001
	while cut -d: -f3 /etc/passwd /etc/group | grep -qx "$number"; do number=$((number + 1)); done
	echo "$job_user:x:$number:$number::/home/$job_user:/bin/sh" >> /etc/passwd &&
		echo "$job_user:x:$number:" >> /etc/group &&
		mkdir -p "/home/$job_user" && chown "$number:$number" "/home/$job_user"
}

# What a machine may do in its cloud is not for its jobs; the agent sees to it. In a container of
# another user than root, jobs are that user.
hide_identity() {
	# shellcheck disable=SC2086 # none is none
	id -u $job_user > "$state/.hide" && mv "$state/.hide" "$state/hide"
	until [ -e "$state/hidden" ]; do sleep 0.2; done
	[ ! -s "$state/hidden" ] || fail "could not hide the machine's identity from jobs: $(cat "$state/hidden")"
	[ -n "$docker" ] || refuse_root
}

# A user of the image's own may have more rights than one that is made here.
refuse_root() {
	if as_user sudo -n true >/dev/null 2>&1; then
		fail "could not hide the machine's identity from jobs: the image lets its user $job_user use sudo"
	fi
	for each in $engines; do
		as_user test ! -w "$each" ||
			fail "could not hide the machine's identity from jobs: the image lets its user $job_user use $each; launch with --docker if jobs may become root"
	done
}

# $usual: the certificates that all programs trust; where an image has none, the agent's ($brought).
find_authorities() {
	brought=
	for usual in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem; do
		[ ! -s "$usual" ] || return
	done
	: > "$state/want-authorities"
	until [ -e "$state/authorities" ]; do sleep 0.2; done
	brought=1
	usual=$state/authorities
}

# Programs that are told of other authorities know no usual ones; so these are among them.
trust_certificates() {
	certificates=$ours/certificates.pem
	cat "$usual" "$state/certificates" 2>/dev/null > "$certificates"
	rm -f "$state/authorities"
	chmod 644 "$certificates"
	export SSL_CERT_FILE="$certificates" CURL_CA_BUNDLE="$certificates"
	export GIT_SSL_CAINFO="$certificates" REQUESTS_CA_BUNDLE="$certificates"
	export NODE_EXTRA_CA_CERTS="$certificates"
}

# as_user COMMAND...: run it as the user of jobs.
as_user() {
	if [ -z "$job_user" ]; then
		"$@"
	elif [ -n "$switch" ]; then
		# shellcheck disable=SC2086 # words without spaces
		HOME=$home USER=$job_user LOGNAME=$job_user $switch "$@"
	else
		HOME=$home su -m -s /bin/sh "$job_user" -c 'exec "$0" "$@"' -- "$@"
	fi
}

# fetch_program [ours]: have the agent bring the program; $program is the folder that it is in. Jobs
# can change it, unless it is ours.
fetch_program() {
	: > "$state/want-program"
	until [ -e "$state/program" ] || [ -e "$state/no-program" ]; do sleep 0.2; done
	[ -e "$state/program" ] || fail "$(cat "$state/no-program")"
	program=$(cat "$state/program")
	[ -z "${1:-}" ] || return
	program=$ours/runner-program
	mv "$(cat "$state/program")" "$program" 2>/dev/null || cp -R "$(cat "$state/program")" "$program"
	[ -z "$job_user" ] || chown -hR "$job_user" "$program"
}

# credentials: set the variables of the registration, and forget them on disk.
credentials() {
	. "$state/credentials"
	rm -f "$state/credentials"
}

# watch_jobs: tell the agent of jobs. A program that was killed does not say that its job is over.
watch_jobs() {
	last=
	while sleep 1; do
		now=$(as_user head -c 200 "$jobs/now" 2>/dev/null | head -n 1)
		case ${now%% *} in
			'' | *[!0-9]*) now= ;;
			*) kill -0 "${now%% *}" 2>/dev/null || now= ;;
		esac
		[ "$now" != "$last" ] || continue
		if [ -n "$now" ]; then
			echo "$now" > "$told/.now" && mv "$told/.now" "$told/now"
		else
			rm -f "$told/now"
			as_user rm -f "$jobs/now"
		fi
		last=$now
	done
}

# below NUMBER: the processes that it started, and those that these did.
below() {
	found=" $1 "
	grew=1
	while [ -n "$grew" ]; do
		grew=
		for file in /proc/[0-9]*/stat; do
			{ read -r line < "$file"; } 2>/dev/null || continue
			each=${line%% *}
			rest=${line##*) }
			dead=${rest%% *}
			rest=${rest#* }
			case $found in
			*" $each "*) continue ;;
			*" ${rest%% *} "*) [ "$dead" = Z ] || { found="$found$each " && grew=1 && echo "$each"; } ;;
			esac
		done
	done
}

# variable EXPRESSION NUMBER...: the first variable of processes that an expression of sed prints.
variable() {
	expression=$1
	shift
	for each; do tr '\0' '\n' < "/proc/$each/environ"; done 2>/dev/null |
		sed -n "$expression" | head -n 1
}

# run_program COMMAND...: until it ends; this script ends with its exit code.
run_program() {
	watch_jobs &
	: > "$state/running"
	as_user "$@"
	code=$?
	# Another signal could come before its shell has set aside the traps of this one, and be lost.
	kill -KILL $! 2>/dev/null
	exit $code
}

