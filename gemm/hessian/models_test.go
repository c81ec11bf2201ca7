package hessian_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/gemm/hessian"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// subject is a model with tokens to run through it.
type subject struct {
	decoder *forward.Decoder
	weights forward.Weights
	tokens  [][]int32
}

// tiny returns a small random model, with tokens for several batches.
func tiny(t testing.TB, config string) subject {
	t.Helper()
	s := subjectOf(t, testmodel.Random(t, config, 1))
	r := rand.New(rand.NewPCG(7, 7))
	for i := range 200 {
		sequence := make([]int32, 2+i*13%31)
		for j := range sequence {
			sequence[j] = int32(r.IntN(96))
		}
		s.tokens = append(s.tokens, sequence)
	}
	return s
}

// trained returns the demo model with some of its tokens, for several batches.
func trained(t testing.TB) subject {
	t.Helper()
	m, calibration, _ := testmodel.Trained(t)
	s := subjectOf(t, m)
	for _, sequence := range calibration.Sequences {
		s.tokens = append(s.tokens, sequence[:min(len(sequence), 66)])
	}
	return s
}

func subjectOf(t testing.TB, m *weights.Model) subject {
	return subject{decoder: testmodel.Decoder(t, m), weights: forward.Stored(m)}
}

// length returns the number of tokens.
func (s subject) length() (n int) {
	for _, sequence := range s.tokens {
		n += len(sequence)
	}
	return n
}

func (s subject) collect(t testing.TB, dir string, o hessian.Options) *hessian.Store {
	t.Helper()
	store, err := hessian.Collect(context.Background(), s.decoder, s.weights, s.tokens, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// groups returns the layers that share an input, in order, from what an Observer sees.
func (s subject) groups(t testing.TB) [][]string {
	t.Helper()
	return s.observe(t).groups
}

func (s subject) observe(t testing.TB) *seen {
	t.Helper()
	o := &seen{x: map[string][][]float32{}}
	if _, err := s.decoder.Run(context.Background(), s.weights, s.tokens, o); err != nil {
		t.Fatal(err)
	}
	return o
}

// dies is a model whose weights fail when they are asked for a tensor.
type dies struct {
	forward.Weights
	tensor string // empty: any
	asked  atomic.Int64
}

var errDied = errors.New("died")

func (d *dies) Tensor(ctx context.Context, name string) ([]float32, error) {
	d.asked.Add(1)
	if d.tensor == "" || name == d.tensor {
		return nil, errDied
	}
	return d.Weights.Tensor(ctx, name)
}

// scaled is a model with a tensor's values multiplied.
type scaled struct {
	forward.Weights
	tensor string
	factor float32
}

func (s scaled) Tensor(ctx context.Context, name string) ([]float32, error) {
	v, err := s.Weights.Tensor(ctx, name)
	if name == s.tensor {
		v = slices.Clone(v)
		for i := range v {
			v[i] *= s.factor
		}
	}
	return v, err
}
