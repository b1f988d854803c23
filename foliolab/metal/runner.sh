#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Runs a bundle's boots on this machine, one after the other, whether or not anybody looks. It lies in a directory of
# the root file system, beside files/ (by hash) and run/ (the plan, and what comes of it). What it changes of the
# machine is in run/journal before it is changed: the unit that starts it after each boot, directories to mount
# on, files for disks, and an entry in the boot loader's menu. All of that is gone when it ends; results stay.
#
#   sh runner check [OPTION...]   say why this machine cannot run it; --spare /dev/..., --no-watchdog, --no-kexec,
#                                 --though-in-use
#   sh runner start [OPTION...]   the same, and begin; --lease SECONDS ends it when nobody has asked for so long
#   sh runner resume              go on with a run that something has killed
#   sh runner poll [BOOT...]      how far it is, and a tar file of boots that have ended but for these
#   sh runner result              a tar file of all that came of it
#   sh runner stop                put everything back, also in the middle
#   sh runner go                  what the unit does
#   sh runner name-spare WHICH    link the spare device to fixed names; init calls it in a test kernel
set -eu
LC_ALL=C
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL PATH

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
run=$here/run
unit=foliolab-metal.service
unit_file=/etc/systemd/system/$unit
watchdog_seconds=600 # in which this kernel has to go down, and the other one to come up
patience_seconds=480 # in which this kernel has to go down; then there is time to stop the watchdog

entry=foliolab-metal # in the boot loader's menu
of_loader=4a67b082-0a4c-41cf-b6c7-440b29bb8c4f # in the names of its variables

spare='' identity='' watchdog=yes kexec=yes loader='' in_use=no lease=0 pause=10

refuse() {
	echo "$*" >&2
	exit 3
}

# Write down what is about to be done, so that it survives a power cut.
note() {
	echo "$(date -u +%Y-%m-%dT%H:%M:%SZ) $*" >>"$run/journal"
	sync "$run/journal" "$run"
}

mark() {
	: >"$1"
	sync "$1" "$(dirname "$1")"
}

# What run/plan says of the whole: "machine x86_64".
planned() {
	sed -n "s/^$1 //p" "$run/plan"
}

# Refuse an option's value that is no number.
require_seconds() {
	case ${2:-} in
	'' | *[!0-9]*) refuse "$1 takes a number of seconds." ;;
	esac
}

take_options() {
	while [ $# -gt 0 ]; do
		case $1 in
		--spare)
			[ $# -gt 1 ] || refuse "--spare takes a device."
			spare=$2 && shift
			;;
		--lease) require_seconds "$@" && lease=$2 && shift ;;
		--pause) require_seconds "$@" && pause=$2 && shift ;;
		--no-watchdog) watchdog=no ;;
		--no-kexec) kexec=no ;;
		--though-in-use) in_use=yes ;;
		*) refuse "The runner knows no option '$1'." ;;
		esac
		shift
	done
}

# Why a disk must not be written; nothing if it may.
use_of() {
	if [ -n "$(lsblk -nro MOUNTPOINT "$1" | tr -d '\n')" ]; then
		echo "$1 is mounted."
	elif [ "$(lsblk -nro NAME "$1" | wc -l)" -ne 1 ]; then
		echo "$1 has partitions, or something is made of it."
	fi
}

# Whether the data of a disk goes to the spare device, by the disk's number.
on_spare() {
	[ "$1" -eq 0 ] && [ -n "$spare" ]
}

check_spare() {
	device=$(readlink -f "$spare") || refuse "$spare is no block device."
	spare=$device
	[ -b "$spare" ] || refuse "$spare is no block device."
	[ -e "/sys/block/${spare#/dev/}" ] || refuse "$spare is no whole disk; a spare device is one, such as /dev/nvme1n1."
	identity=$(identify "${spare#/dev/}")
	[ "${identity%-}" = "$identity" ] ||
		refuse "$spare has no number of its own, by which it could be known again."
	[ "$(disks_like "$identity")" = "$spare" ] ||
		refuse "$spare cannot be told from another disk with the same size and serial number."
	used=$(use_of "$spare")
	[ -z "$used" ] || refuse "$used"
	# Another status than 2 says that there is something, or that it is not known.
	kind=$(blkid -p -o value -s TYPE "$spare") && status=0 || status=$?
	[ "$status" -eq 2 ] || refuse "$spare holds ${kind:-something}; a spare device is empty."
	cmp -s -n 1048576 "$spare" /dev/zero || refuse "The first MiB of $spare is not empty, or cannot be read."
	[ "$(lsblk -bdnro SIZE "$spare")" -ge "$(planned disk | head -n 1 | cut -d ' ' -f 3)" ] ||
		refuse "$spare is too small."
}

check_disk_space() {
	free=$(($(df -k --output=avail "$here" | tail -n 1) * 1024))
	wanted=$((1 << 30)) # which stays free
	for bytes in $(planned disk | while read -r number _ size; do on_spare "$number" || echo "$size"; done); do
		wanted=$((wanted + bytes))
	done
	[ "$free" -gt "$wanted" ] || refuse "There are $((free >> 20)) MiB left in $here, and $((wanted >> 20)) are wanted."
}

check() {
	[ "$(id -u)" -eq 0 ] || refuse "Only root can start another kernel."
	[ "$(uname -m)" = "$(planned machine)" ] || refuse "This is a $(uname -m) machine; the kernels are for $(planned machine)."
	for program in cmp systemctl losetup lsblk blkid findmnt gzip tar; do
		command -v "$program" >/dev/null || refuse "This machine lacks $program."
	done
	case $here in
	*[!A-Za-z0-9_./-]*) refuse "$here cannot be a word of a kernel's command line." ;;
	esac
	case $(findmnt -nro FSTYPE /) in
	ext4 | xfs) ;;
	*) refuse "The root file system is neither ext4 nor XFS: no test kernel can mount it." ;;
	esac
	size=$(sed -n 's/.* nr_cpus=//p' "$run"/boots/*/kernel | sort -n | tail -n 1)
	[ "$(nproc --all)" -ge "$size" ] || refuse "This machine has less than the $size processors that are wanted."
	[ -d /run/systemd/system ] || refuse "This machine was not started by systemd."
	[ "$kexec" = no ] || no_kexec=$(why_no_kexec)
	if [ "$kexec" = no ] || [ -n "$no_kexec" ]; then
		kexec=no
		loader=$(started_by)
		no_loader=$(why_not_once)
		[ -z "$no_loader" ] ||
			refuse "${no_kexec:-There is --no-kexec}, and $loader cannot start another kernel once: $no_loader."
	fi
	! grep -q '\[\(integrity\|confidentiality\)\]' /sys/kernel/security/lockdown 2>/dev/null ||
		refuse "This machine's kernel is locked down, and starts none that is not signed."
	[ "$watchdog" = no ] || [ -c /dev/watchdog ] ||
		refuse "There is no /dev/watchdog: a kernel that hangs would stay. Load its driver, or take --no-watchdog."
	[ "$in_use" = yes ] || [ "$(who | wc -l)" -eq 0 ] || refuse "Somebody is logged in; --though-in-use ends their sessions."
	[ "$(stat -c %d "$here")" = "$(stat -c %d /)" ] || refuse "$here is not on the root file system."
	[ ! -e "$run/ended" ] || refuse "This bundle has been run. To run it once more, remove $run and unpack it again."
	[ ! -e "$run/journal" ] ||
		refuse "There is another run on this machine: see $run/journal. 'runner resume' goes on with it if it was killed."
	[ ! -e "$unit_file" ] || refuse "There is another run on this machine: see $unit_file."
	root_is_plain || [ -n "$(initramfs)" ] ||
		refuse "The root file system is on no plain partition, and there is no initramfs in /boot: no test kernel would find it."
	check_disk_space
	check_memory
	[ -z "$spare" ] || check_spare
}

# Why kexec does not work here; nothing if it may.
why_no_kexec() {
	if ! command -v kexec >/dev/null; then
		echo "This machine lacks kexec"
	elif [ "$(cat /proc/sys/kernel/kexec_load_disabled)" -ne 0 ]; then
		echo "This machine's kernel does not start others"
	fi
}

# A variable that firmware keeps; nothing if there is none. Its file cannot be read from the middle, as tail would.
variable() {
	head -c 1024 "/sys/firmware/efi/efivars/$1" 2>/dev/null | tail -c +5 | tr -d '\0'
}

# Which boot loader has started this machine.
started_by() {
	case $(variable "LoaderInfo-$of_loader") in
	systemd-boot*) echo systemd-boot ;;
	*) echo GRUB ;;
	esac
}

# Why the boot loader cannot start another kernel for one boot; nothing if it may.
why_not_once() {
	if [ "$loader" = GRUB ]; then
		why_no_grub
	elif [ "$(variable SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c | od -An -tu1 | tr -d ' ')" = 1 ]; then
		echo "Secure Boot is on"
	elif ! command -v bootctl >/dev/null; then
		echo "there is no bootctl"
	elif ! directory=$(bootctl --print-boot-path 2>/dev/null); then
		echo "its partition is not mounted"
	elif [ ! -d "$directory/loader/entries" ]; then
		echo "there is no $directory/loader/entries"
	elif [ -e "$directory/loader/entries/$entry.conf" ]; then
		echo "there is $directory/loader/entries/$entry.conf"
	else
		wanted=$(cut -d ' ' -f 1 "$run"/boots/*/kernel | sort -u | sed "s|^|$here/files/|" | xargs du -kL |
			sort -n | tail -n 1 | cut -f 1)
		ramdisk=$(initramfs)
		[ -z "$ramdisk" ] || wanted=$((wanted + $(du -kL "$ramdisk" | cut -f 1)))
		free=$(df -k --output=avail "$directory" | tail -n 1)
		[ "$free" -gt "$wanted" ] || echo "$directory has $free KiB left, and $wanted are wanted"
	fi
}

# Have the boot loader start a kernel at the next boot, and only then: the kernel, its initramfs, its command line.
start_once() {
	if [ "$loader" = GRUB ]; then
		start_once_by_grub "$@"
		return
	fi
	directory=$(bootctl --print-boot-path) || return 1
	menu=$directory/loader/entries/$entry.conf
	note_files "$menu" "$directory/$entry.kernel" "$directory/$entry.initrd"
	cp "$1" "$directory/$entry.kernel" || return 1
	[ -z "$2" ] || cp "$2" "$directory/$entry.initrd" || return 1
	{
		echo "title Measurement"
		echo "linux /$entry.kernel"
		[ -z "$2" ] || echo "initrd /$entry.initrd"
		printf 'options %s\n' "$3"
	} >"$menu" || return 1
	sync "$menu" "$directory/$entry.kernel" ${2:+"$directory/$entry.initrd"} "${menu%/*}" "$directory" || return 1
	# Without a default of somebody's, the first entry is one.
	if bootctl status 2>/dev/null | sed -n '/^Default Boot Loader Entry:/,$p' | grep -q "id: $entry.conf"; then
		echo "it would start it at each boot" >&2
		return 1
	fi
	bootctl set-oneshot "$entry.conf"
}

# Have the boot loader start this machine's own kernel, if it was to start ours.
forget_entry() {
	if [ "$loader" = GRUB ]; then
		# GRUB leaves an empty word.
		! grub editenv - list | grep -q "^next_entry=\($entry\)\{0,1\}\$" || grub editenv - unset next_entry
	elif [ "$(variable "LoaderEntryOneShot-$of_loader")" = "$entry.conf" ]; then
		bootctl set-oneshot ''
	fi
}

# Write down that there will be these files.
note_files() {
	for file; do
		grep -q " file $file\$" "$run/journal" || note "file $file"
	done
}

# Where GRUB has its menu.
grub_directory() {
	for directory in /boot/grub /boot/grub2; do
		[ ! -e "$directory/grub.cfg" ] || echo "$directory"
	done | head -n 1
}

# The program of a command of GRUB's, which some distributions call grub2-...; nothing if there is none.
grub_program() {
	command -v "grub-$1" || command -v "grub2-$1" || true
}

grub() {
	program=$(grub_program "$1")
	shift
	"$program" "$@"
}

# Why GRUB cannot start another kernel for one boot; nothing if it may. GRUB forgets the entry before it starts it, which
# it can only where it can write to the file system.
why_no_grub() {
	directory=$(grub_directory)
	if [ -z "$directory" ]; then
		echo "it has no menu in /boot"
		return
	fi
	for command in reboot editenv mkrelpath; do
		if [ -z "$(grub_program "$command")" ]; then
			echo "there is no grub-$command"
			return
		fi
	done
	if ! grep -q next_entry "$directory/grub.cfg" || ! grep -q custom.cfg "$directory/grub.cfg"; then
		echo "its menu takes no other entry"
	elif [ -e "$directory/custom.cfg" ]; then
		echo "there is $directory/custom.cfg"
	elif [ "$(lsblk -dnro TYPE "$(findmnt -nro SOURCE -T "$directory")")" != part ]; then
		echo "$directory is on no plain partition"
	else
		case $(findmnt -nro FSTYPE -T "$directory") in
		ext[234] | xfs | vfat) ;;
		*) echo "it cannot write to the file system of $directory" ;;
		esac
	fi
}

# As start_once.
start_once_by_grub() {
	directory=$(grub_directory)
	case $3 in
	*[\'\"\\]*)
		echo "it would change the quotes and backslashes of the command line" >&2
		return 1
		;;
	esac
	note_files "$directory/custom.cfg" "$directory/$entry.kernel"
	cp "$1" "$directory/$entry.kernel" || return 1
	image=$(grub mkrelpath "$directory/$entry.kernel") || return 1
	ramdisk=${2:+$(grub mkrelpath "$2")} || return 1
	{
		echo "if [ \"\${default}\" = $entry ]; then set fallback=0; fi"
		echo "menuentry 'Measurement' --id $entry {"
		echo "	search --no-floppy --fs-uuid --set=root $(findmnt -nro UUID -T "$directory")"
		echo "	linux '$image' $(echo "$3" | sed "s/[^ ][^ ]*/'&'/g")"
		[ -z "$ramdisk" ] || echo "	initrd '$ramdisk'"
		echo "}"
	} >"$directory/custom.cfg" || return 1
	sync "$directory/custom.cfg" "$directory/$entry.kernel" "$directory"
	grub reboot "$entry" && sync
}

# The address below which there are so many MiB of memory, from /proc/iomem as standard input; nothing if there is less.
# What mem= takes is an address, and not all below it is memory.
memory_end() {
	left=$(($1 << 20))
	while IFS='- ' read -r first last _ name; do
		[ "$name" = "System RAM" ] || continue
		size=$((0x$last - 0x$first + 1))
		if [ "$size" -ge "$left" ]; then
			echo $((0x$first + left))
			return
		fi
		left=$((left - size))
	done
}

check_memory() {
	size=$(sed -n 's/.* mem=\([0-9]*\)M.*/\1/p' "$run"/boots/*/kernel | sort -n | tail -n 1)
	[ -n "$(memory_end "$size" </proc/iomem)" ] ||
		refuse "This machine has less than the $size MiB of memory that are wanted."
}

# What identifies a disk under any kernel: its size, and its serial number or WWID if it has one. For SCSI, newer
# kernels have device/serial, and all have device/wwid.
identify() {
	number=''
	for name in serial device/wwid device/serial wwid; do
		[ -n "$number" ] || number=$(head -c 256 "/sys/block/$1/$name" 2>/dev/null | tr -cd '[:alnum:]')
	done
	echo "$(cat "/sys/block/$1/size")-$number"
}

# All disks with this identity.
disks_like() {
	for directory in /sys/block/*; do
		disk=${directory##*/}
		# With multipath, sysfs lists each path to a disk; paths have no device node.
		if [ -e "/dev/$disk" ] && [ "$(identify "$disk")" = "$1" ]; then
			echo "/dev/$disk"
		fi
	done
}

# The one disk with this identity; a status of 1 if there is none within half a minute, or several.
find_disk() {
	waited=0
	while found=$(disks_like "$1") && [ -z "$found" ] && [ "$waited" -lt 30 ]; do
		waited=$((waited + 1))
		sleep 1
	done
	echo "$found"
	[ "$(echo "$found" | wc -w)" -eq 1 ]
}

# A test kernel may give the spare device another name, so its jobs use these links.
name_spare() {
	spare=$(find_disk "$1") || refuse "This kernel has no disk, or several, with the size and serial number of the spare device ($1)."
	ln -sf "$spare" /dev/foliolab-spare
	ln -sfn "/sys/block/${spare#/dev/}" /dev/foliolab-spare-block
}

facts() {
	echo "name $(uname -n)${spare:+ with $spare}"
	echo "begun $(boot_id | cut -c 1-6)"
	echo "cpus $(nproc --all)"
	echo "memory_kib $(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo)"
	echo "processor $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
	device=${spare:-$(findmnt -nro SOURCE /)}
	echo "disk $(lsblk -snro MODEL,TRAN "$device" 2>/dev/null | tail -n 1) ${spare:-file}"
}

start() {
	take_options "$@"
	check
	facts >"$run/facts"
	echo "spare='$spare' identity='$identity' watchdog=$watchdog kexec=$kexec loader=$loader lease=$lease pause=$pause" >"$run/options"
	mkdir -p "$run/programs"
	planned program | while read -r name file; do
		ln -f "$here/files/$file" "$run/programs/$name"
		chmod 755 "$run/programs/$name"
	done
	mark "$run/asked"
	sync
	note "start: unit $unit_file"
	start_unit
}

start_unit() {
	cat >"$unit_file" <<-EOF
		[Unit]
		Description=Measurements on other kernels
		[Service]
		ExecStart=/bin/sh $here/runner go
		[Install]
		WantedBy=multi-user.target
	EOF
	sync "$unit_file"
	systemctl daemon-reload
	systemctl --quiet enable "$unit"
	systemctl --no-block start "$unit"
}

# Disable the unit and remove it. This can happen twice: resume may write it again while the run ends.
remove_unit() {
	[ -e "$unit_file" ] || return 0
	systemctl --quiet disable "$unit" || note "left: $unit is enabled"
	rm -f "$unit_file"
	systemctl daemon-reload || true
}

# Start the unit again if it was killed. Without this, it starts at the machine's next boot. A run that is being
# stopped is left to whoever stops it.
resume() {
	[ -e "$run/journal" ] && [ ! -e "$run/ended" ] && [ ! -e "$run/stop" ] || exit 0
	systemctl --quiet is-active "$unit" || start_unit
}

# Have directories to mount on, and what is to be on disks really written: a hole would be read without a disk.
make_disks() {
	[ ! -e "$run/made" ] || return 0
	if [ -n "$spare" ]; then
		# It was checked at the start, and much can happen until it is written.
		used=$(use_of "$spare")
		if [ -n "$used" ]; then
			put_back "$used"
			exit 1
		fi
	fi
	for directory in /data /programs; do
		[ -e "$directory" ] && continue
		note "directory $directory"
		mkdir "$directory"
	done
	planned disk | while read -r number file size; do
		place=$run/disk$number flags=fsync
		# If the disk has gone, no file is to be made in its place.
		! on_spare "$number" || { place=$spare && flags=fsync,nocreat; }
		gzip -t "$here/files/$file"
		note "disk $place of $size bytes"
		gzip -dc "$here/files/$file" | dd "of=$place" bs=1M iflag=fullblock "conv=$flags" status=none
	done
	mark "$run/made"
}

# Undo what the journal says, and end the run. After a power cut in the middle, the unit begins this anew: it is
# removed when all else is done.
put_back() {
	if [ -e "$run/ended" ]; then
		remove_unit
		return
	fi
	note "ending: $1"
	# A machine that still goes down starts its own kernel, because no other is loaded any more.
	if [ "$kexec" = yes ]; then
		kexec -u 2>/dev/null || true
	else
		forget_entry || note "left: $loader's next entry"
	fi
	forget_start
	disarm_watchdog
	rm -f "$run/made" "$run"/disk[0-9]
	if grep -q ' disk /dev/' "$run/journal"; then
		{ spare=$(find_disk "$identity") && [ -z "$(use_of "$spare")" ] && wipefs -qa "$spare" &&
			dd if=/dev/zero "of=$spare" bs=1M count=1 conv=fsync,nocreat status=none; } ||
			note "left: what was written to the spare device ($identity)"
	fi
	sed -n 's/^[^ ]* file //p' "$run/journal" | while read -r file; do
		{ [ -d "${file%/*}" ] && rm -f "$file"; } || note "left: $file"
	done
	sed -n 's/^[^ ]* directory //p' "$run/journal" | while read -r directory; do
		[ ! -d "$directory" ] || rmdir "$directory" || note "left: $directory"
	done
	remove_unit
	sync # The boot loader's file system may be another.
	note "end: $1"
	mark "$run/ended"
}

# Have the watchdog survive this kernel: it is closed without the word that stops it.
arm_watchdog() {
	[ "$watchdog" = yes ] || return 0
	if [ "$(cat /sys/module/watchdog/parameters/stop_on_reboot)" != 0 ]; then
		note "no watchdog from kernel to kernel: this one was booted without watchdog.stop_on_reboot=0"
		return
	fi
	if ! wdctl -s "$watchdog_seconds" >/dev/null 2>&1; then
		note "no watchdog from kernel to kernel: it cannot be set to $watchdog_seconds seconds"
		return
	fi
	boot_id >"$run/armed"
	(echo >/dev/watchdog) 2>/dev/null || note "no watchdog from kernel to kernel: somebody else has it"
}

# Stop the watchdog if it was armed since the machine has come up. Otherwise it is not opened, which would arm it.
disarm_watchdog() {
	[ "$(cat "$run/armed" 2>/dev/null)" = "$(boot_id)" ] || return 0
	(printf V >/dev/watchdog) 2>/dev/null || true
}

# The command line of a test kernel: what this machine's own kernel was told, but for how much of the machine it has,
# and what a boot wants.
arguments() {
	sed 's/ -- .*//' /proc/cmdline | tr ' ' '\n' | grep -Ev \
		'^((BOOT_IMAGE|initrd|init|crashkernel|mem|nr_cpus|maxcpus|hugepages|hugepagesz)=|(ro|rw|quiet|splash)$)' || true
	if [ -z "$1" ]; then
		root=$(findmnt -nro SOURCE /)
		echo "root=PARTUUID=$(lsblk -dnro PARTUUID "$root") rootfstype=$(findmnt -nro FSTYPE /)"
	fi
	echo "rw rootwait=60 init=$here/run/programs/init foliolab_job=$2 printk.time=1 panic=10 oops=panic"
	echo "hung_task_panic=1 softlockup_panic=1 nmi_watchdog=panic $3"
}

# Whether a kernel finds the root file system by itself.
root_is_plain() {
	root=$(findmnt -nro SOURCE /)
	[ "$(lsblk -dnro TYPE "$root")" = part ] && [ -n "$(lsblk -dnro PARTUUID "$root")" ]
}

# The host's own initramfs, where the kernel cannot find the root by itself.
initramfs() {
	if ! root_is_plain; then
		for file in "/boot/initrd.img-$(uname -r)" "/boot/initramfs-$(uname -r).img"; do
			[ ! -e "$file" ] || echo "$file"
		done | head -n 1
	fi
}

# Write what init is to do, disks first.
write_requests() {
	device=/dev/loop0 block=/sys/block/loop0
	if [ -n "$spare" ]; then
		device=/dev/foliolab-spare block=/dev/foliolab-spare-block
		echo "{\"id\": 0, \"step\": 0, \"deadline\": 60, \"argv\":" \
			"[\"sh\", \"$here/runner\", \"name-spare\", \"$identity\"]}"
	fi >"$1/requests"
	planned disk | while read -r number _ _; do
		! on_spare "$number" || continue
		echo "{\"id\": -$number, \"step\": 0, \"deadline\": 60, \"argv\": [\"losetup\", \"--direct-io=on\"," \
			"\"/dev/loop$number\", \"$run/disk$number\"]}"
	done >>"$1/requests"
	sed "s|/dev/@disk0@|$device|g; s|/sys/block/@disk0@|$block|g; s|@disk1@|loop1|g" "$1/jobs" >>"$1/requests"
}

begin_boot() {
	boot=$1
	read -r kernel words <"$boot/kernel"
	size=$(echo "$words" | sed -n 's/^mem=\([0-9]*\)M .*/\1/p')
	words="mem=$(memory_end "$size" </proc/iomem) ${words#* }"
	write_requests "$boot"
	initramfs=$(initramfs)
	command_line=$(arguments "$initramfs" "$boot" "$words" | tr '\n' ' ')
	if [ "$(sha256sum <"$here/files/$kernel")" != "$kernel  -" ]; then
		put_back "the kernel's file is damaged: $here/files/$kernel"
		exit 1
	fi
	if [ "$kexec" = yes ] &&
		! kexec -l "$here/files/$kernel" ${initramfs:+"--initrd=$initramfs"} "--command-line=$command_line" 2>"$boot/kexec"; then
		put_back "the kernel cannot be loaded: $(tail -n 1 "$boot/kexec")"
		exit 1
	fi
	note "boot $(basename "$boot"): $command_line"
	rm -f "$boot/answers" "$boot/console"
	arm_watchdog
	# From here on, a power cut counts as a reset of the test kernel, also in the seconds before that begins.
	boot_id >"$boot/started"
	[ -z "$(planned disks)" ] || rm -f "$run/made" # what is written to them goes
	sync "$boot/started" "$boot" "$run"
	trap - EXIT
	reason=''
	if [ "$kexec" = yes ]; then
		systemctl kexec || reason="kexec does not work"
	elif start_once "$here/files/$kernel" "$initramfs" "$command_line" 2>"$boot/loader"; then
		systemctl reboot || reason="the machine cannot be restarted"
	else
		reason="$loader cannot start the kernel once: $(tail -n 1 "$boot/loader")"
	fi
	[ -n "$reason" ] || sleep "$patience_seconds"
	put_back "${reason:-the machine does not go down}"
	exit 1
}

# An identifier that is different for each boot of this machine.
boot_id() {
	cat /proc/sys/kernel/random/boot_id
}

# The number of the step that was running when a boot ended; nothing if none had begun.
step_begun() {
	sed -n 's/.*"event": "start", "id": [-0-9]*, "step": \([0-9]*\)}.*/\1/p' "$1/answers" 2>/dev/null | tail -n 1
}

keep_last_words() {
	for file in $(find /sys/fs/pstore /var/lib/systemd/pstore -type f -newer "$1/started" 2>/dev/null | sort -r); do
		cat "$file" >>"$1/pstore"
		sync "$1/pstore"
		case $file in
		/sys/*) rm -f "$file" ;;
		esac
	done
}

# Forget that a boot was to start if this kernel still runs: then that boot's kernel has not begun.
forget_start() {
	boot=$(next_boot)
	[ -n "$boot" ] && [ -e "$boot/started" ] || return 0
	case $(cat "$boot/started") in
	'' | "$(boot_id)") rm "$boot/started" ;;
	esac
}

# Say how a boot has ended. What it had still to do when the machine was reset becomes a boot of its own.
end_boot() {
	boot=$1
	keep_last_words "$boot"
	ending=reset
	grep -q '"event": "deadline"' "$boot/answers" 2>/dev/null && ending=deadline
	grep -q '"event": "end"' "$boot/answers" 2>/dev/null && ending=end
	if [ ! -s "$boot/answers" ] && [ ! -s "$boot/pstore" ] &&
		{ [ ! -s "$boot/again" ] || cmp -s "$boot/again" "$boot/started"; }; then
		# Perhaps its kernel was never started, which is no fault of it.
		cp "$boot/started" "$boot/again"
		sync "$boot/again" "$boot"
		note "once more $(basename "$boot"): nothing was heard of its kernel"
		return
	fi
	step=$(step_begun "$boot")
	if [ "$ending" != end ] && [ "${step:-0}" -gt 0 ] && [ ! -e "${boot}r" ]; then
		rm -rf "$run/next"
		mkdir "$run/next"
		cp "$boot/kernel" "$boot/works.json" "$run/next/"
		while IFS= read -r line; do
			its=${line#*'"step": '}
			its=${its%%,*}
			if [ "$its" -eq 0 ] || [ "$its" -gt "$step" ]; then
				printf '%s\n' "$line"
			fi
		done <"$boot/jobs" >"$run/next/jobs"
		if grep -q "\"step\": [1-9]" "$run/next/jobs"; then
			mv "$run/next" "${boot}r"
		fi
	fi
	echo "$ending" >"$boot/outcome"
	sync # What was written is to be whole before a mark says so.
	mark "$boot/outcome.whole"
	note "ended $(basename "$boot"): $ending"
}

# Why there is to be no more boot, if so.
reason_to_end() {
	asked=$(($(date +%s) - $(stat -c %Y "$run/asked")))
	ending=$(sed -n 's/^[^ ]* ending: //p' "$run/journal" | tail -n 1)
	if [ -e "$run/stop" ]; then
		echo "told to stop"
	elif [ -n "$ending" ]; then
		echo "$ending"
	elif [ "$lease" -gt 0 ] && [ "$asked" -gt "$lease" ]; then
		echo "nobody has asked for $asked seconds"
	fi
}

next_boot() {
	for boot in "$run"/boots/*; do
		[ -e "$boot/outcome.whole" ] && continue
		echo "$boot"
		return
	done
}

go() {
	# shellcheck source=/dev/null
	. "$run/options"
	if [ -e "$run/ended" ]; then
		remove_unit
		exit 0
	fi
	trap 'put_back "something failed; journalctl -u $unit tells what"' EXIT
	# Some shells run the trap above when a signal ends them. A run that was killed is to go on instead.
	trap 'trap - EXIT; exit 143' TERM INT HUP
	forget_start
	boot=$(next_boot)
	if [ -n "$boot" ] && [ -e "$boot/started" ]; then
		end_boot "$boot"
		# Nobody could poll during the boot, which does not count.
		asked=$(($(stat -c %Y "$run/asked") + $(date +%s) - $(stat -c %Y "$boot/started")))
		touch -d "@$asked" "$run/asked"
		[ -e "$boot/outcome.whole" ] || rm "$boot/started"
	fi
	if [ -n "$identity" ] && ! spare=$(find_disk "$identity"); then
		put_back "the spare device ($identity) is gone"
		exit 1
	fi
	[ -z "$(next_boot)" ] || [ -n "$(reason_to_end)" ] || make_disks
	# The rest of the machine comes up meanwhile, and whoever wants to stop this can.
	timeout 120 systemctl is-system-running --wait >/dev/null 2>&1 || true
	sleep "$pause"
	reason=$(reason_to_end)
	boot=$(next_boot)
	if [ -n "$boot" ] && [ -z "$reason" ]; then
		begin_boot "$boot"
	fi
	put_back "${reason:-all is done}"
}

poll() {
	[ -e "$run/plan" ] || refuse "There is no run."
	touch "$run/asked"
	cd "$run"
	set -- "$@" ''
	names=''
	if ! systemctl --quiet is-active "$unit" && [ ! -e ended ]; then
		journalctl --quiet --no-pager -u "$unit" -n 5 -o cat >dead 2>&1 || echo "It has no log." >dead
		names=dead
	fi
	for file in plan facts journal ended; do
		[ ! -e "$file" ] || names="$names $file"
	done
	for boot in boots/*; do
		case " $* " in
		*" ${boot#boots/} "*) continue ;;
		esac
		[ ! -e "$boot/outcome.whole" ] || names="$names $boot"
	done
	# shellcheck disable=SC2086
	tar -cf - $names
}

stop() {
	if [ ! -e "$run/journal" ]; then # somebody has removed it
		systemctl stop "$unit" 2>/dev/null || true
		remove_unit
		exit 0
	fi
	# shellcheck source=/dev/null
	. "$run/options"
	mark "$run/stop"
	systemctl stop "$unit" 2>/dev/null || true
	put_back "told to stop"
}

verb=${1:-}
[ $# -eq 0 ] || shift
case $verb in
check)
	take_options "$@"
	check
	;;
start) start "$@" ;;
resume) resume ;;
name-spare) name_spare "$@" ;;
go) go ;;
poll) poll "$@" ;;
result) cd "$run" && tar -czf - boots facts plan ;;
stop) stop ;;
*) sed -n 's/^#   //p' "$0" >&2 && exit 2 ;;
esac
