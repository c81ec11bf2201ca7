// Package testdevice has a device for tests that rounds on the CPU.
package testdevice

import (
	"context"
	"sync"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
)

// Rounder is a [rounding.Device] that rounds on the CPU, from the arguments of a device.
type Rounder struct {
	Loaded   map[string]int // number of loads, by key
	Rounds   int            // calls of Round
	Together int            // largest number of choosers in a call
	Powers   int            // calls of Powers

	mu sync.Mutex
}

// New returns a device.
func New() *Rounder { return &Rounder{Loaded: map[string]int{}} }

// Hessian implements [rounding.Device].
func (r *Rounder) Hessian(key string, load func(context.Context) (*rounding.Triangle, error)) rounding.DeviceHessian {
	return onCPU{r, key, load}
}

// onCPU is a [rounding.DeviceHessian].
type onCPU struct {
	of   *Rounder
	key  string
	load func(context.Context) (*rounding.Triangle, error)
}

// triangle loads the Hessian.
func (h onCPU) triangle(ctx context.Context) (*rounding.Triangle, error) {
	h.of.mu.Lock()
	h.of.Loaded[h.key]++
	h.of.mu.Unlock()
	return h.load(ctx)
}

// matrix loads the whole Hessian.
func (h onCPU) matrix(ctx context.Context) (m sgemm.Matrix, err error) {
	t, err := h.triangle(ctx)
	if err != nil {
		return m, err
	}
	m = sgemm.Dense(t.Width, t.Width, nil)
	rest := t.Data
	for i := range t.Width {
		for j, v := range rest[:t.Width-i] {
			m.Row(i)[i+j], m.Row(i + j)[i] = v, v
		}
		rest = rest[t.Width-i:]
	}
	return m, nil
}

// Diagonal implements [rounding.DeviceHessian].
func (h onCPU) Diagonal(ctx context.Context) ([]float32, error) {
	t, err := h.triangle(ctx)
	if err != nil {
		return nil, err
	}
	return t.Diagonal(), nil
}

// decoded returns the values in data, in v's format.
func decoded(v rounding.Values, data []byte) sgemm.Matrix {
	v.Data = data
	m := sgemm.Dense(v.Rows, v.Cols, nil)
	v.Decode(m, 0)
	return m
}

// Powers implements [rounding.DeviceHessian].
func (h onCPU) Powers(ctx context.Context, v rounding.Values, all ...[]byte) (sums []float64, err error) {
	m, err := h.matrix(ctx)
	w, q := decoded(v, v.Data), []sgemm.Matrix{}
	for _, data := range all {
		if data == nil {
			q = append(q, sgemm.Matrix{})
			continue
		}
		q = append(q, decoded(v, data))
	}
	if len(q) == 0 {
		q = append(q, sgemm.Matrix{})
	}
	h.of.mu.Lock()
	h.of.Powers++
	h.of.mu.Unlock()
	for _, q := range q {
		var sum float64
		if err == nil {
			sum, err = rounding.Power(ctx, w, q, m, 1)
		}
		sums = append(sums, sum)
	}
	return sums, err
}

// Round implements [rounding.DeviceHessian].
func (h onCPU) Round(ctx context.Context, v rounding.Values, fo rounding.FactorOptions, choosers []rounding.Table, o rounding.Options) (all [][]byte, err error) {
	m, err := h.matrix(ctx)
	if err != nil {
		return nil, err
	}
	f, err := rounding.NewFactor(ctx, m, fo)
	if err != nil {
		return nil, err
	}
	if f.U.Data == nil {
		return nil, rounding.ErrNoFeedback
	}
	h.of.mu.Lock()
	h.of.Rounds++
	h.of.Together = max(h.of.Together, len(choosers))
	h.of.mu.Unlock()
	for _, t := range choosers {
		var c rounding.Chooser = rounding.Bits{Format: t.Format, Zeroed: t.Zeroed}
		switch t.Kind {
		case rounding.GridKind:
			c = rounding.Grid{Format: t.Format, Exponents: t.Exponents}
		case rounding.PriceKind:
			var rates rounding.Rates
			for _, p := range t.Prices {
				rates.Significant = append(rates.Significant, float64(p))
			}
			c = rounding.Trellis{Format: t.Format, Rates: rates, Lambda: 1, Scale: t.Scale}
		}
		q, err := rounding.Round(ctx, decoded(v, v.Data), f, c, o)
		if err != nil {
			return nil, err
		}
		data := make([]byte, len(v.Data))
		v.Format.Encode(data, q.Data)
		for i := range q.Data {
			if bits := v.Format.Elem(v.Data, i); !v.Format.Finite(bits) {
				v.Format.SetElem(data, i, bits)
			}
		}
		all = append(all, data)
	}
	return all, nil
}
