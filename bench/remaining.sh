#!/bin/sh
# Makes the missing measurements that docs/remaining.md lists, and writes the records from which pages are generated.
#
#   bench/remaining.sh LOWTOGGLE FOLDER [PART...]
#
# LOWTOGGLE is the program. BENCH is the program of the tests (go test -c ./bench), by default bench.test beside LOWTOGGLE.
# FOLDER has the layout of bench/results/h200. Before the run, copy the records that are to be continued into FOLDER:
# null-pooled.json and reproduce/. After the run, copy FOLDER to bench/results/h200, and run the tests of the pages with -update.
# A record takes at most nine minutes. If the command is repeated, it continues points and seeds, adds records of cards and null,
# and skips other records that FOLDER has. PART is one of these; the default is all in this order:
#   cards        six plans in prefill, below the cap and in decode, on this card
#   null         comparisons of equal weights
#   copy         power over time of a GEMV and of a copy
#   2048         power over time of a GEMM of 2048³
#   components   kernels to which the component model is fitted
#   duty         decode in bursts with gaps
#   collectives  all-reduce and all-gather during a GEMM in prefill and in decode; needs two cards and NCCL
#   overtime     power over time of these collectives and GEMMs, on both cards, and its split by component
#   points       points of docs/reproduce.md with both operands at 8192³
#   seeds        main points of docs/reproduce.md from ten seeds
# To try the script, set SMALL=1 (small matrices, short times) and DEVICE=simulated. DEVICE is the number of the card, by default 0.
# PAIR has the numbers of the two cards of collectives and overtime, by default 0,1.
set -eu
lowtoggle=$(realpath "$1")
bench=$(realpath "${BENCH:-$(dirname "$lowtoggle")/bench.test}")
mkdir -p "$2/cards" "$2/components" "$2/reproduce"
cd "$2"
folder=$(pwd)
shift 2
[ $# -gt 0 ] || set -- cards null copy 2048 components duty collectives overtime points seeds
device=${DEVICE:-0} pair=${PAIR:-0,1} side=8192 runs='' length=200ms cards=75s window=1s nulls=4 null=45s minutes=8m shape=16x8192x8192 large=8192x8192x8192 exchange=12s few=''
if [ -n "${SMALL:-}" ]; then
	side=256 runs='--runs 4' length=100ms cards=1s window=500ms nulls=2 null=1s minutes=5s shape=16x512x512 large=256x256x256 exchange=4s few='--size 2048 --quick --only 3a'
fi

# on TEST: the flag of a test that names the card.
on() {
	[ "$device" = simulated ] && echo "-$1-simulated" || echo "-$1-device=$device"
}

# missing FILE: succeeds if the record does not exist. A record gets its name when it is complete.
missing() {
	[ ! -e "$1" ] || { echo "$1: measured already" >&2; return 1; }
}

# short FILE CODE: runs Python code that prints a short table of the record r.
short() {
	python3 -c 'import gzip, json, sys
f = sys.argv[1]
r = json.load(gzip.open(f) if f.endswith(".gz") else open(f))
'"$2" "$1"
}

# status COMMAND...: runs a command. Exit status 3 is not an error: the result is less precise than asked, or incomplete.
status() {
	"$@" || [ $? = 3 ]
}

# together: sets the pair of cards and NCCL's options. NCCL uses no multicast, because not every host allows it.
together() {
	[ "$device" != simulated ] || pair=simulated,simulated
	export NCCL_NVLS_ENABLE=0
}

# profile NAME FLAGS...: the record profile-NAME.json.gz of power over time.
profile() {
	record=profile-$1.json.gz
	shift
	missing "$record" || return 0
	status "$lowtoggle" profile --device "$device" "$@" --length $length --idle 300ms --bursts 6 $runs --time 8m --seed 1 --json --readings --quiet > profile.tmp
	gzip -9 < profile.tmp > "$record.tmp"
	rm profile.tmp
	mv "$record.tmp" "$record"
	short "$record" 'for p in r["profiles"]:
    s = p["steady"]["ssp"]
    print(f, "runs", p["runs_taken"], "of", p["runs_advised"], "steady", s.get("found"), s.get("watts"), "W, readings", p.get("logs_of_interest"))'
}

# series FLAGS...: continues the series of the first paper's experiments.
series() {
	status "$lowtoggle" reproduce "$folder/reproduce" --device "$device" --time $minutes --quiet $few "$@" | tail -n 3
}

for part; do
	echo "== $part" >&2
	case $part in
	cards)
		"$bench" -test.run '^TestGPUCards$' -cards "$folder/cards" "$(on cards)" -cards-side $side -cards-time $cards -test.timeout 9m \
			-test.v > cards.log || { cat cards.log >&2; exit 1; }
		grep -v '^[=-]' cards.log | sed 's/^ *cards_gpu_test.go:[0-9]*: //'
		;;
	null)
		"$bench" -test.run '^TestGPUNull$' -null "$folder" "$(on null)" -null-side $side -null-runs $nulls -null-time $null \
			-null-window $window -test.timeout 9m -test.v > null.log || { cat null.log >&2; exit 1; }
		grep copy null.log | sed 's/^ *null_gpu_test.go:[0-9]*: //'
		;;
	copy)
		profile gemv --shape 1x${side}x$side
		profile copy --copy 500MB
		;;
	2048)
		profile 2048 --shape 2048x2048x2048
		;;
	components)
		status "$lowtoggle" calibrate "$folder/components/new" --components --device "$device" --quiet > components.log
		tail -n 12 components.log
		short components/new-components.json 'import os
watts = sorted(k["watts"] for k in r["readings"])
print(len(watts), "readings of", round(watts[0]), "to", round(watts[-1]), "W;", sum(150 < w < 213 for w in watts), "of 150 to 213 W")
os.rename(f, "components/" + r.get("card_id", "simulated") + ".json")'
		;;
	duty)
		missing duty-decode.json || continue
		status "$lowtoggle" measure --device "$device" --cold --shape $shape --duty 1,0.6,0.3 --window $window --precision 0.1% --time ${DUTY_TIME:-2m} \
			--against 'normal(0,0.02) | round(4)' --against 'normal(0,0.02) | grid(4)' --against zeros --json --quiet > duty.tmp
		mv duty.tmp duty-decode.json
		short duty-decode.json 'for d in [r] + r.get("at_duty", []):
    print("duty", d["pacing"]["duty"], round(d["baseline"]["watts"]), "W, copy", d["null"].get("relative_energy"))
    for v in d["variants"]:
        print(" ", v["name"], v.get("relative_energy"), v.get("interval"), "time", v.get("relative_time"))'
		;;
	collectives)
		together
		for op in allreduce allgather; do
			for phase in prefill decode; do
				record=collective-$op-$phase.json
				missing "$record" || continue
				if [ $phase = prefill ]; then sizes=$large; else sizes=$shape; fi
				status "$lowtoggle" measure --collective $op --device "$pair" --shape "$sizes" --window $window --precision 0.1% --time $exchange \
					--against 'normal(0,0.02) | round(4)' --against 'normal(0,0.02) | grid(4)' --against zeros --json --quiet > collective.tmp
				mv collective.tmp "$record"
				short "$record" 'print(f, r["bytes"], "bytes; bus", round(r["bandwidth"]["bus_bytes_per_second"] / 1e9, 1), "GB/s; hidden", r.get("hidden_share"))
for name in "alone", "products", "both":
    d = r[name]
    print(" ", name, d["baseline"]["joules"], "J", d["baseline"]["seconds"], "s", d["baseline"]["watts"], "W, copy", d["null"].get("relative_energy"), d["null"].get("interval"))
    for v in d["variants"]:
        print("   ", v["name"], v.get("relative_energy"), v.get("interval"), "time", v.get("relative_time"))'
			done
		done
		;;
	overtime)
		together
		for op in allreduce allgather; do
			for phase in prefill decode; do
				record=overtime-$op-$phase.json.gz
				missing "$record" || continue
				if [ $phase = prefill ]; then sizes=$large; else sizes=$shape; fi
				status "$lowtoggle" profile --collective $op --device "$pair" --shape "$sizes" --length $length --idle 300ms --bursts 6 $runs \
					--time 8m --seed 1 --json --readings --quiet > overtime.tmp
				gzip -9 < overtime.tmp > "$record.tmp"
				rm overtime.tmp
				mv "$record.tmp" "$record"
				short "$record" 'print(f, r["bytes"], "bytes, runs", [p["runs_taken"] for p in r["cards"][0]["profiles"]])
for p in r.get("parts", []):
    print(" ", p["card"], p["work"], round(p["seconds"] * 1e6, 1), "us", round(p["watts"]), "W, idle", round(p["idle_watts"]), [round(p[k]) for k in ("multipliers_watts", "on_chip_watts", "hbm_watts") if k in p], "rest", round(p["rest_watts"]))'
			done
		done
		;;
	points) series --size 8192 --change both ;;
	seeds) series --seeds 10 ;;
	*)
		echo "unknown part $part" >&2
		exit 2
		;;
	esac
done
