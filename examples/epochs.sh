#!/bin/bash
# A training loop that saves its progress: if its machine is lost, the next one resumes.

mkdir -p results
if test -f results/epoch.txt; then EPOCH="$(cat results/epoch.txt)"; fi
EPOCH=${EPOCH:-1} # start from 1 without earlier results
LAST=${LAST:-1337}

echo "(re)starting training loop from $EPOCH up to $LAST epochs"
for epoch in $(seq "$EPOCH" "$LAST"); do
  sleep "${PAUSE:-1}"
  # rename it into place: a snapshot never sees half a file
  echo "$epoch" | tee results/epoch.tmp
  mv results/epoch.tmp results/epoch.txt
done
