#!/bin/sh
# User-mode Linux as another Debian has it, to boot the lab with: kernel.sh SUITE FOLDER. Needs root.
# It comes with the C library that it was built for, since that of this machine may be older.
set -eu
suite=$1 folder=$2
rm -rf --one-file-system "$folder.new"
mmdebstrap --quiet --variant=extract --include=user-mode-linux \
  --aptopt='Acquire::Check-Valid-Until "false"' "$suite" "$folder.new"
libraries=$folder/usr/lib/x86_64-linux-gnu
patchelf --set-interpreter "$libraries/ld-linux-x86-64.so.2" --set-rpath "$libraries" \
  "$folder.new/usr/bin/linux.uml"
rm -rf --one-file-system "$folder"
mv "$folder.new" "$folder"
