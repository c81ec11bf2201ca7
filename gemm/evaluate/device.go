package evaluate

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/cuda/rounder"
	"github.com/lowtoggle/lowtoggle/gemm/cuda/runner"
	"github.com/lowtoggle/lowtoggle/gemm/divergence"
	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/gemm/hessian"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Device is a GPU that runs models, with float32 activations, and rounds layers for a search.
type Device struct {
	gpu    *cuda.Device
	number int

	mu      sync.Mutex
	second  *cuda.Device     // a second context of the same card: rounding and running a model take turns
	rounder *rounder.Rounder // nil before the first use
}

// OpenDevice opens a GPU by its number; see [cuda.Open].
func OpenDevice(number int) (*Device, error) {
	gpu, err := cuda.Open(number)
	if err != nil {
		return nil, err
	}
	return &Device{gpu: gpu, number: number}, nil
}

// Info describes the card.
func (d *Device) Info() cuda.Info { return d.gpu.Info() }

// NewProducts returns a multiplier for linear layers alone, which needs no compiler. Close frees its memory.
func (d *Device) NewProducts() *cuda.Products { return d.gpu.NewProducts() }

// Name returns the kind of card and the versions of cuBLASLt and of the kernels. The last digits of results depend on
// all three.
func (d *Device) Name() string {
	i := d.gpu.Info()
	return fmt.Sprintf("%s, cuBLASLt %s, kernels %s", i.Name, i.CublasLt, runner.Version())
}

// Calibrate returns a model for sequences of at most longest tokens. Its weights are loaded when it first runs. It must
// have the architecture of the scorer.
func (d *Device) Calibrate(s *Scorer, m *weights.Model, longest int) Calibrated {
	return &onGPU{decoder: s.Decoder, open: func(ctx context.Context) (*runner.Model, error) {
		on, err := runner.New(ctx, d.gpu, s.Decoder.Decoder, runner.Stored(m, s.Layout), runner.Options{Exact: true, Longest: longest})
		if err != nil {
			err = fmt.Errorf("%s: %w", m.Dir, err)
		}
		return on, err
	}}
}

// Compare is [Scorer.Compare] on the GPU, without an observer.
func (d *Device) Compare(ctx context.Context, s *Scorer, before, after *weights.Model) (*Comparison, error) {
	if err := errors.Join(before.Usable(), after.Usable()); err != nil {
		return nil, err
	}
	on := *s
	on.Device = d
	var scores [2]*forward.Scores
	for i, m := range []*weights.Model{before, after} {
		p, err := on.Pass(ctx, m)
		if err == nil {
			scores[i], err = p.Scores, p.Close()
		}
		if err != nil {
			return nil, err
		}
	}
	c, err := forward.Compare(scores[0], scores[1])
	return &Comparison{scores[0].Loss(), scores[1].Loss(), c, s.Tokens}, err
}

// Rounder returns the device that rounds layers on the GPU. The first call compiles its kernels.
func (d *Device) Rounder(ctx context.Context) (_ rounding.Device, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rounder != nil {
		return d.rounder, nil
	}
	if d.second == nil {
		if d.second, err = cuda.Open(d.number); err != nil {
			return nil, err
		}
	}
	r, err := rounder.New(ctx, d.second)
	if err != nil {
		return nil, err
	}
	d.rounder = r
	return r, nil
}

// Release frees the GPU's memory that the rounder keeps.
func (d *Device) Release() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rounder == nil {
		return nil
	}
	return d.rounder.Release()
}

// Close closes the GPU.
func (d *Device) Close() (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rounder != nil {
		err = d.rounder.Close()
	}
	if d.second != nil {
		err = errors.Join(err, d.second.Close())
	}
	d.rounder, d.second = nil, nil
	return errors.Join(err, d.gpu.Close())
}

type onGPU struct {
	decoder *forward.Decoder
	open    func(context.Context) (*runner.Model, error)
	model   *runner.Model // nil before the first run
}

func (g *onGPU) Close() error {
	if g.model == nil {
		return nil
	}
	return g.model.Close()
}

// load loads the model unless it is loaded already.
func (g *onGPU) load(ctx context.Context) (err error) {
	if g.model == nil {
		g.model, err = g.open(ctx)
	}
	return err
}

func (g *onGPU) Collect(ctx context.Context, tokens [][]int32, dir string, o hessian.Options) (*hessian.Store, error) {
	store, pass, err := g.collect(ctx, tokens, dir, o)
	if pass != nil {
		err = errors.Join(err, pass.Close())
	}
	return store, err
}

// collect collects statistics. The pass is nil if the last layers did not run because the folder has their statistics.
func (g *onGPU) collect(ctx context.Context, tokens [][]int32, dir string, o hessian.Options) (store *hessian.Store, pass *runner.Pass, err error) {
	store, err = hessian.CollectFrom(ctx, g.decoder, tokens, dir, o, func(w hessian.Wanted) (err error) {
		if err := g.load(ctx); err != nil {
			return err
		}
		pass, err = g.observe(ctx, tokens, w, o)
		return err
	})
	return store, pass, err
}

// observe runs the model over tokens. It writes statistics while the GPU computes the next.
func (g *onGPU) observe(ctx context.Context, tokens [][]int32, w hessian.Wanted, o hessian.Options) (pass *runner.Pass, err error) {
	writer, ctx := errgroup.WithContext(ctx)
	grams := make(chan runner.Gram, 1) // only one, because a wide layer's statistics take hundreds of megabytes
	writer.Go(func() error {
		for s := range grams {
			if err := w.Keep(hessian.Given{Layers: s.Layers, Width: s.Width, Tokens: s.Tokens, Min: s.Low, Max: s.High, Triangle: s.Triangle}); err != nil {
				return err
			}
		}
		return nil
	})
	pass, err = g.model.Observe(ctx, tokens, runner.Observation{Wanted: w.Input, Blocks: w.Blocks, Each: func(s runner.Gram) error {
		select {
		case grams <- s:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}, stepOf(o))
	close(grams)
	if failed := writer.Wait(); failed != nil { // this error caused the pass's error
		err = failed
	}
	if err != nil && pass != nil {
		_ = pass.Close() // the first error is returned
		pass = nil
	}
	return pass, err
}

func stepOf(o hessian.Options) func(done, total int) error {
	return func(done, total int) error {
		if o.Progress != nil {
			o.Progress(done, total)
		}
		return nil
	}
}

func (g *onGPU) CollectAndScore(ctx context.Context, tokens [][]int32, dir string, o hessian.Options) (store *hessian.Store, _ Reference, err error) {
	if err := g.load(ctx); err != nil {
		return nil, nil, err
	}
	r := &gpuReference{}
	if store, r.all, err = g.collect(ctx, tokens, dir, o); err == nil && r.all == nil {
		r.all, err = g.model.Pass(ctx, tokens, stepOf(o))
	}
	if err == nil {
		r.few, err = g.model.Pass(ctx, tokens[:divergence.FewSequences(tokens)], nil)
	}
	if err != nil {
		return nil, nil, errors.Join(err, r.Close())
	}
	return store, r, nil
}

// gpuReference holds a model's passes over all tokens, and over the few sequences that PerLayer uses.
type gpuReference struct{ all, few *runner.Pass }

func (r *gpuReference) Loss() float64 { return r.all.Scores.Loss() }

// errBase is the error for a base of other weights, which no search needs.
var errBase = errors.New("on a GPU, the divergence of single layers can be computed only from the model's own weights")

func (r *gpuReference) PerLayer(ctx context.Context, base, changed divergence.Weights, done func(layer string, nats float64) error) error {
	if base != nil {
		return errBase
	}
	return r.few.PerLayer(ctx, changed, done)
}

func (r *gpuReference) WholeModel(ctx context.Context, changed divergence.Weights) (nats, loss float64, interval [2]float64, err error) {
	nats, scores, err := r.all.Changed(ctx, changed)
	if err != nil {
		return 0, 0, interval, err
	}
	c, err := forward.Compare(r.all.Scores, scores)
	return nats, c.Difference, [2]float64{c.Low, c.High}, err
}

func (r *gpuReference) Close() (err error) {
	for _, p := range []*runner.Pass{r.all, r.few} {
		if p != nil {
			err = errors.Join(err, p.Close())
		}
	}
	return err
}
