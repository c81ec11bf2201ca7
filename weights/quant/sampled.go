package quant

import "github.com/lowtoggle/lowtoggle/weights"

// Sampled advises the system that only some ranges [first, end) of the weight's rows are read until the returned function is
// called; see [weights.Sampled]. It has no effect for a weight whose rows are not contiguous in its file.
func (w *Weight) Sampled(ranges [][2]int) (end func()) {
	t := w.Parts[0].Tensor
	rows, _ := t.Matrix()
	if rows != w.Rows || rows == 0 || len(t.Data)%rows != 0 {
		return func() {}
	}
	size := len(t.Data) / rows
	var parts [][]byte
	for _, r := range ranges {
		parts = append(parts, t.Data[r[0]*size:r[1]*size])
	}
	return weights.Sampled(t.Data, parts...)
}
