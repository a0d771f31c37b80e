# Process 1 of the script's container: starts the script when the agent says so, and tells how it
# ended. It needs a shell and nothing else. The agent speaks through pipes in a folder that both
# containers have; when it is gone, its end of a pipe closes, and all ends here.
#
#   control   start [INTERPRETER], count, TERM, KILL, end                      from the agent
#   status    ready UID GID, started, cannot CODE, ended CODE KILLS, alive N  to the agent
#   output    what the script prints                                          to the agent

run=/sojourn/run
trap : TERM INT HUP # the agent decides when the script has to go

until [ -p "$run/ready" ]; do
    sleep 0.1 2>/dev/null || sleep 1 2>/dev/null || :
done
exec 3>"$run/status" 4<"$run/control"

uid=0 gid=0
while read -r key real rest; do
    case $key in
    Uid:) uid=$real ;;
    Gid:) gid=$real ;;
    esac
done </proc/self/status
echo "ready $uid $gid" >&3

# How often the kernel killed something here for lack of memory.
killed() {
    kills=0
    for file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
        [ -r "$file" ] || continue
        while read -r key count; do
            case $key in oom_kill) kills=$count ;; esac
        done <"$file"
    done
}

read -r word interpreter <&4 || exit 0
[ "$word" = start ] || exit 0
if [ -n "$interpreter" ] && [ ! -x "$interpreter" ]; then
    echo "cannot 127" >&3
else
    exec 5>"$run/output"
    (
        trap - TERM INT HUP
        exec 3>&- 4<&- </dev/null >&5 2>&1 5>&-
        . "$run/environment"
        cd /sojourn/workdir || exit 126
        . "$run/arguments"
    ) &
    script=$!
    exec 5>&-
    echo started >&3
fi

# Signals go to everything in this container but this process and the one that sends them.
(
    trap '' TERM INT HUP
    while read -r word <&4; do
        case $word in
        TERM | KILL) kill -s "$word" -- -1 2>/dev/null ;;
        count)
            set -- /proc/[0-9]*
            echo "alive $#" >&3
            ;;
        end) break ;;
        esac
    done
    kill -s KILL -- -1 2>/dev/null
) &
listener=$!

if [ -n "$script" ]; then
    code=0
    while :; do
        wait "$script"
        code=$?
        kill -0 "$script" 2>/dev/null || break # a signal for this process ends the waiting, too
    done
    killed
    echo "ended $code $kills" >&3
fi
exec 3>&- 4<&-
while kill -0 "$listener" 2>/dev/null; do
    wait "$listener"
done
exit 0
