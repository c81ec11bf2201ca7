#!/bin/sh
# Measures whole models on a GPU and writes the records of docs/whole-model.md.
#
#   bench/whole.sh LOWTOGGLE FOLDER
#
# LOWTOGGLE is the program. FOLDER gets the models (60 GB) and the records whole-*.json. The script takes twenty minutes on
# an H200 with 16 cores. TURNS=2 measures twice as long. PARTS names the records to make; the default is all of them:
#   prefill, decode  plans of one or two passes
#   recipes          near-lossless and balanced, for prefill and for decode
#   pytorch          the same models measured by lowtoggle and then by PyTorch
#   batches          other batch sizes
#   predicted        predicted energy of the linear layers alone; needs no card
# To try the script, set SMALL=1 (one block, short steps) and CARD=simulated (a simulated card).
set -eu
lowtoggle=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
mkdir -p "$2"
cd "$2"
turns=${TURNS:-1} parts=${PARTS:-prefill decode recipes pytorch batches predicted} card=${CARD:-0} blocks=16 context=1024 prompt=4096
[ -z "${SMALL:-}" ] || blocks=1 context=64 prompt=128
said() { echo "$(($(date +%s) - begin)) s: $1" >&2; }
begin=$(date +%s)

cat > config.json <<JSON
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
 "num_hidden_layers": $blocks, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 32000,
 "max_position_embeddings": 8192, "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": false,
 "torch_dtype": "bfloat16", "hidden_act": "silu", "attention_bias": false, "mlp_bias": false}
JSON
[ -d model ] || "$lowtoggle" synth config.json model --quiet
said model

# convert NAME PASSES WORKLOAD PART...: makes an output if one of the parts is wanted, and records the SNR of its layers. PASSES may be
# "recipe NAME".
convert() {
	name=$1 passes=$2 workload=$3
	shift 3
	for part; do
		case " $parts " in *" $part "*)
			case $passes in recipe*) option=--recipe ;; *) option=--passes ;; esac
			[ -d "$name" ] || "$lowtoggle" convert model "$name" "$option" "${passes#recipe }" --workload "$workload" --quiet > /dev/null
			"$lowtoggle" verify model "$name" --json --quiet > "verify-$name.json"
			case $passes in
			recipe*) [ "$workload" = prefill ] && echo "--$passes" || echo "--$passes --workload $workload" ;;
			*) echo "$passes" ;;
			esac > "passes-$name.txt"
			said "$name"
			return
		esac
	done
}
convert round4 round=4 prefill prefill decode pytorch &
convert grid4 grid=4 prefill prefill decode pytorch &
convert uncached scale=uncached,grid=4 decode decode batches &
convert fine-decode scale=uncached,trellis=0.07 decode decode &
convert fine-prefill trellis=0.19 prefill prefill &
convert near "recipe near-lossless" prefill recipes &
convert balanced "recipe balanced" prefill recipes &
convert near-decode "recipe near-lossless" decode recipes &
convert balanced-decode "recipe balanced" decode recipes &
wait

# record NAME FLAGS OUT OTHERS...: each model is measured at the addresses of every other, so the time grows with the
# square of their number.
record() {
	name=$1 flags=$2 out=$3
	shift 3
	also=$(echo "$*" | tr ' ' ,)
	models=$(($# + 3))
	"$lowtoggle" verify model "$out" --gpu --whole --device "$card" $flags ${also:+--also "$also"} --time $((turns * models * models * 3 + 4))s \
		--precision 0.1% --json --quiet > "verify-$out.json" || [ $? = 3 ]
	python3 - "$name" "$out" "$@" <<'PY'
import json, sys
name, *outs = sys.argv[1:]
def plan(out):
    snr = [t["snr_db"] for t in json.load(open(f"verify-{out}.json"))["tensors"] if t.get("snr_db") is not None]
    return {"passes": open(f"passes-{out}.txt").read().strip(), "lowest_snr_db": round(min(snr), 2)}
energy = json.load(open(f"verify-{outs[0]}.json"))["energy"]["whole"]
json.dump({**plan(outs[0]), "others": [plan(o) for o in outs[1:]], "energy": energy}, open(f"whole-{name}.json", "w"))
for s in energy["steps"]:
    print(s["phase"], s["batch"], "copy", s["run"]["null"].get("relative_energy"), s["run"]["null"].get("interval"), outs[0], s.get("relative_energy"), s.get("interval"),
          *((o["model"], o.get("relative_energy"), o.get("interval")) for o in s.get("others", [])), s["run"].get("invalid"))
PY
	said "$name"
}
for part in $parts; do
	case $part in
	prefill) record prefill "--batch none --prompt $prompt" grid4 round4 fine-prefill ;;
	decode) record decode "--batch 16 --context $context --prompt 0" uncached grid4 round4 fine-decode ;;
	recipes)
		record recipes-prefill "--batch none --prompt $prompt" balanced near
		record recipes-decode "--batch 16,64 --context $context --prompt 0" balanced-decode near-decode near
		record recipes-32 "--batch 32 --context $context --prompt 0" balanced-decode near-decode near
		;;
	pytorch)
		record both "--batch 16 --context $context --prompt $prompt" grid4 round4
		python3 -c 'import torch' || continue
		python3 "$here/whole.py" model round4 grid4 --batch 16 --context $context --prompt $prompt --turns $((3 * turns)) > whole-pytorch-energy.json || said "PyTorch failed"
		said PyTorch
		;;
	batches) record batches "--batch 1,64 --context $context --prompt 0" uncached ;;
	predicted)
		for passes in grid=16 round=4 grid=11 trellis=0.19 grid=8 trellis=2 grid=4 grid=2 grid=1; do
			convert predicted "$passes" prefill predicted
			"$lowtoggle" predict --w 'model:model.layers.*' --against 'predicted:model.layers.*' --shape 4096 --json --quiet > predicted.json
			python3 - <<'PY'
import json
snr = [t["snr_db"] for t in json.load(open("verify-predicted.json"))["tensors"] if t.get("snr_db") is not None and "layers" in t["name"]]
energy = json.load(open("predicted.json"))["predictions"][1]["over_w"]
print(json.dumps({"passes": open("passes-predicted.txt").read().strip(), "lowest_snr_db": round(min(snr), 2), **energy}))
PY
			rm -r predicted
		done > predictions.txt
		python3 -c 'import json, sys; json.dump({"predictions": [json.loads(line) for line in sys.stdin]}, open("whole-predicted.json", "w"), indent=1)' < predictions.txt
		said predicted
		;;
	esac
done
