#!/usr/bin/env bash
# part.sh LOWTOGGLE MODEL PLAN PART FOLDER [TIMES]: measures the time of one part of a conversion, relative to cp and sync of its
# file. Both write into FOLDER, in turns, TIMES times (default 3). Prints each run's wall time, processor time and peak memory, and
# then the ratio of the medians. Run it on a machine without other work. For DeepSeek-V3 as in docs/scale.md:
#   bench/part.sh ./lowtoggle V3 plan.json 65/163 .          # the part that writes the file with all values
set -euo pipefail
lowtoggle=$(realpath "$1") model=$2 plan=$3 part=$4 folder=$5 times=${6:-3}
out=$folder/part.$$
trap 'rm -rf "$out" "$out.partial" "$out.copy" "$out.times"' EXIT
timed() { # NAME COMMAND...
	sync
	sleep 1
	/usr/bin/time -a -o "$out.times" -f "$1 %e s, %U s user, %S s system, %M KB" "${@:2}" > /dev/null
	tail -n 1 "$out.times"
}
median() { awk -v name="$1" '$1 == name {print $2}' "$out.times" | sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }
"$lowtoggle" convert "$model" "$out" --plan "$plan" --part "$part" -q > /dev/null # also fills the page cache
file=$(basename "$out.partial/result/"*.safetensors)
for ((i = 0; i < times; i++)); do
	timed cp sh -c 'cp "$1" "$2" && sync' sh "$model/$file" "$out.copy"
	rm -rf "$out.copy" "$out.partial"
	timed part "$lowtoggle" convert "$model" "$out" --plan "$plan" --part "$part" -q
	rm -rf "$out.partial"
done
echo "$file: $(median part) $(median cp)" | awk '{printf "%s medians: part %.2f s, cp and sync %.2f s, ratio %.2f\n", $1, $2, $3, $2 / $3}'
