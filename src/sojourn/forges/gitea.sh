# Gitea's runner, https://gitea.com/gitea/runner.

make_user
program=$(command -v gitea-runner) || {
	fetch_program
	program=$(echo "$program"/gitea-runner-*)
}
credentials
work=$home/gitea
as_user mkdir -p "$work"
cd "$work" || fail "could not create $work"

printf '%s' "$registration" | write_home gitea/.runner
unset registration
# How long a job can take is for Gitea to say. That there is one is told by the metrics: the
# program's hooks run inside of the containers that jobs ask for.
read -r port < "$state/port"
write_home gitea/config.yaml <<END
{
  "runner": {"file": "$work/.runner", "capacity": 1, "timeout": "8760h"},
  "cache": {"dir": "$work/cache"},
  "host": {"workdir_parent": "$work/work"},
  "metrics": {"enabled": true, "addr": "127.0.0.1:$port"}
}
END
printf 'gitea_runner_job_running name="%s"\n' "$runner_name" > "$state/metric"

run_program "$program" --config config.yaml daemon ${single:+--once}
