package verify

import (
	"encoding/json"

	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// Trellis checks the pass trellis: values are chosen jointly, so any value is allowed.
var Trellis = &Check{Claim: func(s *plan.Step) (*Claim, error) {
	_, err := plan.Data[struct {
		Lambda float64         `json:"lambda"`
		Rates  json.RawMessage `json:"rates"`
	}](s)
	return &Claim{Anywhere: true}, err
}}
