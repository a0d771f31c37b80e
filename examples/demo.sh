#!/usr/bin/env bash
# The main job, on the local cloud: start a training script, take its machine away halfway
# without notice, and watch it resume from its last snapshot and download its results.
set -euo pipefail
cd "$(dirname "$0")/.."

demo="$PWD/build/demo"
rm -rf "$demo"
mkdir -p "$demo/workdir"
# Everything stays in the repository.
export XDG_DATA_HOME="$demo/data" XDG_CACHE_HOME="$demo/cache" XDG_STATE_HOME="$demo/state"

bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\033[1m' plain=$'\033[0m'; fi
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }

say "Upload a script with its folder and start it on a machine"
cat examples/epochs.sh
id=$(sojourn run --detach --name demo --workdir "$demo/workdir" --output results \
  --env LAST=60 --env PAUSE=0.3 examples/epochs.sh)
trap 'sojourn delete --no-pull --force "$id" >/dev/null 2>&1 || true' EXIT

say "Follow its log; after 13 seconds, the machine is lost without notice"
(
  sleep 13
  sojourn interrupt "$id" --no-notice >/dev/null 2>&1
) &
sojourn logs "$id" --follow

say "See what happened to its machines"
sojourn status "$id"

say "Download the results and delete everything else"
sojourn delete "$id"
trap - EXIT
wait
printf 'results/epoch.txt: %s\n' "$(cat "$demo/workdir/results/epoch.txt")"
test "$(cat "$demo/workdir/results/epoch.txt")" = 60
test -z "$(sojourn list 2>/dev/null)"
rm -rf "$demo/data" "$demo/cache"
say "Done: the results are in build/demo/workdir/results, and nothing is left behind"
