package measure

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/weights"
)

// counting is a machine that counts opened and closed batches, and can replace batches.
type counting struct {
	Machine
	opened, closed int
	options        []cuda.Options // of the batches
	refuse         error          // what the batch number at fails with
	at             int
	wrap           func(i int, b Batch) Batch
}

func (c *counting) NewBatch(ctx context.Context, name string, products []cuda.Product, o cuda.Options) (Batch, error) {
	if c.refuse != nil && c.opened == c.at {
		return nil, c.refuse
	}
	c.options = append(c.options, o)
	b, err := c.Machine.NewBatch(ctx, name, products, o)
	if err != nil {
		return nil, err
	}
	if c.wrap != nil {
		b = c.wrap(c.opened, b)
	}
	c.opened++
	return &counted{b, c}, nil
}

type counted struct {
	Batch
	of *counting
}

func (c *counted) Close() error {
	c.of.closed++
	return c.Batch.Close()
}

// faulty is a batch that fails, or has kernels that a simulated batch does not have.
type faulty struct {
	Batch
	check   error
	checks  int // that succeed before check
	starts  int // that succeed
	found   []gemm.Deviation
	kernels []cuda.Kernel
}

var errStart = errors.New("the launch failed")

func (f *faulty) Start(n int) error {
	if f.starts--; f.starts < 0 {
		return errStart
	}
	return f.Batch.Start(n)
}

func (f *faulty) Check(context.Context) ([]gemm.Deviation, error) {
	if f.checks--; f.checks < 0 && f.check != nil {
		return f.found, f.check
	}
	return f.found, nil
}

func (f *faulty) Kernels() []cuda.Kernel { return f.kernels }

// still returns a simulated card without noise, drift or leakage: its numbers are those planted.
func still() power.SimOptions {
	o := power.DefaultSim()
	o.PowerNoise, o.TimeNoise, o.TickJitter, o.DipRate, o.Leakage = 0, 0, 0, 0, 0
	return o
}

// simOf returns the simulated card in a machine.
func simOf(m Machine) *power.Sim { return m.Card().(*power.Sim) }

// product of M×N×K in bfloat16, with weights of that deviation.
func product(name string, m, n, k int, sigma float64, seed uint64) cuda.Product {
	return cuda.Product{
		Name: name, Problem: gemm.Problem{M: m, N: n, K: k, Type: arith.BF16},
		X: normal(weights.BF16, m, k, 0, 1, 0), W: normal(weights.BF16, n, k, 0, sigma, seed),
	}
}

func candidate(name string, products ...cuda.Product) Candidate {
	return Candidate{Name: name, Products: products}
}

// pair returns a baseline of normal weights and a variant of zeros.
func pair() (Candidate, []Candidate) {
	return candidate("normal", product("w", 32, 48, 64, 0.02, 1)), []Candidate{candidate("zeros", product("w", 32, 48, 64, 0, 1))}
}

// short ends after the first block.
var short = Options{Meter: power.Options{Time: time.Second}}

func near(t *testing.T, what string, have, want, relative float64) {
	t.Helper()
	if d := have - want; !(max(d, -d) <= relative*want) {
		t.Errorf("%s is %v, want %v", what, have, want)
	}
}

func contains(interval []float64, v float64) bool {
	return len(interval) == 2 && interval[0] <= v && v <= interval[1]
}

// normal draws a matrix of normally distributed elements.
func normal(d weights.DType, rows, cols int, mean, sigma float64, seed uint64) gemm.Matrix {
	p := pattern.MustParse(fmt.Sprintf("normal(%g,%g)", mean, sigma))
	data, err := p.Generate(context.Background(), pattern.Spec{DType: d, Rows: rows, Cols: cols, Seed: seed}, 1)
	if err != nil {
		panic(err)
	}
	return gemm.Matrix{DType: d, Rows: rows, Cols: cols, Data: data}
}
