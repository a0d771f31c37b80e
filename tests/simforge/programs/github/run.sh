#!/bin/sh
# Stands in for the actions runner in tests.
exec "$(dirname "$0")/bin/Runner.Listener" run "$@"
