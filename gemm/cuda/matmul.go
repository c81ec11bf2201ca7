package cuda

import (
	"encoding/binary"
	"fmt"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
)

// matmul is a product that is ready to launch: its description and the selected algorithm.
type matmul struct {
	description
	shape  shape
	mode   mode
	scales scales // scales of FP8 operands
	choice heuristic
}

func (m *matmul) sizes() shape { return m.shape }

// prepare describes p to cuBLASLt and lets cuBLASLt's heuristic select a kernel. s holds the scales of FP8 operands;
// their addresses may be set later.
func (d *Device) prepare(p gemm.Problem, s scales) (*matmul, error) {
	a := arithmetics[p.Type]
	if d.info.capability < a.capability {
		return nil, fmt.Errorf("%s (compute capability %s) cannot multiply %v, which needs %d.%d or later",
			d.info.Name, d.info.Capability, p.Type, a.capability/10, a.capability%10)
	}
	var err error
	for _, mode := range a.modes {
		m := &matmul{description: description{device: d}, shape: shapeOf(p), mode: mode, scales: s}
		if err = m.describe(a); err == nil {
			err = m.scale(p)
		}
		if err == nil {
			err = m.choose(a)
		}
		if err == nil {
			return m, nil
		}
		m.destroy()
	}
	return nil, fmt.Errorf("%v on %s with cuBLASLt %s: %w", p.Type, d.info.Name, d.info.CublasLt, err)
}

// describe creates the descriptors: A is transposed, and all layouts are dense.
func (m *matmul) describe(a arithmetic) error {
	s := m.shape
	return first(
		func() error { return m.create(m.mode.compute, m.mode.scale) },
		func() error { return m.set(descTransA, binary.LittleEndian.AppendUint32(nil, opT)) },
		func() error { return m.layout(&m.slotA, a.operand, s.k, s.m, s.k) },
		func() error { return m.layout(&m.slotB, a.operand, s.k, s.n, s.k) },
		func() error { return m.layout(&m.slotD, a.output, s.m, s.n, s.m) },
	)
}

// scale describes the scales of FP8 operands.
func (m *matmul) scale(p gemm.Problem) error {
	if p.Type != arith.FP8 {
		return nil
	}
	modes, at := [2]scaling{m.scales.w, m.scales.x}, m.scales.at
	if p.Streaming {
		modes, at = [2]scaling{modes[1], modes[0]}, [2]uint64{at[1], at[0]}
	}
	for slot, address := range at {
		if address == 0 {
			address = m.device.one
		}
		if err := m.set([2]int32{descScalePointerA, descScalePointerB}[slot], binary.LittleEndian.AppendUint64(nil, address)); err != nil {
			return err
		}
		if modes[slot] == scaleTensor {
			continue // older libraries do not have the attribute
		}
		if err := m.set([2]int32{descScaleModeA, descScaleModeB}[slot], binary.LittleEndian.AppendUint32(nil, uint32(modes[slot]))); err != nil {
			return err
		}
	}
	return nil
}

// choose takes the heuristic's best algorithm among the allowed implementations.
func (m *matmul) choose(a arithmetic) error {
	offers, err := m.offers(a.implementation, 0)
	if err == nil {
		m.choice = offers[0]
	}
	return err
}

// launch queues D = A·B on the device's stream. x, w and y are addresses.
func (m *matmul) launch(p gemm.Problem, x, w, y uint64) error {
	if !p.Streaming {
		x, w = w, x // slots A and B
	}
	return m.multiply(&m.choice, &ones[m.mode.scale][0], &zero[0], x, w, y)
}
