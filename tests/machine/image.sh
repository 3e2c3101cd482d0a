#!/bin/sh
# Makes the disk of a minimal Debian machine: image.sh SUITE FILE. Needs root.
# What the package depends on is in apt's cache there, for the machine has no network.
set -eu
suite=$1 file=$2
folder=$(mktemp -d "$file.XXXXXX")
trap 'rm -rf --one-file-system "$folder"' EXIT
mmdebstrap --quiet --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' \
  --aptopt='APT::Install-Recommends "false"' --skip=cleanup/apt \
  --include="linux-image-amd64,systemd-sysv,udev,dbus,kmod,initramfs-tools,mdadm,e2fsprogs,qemu-guest-agent,procps,apt-utils" \
  --essential-hook='mkdir -p "$1/etc/initramfs-tools/conf.d"; echo MODULES=most > "$1/etc/initramfs-tools/conf.d/machine"' \
  --customize-hook='chroot "$1" apt-get install -q -y --download-only fio python3 util-linux' \
  --customize-hook='echo "/dev/vda / ext4 defaults 0 1" > "$1/etc/fstab"' \
  --customize-hook='echo machine > "$1/etc/hostname"' \
  --customize-hook='passwd --root "$1" --delete root' \
  "$suite" "$folder/root"
rm -f "$file.new"
truncate -s 4G "$file.new"
mkfs.ext4 -q -L root -d "$folder/root" "$file.new"
mv "$file.new" "$file"
