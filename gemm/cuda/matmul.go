package cuda

import (
	"encoding/binary"
	"fmt"

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
	desc            uintptr
	slotA, slotB, d uintptr // layouts
	choice          heuristic
}

// prepare describes p to cuBLASLt and lets its heuristic choose a kernel.
func (d *Device) prepare(p gemm.Problem) (*matmul, error) {
	a := arithmetics[p.Type]
	if d.info.capability < a.capability {
		return nil, fmt.Errorf("%s (compute capability %s) cannot multiply %v, which needs %d.%d or later",
			d.info.Name, d.info.Capability, p.Type, a.capability/10, a.capability%10)
	}
	var err error
	for _, mode := range a.modes {
		m := &matmul{device: d, shape: shapeOf(p), mode: mode}
		if err = m.describe(a); err == nil {
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
	set := func(attribute int32, value []byte) func() error {
		return func() error {
			return api.checkLt("cublasLtMatmulDescSetAttribute", api.cublasLtMatmulDescSet(m.desc, attribute, &value[0], uint64(len(value))))
		}
	}
	layout := func(to *uintptr, element int32, rows, cols int) func() error {
		return func() error {
			return api.checkLt("cublasLtMatrixLayoutCreate", api.cublasLtLayoutCreate(to, element, uint64(rows), uint64(cols), int64(rows)))
		}
	}
	steps := []func() error{
		func() error {
			return api.checkLt("cublasLtMatmulDescCreate", api.cublasLtMatmulDescCreate(&m.desc, m.mode.compute, m.mode.scale))
		},
		set(descTransA, binary.LittleEndian.AppendUint32(nil, opT)),
		layout(&m.slotA, a.operand, s.k, s.m),
		layout(&m.slotB, a.operand, s.k, s.n),
		layout(&m.d, a.output, s.m, s.n),
	}
	if a.operand == r8FE4M3 {
		one := binary.LittleEndian.AppendUint64(nil, m.device.one)
		steps = append(steps, set(descScalePointerA, one), set(descScalePointerB, one))
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
