#!/usr/bin/env bash
# Measures energy per token of two models behind servers built on transformers, with a copy of the first as the null:
#
#     bench/serve/run.sh LOWTOGGLE MODEL_A MODEL_B OUT.json [flags of measure]
#
# LOWTOGGLE is the program. All three servers run on one card at the same time. The record is written to OUT.json and
# the servers' logs to OUT.json.logs. The exit status is that of lowtoggle. Environment, with defaults: DEVICE=0,
# TIME=5m, LIMIT=600 (the run is interrupted after this many seconds), PYTHON=python3, SERVER_FLAGS.
set -euo pipefail

if (($# < 4)); then
	sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
	exit 2
fi
lowtoggle=$1 model_a=$2 model_b=$3 out=$4
shift 4
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${PYTHON:-python3}
logs=$out.logs
mkdir -p "$logs"

servers=()
stop() {
	local pid
	for pid in "${servers[@]}"; do kill "$pid" 2>/dev/null || true; done
	wait 2>/dev/null || true
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

serve() { # name, model
	rm -f "$logs/$1.port"
	# shellcheck disable=SC2086 # flags are words
	HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 TOKENIZERS_PARALLELISM=false \
		"$python" "$here/server.py" "$2" --port-file "$logs/$1.port" ${SERVER_FLAGS:-} >"$logs/$1.log" 2>&1 &
	servers+=($!)
}

ready() { # name, pid
	local begin=$SECONDS
	until [[ -s $logs/$1.port ]]; do
		if ! kill -0 "$2" 2>/dev/null; then
			printf 'server %s ended before it was ready; the end of %s:\n' "$1" "$logs/$1.log" >&2
			tail -n 20 "$logs/$1.log" >&2
			exit 1
		fi
		if ((SECONDS - begin > 180)); then
			printf 'server %s is not ready after 180 s; see %s\n' "$1" "$logs/$1.log" >&2
			exit 1
		fi
		sleep 0.2
	done
}

vocabulary() { # of both models
	"$python" - "$@" <<'END'
import json, sys
def size(folder):
    config = json.load(open(folder + "/config.json"))
    return config.get("vocab_size") or config["text_config"]["vocab_size"]
print(min(size(folder) for folder in sys.argv[1:]))
END
}

vocab=$(vocabulary "$model_a" "$model_b")
serve a "$model_a"
serve copy "$model_a"
serve b "$model_b"
ready a "${servers[0]}"
ready copy "${servers[1]}"
ready b "${servers[2]}"
url() { printf 'http://127.0.0.1:%s/v1' "$(<"$logs/$1.port")"; }

status=0
timeout -s INT $((${LIMIT:-600} - SECONDS)) "$lowtoggle" measure --device "${DEVICE:-0}" --time "${TIME:-5m}" --vocab "$vocab" --json \
	--serve "a=$(url a)" --serve "b=$(url b)" --null "copy=$(url copy)" "$@" >"$out.partial" || status=$?
[[ ! -s $out.partial ]] || mv "$out.partial" "$out"
rm -f "$out.partial"
if [[ -s $out ]]; then
	"$python" - "$out" <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
def line(name, c):
    ratio = c.get("relative_energy")
    low, high = c.get("interval") or (None, None)
    change = f"{100 * (ratio - 1):+.2f} % ({100 * (low - 1):+.2f} … {100 * (high - 1):+.2f})" if ratio and low else "–"
    print(f"{name:10} {c.get('joules', 0):.4f} J/token {c.get('tokens_per_second', 0):.1f} tokens/s {c.get('watts', 0):.0f} W {change}")
line("a", r["baseline"])
if r.get("null"):
    line("copy", r["null"])
for v in r["variants"]:
    line(v["name"], v)
print("valid" if r["valid"] else "INVALID: " + "; ".join(r["invalid"]))
END
fi
exit "$status"
