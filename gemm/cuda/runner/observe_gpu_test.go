package runner_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/cuda/runner"
	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/gemm/divergence"
	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/gemm/hessian"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// coarser gives the weights of linear layers to a relative precision of 2^-bits; bits of 0 leaves every second layer out.
type coarser struct {
	forward.Weights
	layers map[string]int // by name, in order
	bits   int
	narrow bool // values that BF16 holds
}

func (c coarser) Tensor(ctx context.Context, name string) ([]float32, error) {
	i, ok := c.layers[name]
	if !ok || i%3 == 2 {
		return nil, nil
	}
	values, err := c.Weights.Tensor(ctx, name)
	for i, v := range values {
		step := math.Exp2(math.Ceil(math.Log2(math.Abs(float64(v)))) - float64(c.bits))
		if v != 0 {
			values[i] = float32(math.Round(float64(v)/step) * step)
			if !c.narrow {
				values[i] *= 1.001
			}
		}
	}
	return values, err
}

func newCoarser(d *decoder.Decoder, w forward.Weights, bits int, narrow bool) coarser {
	c := coarser{w, map[string]int{}, bits, narrow}
	for i, l := range d.Layers() {
		c.layers[l.Tensor] = i
	}
	return c
}

// TestGPUSearch compares statistics, sensitivities and whole models on the GPU with the CPU's, for every family's small model.
func TestGPUSearch(t *testing.T) {
	device := openGPU(t)
	for _, name := range synth.Names() {
		if !strings.HasSuffix(name, "-tiny") {
			continue
		}
		config, err := synth.Config(name)
		testmodel.OK(t, err)
		for _, dtype := range []weights.DType{weights.BF16, weights.F32} {
			dir := filepath.Join(t.TempDir(), "model")
			testmodel.OK(t, synth.Folder(t.Context(), config, dir, synth.Options{Seed: 1, DType: dtype}))
			m, err := weights.Open(dir)
			testmodel.OK(t, err)
			layout := testmodel.LayoutOf(t, m)
			cpu, err := forward.New(m, layout)
			if err != nil {
				m.Close()
				break // an encoder, or what no forward pass computes
			}
			long := min(cpu.Limit, 48)
			sequences := draw(cpu.Vocab, long, 2, min(9, long), long)
			on, err := runner.New(t.Context(), device, cpu.Decoder, runner.Stored(m, layout), runner.Options{Exact: true, Longest: long})
			testmodel.OK(t, err)
			searchOnBoth(t, name+" "+dtype.String(), cpu, forward.Unshifted(m, layout), on, sequences)
			testmodel.OK(t, on.Close())
			m.Close()
		}
	}
}

// searchOnBoth compares everything that a search asks for.
func searchOnBoth(t *testing.T, name string, cpu *forward.Decoder, w forward.Weights, on *runner.Model, sequences [][]int32) {
	t.Helper()
	ctx := t.Context()
	store, err := hessian.Collect(ctx, cpu, w, sequences, t.TempDir(), hessian.Options{Key: "k"})
	testmodel.OK(t, err)
	var seen []string
	worst, ranges := 0.0, 0.0
	pass, err := on.Observe(ctx, sequences, runner.Observation{Each: func(g runner.Gram) error {
		seen = append(seen, g.Layers...)
		h, err := store.Read(ctx, g.Layers[0])
		if err != nil {
			return err
		}
		r, _ := store.Range(g.Layers[0])
		ranges = max(ranges, math.Abs(float64(g.Low)-r.Min)/r.RMS, math.Abs(float64(g.High)-r.Max)/r.RMS)
		rest := g.Triangle
		off, all := 0.0, 0.0
		for i := range g.Width {
			for j, v := range rest[:g.Width-i] {
				d := float64(v) - float64(h.Row(i)[i+j])
				off, all = off+d*d, all+float64(v)*float64(v)
			}
			rest = rest[g.Width-i:]
		}
		worst = max(worst, math.Sqrt(off/all))
		return nil
	}}, nil)
	testmodel.OK(t, err)
	if want := store.Layers(); !slices.Equal(seen, want) {
		t.Errorf("%s: statistics of %q, want %q", name, seen, want)
	}
	if !(worst <= 1e-5 && ranges <= 1e-3) { // ranges depend on single activations
		t.Errorf("%s: H is off by %.2g, ranges by %.2g", name, worst, ranges)
	}

	evaluator, err := divergence.New(ctx, cpu, w, sequences, divergence.Options{})
	testmodel.OK(t, err)
	same, _, err := pass.Changed(ctx, newCoarser(cpu.Decoder, nothing{}, 3, true))
	testmodel.OK(t, err)
	if same != 0 {
		t.Errorf("%s: a model diverges from itself by %g nats", name, same)
	}
	largest := 0.0
	apart := func(what string, got, want float64) {
		off := math.Abs(got-want) / want
		if want > 1e-7 {
			largest = max(largest, off)
		}
		if !(off <= 0.02 || math.Abs(got-want) <= 1e-8) {
			t.Errorf("%s, %s: divergence %.4g on the GPU, %.4g on the CPU", name, what, got, want)
		}
	}
	for _, narrow := range []bool{true, false} {
		other := newCoarser(cpu.Decoder, w, 3, narrow)
		want, loss, _, err := evaluator.WholeModel(ctx, other)
		testmodel.OK(t, err)
		got, scores, err := pass.Changed(ctx, other)
		testmodel.OK(t, err)
		apart("whole model", got, want)
		if rise := scores.Loss() - pass.Scores.Loss(); math.Abs(rise-loss) > 1e-5+0.02*math.Abs(loss) {
			t.Errorf("%s: the loss rises by %g on the GPU, %g on the CPU", name, rise, loss)
		}
		one := map[string]float64{}
		testmodel.OK(t, evaluator.PerLayer(ctx, nil, other, func(layer string, nats float64) error { one[layer] = nats; return nil }))
		testmodel.OK(t, pass.PerLayer(ctx, other, func(layer string, nats float64) error {
			apart(layer, nats, one[layer])
			delete(one, layer)
			return nil
		}))
		if len(one) > 0 {
			t.Errorf("%s: not asked on the GPU: %v", name, one)
		}
	}
	t.Logf("%-28s H off by %.1e, ranges by %.1e, divergences by %.1e", name, worst, ranges, largest)
	at := 0 // with room for one input at a time, the same in the same order
	again, err := on.Observe(ctx, sequences, runner.Observation{Room: 1, Each: func(g runner.Gram) error {
		if h, err := store.Read(ctx, g.Layers[0]); err != nil || math.Abs(float64(g.Triangle[0]-h.Row(0)[0])) > 1e-4*float64(h.Row(0)[0]) {
			t.Errorf("%s: %s has other statistics if it is alone: %g; error %v", name, g.Layers[0], g.Triangle[0], err)
		}
		at += len(g.Layers)
		return nil
	}}, nil)
	testmodel.OK(t, err)
	if at != len(seen) || again.Scores.Loss() != pass.Scores.Loss() {
		t.Errorf("%s: %d layers and a loss of %g, want %d and %g", name, at, again.Scores.Loss(), len(seen), pass.Scores.Loss())
	}
	testmodel.OK(t, again.Close())
	stop := errors.New("stop")
	if _, err := on.Observe(ctx, sequences, runner.Observation{Each: func(runner.Gram) error { return stop }}, nil); !errors.Is(err, stop) {
		t.Errorf("%s: error %v, want Each's", name, err)
	}
	part, err := on.Observe(ctx, sequences, runner.Observation{Blocks: 1, Each: func(g runner.Gram) error { return nil }}, nil)
	if part != nil || err != nil {
		t.Errorf("%s: a pass through one block: %v, %v", name, part, err)
	}
	testmodel.OK(t, pass.Close())
}

// nothing has no values.
type nothing struct{}

func (nothing) Tensor(context.Context, string) ([]float32, error) { return nil, nil }
