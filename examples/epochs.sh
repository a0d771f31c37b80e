#!/bin/bash
# A training loop that remembers how far it is: if its machine is lost, the next one goes on.

mkdir -p results
if test -f results/epoch.txt; then EPOCH="$(cat results/epoch.txt)"; fi
EPOCH=${EPOCH:-1} # start from 1 if there is no result yet
LAST=${LAST:-1337}

echo "(re)starting training loop from $EPOCH up to $LAST epochs"
for epoch in $(seq "$EPOCH" "$LAST"); do
  sleep "${PAUSE:-1}"
  # written under another name first: a snapshot never sees half of it
  echo "$epoch" | tee results/epoch.tmp
  mv results/epoch.tmp results/epoch.txt
done
