#!/usr/bin/env bash
# Run a command, `make test` if none is given, in a fresh clone on a small and busy machine: little
# disk, little memory, few open files, and more processes than cores.
#
#   sudo tests/small_machine.sh
#   sudo LOAD=0 tests/small_machine.sh sh -c 'make lint && .venv/bin/python -m pytest tests/unit'
#
# DISK and MEMORY are in GB, LOAD is the number of busy processes. Needs root on Linux.
set -euo pipefail

DISK=${DISK:-10} MEMORY=${MEMORY:-8} LOAD=${LOAD:-20}
AT=/srv # where the disk is, for the command only

# A disk of 2 TB with DISK GB free: below 1 %, which some programs take for full. It is a sparse
# file without a name, mounted in a namespace: it goes with the last process in there.
mount_disk() {
  local image free
  image=$(mktemp)
  truncate -s 2T "$image"
  mkfs.ext4 -q -F -m 0 -N 2000000 -E lazy_itable_init=1,lazy_journal_init=1 "$image"
  mount -o loop,noinit_itable "$image" "$AT"
  rm "$image"
  free=$(df --output=avail -B 1M "$AT" | tail -1)
  fallocate -l "$((free - DISK * 1024))M" "$AT/full"
}

run_inside() { # REPOSITORY CGROUP COMMAND...
  local repository=$1 cgroup=$2
  shift 2
  mount_disk
  git -c safe.directory='*' -C "$repository" bundle create --quiet "$AT/bundle" HEAD
  git -c advice.detachedHead=false clone --quiet "$AT/bundle" "$AT/clone"
  mkdir -m 1777 "$AT/tmp"
  mkdir "$AT/home"
  mount --bind "$AT/tmp" /tmp
  mount -t tmpfs -o size=64m tmpfs /dev/shm
  echo $$ >"$cgroup/cgroup.procs"
  ulimit -Sn 1024
  cd "$AT/clone"
  unset TMPDIR XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME
  HOME="$AT/home" exec "$@"
}

make_cgroup() { # prints its folder
  local root=/sys/fs/cgroup file=memory.max
  if [ -d "$root/memory" ]; then root=$root/memory file=memory.limit_in_bytes; fi
  rmdir "$root"/small-machine-* 2>/dev/null || true # of a run that was killed
  mkdir "$root/small-machine-$$"
  echo "$((MEMORY * 1024 * 1024 * 1024))" >"$root/small-machine-$$/$file"
  echo "$root/small-machine-$$"
}

be_busy() { # PID: ends with that process, however it ends
  while kill -0 "$1" 2>/dev/null; do for ((i = 0; i < 50000; i++)); do :; done; done
}

clean_up() {
  local pid
  [ -z "${busy[*]}" ] || kill "${busy[@]}" 2>/dev/null || true
  for _ in {1..50}; do
    while read -r pid; do kill -KILL "$pid" 2>/dev/null || true; done <"$cgroup/cgroup.procs"
    rmdir "$cgroup" 2>/dev/null && return
    sleep 0.1
  done
}

if [ "${1:-}" = --inside ]; then
  shift
  run_inside "$@"
fi

if [ "$(uname)" != Linux ] || [ "$(id -u)" != 0 ]; then
  echo "This needs root on Linux, to mount a disk and limit memory." >&2
  exit 1
fi
repository=$(cd "$(dirname "$0")/.." && pwd)
busy=()
cgroup=$(make_cgroup)
trap clean_up EXIT
for ((n = 0; n < LOAD; n++)); do
  be_busy $$ &
  busy+=($!)
done
[ $# -gt 0 ] || set -- make test
unshare --mount --propagation private --kill-child "$0" --inside "$repository" "$cgroup" "$@"
