#!/bin/sh
# A first run on an array, from the first look to the way back, which undoes every profile that is
# applied to it. To try it without a disk:
#   .venv/bin/autotune lab raid5-hdd -- examples/first-run.sh
set -eu
array=$(readlink -f "${1:-/dev/md0}")

step() {
    echo "\$ $*"
    "$@"
    echo
}

look() {
    echo "\$ $*"
    # These also end with 1 when something needs attention.
    "$@" || [ $? -eq 1 ]
    echo
}

look autotune doctor "$array"
step autotune run "$array" --workload quick --dry-run
step autotune run "$array" --workload quick --time 6min
# The newest run is that one.
run=$(autotune history --json | sed -n 's/^    "id": \([0-9]*\),$/\1/p' | head -n 1)
profile=${AUTOTUNE_STATE_DIR:-/var/lib/autotune}/profiles/${array##*/}-run$run.json
step autotune report "$run" --format text
if [ -e "$profile" ]; then
    step autotune apply "$profile" "$array"
    look autotune status
    step autotune restore "$array"
else
    echo "Nothing better was proven, so there is nothing to apply."
fi
