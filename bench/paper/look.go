package paper

import (
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/gemm"
)

// look tells a setup's line from others: the colour by type, marker and dashes by all else. The
// colours are between light and dark, to be seen on both.
type look struct{ colour, marker, dashes string }

var colours = map[gemm.Type]string{
	gemm.FP32:     "#8a6fd1",
	gemm.TF32:     "#8d8d3a",
	gemm.FP16:     "#2f81d6",
	gemm.BF16:     "#d2691e",
	gemm.FP16CUDA: "#1a9a8a",
	gemm.FP8:      "#cf4f87",
	gemm.INT8:     "#5f9e2f",
}

// markers are paths around the place where they stand.
var markers = []string{
	"m-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z", // circle
	"m-3 -3h6v6h-6z",                      // square
	"m0 -4l4 7h-8z",                       // triangle
	"m0 -4l4 4l-4 4l-4 -4z",               // diamond
}

var dashes = []string{"", "6 3", "2 3", "9 3 2 3"}

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

// lookOf a setup among those ways. More than four share markers.
func lookOf(s experiment.Setup, among []way) look {
	i := slices.Index(among, wayOf(s)) % len(markers)
	return look{colours[s.Type], markers[i], dashes[i]}
}
