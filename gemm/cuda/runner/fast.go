package runner

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/decoder"
)

//go:embed kernels/attention.cu
var attentionSource string

// fast holds the tensor-core attention kernels for one head size, in BF16 or FP16. kernels/attention.cu documents how
// they are launched.
type fast struct {
	module          *cuda.Module
	prefill, decode *cuda.Function
	size            int
	launch          launch
}

// launch is the launch configuration for a head size: queries per block and threads per block of the prefill kernel,
// threads per block of the decode kernel, and the dynamic shared memory of each kernel in bytes.
type launch struct{ tile, threads, shared, decodeThreads, decodeShared int }

// launches holds the configurations by head size. hopper holds the configurations that differ on sm_90.
var (
	launches = map[int]launch{
		64:  {128, 128, 49152, 128, 98304},
		80:  {128, 128, 67584, 128, 90112},
		96:  {128, 128, 79872, 128, 79872},
		128: {128, 128, 98304, 128, 98304},
		256: {64, 128, 98304, 64, 98304},
	}
	hopper = map[int]launch{
		64:  {192, 512, 90176, 128, 98304},
		128: {128, 384, 163904, 128, 98304},
		256: {128, 384, 196672, 64, 98304},
	}
)

// maxGroup is the number of query heads that may share a KV head in a decode step.
const maxGroup = 16

// fits reports whether the fast kernels can compute an attention.
func (m *Model) fits(a *decoder.Attention) bool {
	c := columnsOf(a.Heads)
	for _, columns := range []int{a.Width(), c.queryStep, c.keyBase, c.keyStep, c.valueBase, c.valueStep} {
		if columns%8 != 0 {
			return false
		}
	}
	_, known := launches[a.Size]
	return m.act != cuda.FP32 && known && a.Size == a.ValueSize && a.ALiBi == nil && a.Scale > 0
}

// compileFast compiles the fast kernels that a model's attentions need.
func (m *Model) compileFast(ctx context.Context) error {
	m.fast = map[int]*fast{}
	for p := range parts(m.decoder) {
		a := p.Attention
		if a == nil || m.fast[a.Size] != nil || !m.fits(a) {
			continue
		}
		f := &fast{size: a.Size, launch: launches[a.Size]}
		if own, ok := hopper[a.Size]; ok && m.device.Info().Capability == "9.0" {
			f.launch = own
		}
		element := map[cuda.Element]string{cuda.BF16: "bf16", cuda.FP16: "f16"}[m.act]
		var err error
		if f.module, err = m.device.Compile(ctx, "attention.cu", cuda.PTX+attentionSource, "ATTENTION_TYPE="+element, fmt.Sprintf("ATTENTION_HEAD=%d", a.Size)); err != nil {
			return err
		}
		m.fast[a.Size] = f
		if f.prefill, err = f.module.Function(fmt.Sprintf("attention_prefill_%s_%d", element, a.Size), f.launch.shared); err != nil {
			return err
		}
		if f.decode, err = f.module.Function(fmt.Sprintf("attention_decode_%s_%d", element, a.Size), f.launch.decodeShared); err != nil {
			return err
		}
	}
	return nil
}

// attendFast queues the attention with the fast kernels. done is false if they do not support it.
func (a *attention) attendFast(p *pass, z, y cuda.Address) (done bool, err error) {
	f := p.fast[a.Size]
	h, c := a.heads, columnsOf(a.heads)
	if f == nil || !p.fits(a.Attention) || p.step && h.Queries/h.KV > maxGroup {
		return false, nil
	}
	outStride, stride := h.Queries*h.ValueSize, h.Width()
	if !p.step {
		return true, f.prefill.Launch(cuda.Grid{X: (p.longest + f.launch.tile - 1) / f.launch.tile, Y: h.Queries, Z: p.sequences},
			cuda.Grid{X: f.launch.threads}, y, z, p.starts, stride, outStride, h.Queries, h.KV, c.queryStep, c.keyBase, c.keyStep,
			c.valueBase, c.valueStep, a.Scale, float32(a.Cap), a.Window)
	}
	splits := p.splits(h)
	partial, err := p.buffer("partial", 4*p.sequences*h.Queries*splits*(h.Size+2))
	if err != nil {
		return true, err
	}
	keys, values := p.cache.of(a.place)
	return true, f.decode.Launch(cuda.Grid{X: splits, Y: h.KV, Z: p.sequences}, cuda.Grid{X: f.launch.decodeThreads},
		y, keys, values, p.lengths, z, partial, p.counters, stride, outStride, h.Queries, h.KV, c.queryStep, p.cache.capacity,
		a.Scale, float32(a.Cap), a.Window, splits)
}

// splits returns the number of blocks that share the keys of one sequence and KV head in a decode step. There are
// enough blocks for every multiprocessor, but each block has at least 256 keys.
func (p *pass) splits(h decoder.Heads) int {
	return max(1, min(p.device.Info().SMs/(p.sequences*h.KV), (p.cache.capacity+255)/256))
}
