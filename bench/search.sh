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
out=$(realpath "$1") blocks=${2:-32} models=${3:-$1/temporary}
mkdir -p "$models" "$out/temporary"
df -h "$out" "$models" > "$out/search-machine.txt"
free -g >> "$out/search-machine.txt"
timeout 120 ./rounder.test -test.v -test.run GPU > "$out/search-bits.txt" 2>&1 || true
timeout 120 ./rounder.test -test.run NONE -test.bench GPU -test.benchtime 5x > "$out/search-kernels.txt" 2>&1 || true
BLOCKS=2 FOLDER="$models/two" sh -c 'mkdir -p "$FOLDER"; exec timeout 150 ./transform.test -test.v -test.run GPUSearchTime -test.cpuprofile '"$out/search-2.pprof" > "$out/search-2.txt" 2>&1 || true
rm -rf "$models/two"
tail -22 "$out/search-2.txt"
BLOCKS=$blocks FOLDER="$models/all" STATISTICS="$out/temporary" sh -c 'mkdir -p "$FOLDER"; exec timeout 500 ./transform.test -test.v -test.run GPUSearchTime -test.cpuprofile '"$out/search-$blocks.pprof" > "$out/search-$blocks.txt" 2>&1 || true
tail -30 "$out/search-$blocks.txt"
rm -rf "$models/all" "$out/temporary" "$models"
