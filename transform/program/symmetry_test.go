package program_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/program"
)

func TestPlacesOfPositions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "positions")
		var all []int
		for i := range n {
			all = append(all, i)
		}
		a := program.AxisMap{}
		if rapid.Bool().Draw(t, "moved") {
			a.Gather = rapid.Permutation(all).Draw(t, "order")
		}
		list := rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, n, rapid.ID).Draw(t, "list")
		places, err := a.Places(n, list)
		testmodel.OK(t, err)
		for i, place := range places {
			if a.From(place) != list[i] {
				t.Fatalf("%d is at %d in %v", list[i], place, a.Gather)
			}
		}
		bad := rapid.SampledFrom([]int{-1, n, 1 << 40, append(list, -7)[0]}).Draw(t, "bad")
		_, err = a.Places(n, append(list[:len(list):len(list)], bad))
		testmodel.WantError(t, err, fmt.Sprintf("position %d is not from 0 to %d, or occurs twice", bad, n-1))
	})
}
