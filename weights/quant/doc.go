// Package quant groups the tensors of a model by the weights that they belong to.
//
// A [Weight] is a matrix of numbers as a layer uses it. A plain checkpoint stores it in one tensor. A
// quantised checkpoint stores it in several: codes, scales, zero points, a group index, not always in
// one shard. Plans, passes and reports speak of weights; only this package knows how the numbers lie in
// the tensors.
//
// # Quantised checkpoints
//
// [Describe] finds the quantised weights of a model: the format of each, and the tensors that belong to it with
// their roles. It reads configs, headers and the tensors that hold shapes. [Group] makes one weight of each quantised
// weight: [Weight.ReadRows] dequantises its values to F32.
//
// [Quantised.Read] gives the codes, scales and zero points as a [Matrix], whichever way they are stored, and
// [Quantised.Encode] turns a matrix into bytes of the tensors, in exactly their layout:
//
//	for expert := range w.Experts() {
//		m, err := w.Read(expert)
//		// Change m.Codes and m.Scales here.
//		err = w.Encode(m, expert, func(part int, at int64, b []byte) error {
//			// b belongs at byte at of tensor w.Tensors[part].
//		})
//	}
//
// # Reading
//
// [Weight.ReadRows] gives rows as elements of one type, [Weight.DType], in storage order: the last
// dimension runs along a row (see [weights.Info.Matrix]). Package arch says which axis counts outputs. Rows come from the mapped
// files when they are asked for, so callers that may meet a failing disk wrap reading in [weights.Guard].
//
// # Writing
//
// A file is written from its first byte to its last. A step that applies a plan asks [Set.Tensors] what
// each tensor of a file belongs to, in the order of the file's data:
//
//	for _, p := range set.Tensors(file) {
//		w := p.Weight
//		if !changes(w) {
//			// Copy the tensor as it is: p.Tensor().Data.
//			continue
//		}
//		for first := 0; first < w.Rows; first += step { // step is a multiple of w.Unit
//			n := min(step, w.Rows-first)
//			rows := compute(w, first, n) // n rows of w.RowBytes bytes, in w.DType
//			err := w.StoreRows(first, rows, func(part int, at int64, b []byte) error {
//				// b belongs at byte at of tensor w.Parts[part].
//			})
//		}
//	}
//
// If w has one part, the calls come in the order of its bytes and can be written to the file at once. The loop meets a weight of
// several parts once for each part: compute its rows once, and keep the parts until their files are written. Bytes without a call
// stay as they are in the source.
package quant
