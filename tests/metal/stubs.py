# SPDX-License-Identifier: GPL-2.0-only
"""What a pretended machine has instead of systemd, boot loaders, disks, and a kernel that answers all jobs at once."""

import base64

LINE = b'{"seconds": 0.5, "read_bytes": 4096, "floor_bytes": 4096}'
"""What every program prints there."""

ENTER = """\
mount --rbind /usr "$1/usr"
if [ "$2" = protect ]; then mount -o remount,bind,ro "$1/usr"; fi
mount --bind /dev/null "$1/dev/null"
root=$1
shift 2
exec chroot "$root" /usr/bin/env -i PATH=/stubs:/usr/bin:/usr/sbin "$@"
"""

HIDE = """\
for name in $1; do
	for file in "/usr/bin/$name" "/usr/sbin/$name"; do
		[ ! -x "$file" ] || mount --bind /dev/null "$file"
	done
done
shift
exec "$@"
"""
"""Executes a command without some of the programs that are really there."""

FILES = {
    "proc/cmdline": "BOOT_IMAGE=/vmlinuz root=/dev/vda1 ro quiet\n",
    "proc/cpuinfo": "model name\t: Fast\n",
    "proc/iomem": "00001000-0009ffff : System RAM\n00100000-ffffffff : System RAM\n",
    "proc/meminfo": "MemTotal: 4194304 kB\n",
    "proc/sys/kernel/kexec_load_disabled": "0\n",
    "proc/sys/kernel/random/boot_id": "0\n",
    "sys/module/watchdog/parameters/stop_on_reboot": "0\n",
    "state/free": "99999999\n",
    "state/shell": "/bin/sh\n",
    "state/size": "2097152\n",
    "dev/null": "",
    "dev/zero": "\0" * (1 << 20),
}
DIRECTORIES = ("usr", "etc/systemd/system", "run/systemd/system", "sys/block", "var/lib", "state", "stubs", "tmp")

LOADER_INFO, ONE_SHOT = (
    f"/sys/firmware/efi/efivars/{name}-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
    for name in ("LoaderInfo", "LoaderEntryOneShot")
)
"""Where the kernel shows what systemd-boot and its users tell each other, after four bytes of something else."""

_ANSWERS = r"""s/.*"id": \(-\{0,1\}[0-9]*\), "step": \([0-9]*\),.*/{"event": "start", "id": \1, "step": \2}\
{"event": "output", "id": \1, "fd": 1, "data": "DATA"}\
{"event": "exit", "id": \1, "status": 0, "signal": 0, "oom_kills": 0, "cpu_us": 1}/p"""

MOMENT = """\
if [ -n "${UNIT:-}" ] && read -r left signal 2>/dev/null </state/kill; then
	if [ "$left" -gt 0 ]; then
		echo "$((left - 1)) $signal" >/state/kill.$$
		/usr/bin/mv /state/kill.$$ /state/kill
	else
		/usr/bin/rm /state/kill
		/usr/bin/mv /state/pid /state/killed
		kill -s "$signal" -- "-$(/usr/bin/cat /state/killed)"
	fi
fi
"""
"""The start of each stub: kills the unit if its count of programs has run out. Two stubs of a pipe run at once."""

FULL = 'case $2 in *.kernel) echo part >"$2"; echo "No space left" >&2; exit 1 ;; esac\nexec /usr/bin/cp "$@"\n'
"""A cp where kernels have no room."""

STUBS = {
    "systemctl": """\
for verb; do case $verb in --*) ;; *) break ;; esac; done
unit=/etc/systemd/system/foliolab-metal.service
case $verb in
start)
	[ -e $unit ] || exit 5
	[ ! -e /state/pid ] || exit 0
	echo >/state/pid
	rm -f /state/down
	command=$(sed -n 's/^ExecStart=//p' $unit)
	read -r shell </state/shell
	UNIT=1 setsid sh -c "echo \\$\\$ >/state/pid; $shell ${command#* }; rm -f /state/pid" </dev/null >>/state/log 2>&1 &
	;;
stop)
	[ ! -s /state/pid ] || kill -s TERM -- "-$(cat /state/pid)"
	rm -f /state/pid
	;;
is-active) [ -e /state/pid ] ;;
enable) : >/state/enabled ;;
disable) [ -e $unit ] && rm -f /state/enabled ;;
kexec | reboot)
	[ ! -e /state/stays ] || exit "$(cat /state/stays)"
	: >/state/down
	UNIT='' setsid reboot </dev/null >>/state/log 2>&1 &
	;;
esac
""",
    "reboot": f"""\
mkdir /state/rebooting 2>/dev/null || exit 0
rm -rf /state/starting
echo $$ >/state/rebooting/pid
[ ! -s /state/pid ] || kill -s KILL -- "-$(cat /state/pid)"
rm -f /state/pid
sync
entry=$(cat /state/next 2>/dev/null)
case $entry in
'') kernel='' ;;
*.conf)
	bootctl set-oneshot ''
	kernel=$(sed -n 's|^linux |/efi|p' "/efi/loader/entries/$entry")
	words=$(sed -n 's/^options //p' "/efi/loader/entries/$entry")
	;;
*)
	: >/state/next
	kernel=$(sed -n "/^menuentry .* --id $entry {{/,/^}}/s/^\tlinux '\\([^']*\\)' .*/\\1/p" /boot/grub/custom.cfg)
	words=$(sed -n 's/^\tlinux //p' /boot/grub/custom.cfg | tr -d "'")
	;;
esac
[ ! -s "$kernel" ] || echo "$(sha256sum <"$kernel") $words" >/state/loaded
if read -r times 2>/dev/null </state/falls && [ "$times" -gt 0 ]; then
	echo "$((times - 1))" >/state/falls
	rm -f /state/loaded
fi
if read -r hash line 2>/dev/null </state/loaded; then
	boot=$(echo "$line" | sed 's/.* foliolab_job=\\([^ ]*\\) .*/\\1/')
	rm /state/loaded
	read -r kernel _ <"$boot/kernel"
	if [ "$hash" = "$kernel" ]; then
		{{
			echo '{{"event": "ready", "page_size": 4096}}'
			sed -n '{_ANSWERS.replace("DATA", base64.b64encode(LINE).decode())}' "$boot/requests"
			echo '{{"event": "end"}}'
		}} >"$boot/answers"
		[ ! -e /state/writes ] || sh /state/writes
		sync
		echo "$boot" >>/state/boots
	fi
fi
date +%s%N >/proc/sys/kernel/random/boot_id
mv /state/rebooting /state/starting # The machine is up, and may be rebooted again.
{{ [ -e /state/enabled ] && systemctl start; }} || rm -f /state/down
rm -rf /state/starting
""",
    "kexec": """\
case $1 in
-l) echo "$(sha256sum <"$2") $*" >/state/loaded ;;
-u) rm -f /state/loaded ;;
esac
""",
    "lsblk": """\
case $* in
*PARTUUID*) echo 1234 ;;
*TYPE*) echo part ;;
*MOUNTPOINT*) [ ! -e /state/mounted ] || cat /state/mounted ;;
*NAME*) echo vdb && [ ! -e /state/partition ] || echo vdb1 ;;
*SIZE*) cat /state/size ;;
*) echo "Disk nvme" ;;
esac
""",
    "bootctl": f"""\
case $1 in
--print-boot-path) [ -d /efi ] && echo /efi ;;
set-oneshot)
	rm -f /state/next '{ONE_SHOT}'
	[ -z "$2" ] || {{ echo "$2" >/state/next && printf '0000%s' "$2" >'{ONE_SHOT}'; }}
	;;
esac
""",
    "grub-reboot": 'echo "$1" >/state/next\n',
    "grub-editenv": """\
case $2 in
list) [ ! -e /state/next ] || echo "next_entry=$(cat /state/next)" ;;
unset) rm /state/next ;;
esac
""",
    "grub-mkrelpath": 'echo "$1"\n',
    "nproc": "echo 4\n",
    "findmnt": "case $* in *SOURCE*) echo /dev/vda1 ;; *UUID*) echo 12-34 ;; *) echo ext4 ;; esac\n",
    "df": "echo Avail; cat /state/free\n",
    "journalctl": "tail -n 5 /state/log\n",
    "blkid": "exit 2\n",
    "sync": """\
[ $# -gt 0 ] || set -- /var/lib /etc/systemd/system
find "$@" -type f -printf '%i %s %T@\\n' >>/state/synced
""",
    **dict.fromkeys(("losetup", "wdctl", "wipefs"), ""),
    **{name: f'exec /usr/bin/{name} "$@"\n' for name in ("cat", "cp", "dd", "gzip", "mkdir", "mv", "rm", "rmdir")},
}
