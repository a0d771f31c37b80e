# GitHub's runner, https://github.com/actions/runner.

make_user
for program in "${RUNNER_HOME:-}" /home/runner /actions-runner /opt/actions-runner; do
	[ -n "$program" ] && [ -x "$program/run.sh" ] && [ -x "$program/config.sh" ] && break
	program=
done
[ -n "$program" ] || fetch_program
if ! as_user test -w "$program"; then
	as_user cp -R "$program" "$home/runner-program"
	program=$home/runner-program
fi
cd "$program" || exit 1

# What .NET needs of an image, before anything is registered.
line=$(as_user head -n 1 run.sh)
shell=${line#??}
[ -x "${shell%% *}" ] || fail "GitHub's runner needs ${shell%% *}, which the image lacks"
if [ -e bin/libcoreclr.so ]; then
	missing=$(as_user ldd bin/libcoreclr.so bin/libSystem.*.OpenSsl.so bin/libSystem.IO.*.so 2>/dev/null |
		sed -n 's/^[[:space:]]*\(.*\) => not found.*/\1/p' | sort -u | tr '\n' ' ')
	[ -z "$missing" ] || fail "GitHub's runner needs libraries that the image lacks: $missing"
fi
if [ -z "${DOTNET_SYSTEM_GLOBALIZATION_INVARIANT:-}" ] &&
	! { ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null | grep -q libicuuc; then
	say "the image lacks ICU (libicu), so GitHub's runner and .NET jobs know no cultures"
	export DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1
fi

# configure ARGUMENTS...: config.sh insists on ICU; without it, do what else it does.
configure() {
	if [ -z "${DOTNET_SYSTEM_GLOBALIZATION_INVARIANT:-}" ]; then
		as_user ./config.sh "$@"
	else
		# shellcheck disable=SC2016 # for the other shell
		as_user bash -c '[ ! -e env.sh ] || . ./env.sh; exec ./bin/Runner.Listener configure "$@"' \
			bash "$@"
	fi
}
credentials

cat > "$ours/job-started.sh" <<END
printf '%s %s %s\n' "\$PPID" "\$GITHUB_RUN_ID" "\${GITHUB_RUN_ATTEMPT:-1}" > '$jobs/next'
mv '$jobs/next' '$jobs/now'
END
cat > "$ours/job-completed.sh" <<END
rm -f '$jobs/now'
END
chmod 755 "$ours/job-started.sh" "$ours/job-completed.sh"
export ACTIONS_RUNNER_HOOK_JOB_STARTED="$ours/job-started.sh"
export ACTIONS_RUNNER_HOOK_JOB_COMPLETED="$ours/job-completed.sh"
export RUNNER_ALLOW_RUNASROOT=1

# Secrets go by way of the environment: arguments can be read by everybody.
if [ -n "${jit_configuration:-}" ]; then
	ACTIONS_RUNNER_INPUT_JITCONFIG=$jit_configuration
	export ACTIONS_RUNNER_INPUT_JITCONFIG
elif [ -e "$identity/.runner" ]; then
	for file in "$identity"/.[!.]*; do
		# shellcheck disable=SC2016 # for the other shell
		as_user sh -c 'umask 077; rm -f "$1"; cat > "$1"' sh "${file##*/}" < "$file"
	done
else
	ACTIONS_RUNNER_INPUT_TOKEN=$registration_token
	export ACTIONS_RUNNER_INPUT_TOKEN
	configure --unattended --replace --url "$runner_url" --name "$runner_name" \
		--labels "$runner_labels" || fail "could not register the runner"
	unset ACTIONS_RUNNER_INPUT_TOKEN
	for file in .runner .credentials .credentials_rsaparams; do
		! as_user test -f "$file" || (umask 077 && as_user cat "$file" > "$identity/$file")
	done
fi
unset registration_token jit_configuration
run_program ./run.sh
