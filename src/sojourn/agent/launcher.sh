# Process 1 of the script's container: starts the script when the agent says so, and tells how it
# ended. It needs a shell and nothing else. The agent speaks through pipes in a folder that both
# containers have; when it is gone, its end of a pipe closes, and all ends here.
#
#   control   start [INTERPRETER], look, count, TERM, KILL, end                from the agent
#   status    ready UID GID, started, cannot CODE, ended CODE KILLS,          to the agent
#             alive PROCESSES MICROSECONDS
#   output    what the script prints                                          to the agent
#   printed   the same, for the log of this container                         from the agent
#
# Names begin with sojourn_: a variable of the image must reach the script as it is.

sojourn_run=/sojourn/run
sojourn_waited=0    # tenths of a second
trap 'exit 0' TERM # the pod goes away, and the agent was never there

until [ -p "$sojourn_run/ready" ]; do
    [ -e "$sojourn_run/over" ] && exit 0 # the agent cannot start
    [ "$sojourn_waited" -lt 36000 ] || exit 0
    if sleep 0.1 2>/dev/null; then
        sojourn_waited=$((sojourn_waited + 1))
    elif sleep 1 2>/dev/null; then
        sojourn_waited=$((sojourn_waited + 10))
    fi
done
# Opening a pipe waits for the other side, which may have died: so be that for a moment.
exec 6<>"$sojourn_run/status" 3>"$sojourn_run/status" 6>&-
exec 6<>"$sojourn_run/control" 4<"$sojourn_run/control" 6>&-
exec 6<>"$sojourn_run/output" 5>"$sojourn_run/output" 6>&-
exec 6<>"$sojourn_run/printed" 7<"$sojourn_run/printed" 6>&-
trap '' TERM INT HUP # the agent decides when the script has to go

sojourn_uid=0 sojourn_gid=0
while read -r sojourn_key sojourn_real sojourn_rest; do
    case $sojourn_key in
    Uid:) sojourn_uid=$sojourn_real ;;
    Gid:) sojourn_gid=$sojourn_real ;;
    esac
done </proc/self/status
echo "ready $sojourn_uid $sojourn_gid" >&3

# How often the kernel killed something here for lack of memory.
sojourn_killed() {
    kills=0
    for file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
        [ -r "$file" ] || continue
        while read -r key count; do
            case $key in oom_kill) kills=$count ;; esac
        done <"$file"
    done
}

# How long processors have worked here, in microseconds.
sojourn_used() {
    used=0
    if [ -r /sys/fs/cgroup/cpu.stat ]; then
        while read -r key count; do
            case $key in usage_usec) used=$count ;; esac
        done </sys/fs/cgroup/cpu.stat
    elif [ -r /sys/fs/cgroup/cpuacct/cpuacct.usage ]; then
        read -r used </sys/fs/cgroup/cpuacct/cpuacct.usage
        used=${used%???}
    fi
}

# One that has ended is there until its parent asks for it. Its first thread may end before it.
sojourn_alive() {
    read -r line 2>/dev/null <"/proc/$1/stat" || return 1
    case $line in *') Z '*) ;; *) return 0 ;; esac
    set -- "/proc/$1/task"/*
    [ $# -gt 1 ]
}

# Nothing here waits for a child that runs, and no signal has to wake this process: the agent asks
# often. So nothing is missed, and the script cannot kill anything that the agent needs.
sojourn_look() {
    jobs -p >/dev/null 2>&1 # reaps orphans; older shells do it at no other time
    [ -n "$sojourn_script" ] || return 0
    sojourn_alive "$sojourn_script" && return
    wait "$sojourn_script"
    code=$?
    sojourn_script=
    sojourn_killed
    echo "ended $code $kills" >&3
}

# Prints what the script printed, which went to the agent first; without a cat, nobody does.
sojourn_print() {
    sojourn_printer=
    command -v cat >/dev/null 2>&1 || return 0
    cat <&7 3>&- 4<&- 5>&- 7<&- &
    sojourn_printer=$!
}

# How many processes there are, the one that prints aside.
sojourn_count() {
    set -- /proc/[0-9]*
    count=$#
    [ -z "$sojourn_printer" ] || [ ! -d "/proc/$sojourn_printer" ] || count=$((count - 1))
}

# Everything in this container but this, and but the one that prints if it is all that is left.
sojourn_signal() {
    sojourn_count
    [ "$count" -gt 1 ] || return 0
    kill -s "$1" -- -1 2>/dev/null
    [ "$1" = KILL ] && sojourn_print # what comes now is printed as well
}

# The agent has closed its end, so that all of it is printed in a moment.
sojourn_finish() {
    sojourn_waited=0
    while [ -n "$sojourn_printer" ] && sojourn_alive "$sojourn_printer"; do
        [ "$sojourn_waited" -lt 50 ] && sleep 0.1 2>/dev/null || return 0
        sojourn_waited=$((sojourn_waited + 1))
    done
}

read -r sojourn_word sojourn_interpreter <&4 || exit 0
[ "$sojourn_word" = start ] || exit 0
sojourn_script=
sojourn_print
if [ -n "$sojourn_interpreter" ] && [ ! -x "$sojourn_interpreter" ]; then
    echo "cannot 127" >&3
else
    (
        trap - TERM INT HUP
        exec 3>&- 4<&- 7<&- </dev/null >&5 2>&1 5>&-
        . "$sojourn_run/begin"
    ) &
    sojourn_script=$!
    echo started >&3
fi
exec 5>&-

while read -r word <&4; do
    case $word in
    TERM | KILL) sojourn_signal "$word" ;;
    end) break ;;
    esac
    sojourn_look
    if [ "$word" = count ]; then
        sojourn_count
        sojourn_alive_now=$count
        sojourn_used
        echo "alive $sojourn_alive_now $used" >&3
    fi
done
sojourn_finish
kill -s KILL -- -1 2>/dev/null
exit 0
