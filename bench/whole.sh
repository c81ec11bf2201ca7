#!/bin/sh
# Measures whole models on a GPU and writes the records of docs/whole-model.md.
#
#   bench/whole.sh LOWTOGGLE FOLDER
#
# LOWTOGGLE is the program. FOLDER gets the models (25 GB) and the records whole-*.json. If PyTorch is installed for
# python3, it measures the same models. TIME is the measuring time of each step (default 30s).
set -eu
lowtoggle=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
mkdir -p "$2"
cd "$2"
time=${TIME:-30s}

cat > config.json <<'JSON'
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
 "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 32000,
 "max_position_embeddings": 8192, "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": false,
 "torch_dtype": "bfloat16", "hidden_act": "silu", "attention_bias": false, "mlp_bias": false}
JSON
[ -d model ] || "$lowtoggle" synth config.json model --quiet

# record NAME PASSES FLAGS-OF-CONVERT FLAGS-OF-VERIFY
record() {
	[ -d "$1" ] || "$lowtoggle" convert model "$1" --passes "$2" $3 --quiet --json > "plan-$1.json"
	"$lowtoggle" verify model "$1" --gpu --whole $4 --time "$time" --precision 0.2% --json --quiet > "verify-$1.json" || [ $? = 3 ]
	python3 - "$1" "$2${3:+ $3}" <<'PY'
import json, sys
name, passes = sys.argv[1:]
report = json.load(open(f"verify-{name}.json"))
snr = [t["snr_db"] for t in report["tensors"] if t.get("snr_db") is not None]
json.dump({"passes": passes, "lowest_snr_db": min(snr), "energy": report["energy"]["whole"]}, open(f"whole-{name}.json", "w"))
PY
}
record fine scale,grid "--min-snr 31" "--batch 1,16 --prompt 4096"
record coarse scale,grid=4 "" "--batch 1,16,64,256 --prompt 4096"
if python3 -c 'import torch' 2> /dev/null; then
	python3 "$here/whole.py" model --seconds 0 > whole-pytorch.json
	python3 "$here/whole.py" model coarse --batch 16 --seconds 2.5 > whole-pytorch-energy.json
fi
