package runner

import (
	"context"
	_ "embed"
	"errors"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
)

// The kernels, in CUDA C++ without any header.
var (
	//go:embed kernels/element.cu
	elementSource string
	//go:embed kernels/stream.cu
	streamSource string
	//go:embed kernels/heads.cu
	headsSource string
	//go:embed kernels/experts.cu
	expertsSource string
	//go:embed kernels/loss.cu
	lossSource string
)

// source returns the source of all kernels except those in attention.cu and gram.cu.
func source() string {
	return elementSource + streamSource + headsSource + expertsSource + lossSource
}

// typeNames are the suffixes of kernels' names.
var typeNames = map[cuda.Element]string{cuda.BF16: "bf16", cuda.FP16: "fp16", cuda.FP32: "fp32"}

// kernels are the compiled kernels for one type of activations.
type kernels struct {
	module *cuda.Module

	embed, normalize, normalizeWide, addRows, addBias, activate, check *cuda.Function
	place, attendRows, attendCache, assemble                           *cuda.Function
	route, gather, scatter                                             *cuda.Function
	split, loss, divergence, argmax                                    *cuda.Function
}

const (
	// threads is the number of threads of a block in kernels that process one row per block.
	threads = 256
	// tile is the number of queries per block of attend_rows.
	tile = 32
	// maxExperts, maxGroups and maxInGroup (experts per group) are limits of the kernel route.
	maxExperts, maxGroups, maxInGroup = 4096, 64, 256
	// maxValueSize is the largest number of value channels in attend.
	maxValueSize = 512
)

// attendShared returns the dynamic shared memory of attend_rows and attend_cache in bytes.
func attendShared(size, valueSize int) int {
	return 4 * (2*tile*(size+1) + tile*valueSize + tile*(tile+1))
}

// compile compiles the kernels. shared is the dynamic shared memory of the attention kernels in bytes. experts is the
// number of routed experts.
func compile(ctx context.Context, d *cuda.Device, act cuda.Element, shared, experts int) (*kernels, error) {
	module, err := d.Compile(ctx, "decoder.cu", source())
	if err != nil {
		return nil, err
	}
	k := &kernels{module: module}
	t := "_" + typeNames[act]
	for _, f := range []struct {
		to     **cuda.Function
		name   string
		shared int
	}{
		{&k.embed, "embed" + t, 0}, {&k.normalize, "normalize" + t, 0}, {&k.normalizeWide, "normalize_wide" + t, 0}, {&k.addRows, "add_rows" + t, 0}, {&k.addBias, "add_bias" + t, 0},
		{&k.activate, "activate" + t, 0}, {&k.check, "check" + t, 0},
		{&k.place, "place" + t, 0}, {&k.attendRows, "attend_rows" + t, shared},
		{&k.attendCache, "attend_cache" + t, shared}, {&k.assemble, "assemble" + t, 0},
		{&k.route, "route" + t, 8 * experts}, {&k.gather, "gather" + t, 0}, {&k.scatter, "scatter" + t, 0},
		{&k.split, "split_bf16", 0},
		{&k.loss, "loss", 0}, {&k.divergence, "divergence", 0}, {&k.argmax, "largest", 0},
	} {
		if *f.to, err = module.Function(f.name, f.shared); err != nil {
			return nil, errors.Join(err, module.Close())
		}
	}
	return k, nil
}

// flat returns the number of blocks of a kernel that strides over n elements.
func flat(n int) cuda.Grid { return cuda.Grid{X: max(1, min((n+threads-1)/threads, 132*16))} }
