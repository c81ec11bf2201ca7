package experiment

import (
	"fmt"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
)

// Setup is what all points of a series share.
type Setup struct {
	Type arith.Type `json:"type"`
	M    int        `json:"m"` // tokens
	N    int        `json:"n"` // outputs
	K    int        `json:"k"` // inputs
	// Change says what differs between the points: both operands or the weights alone.
	Change Change `json:"change"`
	// Role of w in the product.
	Role cost.Role `json:"role"`
	// Cold makes every product read w from memory.
	Cold bool `json:"cold,omitempty"`
}

// Change says which operands differ between the points of a series.
type Change string

// The changes.
const (
	Both    Change = "both"
	Weights Change = "weights"
)

// String names the setup, and its file: "bf16-8192-stationary" where the weights alone change,
// "fp16-2048-both", "bf16-16x8192x8192-streaming-cold".
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

// Problem is the product that is measured.
func (s Setup) Problem() gemm.Problem {
	return gemm.Problem{M: s.M, N: s.N, K: s.K, Type: s.Type, Streaming: s.Role == cost.Streaming}
}

// Validate reports a setup that cannot be measured.
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
