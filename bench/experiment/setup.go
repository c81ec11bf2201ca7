package experiment

import (
	"fmt"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
)

// Setup describes the product y[M,N] = x[M,K]·w[N,K]ᵀ that all points of a series share.
type Setup struct {
	Type arith.Type `json:"type"`
	M    int        `json:"m"` // tokens
	N    int        `json:"n"` // outputs
	K    int        `json:"k"` // inputs
	// Change says which operands differ between the points.
	Change Change `json:"change"`
	// Role is the role of w in the product.
	Role cost.Role `json:"role"`
	// Cold is true if every product reads w from memory and not from the cache.
	Cold bool `json:"cold,omitempty"`
}

// Change says which operands differ between the points of a series.
type Change string

// The changes of a series: both operands, or the weights only.
const (
	Both    Change = "both"
	Weights Change = "weights"
)

// String returns the setup's name, which is also its file's name: "bf16-8192-stationary" if only the weights
// change, "fp16-2048-both", "bf16-16x8192x8192-streaming-cold".
func (s Setup) String() string {
	name := fmt.Sprintf("%v-%d", s.Type, s.M)
	if s.M != s.N || s.M != s.K {
		name = fmt.Sprintf("%v-%dx%dx%d", s.Type, s.M, s.N, s.K)
	}
	if s.Change == Both {
		name += "-both"
	}
	if s.Change != Both || s.Role != cost.Stationary {
		name += "-" + s.Role.String()
	}
	if s.Cold {
		name += "-cold"
	}
	return name
}

// Problem returns the product.
func (s Setup) Problem() gemm.Problem {
	return gemm.Problem{M: s.M, N: s.N, K: s.K, Type: s.Type, Streaming: s.Role == cost.Streaming}
}

// Seeds returns the seeds with which the patterns of a point draw x[M,K] and w[N,K]. If only the weights change, x is
// the baseline's.
func (s Setup) Seeds(baseline, p Point) (x, w uint64) {
	if s.Change == Weights {
		return 2 * baseline.Seed, 2*p.Seed + 1
	}
	return 2 * p.Seed, 2*p.Seed + 1
}

// Validate returns an error for a setup that cannot be measured.
func (s Setup) Validate() error {
	if s.Change != Both && s.Change != Weights {
		return fmt.Errorf("setup %v: change %q: want %q or %q", s, s.Change, Both, Weights)
	}
	if _, err := s.Role.MarshalText(); err != nil {
		return fmt.Errorf("setup %v: %w", s, err)
	}
	if err := s.Problem().Validate(); err != nil {
		return fmt.Errorf("setup %v: %w", s, err)
	}
	return nil
}
