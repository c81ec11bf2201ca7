package measure

import (
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// Result holds the figures of a comparison ([power.Result]) and its products. Joules and seconds are per pass through
// all products. Absent fields are unknown.
type Result struct {
	*power.Result
	Platform   *cuda.Info `json:"platform,omitempty"`
	Products   []Group    `json:"products"`
	Operations float64    `json:"operations"`       // number of operations of one pass
	Teraflops  float64    `json:"tflops,omitempty"` // 10¹² operations per second of the baseline
	// Simulated is true for a simulated card. Its figures say nothing about a real card.
	Simulated bool `json:"simulated,omitempty"`
	// SameMemory is true if all candidates except those in Apart ran at the same addresses. It is absent in results of
	// earlier versions, which gave each candidate its own memory.
	SameMemory bool     `json:"same_memory,omitempty"`
	Apart      []string `json:"own_memory,omitempty"`
	// Cold is true if every product reads its weights from memory. Copies copies of the weights, WeightBytes in total,
	// are used in turn. A product multiplies Stack copies of a layer's weights at once, but figures are per copy.
	Cold        bool  `json:"cold"`
	Stack       int   `json:"stack"`
	Copies      int   `json:"weight_copies"`
	WeightBytes int64 `json:"weight_bytes"`
	// Deviation is the largest deviation of the results from the reference.
	Deviation *gemm.Deviation `json:"deviation,omitempty"`
	// AtDuty holds the results of the same comparison at additional duties ([Options].Duties).
	AtDuty []*Result `json:"at_duty,omitempty"`
}

// atDuty returns a text with the duty; empty if the result has no duty.
func (r *Result) atDuty() string {
	if r.Pacing == nil {
		return ""
	}
	return fmt.Sprintf(" at a duty of %.3g", r.Pacing.Duty)
}

// precise reports whether the result and the results at additional duties reached their precision.
func (r *Result) precise() bool {
	return r.Stopped == power.StoppedPrecision && !slices.ContainsFunc(r.AtDuty, func(o *Result) bool { return !o.precise() })
}

// Group is a group of products with the same problem.
type Group struct {
	Problem gemm.Problem `json:"problem"`
	Count   int          `json:"count"`
	Kernel  *cuda.Kernel `json:"kernel,omitempty"`
}

// describe adds the products to the result.
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
