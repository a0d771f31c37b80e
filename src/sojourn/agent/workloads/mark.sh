#!/bin/sh
# Marks a step: all files of the workdir, as they are now, belong to it. Returns when they are
# stored; should a machine be lost, all ranks go back to a step that each of them has marked.
case ${1-} in
'' | *[!0-9]* | ?????????????*)
  echo "usage: $0 STEP, a whole number of up to 12 digits that grows" >&2
  exit 2
  ;;
esac
here=${0%/*}
step=$1
while [ "$step" != "${step#0}" ] && [ "$step" != 0 ]; do step=${step#0}; done
echo "$step" >"$here/want.$$" && mv -f "$here/want.$$" "$here/want" || exit 1
while :; do
  stored=
  read -r stored 2>/dev/null <"$here/stored"
  [ -z "$stored" ] || [ "$stored" -lt "$step" ] || exit 0
  sleep 0.1 2>/dev/null || sleep 1
done
