#!/bin/sh
# Makes the disk of a minimal Debian machine: image.sh SUITE FILE. Needs root.
# What the package depends on is in apt's cache there, for the machine has no network.
# It starts in emulation, so it has a small kernel, a small initramfs and no work of its own.
set -eu
suite=$1 file=$2
top=$(realpath "$(dirname "$0")/../..")
folder=$(mktemp -d "$file.XXXXXX")
trap 'rm -rf --one-file-system "$folder"' EXIT
# No package is built for the newest: the wheel is installed there, with libraries from PyPI. They
# are fetched from here, where pip is known to trust what it has to.
wheels='python=$(chroot "$1" python3 -c "import sys; print(\"%d.%d\" % sys.version_info[:2])") &&
  "$top/.venv/bin/python" -m pip download -q --only-binary=:all: --python-version="$python" \
    --platform=manylinux_2_28_x86_64 --platform=manylinux2014_x86_64 \
    -d "$1/var/cache/wheels" -r "$top/packaging/constraints.txt"'
export top
set --
[ "$suite" != unstable ] || set -- --include=python3-venv --customize-hook="$wheels"
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
