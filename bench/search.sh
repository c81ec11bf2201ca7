#!/bin/sh
# Times the stages of a search for a budget of loss on a GPU, at the shapes of a model of 8 B weights.
#
#   CGO_ENABLED=0 go test -c -o transform.test ./transform
#   CGO_ENABLED=0 go test -c -o rounder.test ./gemm/cuda/rounder
#   bench/search.sh FOLDER [BLOCKS [MODELS]]
#
# The two programs are in the current folder. FOLDER gets the records search-*.txt and needs 50 GB of disk for 32 blocks:
# statistics and the result. MODELS, by default FOLDER/temporary, gets the model (16 GB) and may be a folder in memory.
# Models are removed in the end. BLOCKS is 32 unless given. The script takes about ten minutes on an H200 with 16 cores.
set -eu
mkdir -p "$1"
out=$(realpath "$1") blocks=${2:-32}
work=$out/temporary
models=${3:-$work}
mkdir -p "$models" "$work"
df -h "$out" "$models" > "$out/search-machine.txt"
free -g >> "$out/search-machine.txt"
timeout 120 ./rounder.test -test.v -test.run GPU > "$out/search-bits.txt" 2>&1 || true
timeout 120 ./rounder.test -test.run NONE -test.bench GPU -test.benchtime 5x > "$out/search-kernels.txt" 2>&1 || true
# timed BLOCKS SECONDS: the model is made first, which counts for SECONDS.
timed() {
	model=$models/search-$1
	mkdir -p "$model"
	BLOCKS=$1 FOLDER=$model STATISTICS=$work timeout "$2" ./transform.test -test.v -test.run GPUSearchTime \
		-test.cpuprofile "$out/search-$1.pprof" > "$out/search-$1.txt" 2>&1 || true
	rm -rf "$model" "$work/out" "$work/search"
	tail -24 "$out/search-$1.txt"
}
timed 2 150
timed "$blocks" 520
rm -rf "$work"
