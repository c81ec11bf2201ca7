package quant

// New returns a matrix of n rows with the blocks and codes of the weight, for values that are chosen later. Codes, scales,
// zero points and groups are 0, and the global scale is 1. The weight's tensors need no data.
func (w *Quantised) New(n int) (*Matrix, error) {
	st, err := w.storage()
	if err != nil {
		return nil, err
	}
	scales := ceil(n, st.block[0]) * st.columns
	m := &Matrix{Book: st.book, N: n, K: st.k, Block: st.block, Global: 1, Divide: st.divide, Codes: make([]byte, n*st.k), Scales: make([]float32, scales)}
	if st.zeros.part >= 0 {
		m.Zeros = make([]uint8, scales)
	}
	if st.group >= 0 {
		m.Group = make([]int32, st.k)
	}
	return m, nil
}
