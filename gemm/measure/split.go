package measure

import (
	"context"
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/component"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
)

// Splitter splits the power of products by component, with a model of the card.
type Splitter struct {
	*component.Model
	// From is the origin of the model, named in reports.
	From string
}

// Dissected is the input of [Splitter.Split]: products on one card.
type Dissected struct {
	Name          string // name of the phase or product
	Cold          bool   // whether weights come from memory
	Before, After []cuda.Product
	Kernels       []cuda.Kernel // kernels of Before's products, if known
	Platform      *cuda.Info    // nil: unknown
	// Seconds and Clock (in MHz) were measured for one pass through Before's products; 0 if they were not measured.
	Seconds, Clock float64
	// AfterSeconds and AfterClock are the same figures for After's products.
	AfterSeconds, AfterClock float64
}

// Signature is the power of products by component, predicted with a model of the card.
type Signature struct {
	Name   string           `json:"name"`
	Before component.Split  `json:"before"`
	After  *component.Split `json:"after,omitempty"`
	// From is the model's file, and Date the day of the measurements in it.
	From string `json:"from"`
	Date string `json:"date,omitempty"`
	// Off is the largest relative error of the model's predictions for held-out kernels.
	Off float64 `json:"held_out_worst_error,omitempty"`
	// Unfit is the reason why the model gives no advice. Advice is absent if Unfit is set.
	Unfit       string            `json:"unfit,omitempty"`
	Advice      *component.Advice `json:"advice,omitempty"`
	AfterAdvice *component.Advice `json:"advice_after,omitempty"`
}

// Split splits the power of products by component. It samples the bits of every operand, which takes about 10 ms per
// operand.
func (s *Splitter) Split(ctx context.Context, d Dissected) (*Signature, error) {
	if s.Model == nil {
		return nil, fmt.Errorf("%s: %w: no model of the card was given", d.Name, component.ErrUnfit)
	}
	sig := &Signature{Name: d.Name, From: s.From, Date: s.Date}
	_, sig.Off = s.Quality.UnseenErrors()
	var err error
	sig.Before, sig.Advice, err = s.dissect(ctx, d, d.Before, d.Seconds, d.Clock)
	if errors.Is(err, component.ErrUnfit) {
		sig.Unfit, err = err.Error(), nil
	}
	if err != nil || len(d.After) == 0 {
		return sig, err
	}
	sig.After = new(component.Split)
	*sig.After, sig.AfterAdvice, err = s.dissect(ctx, d, d.After, d.AfterSeconds, d.AfterClock)
	if errors.Is(err, component.ErrUnfit) {
		err = nil
	}
	return sig, err
}

// dissect splits the power of products and adds advice. seconds and clock are 0 if unknown. If the error is a
// [component.ErrUnfit], the split may be valid nevertheless, and the error is the reason why there is no advice.
func (s *Splitter) dissect(ctx context.Context, d Dissected, products []cuda.Product, seconds, clock float64) (split component.Split, a *component.Advice, err error) {
	kernels, err := s.kernels(ctx, d, products)
	if err != nil {
		return split, nil, err
	}
	a, unfit := s.Advise(d.Name, kernels)
	if unfit != nil && !errors.Is(unfit, component.ErrUnfit) {
		return split, nil, unfit
	}
	if seconds > 0 && clock > 0 {
		kernels = s.Timed(kernels, seconds, clock)
	}
	if split, err = s.SplitSequence(kernels); err != nil {
		return split, nil, err
	}
	return split, a, unfit
}

// kernels converts products to kernels of package component, with the toggling of their operands' bits and without
// times.
func (s *Splitter) kernels(ctx context.Context, d Dissected, products []cuda.Product) ([]component.Kernel, error) {
	activity, err := cost.CalibrationFor(s.Card)
	if err != nil {
		return nil, err
	}
	var layers []component.Gemm
	for i, p := range products {
		var ran *cuda.Kernel
		if i < len(d.Kernels) {
			ran = &d.Kernels[i]
		}
		g := ComponentGEMM(p.Problem, d.Cold, ran, d.Platform, &s.Model.Facts)
		q := cost.Product{Type: g.Type, M: g.M, N: g.N, K: g.K, Cold: d.Cold}
		if p.Problem.Streaming {
			q.Role = cost.Streaming
		}
		if g.Bits, g.Moved, err = activity.Toggling(ctx, q, blocks(p.X), blocks(p.W)); err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		layers = append(layers, g)
	}
	return LayerKernels(s.Model, layers)
}

// blocks converts a matrix to an operand of the cost model.
func blocks(m gemm.Matrix) cost.Operand {
	size := m.DType.Bits() / 8
	return func(_ context.Context, row, rows, col, cols int) ([]byte, error) {
		out := make([]byte, 0, rows*cols*size)
		for r := row; r < row+rows; r++ {
			at := (r*m.Cols + col) * size
			out = append(out, m.Data[at:at+cols*size]...)
		}
		return out, nil
	}
}

// ComponentGEMM converts a product of random operands on a card to a GEMM of package component. k is the kernel and
// info describes the card. k and info may be nil if they are unknown.
func ComponentGEMM(p gemm.Problem, cold bool, k *cuda.Kernel, info *cuda.Info, card *component.Facts) component.Gemm {
	g := component.Gemm{Type: p.Type, M: p.M, N: p.N, K: p.K, Cold: cold}
	if card != nil {
		g.Bits, g.Moved = card.Random(g.Type)
	}
	if info != nil {
		g.L2 = float64(info.L2)
	}
	if k == nil || info == nil || k.Waves <= 0 {
		return g
	}
	// The number of tiles is computed from Waves. Some kernels report implausible numbers of waves.
	const smallest, largest = 64 * 8, 256 * 256 // results per tile, of any kernel of cuBLASLt
	if tile := float64(p.M) * float64(p.N) / (k.Waves * float64(info.SMs)); tile >= smallest && tile <= largest {
		g.Tile = tile
	}
	return g
}

// LayerKernels returns the kernels of layers that run in sequence.
func LayerKernels(m *component.Model, layers []component.Gemm) ([]component.Kernel, error) {
	all := 0.0
	for _, g := range layers {
		all += g.Bytes()
	}
	var kernels []component.Kernel
	for i, g := range layers {
		g.L2, g.Around = m.L2, all-g.Bytes()
		k, err := g.Kernel(fmt.Sprintf("layer %d", i+1), &m.Facts)
		if err != nil {
			return nil, err
		}
		kernels = append(kernels, k)
	}
	return kernels, nil
}
