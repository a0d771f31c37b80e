
# GitLab's runner, https://docs.gitlab.com/runner/.

image=docker.io/library/ubuntu:24.04  # of jobs that name none
program=$(command -v gitlab-runner)
make_user
if [ -z "$program" ]; then
	fetch_program ours  # it runs as we do
	program=$(echo "$program"/gitlab-runner-linux-*)
fi
credentials

# Beside the workdir: what is in there is stored, and the next machine gets the token from the agent.
private=$(cd .. && pwd)/runner-config
builds=$home/builds
rm -rf "$private"
mkdir -m 700 "$private" || fail "could not create $private"
as_user mkdir -p "$builds"

if docker info >/dev/null 2>&1; then
	executor=docker
else
	executor=shell
	for each in bash git; do
		command -v $each >/dev/null || fail "GitLab's runner needs $each, which the image lacks"
	done
fi

# quoted WORDS...: as a list of TOML. There are no words that would need more than quotes.
quoted() { for word; do printf '"%s", ' "$word"; done; }

gate=
mask=$(umask)
umask 077
{
	cat <<END
concurrent = 1
listen_address = "127.0.0.1:$(cat "$state/port")"
[[runners]]
name = "sojourn"
url = "$gitlab_url"
token = "$runner_token"
executor = "$executor"
END
	[ -z "${certificates:-}" ] || echo "tls-ca-file = \"$certificates\""
	if [ $executor = docker ]; then
		echo '[runners.docker]'
		echo "image = \"$image\""
		# shellcheck disable=SC2086 # they are words
		echo "volumes = [\"/cache\", $(quoted $docker_volumes)]"
		if docker info --format '{{json .Runtimes}}' 2>/dev/null | grep -q nvidia; then
			echo 'gpus = "all"'
		fi
	else
		echo 'shell = "bash"'
		echo "builds_dir = \"$builds\""
		echo "cache_dir = \"$builds/cache\""
		if [ -n "$single" ] && [ -n "$job_user" ]; then
			# Only `run` knows users. So that the first job is the last one, it waits until the
			# program was told to take no other.
			gate=$jobs/first
			as_user rm -f "$gate"
			echo "pre_get_sources_script = \": > '$gate'; until [ -e '$jobs/alone' ]; do sleep 0.1; done\""
		fi
	fi
} > "$private/config.toml"
umask "$mask"
unset runner_token
[ -z "$docker_volumes" ] || [ $executor = docker ] || say "ignoring docker_volumes: there is no Docker"

set -- --config "$private/config.toml"
if [ -n "$single" ] && [ -z "$gate" ]; then
	# It has no metrics, and looks after its time by itself. Which job it had, if any, GitLab knows.
	set -- run-single "$@" --runner sojourn --max-builds 1 --wait-timeout "$idle_timeout"
	echo "$$" > "$told/now"
else
	echo gitlab_runner_jobs > "$state/metric"
	set -- run "$@" --working-directory "$builds"
	[ -z "$job_user" ] || [ $executor = docker ] || set -- "$@" --user "$job_user"
fi
"$program" "$@" &
number=$!

# It is asked to end in the way that lets it finish its job.
end_when_asked() {
	until [ -e "$state/end" ] || { [ -n "$gate" ] && [ -e "$gate" ]; }; do
		kill -0 "$number" 2>/dev/null || return
		sleep 0.2
	done
	kill -QUIT "$number"
	: > "$state/alone"
	as_user mkdir "$jobs/alone"
}
: > "$state/ends-when-asked"
end_when_asked &
: > "$state/running"
while kill -0 "$number" 2>/dev/null; do
	wait "$number"
	code=$?
done
rm -f "$told/now"
[ ! -e "$state/alone" ] || exit 0
exit $code
