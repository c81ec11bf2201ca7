#!/bin/bash
# bytes.sh [VARIANT...]: converts all frozen models (TestFrozen) for other processors and with other builds. Records in
# bench/results/bytes/variants.json which of them gave the frozen bytes. Run it in the folder of go.mod, on amd64 with AVX-512.
# ONLY=PATTERN takes the conversions that match. arm64 needs qemu-aarch64 (Debian: qemu-user-static).
set -eu
only=${ONLY:-}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
build() { # NAME, then variables of the environment
	[ -e "$scratch/$1" ] || env CGO_ENABLED=0 "${@:2}" go test -vet=off -tags nogpu -c -o "$scratch/$1" .
}
frozen() { # VARIANT COMMAND...
	echo "$1"
	"${@:2}" -test.run '^TestFrozen$' -test.timeout 12h -frozen-variant "$1" -frozen-only "$only"
}
[ $# -gt 0 ] || set -- v1 v3 all avx2 avx512 fma arm64
for variant; do
	case $variant in
	v1) build v1 GOAMD64=v1 && frozen "amd64 v1" "$scratch/v1" ;;
	v3) build v3 GOAMD64=v3 && frozen "amd64 v3" "$scratch/v3" ;;
	all) build v1 GOAMD64=v1 && GODEBUG=cpu.all=off frozen "amd64 v1, cpu.all=off" "$scratch/v1" ;;
	avx2) build v1 GOAMD64=v1 && GODEBUG=cpu.avx2=off frozen "amd64 v1, cpu.avx2=off" "$scratch/v1" ;;
	avx512) build v1 GOAMD64=v1 && GODEBUG=cpu.avx512=off,cpu.avx512f=off frozen "amd64 v1, cpu.avx512f=off" "$scratch/v1" ;;
	fma) build v1 GOAMD64=v1 && GODEBUG=cpu.fma=off frozen "amd64 v1, cpu.fma=off" "$scratch/v1" ;;
	arm64) build arm64 GOARCH=arm64 && frozen "arm64 under QEMU" qemu-aarch64 "$scratch/arm64" ;;
	*) echo "unknown variant $variant" >&2 && exit 1 ;;
	esac
done
