// Package quant groups the tensors of a model by the weights that they belong to.
//
// A [Weight] is a matrix of numbers that a layer uses. An unquantised checkpoint stores it in one tensor. A quantised
// checkpoint stores it in several tensors, sometimes in several shards: codes, scales, zero points, a group index. Plans,
// passes and reports use weights. Only this package handles their storage in tensors.
//
// # Quantised checkpoints
//
// [Describe] finds the quantised weights of a model: the format of each, its tensors, and their roles. It reads configs,
// headers and the tensors that hold shapes. [Group] makes a [Weight] of each quantised weight. [Weight.ReadRows] dequantises
// the values to F32.
//
// [Quantised.Read] returns the codes, scales and zero points as a [Matrix], for every layout. [Quantised.Encode] turns a
// matrix into bytes of the tensors, in their layout:
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
// [Weight.ReadRows] returns rows as elements of one type, [Weight.DType], in storage order: the last dimension runs along a
// row (see [weights.Info.Matrix]). Package arch says which axis counts outputs. Each call reads the mapped files, so callers
// that must survive a failing disk wrap reading in [weights.Guard].
//
// # Writing
//
// A file is written from its first byte to its last. [Set.Tensors] returns the weight of each tensor of a file, in the order
// of the file's data:
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
// If w has one part, store is called in the order of the part's bytes, so the bytes can be written to the file at once. The
// loop reaches a weight of several parts once for each part: compute its rows once, and keep the parts until their files are
// written. Bytes that store does not get are those of the source.
package quant
