package paper

import (
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/internal/chart"
)

// coloured lists the types in the order of the palette.
var coloured = []arith.Type{arith.FP32, arith.TF32, arith.FP16, arith.BF16, arith.FP16CUDA, arith.FP8, arith.INT8}

// conditions is a setup without its type.
type conditions experiment.Setup

func conditionsOf(s experiment.Setup) conditions {
	s.Type = 0
	return conditions(s)
}

// String names the conditions: "8192³, weights only, stationary".
func (w conditions) String() string {
	text := fmt.Sprintf("%d³", w.M)
	if w.M != w.N || w.M != w.K {
		text = fmt.Sprintf("%d×%d×%d", w.M, w.N, w.K)
	}
	if w.Change == experiment.Both {
		text += ", both operands"
	} else {
		text += fmt.Sprintf(", weights only, %v", w.Role)
	}
	if w.Cold {
		text += ", weights from memory"
	}
	return text
}

// allConditions lists the conditions of setups, in their order.
func allConditions(setups []experiment.Setup) (list []conditions) {
	for _, s := range setups {
		if w := conditionsOf(s); !slices.Contains(list, w) {
			list = append(list, w)
		}
	}
	return list
}

// styleOf returns a setup's style: the colour shows the type, marker and dashes show the conditions. Markers and
// dashes repeat after four conditions.
func styleOf(s experiment.Setup, among []conditions) chart.Style {
	i := slices.Index(among, conditionsOf(s)) % 4
	return chart.Style{Colour: slices.Index(coloured, s.Type), Marker: i + 1, Dashes: i}
}
