package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/lowtoggle/lowtoggle/bench/probe"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/component"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
)

// dissected are products whose power is to be split by component, of one card.
type dissected struct {
	name          string // of the phase or product
	cold          bool   // weights come from memory
	before, after []cuda.Product
	kernels       []cuda.Kernel // of before's products, where they are known
	info          *cuda.Info    // nil: not known
	// seconds and clock, in MHz, of one pass through before's products where these were measured; else 0.
	seconds, clock float64
}

// signature is where the power of products goes. All of it is predicted, by a model of the card.
type signature struct {
	Name   string            `json:"name"`
	Before component.Split   `json:"before"`
	After  *component.Split  `json:"after,omitempty"`
	Advice *component.Advice `json:"advice"`
	Then   *component.Advice `json:"advice_after,omitempty"`
}

// signatureOf splits the power of products. Where the card's components were never measured it gives a
// note in place of a signature.
func signatureOf(ctx context.Context, card string, s dissected) (sig *signature, note string, err error) {
	m, err := componentsOf(card)
	if errors.Is(err, component.ErrUnknown) {
		return nil, fmt.Sprintf("where the power goes: %v; this looks for its %s here", err, calibrateOut+componentsPostfix), nil
	}
	if err != nil {
		return nil, "", err
	}
	sig, err = sign(ctx, m, s)
	return sig, "", err
}

// componentsOf a card: what calibrate --components has written here under its usual name, or what is built in.
func componentsOf(card string) (*component.Model, error) {
	m, err := component.Read(calibrateOut + componentsPostfix)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case m.Card == card && m.Coefficients != nil: // not of another card, and not broken off
		return m, nil
	}
	return component.Find(card)
}

func sign(ctx context.Context, m *component.Model, s dissected) (*signature, error) {
	kernels, err := s.kernelsOf(ctx, m, s.before)
	if err != nil {
		return nil, err
	}
	sig := &signature{Name: s.name}
	if sig.Advice, err = m.Advise(s.name, kernels); err != nil {
		return nil, err
	}
	measured := kernels
	if s.seconds > 0 && s.clock > 0 {
		measured = m.Timed(kernels, s.seconds, s.clock)
	}
	if sig.Before, err = m.Together(measured); err != nil || len(s.after) == 0 {
		return sig, err
	}
	after, err := s.kernelsOf(ctx, m, s.after)
	if err != nil {
		return nil, err
	}
	if sig.Then, err = m.Advise(s.name, after); err != nil {
		return nil, err
	}
	split, err := m.Together(after)
	sig.After = &split
	return sig, err
}

// kernelsOf products, with what their operands' bits do. Their times are not known.
func (s dissected) kernelsOf(ctx context.Context, m *component.Model, products []cuda.Product) ([]component.Kernel, error) {
	activity, err := cost.FindCalibration(m.Card)
	if err != nil {
		if activity, err = cost.FindCalibration(usualGPU); err != nil {
			return nil, err
		}
	}
	var layers []component.Gemm
	for i, p := range products {
		var ran *cuda.Kernel
		if i < len(s.kernels) {
			ran = &s.kernels[i]
		}
		g := probe.GEMM(p.Problem, s.cold, ran, s.info)
		q := cost.Product{Type: g.Type, M: g.M, N: g.N, K: g.K, Cold: s.cold}
		if p.Problem.Streaming {
			q.Role = cost.Streaming
		}
		if g.Bits, g.Moved, err = activity.Toggling(ctx, q, blocksOf(p.X), blocksOf(p.W)); err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		layers = append(layers, g)
	}
	return phaseKernels(m, layers)
}

// blocksOf a matrix, as the cost model asks for them.
func blocksOf(m gemm.Matrix) cost.Operand {
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

// printSignatures writes a table of splits, and what follows for clocks.
func printSignatures(w io.Writer, list []*signature) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(w, "\nwhere the power goes, predicted, in watts")
	fmt.Fprintln(w)
	tab := newTable(append(append([]string{""}, partHeads()...), "power", "±")...)
	add := func(name string, s component.Split) {
		cells := append([]string{name}, partCells(s)...)
		tab.add(append(cells, watts(s.Watts), watts(1.96*s.Error))...)
	}
	for _, s := range list {
		add(s.Name, s.Before)
		if s.After != nil {
			add(s.Name+", after", *s.After)
		}
	}
	tab.print(w)
	fmt.Fprintln(w)
	for _, s := range list {
		remarks(w, "clock", s.Advice.Text())
		if s.Then != nil {
			remarks(w, "clock", component.Contrast(s.Advice, s.Then))
		}
	}
}
