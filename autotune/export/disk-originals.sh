# Notes what autotune's udev rules find and set on a disk, so that `autotune restore` can undo it.
# The rules run this before and after they set a disk's files:
#   sh disk-originals.sh before|after /sys/DEVPATH NOTES UUID FILE|PATTERN...
# NOTES/DISK-INODE/FILE holds three lines: what the file read before all profiles, what it was set
# to last, and the UUID of the array for which. It fails, and the rules set nothing, if it cannot
# write that.
umask 077
when=$1 notes=$3 uuid=$4
cd -P "$2" || exit 1
# A partition's queue is its disk's.
if [ -e partition ]; then cd .. || exit 1; fi
# Devices without `mq` (dm, multipath) have no real queue.
[ -e mq ] || exit 0
# Another disk may have the name later, but not the number of the folder.
inode=$(stat -c %i .) || exit 1
notes=$notes/${PWD##*/}-$inode
shift 4
# Patterns stand for what the disk has; afterwards for what was noted of it.
disk=$PWD
[ "$when" = before ] || cd "$notes" || exit 0
# shellcheck disable=SC2048,SC2086
set -- $*
cd "$disk" || exit 1
for file; do
    case $file in *\**) continue ;; esac
    reads='' original='' set=''
    [ -e "$file" ] && read -r reads <"$file"
    case $reads in
        *\[*\]*) reads=${reads#*\[} reads=${reads%%\]*} ;;
    esac
    note=$notes/$file
    if [ -e "$note" ]; then
        {
            read -r original
            read -r set
        } <"$note"
    elif [ "$when" = after ]; then
        continue
    fi
    if [ "$when" = before ]; then
        # What somebody has set since the last time is an original, too.
        [ -e "$note" ] && [ "$set" = '*' ] || [ "$set" = "$reads" ] || original=$reads
        # Whatever it reads while the rules set it, or where they were cut short, is theirs.
        reads='*'
    fi
    [ -d "${note%/*}" ] || mkdir -p "${note%/*}" || exit 1
    # The rules of another partition may note the same just now.
    new=$note.$$.new
    printf '%s\n' "$original" "$reads" "$uuid" >"$new" && mv "$new" "$note" || exit 1
done
