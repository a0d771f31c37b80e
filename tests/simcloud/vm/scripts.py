"""What tasks of these tests do: all go on where the attempt before them stopped."""

from __future__ import annotations

SAVING = """
mkdir -p output
echo "$SOJOURN_ATTEMPT" >> output/attempts
test -f output/saved && exit 0
trap 'echo last words; echo saved > output/saved; exit 0' TERM
echo ready
while true; do sleep 0.05; done
"""
# Of the second attempt, there is something to see until it is told to go on.
RESUMING_SLOWLY = """
mkdir -p output
echo "$SOJOURN_ATTEMPT" >> output/attempts
if test -f output/checkpoint; then
    until test -f /dev/shm/go; do sleep 0.05; done
    exit 0
fi
echo half > output/checkpoint
sleep 300
"""
RESUMING = """
mkdir -p output
echo "$SOJOURN_ATTEMPT" >> output/attempts
test -f output/checkpoint && exit 0
echo half > output/checkpoint
sleep 300
"""
