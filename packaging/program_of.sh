#!/bin/sh
# A program as another Debian has it: program_of.sh SUITE FOLDER PROGRAM PACKAGE... Needs root.
# It comes with the C library that it was built for, since that of this machine may be older.
set -eu
suite=$1 folder=$2 program=$3
shift 3
rm -rf --one-file-system "$folder.new"
mmdebstrap --quiet --variant=extract --include="$(echo "$@" | tr ' ' ,)" \
  --aptopt='Acquire::Check-Valid-Until "false"' "$suite" "$folder.new"
libraries=$folder/usr/lib/x86_64-linux-gnu
# What a program loads later needs these libraries, too (DT_RPATH, ld.so(8)).
patchelf --set-interpreter "$libraries/ld-linux-x86-64.so.2" --force-rpath \
  --set-rpath "$libraries" "$(realpath "$folder.new/usr/bin/$program")"
rm -rf --one-file-system "$folder"
mv "$folder.new" "$folder"
