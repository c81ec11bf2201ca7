package measure

import (
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// Result is what [power.Meter] found, and of what. Joules and seconds are those of one pass
// through all products. What is absent is not known.
type Result struct {
	*power.Result
	Platform   *cuda.Info `json:"platform,omitempty"`
	Products   []Group    `json:"products"`
	Operations float64    `json:"operations"`       // of one pass
	Teraflops  float64    `json:"tflops,omitempty"` // 10¹² operations a second, of the baseline
	// Simulated figures mean nothing.
	Simulated bool `json:"simulated,omitempty"`
	// Cold weights are read from memory by every product: of so many copies, so many bytes in all.
	// Stack copies of a layer's weights make one product; a pass is all the same through one of each.
	Cold        bool  `json:"cold"`
	Stack       int   `json:"stack"`
	Copies      int   `json:"weight_copies"`
	WeightBytes int64 `json:"weight_bytes"`
	// Deviation from the reference of the worst result among those that were compared with it.
	Deviation *gemm.Deviation `json:"deviation,omitempty"`
}

// Group is products that are alike.
type Group struct {
	Problem gemm.Problem `json:"problem"`
	Count   int          `json:"count"`
	Kernel  *cuda.Kernel `json:"kernel,omitempty"`
}

// describe says what runs.
func (r *Result) describe(products []cuda.Product, b Batch) {
	kernels := b.Kernels()
	at := map[gemm.Problem]int{}
	for i, p := range products {
		k, seen := at[p.Problem]
		if !seen {
			k = len(r.Products)
			at[p.Problem] = k
			g := Group{Problem: p.Problem}
			if i < len(kernels) {
				g.Kernel = &kernels[i]
			}
			r.Products = append(r.Products, g)
		}
		r.Products[k].Count++
	}
	r.Operations = b.Ops() / float64(b.Passes()*r.Stack)
	r.Copies, r.WeightBytes = b.Copies(), b.WeightBytes()
}
