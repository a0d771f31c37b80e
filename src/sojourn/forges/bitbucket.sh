
# Bitbucket's runner for steps without containers,
# https://support.atlassian.com/bitbucket-cloud/docs/set-up-runners-for-linux-shell/.

command -v java >/dev/null 2>&1 ||
	fail "Java is needed for Bitbucket's runner; install it in the image or by a startup script"
make_user
fetch_program
credentials
work=$program/work
as_user mkdir -p "$work"
cd "$program/bin" || exit 1

# What bin/start.sh does; but that has the secret among the arguments, which everybody can read.
# This way it is in a pipe, once.
arguments=$ours/arguments
mkfifo -m 600 "$arguments" && own "$arguments" || fail "could not create $arguments"
{
	cat > "$arguments" <<END
-Dbitbucket.pipelines.runner.account.uuid=$account_uuid
-Dbitbucket.pipelines.runner.repository.uuid=$repository_uuid
-Dbitbucket.pipelines.runner.uuid=$runner_uuid
-Dbitbucket.pipelines.runner.oauth.client.id=$client_id
-Dbitbucket.pipelines.runner.oauth.client.secret=$client_secret
-Dbitbucket.pipelines.runner.directory.working=$work
-Dbitbucket.pipelines.runner.environment=PRODUCTION
-Dbitbucket.pipelines.runner.runtime=linux-shell
-Dbitbucket.pipelines.runner.scheduled.state.update.initial.delay.seconds=0
-Dbitbucket.pipelines.runner.scheduled.state.update.period.seconds=30
-Dbitbucket.pipelines.runner.cleanup.previous.folders=true
-Dfile.encoding=UTF-8
-Dsun.jnu.encoding=UTF-8
-jar
./runner.jar
END
	rm -f "$arguments"
} &
as_user rm -f "$program/number"
# shellcheck disable=SC2016 # for the other shell
as_user sh -c 'echo $$ > "$1" && exec java "@$2"' sh "$program/number" "$arguments" &
around=$!
unset client_secret
until [ -s "$program/number" ]; do
	kill -0 "$around" 2>/dev/null || fail "could not start the runner"
	sleep 0.1
done
number=$(as_user head -c 20 "$program/number" | tr -dc 0-9)

# The program has no hooks, but whatever a step does is below it. Which pipeline it is of, its
# environment tells.
tell_of_steps() {
	while kill -0 "$around" 2>/dev/null; do
		if steps=$(below "$number") && [ -n "$steps" ]; then
			# shellcheck disable=SC2086 # they are numbers
			pipeline=$(variable 's/^BITBUCKET_PIPELINE_UUID=\({[0-9a-f-]*}\)$/\1/p' $steps)
			echo "$number $pipeline" > "$told/next" && mv "$told/next" "$told/now"
		else
			rm -f "$told/now"
		fi
		sleep 0.5
	done
	rm -f "$told/now"
}

# It would end in the middle of a step. So it is held while we look for one.
end_when_asked() {
	while kill -0 "$around" 2>/dev/null; do
		if [ -e "$state/end" ]; then
			as_user kill -STOP "$number"
			[ -n "$(below "$number")" ] || { : > "$state/ended" && as_user kill -TERM "$number"; }
			as_user kill -CONT "$number"
		fi
		sleep 0.5
	done
}

: > "$state/ends-when-asked"
tell_of_steps &
end_when_asked &
: > "$state/running"
# It may have ended, which only `wait` tells; and a signal ends that.
wait "$around"
code=$?
while kill -0 "$around" 2>/dev/null; do
	wait "$around"
	code=$?
done
rm -f "$told/now"
[ ! -e "$state/ended" ] || exit 0
exit $code
