#!/bin/sh
# Makes the disk of a minimal Debian machine: image.sh SUITE FILE. Needs root.
# What the package depends on is in apt's cache there, for the machine has no network.
# It starts in emulation, so it has a small kernel, a small initramfs and no work of its own.
set -eu
suite=$1 file=$2
constraints=$(dirname "$0")/../../packaging/constraints.txt
folder=$(mktemp -d "$file.XXXXXX")
trap 'rm -rf --one-file-system "$folder"' EXIT
# No package is built for the newest: the wheel is installed there, with libraries from PyPI.
set --
[ "$suite" != unstable ] || set -- --include=python3-venv \
  --customize-hook="copy-in $constraints /etc/ssl/certs/ca-certificates.crt /root" \
  --customize-hook='chroot "$1" sh -c "python3 -m venv /root/pip && /root/pip/bin/pip --cert /root/ca-certificates.crt download -q -d /var/cache/wheels -r /root/constraints.txt && rm -r /root/pip /root/constraints.txt /root/ca-certificates.crt"'
mmdebstrap --quiet --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' \
  --aptopt='APT::Install-Recommends "false"' --skip=cleanup/apt \
  --dpkgopt='force-unsafe-io' --dpkgopt='path-exclude=/usr/share/man/*' \
  --include="linux-image-cloud-amd64,systemd-sysv,udev,dbus,kmod,initramfs-tools,mdadm,e2fsprogs,busybox,qemu-guest-agent,procps,apt-utils" \
  --essential-hook='mkdir -p "$1/etc/initramfs-tools/conf.d"; echo MODULES=list > "$1/etc/initramfs-tools/conf.d/machine"' \
  --essential-hook='printf "%s\n" virtio_pci virtio_blk virtio_scsi sd_mod ext4 raid456 > "$1/etc/initramfs-tools/modules"' \
  --customize-hook='chroot "$1" apt-get install -q -y --download-only fio python3 util-linux' \
  --customize-hook='chroot "$1" systemctl mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer e2scrub_reap.service systemd-timesyncd.service' \
  --customize-hook='echo "/dev/vda / ext4 defaults 0 1" > "$1/etc/fstab"' \
  --customize-hook='echo machine > "$1/etc/hostname"' \
  --customize-hook='passwd --root "$1" --delete root' \
  "$@" "$suite" "$folder/root"
rm -f "$file.new"
truncate -s 4G "$file.new"
mkfs.ext4 -q -L root -d "$folder/root" "$file.new"
mv "$file.new" "$file"
