#!/bin/sh
# A first run on an array, from the first look to the way back. To try it without a disk:
#   autotune lab raid5-hdd -- examples/first-run.sh
set -eu
array=${1:-/dev/md0}

step() {
    echo "\$ $*"
    # doctor and status also end with 1 when something needs attention.
    "$@" || [ $? -eq 1 ]
    echo
}

step autotune doctor "$array"
step autotune run "$array" --workload quick --dry-run
step autotune run "$array" --workload quick --time 6min
step autotune report 1 --format text
step autotune apply /var/lib/autotune/profiles/md0-run1.json "$array"
step autotune status
step autotune restore "$array"
