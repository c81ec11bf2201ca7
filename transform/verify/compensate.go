package verify

import "github.com/lowtoggle/lowtoggle/transform/plan"

// Compensate checks the pass compensate: values are chosen jointly, so any value is allowed.
var Compensate = &Check{Claim: func(s *plan.Step) (*Claim, error) {
	_, err := plan.Data[struct {
		Damp float64 `json:"damp"`
	}](s)
	return &Claim{Anywhere: true}, err
}}
