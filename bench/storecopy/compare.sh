#!/usr/bin/env bash
# compare.sh LOWTOGGLE VERSITYGW [TIMES]: a conversion of a Llama of 2 GB between two folders of a bucket, relative to a copy with the
# same client through the same server. Prints for each run the wall time, and the processor time of client and server, and then the
# ratio of the medians. VERSITYGW is the server of github.com/versity/versitygw/cmd/versitygw; it and the model lie in memory
# (/dev/shm, 7 GB). The server keeps connections open, as stores do. Run in the repository on a machine without other work.
set -euo pipefail
lowtoggle=$(realpath "$1") versitygw=$(realpath "$2") times=${3:-3}
work=$(mktemp -d /dev/shm/storecopy.XXXX)
server=
trap '[[ -z $server ]] || kill "$server"; rm -rf "$work"' EXIT
go build -o "$work/storecopy" ./bench/storecopy
cat > "$work/config.json" <<'JSON'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 15,
 "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 8192, "rms_norm_eps": 1e-5, "tie_word_embeddings": false,
 "torch_dtype": "bfloat16", "max_position_embeddings": 2048, "rope_theta": 10000.0, "hidden_act": "silu"}
JSON
mkdir -p "$work/store/models" "$work/tmp"
"$lowtoggle" synth "$work/config.json" "$work/store/models/m" --shard-size 450000000 -q > /dev/null
export AWS_ACCESS_KEY_ID=bench AWS_SECRET_ACCESS_KEY=bench-secret AWS_REGION=us-east-1 AWS_ENDPOINT_URL=http://127.0.0.1:17070
export ROOT_ACCESS_KEY=$AWS_ACCESS_KEY_ID ROOT_SECRET_KEY=$AWS_SECRET_ACCESS_KEY
"$versitygw" --quiet --keep-alive --port 127.0.0.1:17070 posix "$work/store" > "$work/log" 2>&1 &
server=$!
until "$lowtoggle" inspect --help > /dev/null && (exec 3<> /dev/tcp/127.0.0.1/17070) 2> /dev/null; do kill -0 "$server"; sleep 0.2; done

ticks() { awk '{print $14 + $15}' "/proc/$server/stat"; }
run() { # NAME COMMAND...
	local name=$1 before after spent
	shift
	rm -rf "$work/store/models/out"
	before=$(ticks)
	spent=$({ TIMEFORMAT='%R %U %S'; time "$@" > /dev/null; } 2>&1)
	after=$(ticks)
	echo "$name $spent $before $after" | awk -v hz="$(getconf CLK_TCK)" '{printf "%-8s wall %6.2f s  client %6.2f s  server %6.2f s  both %6.2f s\n", $1, $2, $3 + $4, ($6 - $5) / hz, $3 + $4 + ($6 - $5) / hz}' | tee -a "$work/times"
}
run warm "$work/storecopy" s3://models/m s3://models/out
for ((i = 0; i < times; i++)); do
	run copy "$work/storecopy" s3://models/m s3://models/out
	run convert "$lowtoggle" convert s3://models/m s3://models/out --passes round=4 -q
done
median() { awk -v name="$1" -v column="$2" '$1 == name {print $column}' "$work/times" | sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }
for column in 3 12; do # wall time, and processor time of both
	echo "$(median convert $column) $(median copy $column)" | awk -v what="$([[ $column == 3 ]] && echo 'wall time' || echo 'processor time')" '{printf "%s, medians: %.2f s and %.2f s, ratio %.2f\n", what, $1, $2, $1 / $2}'
done
