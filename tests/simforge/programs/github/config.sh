#!/bin/sh
# Stands in for the actions runner in tests; its script insists on ICU.
if ! /sbin/ldconfig -NXv 2>&1 | grep -q libicu; then
	echo "Libicu's dependencies is missing for Dotnet Core 6.0"
	exit 1
fi
exec "$(dirname "$0")/bin/Runner.Listener" configure "$@"
