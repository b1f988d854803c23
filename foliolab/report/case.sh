#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
@about@
set -eu
export LC_ALL=C
name=@name@
memory=@memory@	# bytes
windows='@windows@'	# KiB

# Whatever ends this.
before='' child='' group='' place='' root='' procs=/dev/null
clean_up() {
	set +e
	trap '' HUP INT TERM
	[ -z "$child" ] || { kill "$child" && wait "$child"; } 2>/dev/null
	printf %s "$before" | while read -r file value; do echo "$value" >"$file"; done
	[ ! -d "$group" ] || rmdir "$group" || { sleep 1 && rmdir "$group"; }
	[ ! -d "$place" ] || rm -rf "$place"
}
trap clean_up EXIT
trap 'exit 130' HUP INT TERM

die() { echo "$0: $*" >&2; exit 1; }

set_to() {	# FILE VALUE; clean_up puts back what is there now
	before="$1 $(cat "$1")
$before"
	echo "$2" >"$1"
}

rows() {	# SETTING [OPTION...]: one row for each window
	setting=$1
	shift
	for kb in $windows; do
		[ -z "$root" ] || set_to "$window" "$kb"
		sh -c 'echo $$ >"$0" && exec "$@"' "$procs" "$program" \
			@options@ "$@" >"$place/result" &
		child=$!
		wait "$child" || die "the program failed."
		child=''
		tr , '\n' <"$place/result" | awk -F '[^a-z_0-9.]+' -v kb="$kb" -v setting="$setting" '
			function mib(n) { return n ~ /^[0-9]/ ? sprintf("%.1f", n / 1048576) : "-" }
			{ of[$2] = $3 }
			END { printf "@form@\n", kb, setting, mib(of["floor_bytes"]), mib(of["read_bytes"]),
				of["read_requests"], of["major_faults"], sprintf("%.3f", of["seconds"]) }'
	done
}

cells() {	# WORDS [OPTION...]: the rows of all, with WORDS behind their names
	words=$1
	shift
@cells@
}

[ -d "${1-}" ] || die "which directory has room for the data?"
place=$(mktemp -d "$1/$name.XXXXXX")
chmod 755 "$place"	# the program may have processes of another user
number=$(stat -c %d "$place")
device=/sys/dev/block/$((number >> 8 & 0xfff)):$((number & 0xff | number >> 12 & 0xfff00))
[ -d "$device/queue" ] || device=$device/..	# from a partition to its disk
window=$device/queue/read_ahead_kb
[ -f "$window" ] || die "$1 is on no block device whose reads are counted, as on tmpfs or btrfs."
program=${2-$place/program}
[ $# -gt 1 ] || cc -O2 -pthread -o "$program" "${0%.sh}.c"

if [ "$(id -u)" = 0 ]; then
	root=yes
	group=/sys/fs/cgroup/$name
	control=/sys/fs/cgroup/cgroup.subtree_control
	{
		grep -qw memory "$control" || { echo +memory >"$control" && before="$control -memory
"; }
		mkdir -p "$group"
	} 2>/dev/null || :
	if [ -f "$group/memory.max" ]; then
		echo "$memory" >"$group/memory.max"
		procs=$group/cgroup.procs
	else
		echo "$0: no control group limits memory here." >&2
	fi
else
	windows=$(cat "$window")
	echo "$0: without root, the window stays as it is, memory is not limited, and only the data leaves the cache." >&2
fi

@data@
sync
echo '@titles@'
cells ''
@hinted@
rules=$(ls @rules@ 2>/dev/null) || :
if [ -n "$root" ] && [ -n "$rules" ]; then
	for rule in $rules; do set_to "$rule" 0; done
	cells @off@
fi
