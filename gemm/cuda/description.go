package cuda

import (
	"encoding/binary"
	"fmt"
)

// workspaceBytes is the memory that a kernel may use for partial results: PyTorch's value for Hopper.
const workspaceBytes = 32 << 20

// candidates is the number of algorithms requested from the heuristic. The first allowed one is used.
const candidates = 8

// description describes a product D = A·B to cuBLASLt. Its matrices are column-major. All methods except destroy must be
// called on the device's thread.
type description struct {
	device              *Device
	desc                uintptr
	slotA, slotB, slotD uintptr // layouts
}

// create creates the description with the types of sums and factors.
func (d *description) create(compute, scale int32) error {
	return d.device.api.checkLt("cublasLtMatmulDescCreate", d.device.api.cublasLtMatmulDescCreate(&d.desc, compute, scale))
}

// set sets an attribute.
func (d *description) set(attribute int32, value []byte) error {
	return d.device.api.checkLt("cublasLtMatmulDescSetAttribute", d.device.api.cublasLtMatmulDescSet(d.desc, attribute, &value[0], uint64(len(value))))
}

// layout describes the matrix of a slot.
func (d *description) layout(slot *uintptr, element int32, rows, cols, stride int) error {
	return d.device.api.checkLt("cublasLtMatrixLayoutCreate", d.device.api.cublasLtLayoutCreate(slot, element, uint64(rows), uint64(cols), int64(stride)))
}

// offers returns the heuristic's algorithms with an allowed implementation, the best first. No allowed algorithm is an error.
// aligned is the alignment of all addresses in bytes; 0: sufficient for any algorithm.
func (d *description) offers(implementation uint64, aligned int) (allowed []heuristic, err error) {
	api := d.device.api
	var pref uintptr
	if err := api.checkLt("cublasLtMatmulPreferenceCreate", api.cublasLtPreferenceCreate(&pref)); err != nil {
		return nil, err
	}
	defer api.cublasLtPreferenceDestroy(pref)
	preferences := map[int32][]byte{
		prefMaxWorkspace: binary.LittleEndian.AppendUint64(nil, workspaceBytes),
		prefImplMask:     binary.LittleEndian.AppendUint64(nil, implementation),
		// Partial sums of a split K are not added in the output's type, because that would round them again.
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
		api.cublasLtGetHeuristic(d.device.lt, d.desc, d.slotA, d.slotB, d.slotD, d.slotD, pref, candidates, &found[0], &count)); err != nil {
		return nil, err
	}
	for i := range found[:count] {
		if h := &found[i]; h.state == 0 && api.implementation(h)&implTensorOps&^implementation == 0 {
			allowed = append(allowed, *h)
		}
	}
	if len(allowed) == 0 {
		return nil, fmt.Errorf("none of the %d kernels that cuBLASLt offers has an allowed numerical implementation", count)
	}
	return allowed, nil
}

// multiply queues D = alpha·A·B + beta·D with a kernel. alpha and beta have the type that create was given.
func (d *description) multiply(h *heuristic, alpha, beta *byte, a, b, to uint64) error {
	on := d.device
	return on.api.checkLt("cublasLtMatmul", on.api.cublasLtMatmul(on.lt, d.desc, alpha, a, d.slotA, b, d.slotB, beta, to, d.slotD, to, d.slotD,
		&h.algo, on.workspace, workspaceBytes, on.stream))
}

// destroy frees the description's host memory. It is idempotent.
func (d *description) destroy() {
	api := d.device.api
	for _, layout := range []*uintptr{&d.slotA, &d.slotB, &d.slotD} {
		if *layout != 0 {
			api.cublasLtLayoutDestroy(*layout)
			*layout = 0
		}
	}
	if d.desc != 0 {
		api.cublasLtMatmulDescDestroy(d.desc)
		d.desc = 0
	}
}
