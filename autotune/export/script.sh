
# What is set, in this order: on the array or on each member's disk, file, value. What is "passing"
# is soon replaced.
steps() {
    cat <<'END'
@STEPS@
END
}
level=@LEVEL@
chunk_bytes=@CHUNK@
stripes=@STRIPES@
slowest=@SLOWEST@
rotating=@ROTATING@
name=@NAME@

SYS=/sys
RUN=/run
STATE=/var/lib/autotune
MEMINFO=/proc/meminfo
BOOT=/proc/sys/kernel/random/boot_id
PERSISTED=/etc/autotune/persisted

usage() {
    cat <<END
Usage: sh ${0##*/} apply|status|undo DEVICE

apply   set the values on the array DEVICE, such as /dev/md0; all or none
status  say which values are in effect
undo    put back what was there before the first apply, of whatever profile

Exit codes: 0 done, 1 not all values are in effect, 2 not possible, or wrong usage.
What is set on the array itself holds until it is stopped, what is set on its disks until the machine
restarts. undo takes the name of an array that was stopped, or is gone, too.
END
}

fail() {
    echo "${0##*/}: $*" >&2
    exit 2
}

# A pipe would get the number of one that is closed, and what goes through it would be lost.
(: 3<&0) 2>/dev/null || exec </dev/null
(: 3>&1) 2>/dev/null || exec >/dev/null
(: 3>&2) || exec 2>/dev/null

# The array behind a device file, and its members' disks, each once.
find_array() {
    node=$(readlink -f -- "$1") || fail "There is no $1."
    block=$SYS/block/${node##*/}
    [ -d "$block/md" ] || fail "$1 is not an md array; name one, such as /dev/md0."
    case $(cat "$block/md/array_state") in
    clear | inactive) fail "The array $1 is not running; assemble it first." ;;
    esac
    disks=
    for member in "$block"/md/dev-*; do
        [ -e "$member/block" ] || continue
        case $(cat "$member/state") in *faulty* | *journal*) continue ;; esac
        disk=$(readlink -f -- "$member/block")
        # The queue of a partition is that of its disk.
        [ ! -e "$disk/partition" ] || disk=${disk%/*}
        case " $disks " in *" $disk "*) ;; *) disks="$disks $disk" ;; esac
    done
    uuid=$(tr -d ':-' 2>/dev/null <"$block/md/uuid" || :)
    [ -n "$uuid" ] || uuid=$(PATH=$PATH:/usr/sbin:/sbin mdadm --detail --export "$node" 2>/dev/null |
        sed -n 's/^MD_UUID=//p' | tr -d :)
    [ -n "$uuid" ] || fail "$1 has no UUID that can be read, so it cannot be told from others."
    # To autotune and mdadm, the words of old metadata are in another order.
    known_as=$uuid
    case $(cat "$block/md/metadata_version" 2>/dev/null) in
    0.9*) known_as=$(echo "$uuid" | sed 's/\(..\)\(..\)\(..\)\(..\)/\4\3\2\1/g') ;;
    esac
    # One for all profiles: each would take what another one has set for the originals.
    saved=$RUN/autotune-profile/$uuid
    # Where an earlier version of this script saved.
    older=$RUN/autotune-profile/$name-$uuid
}

# Whether DEVICE is an array that runs, or may be one.
runs() {
    there=$(readlink -f -- "$1") || { [ -e "$1" ] && return; }
    there=$SYS/block/${there##*/}/md
    [ -d "$there" ] || return 1
    case $(cat "$there/array_state") in clear | inactive) return 1 ;; esac
}

# Finds what was saved for an array that had this name when a profile was applied, and has no name
# or another one now: its disks still have that, and a stop has undone the rest. False if there is
# nothing.
gone() {
    for saved in "$RUN"/autotune-profile/*; do
        case ${saved##*/} in lock | *.part) continue ;; esac
        grep -qsxF -- "name - - $1" "$saved" || continue
        uuid=${saved##*[/-]}
        known_as=$uuid
        older=$saved
        block=$SYS/block/none
        return 0
    done
    return 1
}

# What tells a device, by its folder, from another one that has its name later.
number() {
    # shellcheck disable=SC2012
    ls -di -- "$1/" 2>/dev/null | while read -r inode _; do echo "$inode"; done
}

# Refuses an array of another kind than the values were proven on.
check_class() {
    [ "$(cat "$block/md/level")" = "$level" ] || fail "$1 is not a $level, as the profile wants."
    [ "$chunk_bytes" = 0 ] || [ "$(cat "$block/md/chunk_size")" = "$chunk_bytes" ] ||
        fail "The chunks of $1 are not $chunk_bytes bytes, as the profile wants."
    case $(cat "$block/md/metadata_version" 2>/dev/null) in
    external*) fail "$1 keeps its metadata in a firmware format (IMSM or DDF), for another program." ;;
    esac
    for disk in $disks; do
        [ ! -e "$disk/queue/rotational" ] || [ "$(cat "$disk/queue/rotational")" = "$rotating" ] ||
            fail "The disks of $1 are of another kind (rotating or not) than the profile wants."
    done
}

# A stripe takes a page and about 0.4 KiB for each member.
check_memory() {
    [ "$stripes" != 0 ] && [ -e "$block/md/stripe_cache_size" ] || return 0
    more=$((stripes - $(cat "$block/md/stripe_cache_size")))
    need_kib=$((more * ($(cat "$block/md/raid_disks") * 9 / 2 + 1)))
    have_kib=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB$/\1/p' $MEMINFO)
    [ "$need_kib" -le $((have_kib / 2)) ] ||
        fail "The stripe cache would take $need_kib KiB more, over half of the memory available."
}

# At sync_speed_max a rebuild must not last for months.
check_speed() {
    [ "$slowest" != 0 ] && [ -e "$block/md/component_size" ] || return 0
    days=$(($(cat "$block/md/component_size") / slowest / 86400))
    [ "$days" -lt @DAYS@ ] ||
        fail "At a sync_speed_max of $slowest a rebuild of $1 would take $days days."
}

# What a file holds: the name in brackets, or the number before "(local)".
value() {
    held=$(cat "$1") || return 1
    case $held in
    *\[*\]*)
        held=${held#*\[}
        echo "${held%%\]*}"
        ;;
    *\ \(*\)) echo "${held%% *}" ;;
    *) echo "$held" ;;
    esac
}

# What brings a file back later: an array that follows the sysctl gets "system".
original() {
    case $(cat "$1") in *"(system)") echo system ;; *) value "$1" ;; esac
}

# The files of a step: the array's own, or one for each disk.
files() {
    if [ "$1" = array ]; then
        echo "$block/$2"
    else
        for disk in $disks; do
            # Devices without mq pass requests on, and have no real queue.
            [ ! -d "$disk/mq" ] || echo "$disk/$2"
        done
    fi
}

# The files of mq-deadline's async_depth, which a change of nr_requests resets.
depths() {
    echo "${1%/*}/iosched/async_depth ${1%/*}/async_depth"
}

put() {
    case $1 in
    */group_thread_cnt)
        # A change while a sync runs can hang md.
        [ "$(cat "$block/md/sync_action")" = idle ] || {
            echo "A sync of the array runs, so group_thread_cnt cannot be set now." >&2
            return 1
        }
        ;;
    */stripe_cache_size)
        # A reshape for which the cache gets too small never ends.
        case $(cat "$block/md/reshape_position" 2>/dev/null) in
        "" | none) ;;
        *)
            echo "The array is being reshaped, so stripe_cache_size cannot be set now." >&2
            return 1
            ;;
        esac
        ;;
    */sync_speed_min)
        [ "$2" = system ] || [ "$2" -le "$(value "$block/md/sync_speed_max")" ] || {
            echo "sync_speed_min $2 would be above sync_speed_max." >&2
            return 1
        }
        ;;
    */sync_speed_max)
        [ "$2" = system ] || [ "$2" -ge "$(value "$block/md/sync_speed_min")" ] || {
            echo "sync_speed_max $2 would be below sync_speed_min." >&2
            return 1
        }
        ;;
    esac
    [ -e "$1" ] || {
        echo "$1 does not exist here." >&2
        return 1
    }
    # Linux 6.9 and newer raise the read-ahead with it, where that was lowered.
    ahead=
    case $1 in */max_sectors_kb) ahead=$(cat "${1%/*}/read_ahead_kb" 2>/dev/null || :) ;; esac
    echo "$2" >"$1" || return 1
    [ -z "$ahead" ] || echo "$ahead" >"${1%/*}/read_ahead_kb"
}

# What is there now of every file that is about to change, or that the kernel changes with it: the
# device, its number, the file, its text. An array may have another name by the time of undo.
now() {
    steps | while read -r place file _ passing; do
        [ -z "$passing" ] || continue
        for path in $(files "$place" "$file"); do
            case $file in
            queue/scheduler)
                also="${path%/*}/nr_requests ${path%/*}/wbt_lat_usec ${path%/*}/iosched/*"
                # Since Linux 7 the queue has it, and refuses to store it without a scheduler.
                [ ! -d "${path%/*}/iosched" ] || also="$also ${path%/*}/async_depth"
                ;;
            queue/nr_requests) also=$(depths "$path") ;;
            *) also= ;;
            esac
            for each in $path $also; do
                # A queue that has no throttling keeps the file but fails to read it.
                text=$(original "$each" 2>/dev/null) || {
                    [ "$each" != "$path" ] || [ ! -e "$path" ] || exit 1
                    continue
                }
                [ -n "$text" ] || continue
                device=${each%/*/*}
                line="$(number "$device") ${each#"$device/"}"
                [ "$place" = disk ] || device=array
                echo "$device $line $text"
            done
        done
    done
}

# Keeps these lines, but of what was kept before, which what is there now may come from.
save() {
    # shellcheck disable=SC2012,SC2046
    known "$saved" $(ls -tr -- "${saved%/*}"/*-"$uuid" 2>/dev/null)
    find_others
    {
        printf '%s' "$kept" || return 1
        # A full disk may refuse any line of these.
        printf '%s\n' "$1" | while read -r device found file text; do
            [ -z "$file" ] || is_kept || theirs || echo "$device $found $file $text" || exit 1
        done || return 1
        gone_since "$1" || return 1
        # To be found by once the array is gone.
        printf 'name - - %s\n' "$2" "$node"
    } >"$saved.part" && mv "$saved.part" "$saved"
}

# What a switch of the scheduler by another array's profile has taken away: it comes back with the
# scheduler, which whoever is undone last puts back.
gone_since() {
    steps | grep -q '^disk queue/scheduler ' || return 0
    printf '%s\n' "$others" | while read -r device found file text; do
        case $file in iosched/*) ;; *) continue ;; esac
        case " $disks " in *" ${device%/queue} "*) ;; *) continue ;; esac
        [ "$(number "$device")" = "$found" ] || continue
        is_kept || case $1 in *"$device $found $file "*) ;; *) false ;; esac ||
            echo "$device $found $file $text" || exit 1
    done
}

# In "kept", what these records have of devices that were not started anew since, and have not
# forgotten what was set. The first one's word counts.
known() {
    kept=
    for record; do
        [ -e "$record" ] || continue
        ! grep -Eqx '[^ ]+ [^ ]+' "$record" ||
            fail "An earlier version of this script wrote $record; undo with that one."
        while read -r device found file text; do
            folder=$device
            [ "$device" != array ] || folder=$block
            now=$(number "$folder")
            # A machine without memory cannot tell; what is left out here would never go back.
            [ -n "$now" ] || [ ! -d "$folder" ] || fail "$folder cannot be looked at now; try again."
            [ "$now" != "$found" ] || is_kept ||
                kept="$kept$device $found $file $text
"
        done <"$record"
    done
}

is_kept() {
    case "
$kept" in *"
$device $found $file "*) ;; *) return 1 ;; esac
}

# In "others", what the records of other arrays have of disks, which may be of this array, too: with
# "running", of those arrays alone that run.
find_others() {
    running=$(cat "$SYS"/block/*/md/uuid 2>/dev/null | tr -d ':-')
    others=$(
        for record in "${saved%/*}"/*; do
            case ${record##*/} in "$uuid" | *-"$uuid" | lock | *.part) continue ;; esac
            [ $# = 0 ] || case $running in *"${record##*[/-]}"*) ;; *) continue ;; esac
            grep -s '^/' "$record"
        done
    )
}

# What a disk had before another array's profile came to it, if that holds it; false if not.
theirs() {
    printf '%s\n' "$others" | grep -F -m 1 -- "$device $found $file "
}

# What is kept, without what other arrays' profiles hold: the last one of them puts that back.
not_theirs() {
    printf '%send\n' "$kept" | while read -r device found file text; do
        if [ "$device" != end ] && theirs >/dev/null; then
            echo "$device/$file stays as it is until the other array's profile is undone." >&2
        else
            echo "$device $found $file $text"
        fi
    done
}

# Where autotune keeps what it has set: the usual folder, and others that were named to it since the
# boot.
folders() {
    {
        echo "$STATE"
        cat "$RUN"/autotune/array-* "$RUN"/autotune/disk-* 2>/dev/null |
            sed -n 's|^\(/.*\)/journal/[^/]*$|\1|p'
    } | sort -u
}

# Refuses an array that a command of autotune has.
check_runs() {
    check_mounted journal "$1"
    folders | while IFS= read -r folder; do
        for own in "$uuid" "$known_as"; do
            [ ! -e "$folder/journal/$own.jsonl" ] ||
                fail "A run of autotune has $1, or left it as it was; wait, or run autotune restore --state-dir $folder."
        done
    done || exit 2
}

# One at a time: two at once would save each other's values for the originals.
alone() {
    check_runs "$1"
    command -v flock >/dev/null || fail "flock is missing; install util-linux."
    umask 077
    { mkdir -p "${saved%/*}" && : >>"${saved%/*}/lock"; } ||
        fail "Nothing can be saved in ${saved%/*}, so nothing was changed."
    exec 9>>"${saved%/*}/lock"
    # The flock of busybox knows no -w; so it is asked to wait only if need be.
    flock -n 9 || flock -w 60 9 || fail "Another run of this script has $1 for a minute now; end that first."
    # Half of it may do harm: to set both sync speeds, the min is 1 for a moment.
    trap '' HUP INT PIPE TERM
}

# Whether the record of a note, $1, is not there, since its filesystem is not, or something is
# mounted over it. Else somebody has removed it.
is_out_of_reach() {
    {
        read -r record
        [ ! -e "$record" ] || return 1
        own=
        while read -r device inode filesystem folder; do
            own=${own:-$device $filesystem}
            [ -e "$folder" ] || continue
            [ "$device $filesystem" = "$own" ] || return 0
            [ "$device $inode $filesystem" != "$(stat -c '%d %i' "$folder") $(stat -f -c %i "$folder")" ]
            return
        done
    } <"$1"
    return 1
}

# Whether autotune has had one of the disks with a state folder, $1, since the boot.
has_had_disks() {
    for disk in $disks; do
        memory=$RUN/autotune/disk-${disk##*/}
        ! sed -n 's|^\(/.*\)/journal/[^/]*$|\1|p' "$memory" 2>/dev/null | grep -qxF -- "$1" || return 0
    done
    return 1
}

# Refuses an array, $2, if a record of this kind, $1, of it or of its disks is out of reach with its
# folder.
check_mounted() {
    for note in "$RUN/autotune/records/$1"-*; do
        [ -e "$note" ] || continue
        is_out_of_reach "$note" || continue
        case ${note##*-} in
        "$uuid" | "$known_as") ;;
        *) has_had_disks "${record%/*/*}" || continue ;;
        esac
        fail "autotune has set $2 or disks of it, as $record says, which is not mounted or was replaced; mount it, and run autotune restore --all --state-dir ${record%/*/*} first."
    done
}

# What autotune has set, or just tries, would be taken for the original values, and come back with
# undo.
check_applied() {
    check_mounted applied "$1"
    for own in "$uuid" "$known_as"; do
        [ ! -e "$PERSISTED/$own.json" ] ||
            fail "autotune has persisted a profile for $1; run autotune restore --all first."
    done
    folders | while IFS= read -r folder; do check_folder "$folder" "$1"; done || exit 2
    # What udev has set on a disk, or on a partition of it, for the profile of another array.
    for disk in $disks; do
        for device in "$disk" "$disk"/*; do
            number=$(cat "$device/dev" 2>/dev/null) || continue
            grep -qs '^E:AUTOTUNE_MEMBER=' "$RUN/udev/data/b$number" || continue
            of=$(sed -n 's/^E:ID_FS_UUID=//p' "$RUN/udev/data/b$number" | tr -d ':-')
            # By its own exported rule, since nothing is persisted for it.
            case $of in "$uuid" | "$known_as") continue ;; esac
            [ ! -e "$PERSISTED/$of.json" ] ||
                fail "A profile of autotune is persisted on disks of $1; run autotune restore --all first."
            fail "udev has set ${device##*/} for another array; remove that rule, and run udevadm trigger --action=change /dev/${device##*/} first, which lets mdadm start that array."
        done
    done
}

# The same in one of its folders, $1, for the array $2.
check_folder() {
    for record in "$1"/journal/*.jsonl; do
        # What waits for the end of a sync is nothing of a disk's.
        case $record in *.waiting.jsonl) continue ;; esac
        grep -qs "$(cat "$BOOT")" "$record" || continue
        for disk in $disks; do
            ! grep -q "/${disk##*/}/queue/" "$record" ||
                fail "A run of autotune has disks of $2, or left them as they were; wait, or run autotune restore --state-dir $1."
        done
    done
    for record in "$1"/applied/*.jsonl; do
        grep -qs "$(cat "$BOOT")" "$record" || continue
        case $record in
        */"$uuid".jsonl | */"$known_as".jsonl) fail "autotune has applied a profile to $2; run autotune restore $2 --state-dir $1 first." ;;
        esac
        for disk in $disks; do
            ! grep -Eq "\"kind\": \"(write|first)\".*/${disk##*/}/queue/" "$record" ||
                fail "autotune has applied a profile on disks of $2; run autotune restore --all --state-dir $1 first."
        done
    done
}

# A switch away from bfq takes the weights that control groups have for a disk, which nothing brings
# back.
check_weights() {
    wanted=$(steps | sed -n 's|^disk queue/scheduler ||p')
    case $wanted in "" | bfq | "bfq "*) return 0 ;; esac
    for disk in $disks; do
        [ "$(value "$disk/queue/scheduler")" = bfq ] || continue
        number=$(cat "$disk/dev")
        group=$(find "$SYS/fs/cgroup" \( -name io.bfq.weight -o -name blkio.bfq.weight_device \) \
            -exec grep -qs "^$number " {} \; -print 2>/dev/null | head -n 1)
        [ -z "$group" ] ||
            fail "The control group ${group%/*} has a weight for ${disk##*/} (IODeviceWeight= of systemd), which is lost when bfq goes; take it away first if it does not matter."
    done
}

apply() {
    check_applied "$1"
    check_memory
    check_weights
    check_speed "$1"
    before=$(now) || fail "What $1 has now cannot be read, so nothing was changed."
    first=
    [ -e "$saved" ] || first=1
    save "$before" "$1" || fail "What $1 has now cannot be saved in ${saved%/*}, so nothing was changed."
    # A command of autotune may have begun meanwhile: each says so before it looks for the other.
    (check_runs "$1" && check_applied "$1") || {
        [ -z "$first" ] || rm -f "$saved"
        exit 2
    }
    steps | while read -r place file text _; do
        for path in $(files "$place" "$file"); do
            # A switch of the scheduler resets the queue's length.
            length=$(cat "${path%/*}/nr_requests" 2>/dev/null || :)
            found=
            [ "$file" != queue/nr_requests ] || for each in $(depths "$path"); do
                [ ! -e "$each" ] || found="$found $each=$(cat "$each" 2>/dev/null || :)"
            done
            put "$path" "$text" || exit 1
            for each in $found; do
                echo "${each##*=}" 2>/dev/null >"${each%=*}" || :
            done
            if [ "$file" = queue/scheduler ] && [ -n "$length" ]; then
                echo "$length" 2>/dev/null >"${path%/*}/nr_requests" || :
            fi
        done
    done || {
        put_back "$before
end"
        [ -z "$first" ] || rm -f "$saved"
        fail "Not every value could be set on $1, so all are as they were."
    }
    status
}

status() {
    steps | {
        wrong=0
        while read -r place file text passing; do
            [ -z "$passing" ] || continue
            for path in $(files "$place" "$file"); do
                now=$(value "$path" 2>/dev/null) || now=missing
                if [ "$now" = "$text" ]; then
                    echo "ok   $path $now"
                else
                    echo "not  $path $now, not $text"
                    wrong=1
                fi
            done
        done
        return $wrong
    }
}

undo() {
    # An array that is gone may have left something on the disks of the one that has its name.
    [ -e "$saved" ] || [ -e "$older" ] || gone "$1" || {
        echo "Nothing of $1 was saved since the machine started, so there is nothing to undo."
        return 0
    }
    # In memory: a full disk must keep nothing from going back.
    known "$saved" "$older"
    find_others running
    put_back "$(not_theirs)"
    rm -f "$saved" "$older"
}

# Puts back what these lines have, in their order but for files that others depend on: a switch of the
# scheduler resets the queue, bfq's strict_guarantees raises its slice_idle, and preread_bypass_threshold
# must not be above stripe_cache_size.
# What is refused, such as the one of two sync speeds that does not fit the other yet, has its turn
# again after the rest. What is refused then keeps nothing else from going back. The last line is
# "end": without it they are not whole, which happens where memory is short.
put_back() {
    needed=
    rest=
    while read -r line; do
        case $line in
        *" queue/scheduler "* | *" iosched/strict_guarantees "* | *" md/stripe_cache_size "*)
            needed="$needed$line
"
            ;;
        *)
            rest="$rest$line
"
            ;;
        esac
    done <<END
$1
END
    lines=$needed$rest
    each_back 2>/dev/null || each_back ||
        fail "Not all could be put back; what was there is still in ${saved%/*}."
}

# Puts back each of "lines" that can be; false if one cannot, or they do not end.
each_back() {
    printf '%s' "$lines" | {
        refused=0
        ended=1
        while read -r device _ file text; do
            [ "$device" != end ] || ended=0
            [ "$device" != array ] || device=$block
            path=$device/$file
            case $file in
            md/sync_speed_* | md/sync_io_depth)
                # With another level it is there again, and so is its value.
                [ -e "$path" ] || [ ! -d "$device/md" ] || {
                    echo "$path cannot be seen while the array has no redundancy. Undo it with another level, or stop the array." >&2
                    refused=1
                }
                ;;
            esac
            if [ -z "$file" ] || [ ! -e "$path" ] || [ "$(original "$path")" = "$text" ]; then
                continue
            fi
            put "$path" "$text" || {
                echo "$path could not be put back to $text." >&2
                refused=1
            }
        done
        return $((refused + ended))
    }
}

[ $# = 2 ] || {
    usage >&2
    exit 2
}
case $1 in
apply | status | undo)
    if [ "$1" != undo ] || runs "$2" || ! gone "$2"; then find_array "$2"; fi
    [ "$1" = undo ] || check_class "$2"
    [ "$1" = status ] || alone "$2"
    "$1" "$2"
    ;;
*)
    usage >&2
    exit 2
    ;;
esac
