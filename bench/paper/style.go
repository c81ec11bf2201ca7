package paper

import (
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/internal/chart"
)

// coloured are the types in the order of the palette.
var coloured = []arith.Type{arith.FP32, arith.TF32, arith.FP16, arith.BF16, arith.FP16CUDA, arith.FP8, arith.INT8}

// way is a setup but for its type.
type way experiment.Setup

func wayOf(s experiment.Setup) way {
	s.Type = 0
	return way(s)
}

// String says in words what all types share.
func (w way) String() string {
	text := fmt.Sprintf("%d³", w.M)
	if w.M != w.N || w.M != w.K {
		text = fmt.Sprintf("%d×%d×%d", w.M, w.N, w.K)
	}
	if w.Change == experiment.Both {
		text += ", both operands"
	} else {
		text += fmt.Sprintf(", weights, %v", w.Role)
	}
	if w.Cold {
		text += ", cold"
	}
	return text
}

// ways of setups, in their order.
func ways(setups []experiment.Setup) (list []way) {
	for _, s := range setups {
		if w := wayOf(s); !slices.Contains(list, w) {
			list = append(list, w)
		}
	}
	return list
}

// styleOf a setup among those ways tells it from others: the colour by type, marker and dashes by all
// else. More than four ways share these.
func styleOf(s experiment.Setup, among []way) chart.Style {
	i := slices.Index(among, wayOf(s)) % 4
	return chart.Style{Colour: slices.Index(coloured, s.Type), Marker: i + 1, Dashes: i}
}
