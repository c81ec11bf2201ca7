package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/cuda/runner"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// The tests of this file run package runner on the pretended card, which computes nothing, and on a real card where there
// is one. Without Go there: build the test binary with CGO_ENABLED=0 go test -c, and run it with -test.v -test.run GPURunner.

// place is a card and a float32 model that fits on it.
type place struct {
	tiny
	device *cuda.Device
	blocks int
	spare  int64 // free bytes that suffice to run the model, but not to keep all of its weights on the card
	kept   int64 // largest number of bytes that may be missing after the model is closed
}

func newPlace(t *testing.T, d *cuda.Device, hidden, blocks int) place {
	heads := hidden / 64
	return place{device: d, blocks: blocks, tiny: newTiny(t, "llama-tiny", fmt.Sprintf(`{"hidden_size": %d, "intermediate_size": %d, "num_attention_heads": %d,
		"num_key_value_heads": %d, "head_dim": 64, "num_hidden_layers": %d, "max_position_embeddings": 256}`, hidden, 4*hidden, heads, heads, blocks), weights.F32)}
}

// eachCard runs a test on the pretended card, whose memory must be given back to the last byte, and with a larger model on
// the real one, whose driver keeps some for kernels.
func eachCard(t *testing.T, test func(t *testing.T, p place)) {
	t.Run("pretended", func(t *testing.T) {
		card := cuda.NewFakeCard(t, 0)
		card.Limit(100 << 20)
		p := newPlace(t, card.Open(t), 128, 5)
		p.spare = 6 << 20
		test(t, p)
	})
	t.Run("real", func(t *testing.T) {
		d, err := cuda.Open(0)
		if errors.Is(err, cuda.ErrNoGPU) {
			t.Skip(err)
		}
		testmodel.OK(t, err)
		defer func() { testmodel.OK(t, d.Close()) }()
		p := newPlace(t, d, 256, 12)
		p.spare, p.kept = 64<<20, 64<<20
		t.Log(d.Info().Name)
		test(t, p)
	})
}

// balloon is memory allocated on a card, so that little is left for others.
type balloon struct {
	device *cuda.Device
	memory *cuda.Memory
}

func newBalloon(d *cuda.Device) *balloon { return &balloon{d, d.NewMemory()} }

// inflate allocates all free memory except the given bytes, and also the free space in the driver's blocks of small allocations.
func (b *balloon) inflate(left int64) error {
	return b.device.Do(func() error {
		for piece := int64(1 << 30); piece >= 16<<10; {
			free, err := b.device.Free()
			if err != nil {
				return err
			}
			if left > 0 && free-left < piece {
				piece /= 2
				continue
			}
			if _, err := b.memory.Alloc(int(piece)); errors.Is(err, cuda.ErrOutOfMemory) {
				piece /= 2
			} else if err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *balloon) deflate() error { return b.device.Do(b.memory.Free) }

// figures are the results that a search computes on a model.
type figures struct {
	loss     float64
	sums     []float32 // the first value of each input's statistics
	whole    float64
	perLayer []float64
}

// changes gives every layer its own values times 1.01.
type changes struct {
	tiny
	asked func() error // before each answer
}

func (c changes) Tensor(_ context.Context, name string) ([]float32, error) {
	if c.asked != nil {
		if err := c.asked(); err != nil {
			return nil, err
		}
	}
	t, _ := c.model.Tensor(name)
	values := make([]float32, len(t.Data)/4)
	format, _ := t.DType.Format()
	format.Decode(values, t.Data)
	for i := range values {
		values[i] *= 1.01
	}
	return values, nil
}

// search computes the figures on a model.
func search(t *testing.T, on *runner.Model, m tiny) (f figures) {
	t.Helper()
	pass, err := on.Observe(t.Context(), sequences, runner.Observation{Each: func(g runner.Gram) error {
		f.sums = append(f.sums, g.Triangle[0])
		return nil
	}}, nil)
	testmodel.OK(t, err)
	f.loss = pass.Scores.Loss()
	f.whole, _, err = pass.Changed(t.Context(), changes{tiny: m})
	testmodel.OK(t, err)
	testmodel.OK(t, pass.PerLayer(t.Context(), changes{tiny: m}, func(_ string, nats float64) error {
		f.perLayer = append(f.perLayer, nats)
		return nil
	}))
	testmodel.OK(t, pass.Close())
	return f
}

// TestGPURunnerStreams: a model whose weights do not fit on the card gives the same figures as one that fits, and frees all of
// its memory.
func TestGPURunnerStreams(t *testing.T) {
	eachCard(t, func(t *testing.T, p place) {
		m, device, kept := p.tiny, p.device, p.kept
		first, err := device.FreeMemory()
		testmodel.OK(t, err)
		whole, err := m.load(t.Context(), device, runner.Options{Exact: true})
		testmodel.OK(t, err)
		want := search(t, whole, m)
		if !whole.Resident() || len(want.sums) != p.blocks*4+1 || len(want.perLayer) != p.blocks*7+1 {
			t.Fatalf("%d sums, %d layers", len(want.sums), len(want.perLayer))
		}
		testmodel.OK(t, whole.Close())
		b := newBalloon(device)
		testmodel.OK(t, b.inflate(p.spare))
		before, err := device.FreeMemory()
		testmodel.OK(t, err)
		part, err := m.load(t.Context(), device, runner.Options{Exact: true})
		testmodel.OK(t, err)
		if part.Resident() {
			t.Errorf("%d MiB were free: this test tests nothing", before>>20)
		}
		got := search(t, part, m)
		t.Logf("%d of %d MiB free: loss %v, whole at once %v; divergence %.3g, whole at once %.3g", before>>20, first>>20, got.loss, want.loss, got.whole, want.whole)
		if !(math.Abs(got.loss-want.loss) <= 1e-6) || !near(got.whole, want.whole) || !slices.EqualFunc(got.perLayer, want.perLayer, near) ||
			!slices.EqualFunc(got.sums, want.sums, func(a, b float32) bool { return near(float64(a), float64(b)) }) {
			t.Errorf("streamed: %v, whole at once: %v", got, want)
		}
		testmodel.OK(t, part.Close())
		after, err := device.FreeMemory()
		testmodel.OK(t, err)
		testmodel.OK(t, b.deflate())
		if before-after > min(kept, 16<<20) {
			t.Errorf("%d bytes lost", before-after)
		}
		if last, err := device.FreeMemory(); err != nil || first-last > kept {
			t.Errorf("%d bytes lost in all, %v", first-last, err)
		}
	})
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-3*max(math.Abs(a), math.Abs(b), 1e-6) }

// TestGPURunnerOutOfMemory: wherever the card runs out of memory, the error says so, all memory is freed, and the model
// works again once there is enough memory.
func TestGPURunnerOutOfMemory(t *testing.T) {
	eachCard(t, func(t *testing.T, p place) {
		m, device, kept := p.tiny, p.device, p.kept
		on, err := m.load(t.Context(), device, runner.Options{Exact: true, Longest: 256})
		testmodel.OK(t, err)
		defer func() { testmodel.OK(t, on.Close()) }()
		want := search(t, on, m) // from now on the card has all kernels and buffers
		pass, err := on.Pass(t.Context(), sequences, nil)
		testmodel.OK(t, err)
		defer func() { testmodel.OK(t, pass.Close()) }()
		b := newBalloon(device)
		fill := func() error { return b.inflate(0) }
		for _, c := range []struct {
			name string
			run  func() error
			want string
		}{
			{"at load", func() error {
				testmodel.OK(t, b.inflate(p.spare/4))
				other, err := m.load(t.Context(), device, runner.Options{Exact: true, Resident: true})
				if err == nil {
					return other.Close()
				}
				return err
			}, `tensor "`},
			{"at load, of a single block", func() error {
				testmodel.OK(t, fill())
				other, err := m.load(t.Context(), device, runner.Options{Exact: true})
				if err == nil {
					return other.Close()
				}
				return err
			}, `tensor "`},
			{"in the cache", func() error {
				testmodel.OK(t, b.inflate(p.spare))
				step, err := on.NewStep(t.Context(), "step", runner.Work{Sequences: 64, Context: 256, Decode: true}, nil)
				if err == nil {
					return step.Close()
				}
				return err
			}, "step: KV cache of 64 × 256 tokens: "},
			{"in a pass", func() error {
				testmodel.OK(t, fill())
				_, err := on.Pass(t.Context(), slices.Repeat([][]int32{make([]int32, 256)}, 32), nil)
				return err
			}, ""},
			{"in statistics", func() error {
				_, err := on.Observe(t.Context(), sequences, runner.Observation{Each: func(runner.Gram) error { return nil }}, func(done, _ int) error {
					if done == 2 {
						return fill()
					}
					return nil
				})
				return err
			}, ""},
			{"in a trial", func() error {
				_, _, err := pass.Changed(t.Context(), changes{m, fill})
				return err
			}, `tensor "`},
			{"in sensitivities", func() error {
				return pass.PerLayer(t.Context(), changes{tiny: m}, func(string, float64) error { return fill() })
			}, "with new values of model.layers.0."},
		} {
			before, err := device.FreeMemory()
			testmodel.OK(t, err)
			err = c.run()
			testmodel.OK(t, b.deflate())
			if !errors.Is(err, cuda.ErrOutOfMemory) {
				t.Errorf("%s: error %v, want one of memory", c.name, err)
				continue
			}
			testmodel.WantError(t, err, c.want, " MiB were requested, ", " are free: ")
			t.Logf("%s: %v", c.name, err)
			if after, err := device.FreeMemory(); err != nil || before-after > kept {
				t.Errorf("%s: %d bytes lost, %v", c.name, before-after, err)
			}
		}
		if got := search(t, on, m); !(math.Abs(got.loss-want.loss) <= 1e-6) || !near(got.whole, want.whole) {
			t.Errorf("after the failures: %v, before: %v", got, want)
		}
	})
}
