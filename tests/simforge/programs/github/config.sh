#!/bin/sh
# Stands in for the actions runner in tests.
exec python3 "$(dirname "$0")/standin.py" configure "$@"
