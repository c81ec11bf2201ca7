package cuda

import (
	"encoding/binary"
	"fmt"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
)

// workspaceBytes is the memory that a kernel may use for partial results: PyTorch's value for Hopper.
const workspaceBytes = 32 << 20

// candidates is the number of algorithms requested of the heuristic. The first allowed one is used.
const candidates = 8

// matmul is a product ready to launch: descriptors and the chosen algorithm. All methods but destroy must be
// called on the device's thread.
type matmul struct {
	device          *Device
	shape           shape
	mode            mode
	scales          scales // of FP8 operands
	desc            uintptr
	slotA, slotB, d uintptr // layouts
	choice          heuristic
}

func (m *matmul) sizes() shape { return m.shape }

// prepare describes p to cuBLASLt and lets its heuristic choose a kernel. The scales are those of FP8 operands: their
// addresses may be set later.
func (d *Device) prepare(p gemm.Problem, s scales) (*matmul, error) {
	a := arithmetics[p.Type]
	if d.info.capability < a.capability {
		return nil, fmt.Errorf("%s (compute capability %s) cannot multiply %v, which needs %d.%d or later",
			d.info.Name, d.info.Capability, p.Type, a.capability/10, a.capability%10)
	}
	var err error
	for _, mode := range a.modes {
		m := &matmul{device: d, shape: shapeOf(p), mode: mode, scales: s}
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

// describe creates the descriptors: A transposed, all layouts dense.
func (m *matmul) describe(a arithmetic) error {
	api, s := m.device.api, m.shape
	layout := func(to *uintptr, element int32, rows, cols int) func() error {
		return func() error {
			return api.checkLt("cublasLtMatrixLayoutCreate", api.cublasLtLayoutCreate(to, element, uint64(rows), uint64(cols), int64(rows)))
		}
	}
	return first(
		func() error {
			return api.checkLt("cublasLtMatmulDescCreate", api.cublasLtMatmulDescCreate(&m.desc, m.mode.compute, m.mode.scale))
		},
		m.set(descTransA, binary.LittleEndian.AppendUint32(nil, opT)),
		layout(&m.slotA, a.operand, s.k, s.m),
		layout(&m.slotB, a.operand, s.k, s.n),
		layout(&m.d, a.output, s.m, s.n),
	)
}

func (m *matmul) set(attribute int32, value []byte) func() error {
	api := m.device.api
	return func() error {
		return api.checkLt("cublasLtMatmulDescSetAttribute", api.cublasLtMatmulDescSet(m.desc, attribute, &value[0], uint64(len(value))))
	}
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
	var steps []func() error
	for slot, address := range at {
		if address == 0 {
			address = m.device.one
		}
		steps = append(steps, m.set([2]int32{descScalePointerA, descScalePointerB}[slot], binary.LittleEndian.AppendUint64(nil, address)))
		if modes[slot] != scaleTensor { // older libraries do not know the attribute
			steps = append(steps, m.set([2]int32{descScaleModeA, descScaleModeB}[slot], binary.LittleEndian.AppendUint32(nil, uint32(modes[slot]))))
		}
	}
	return first(steps...)
}

// choose takes the heuristic's best algorithm with an allowed implementation.
func (m *matmul) choose(a arithmetic) error {
	offers, err := m.device.offers(m.desc, m.slotA, m.slotB, m.d, a.implementation, 0)
	if err == nil {
		m.choice = offers[0]
	}
	return err
}

// offers returns the heuristic's algorithms with an allowed implementation, the best first; there is at least one.
// aligned is the number of bytes that addresses are a multiple of; 0: as much as any algorithm needs.
func (d *Device) offers(desc, slotA, slotB, slotD uintptr, implementation uint64, aligned int) (allowed []heuristic, err error) {
	api := d.api
	var pref uintptr
	if err := api.checkLt("cublasLtMatmulPreferenceCreate", api.cublasLtPreferenceCreate(&pref)); err != nil {
		return nil, err
	}
	defer api.cublasLtPreferenceDestroy(pref)
	preferences := map[int32][]byte{
		prefMaxWorkspace: binary.LittleEndian.AppendUint64(nil, workspaceBytes),
		prefImplMask:     binary.LittleEndian.AppendUint64(nil, implementation),
		// Partial sums of a split K are never added in the output's type, which would round them again.
		prefReduction: binary.LittleEndian.AppendUint32(nil, reduceInPlace|reduceCompute),
	}
	if aligned > 0 {
		for i := range int32(4) {
			preferences[prefAlignmentA+i] = binary.LittleEndian.AppendUint32(nil, uint32(aligned))
		}
	}
	for attribute, value := range preferences {
		if err := api.checkLt("cublasLtMatmulPreferenceSetAttribute",
			api.cublasLtPreferenceSet(pref, attribute, &value[0], uint64(len(value)))); err != nil {
			return nil, err
		}
	}
	found, count := make([]heuristic, candidates), int32(0)
	if err := api.checkLt("cublasLtMatmulAlgoGetHeuristic",
		api.cublasLtGetHeuristic(d.lt, desc, slotA, slotB, slotD, slotD, pref, candidates, &found[0], &count)); err != nil {
		return nil, err
	}
	for i := range found[:count] {
		if h := &found[i]; h.state == 0 && api.implementation(h)&implTensorOps&^implementation == 0 {
			allowed = append(allowed, *h)
		}
	}
	if len(allowed) == 0 {
		return nil, fmt.Errorf("none of the %d kernels that the heuristic offers is allowed", count)
	}
	return allowed, nil
}

// launch queues D = A·B on the device's stream; operands are addresses of x and w.
func (m *matmul) launch(p gemm.Problem, x, w, y uint64) error {
	if !p.Streaming {
		x, w = w, x // slots A and B
	}
	d := m.device
	return d.api.checkLt("cublasLtMatmul", d.api.cublasLtMatmul(d.lt, m.desc,
		&ones[m.mode.scale][0], x, m.slotA, w, m.slotB,
		&zero[0], y, m.d, y, m.d,
		&m.choice.algo, d.workspace, workspaceBytes, d.stream))
}

// destroy frees the descriptors. A descriptor that was never created is 0.
func (m *matmul) destroy() {
	api := m.device.api
	for _, layout := range []*uintptr{&m.slotA, &m.slotB, &m.d} {
		if *layout != 0 {
			api.cublasLtLayoutDestroy(*layout)
			*layout = 0
		}
	}
	if m.desc != 0 {
		api.cublasLtMatmulDescDestroy(m.desc)
		m.desc = 0
	}
}
