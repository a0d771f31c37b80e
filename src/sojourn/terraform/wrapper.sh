#!/bin/sh
# sojourn-terraform-wrapper
#
# Starts Sojourn's Terraform provider. `sojourn terraform install` puts this file here.
#
# The lock files of Terraform and OpenTofu hold a hash of this text, so it is the same on every
# computer. Which Python has Sojourn is written in ~/.terraform.d/sojourn/python instead;
# SOJOURN_PYTHON overrides that.

# Ctrl-C reaches this process too, and would end it before it can hear of it from Terraform. The
# provider sets a handler of its own, so that what it starts does not inherit this.
trap '' INT

# Users are shown the first line on standard output, their logs have standard error.
fail() {
    printf 'Sojourn: %s\n' "$1"
    printf 'Sojourn: %s\n' "$1" >&2
    sleep 1 # if the process ends first, Terraform may show that instead of the line
    exit 1
}

runs() {
    case $1 in
    */*) [ -f "$1" ] && [ -x "$1" ] ;;
    *) command -v "$1" >/dev/null 2>&1 ;;
    esac
}

again='Run `sojourn terraform install` where Sojourn is installed.'
if [ -n "${SOJOURN_PYTHON:-}" ]; then
    python=$SOJOURN_PYTHON
    runs "$python" || fail "SOJOURN_PYTHON is $python, and there is no such program."
else
    record=${HOME:-}/.terraform.d/sojourn/python
    [ -r "$record" ] || fail "It is not known which Python to use, there is no $record. $again"
    IFS= read -r python <"$record"
    runs "$python" || fail "The Python that it was installed with is gone: $python. $again"
fi

# Files in the current folder must not be taken for modules, and "" stands for it in sys.path.
# The option -P does not exist before Python 3.11; -I hides what `pip install --user` installed.
exec "$python" -c '
import sys
while "" in sys.path:
    sys.path.remove("")
import os
try:
    from sojourn.terraform.__main__ import main
    sys.exit(main())
except Exception as error:
    reason = " ".join(str(error).split())
    line = "Sojourn: %s cannot run the provider: %s: %s." % (
        sys.executable, type(error).__name__, reason
    )
    if isinstance(error, ImportError):
        line += " Run `sojourn terraform install` where Sojourn is installed."
    line += "\n"
    for stream in (1, 2):
        os.write(stream, line.encode("utf-8", "surrogateescape"))
    import time
    time.sleep(1)
    raise
' "$@"
