package quantise

import (
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/weights"
)

// groupSizes are the group sizes that Fit tries if none was given. The format's own size comes first.
var groupSizes = []int{128, 64, 32, 16}

// Fit removes the weights that a format cannot hold: those whose inputs are not a multiple of the group size, and those whose
// outputs do not fill whole words. These weights stay unquantised, and Left names them. If no group size was given, Fit
// chooses the size that fits most weights; of several, the largest. tensors are the tensors that TargetsOf got. Fit returns
// an error if no weight fits, and for a format without Converts, if any weight does not fit.
func (t *Targets) Fit(f Format, tensors []weights.Info) (Format, error) {
	best := t.left(f, tensors)
	if f.free && !f.sized && f.Converts {
		for _, size := range groupSizes {
			g := f.withGroup(size)
			if left := t.left(g, tensors); len(left) < len(best) {
				f, best = g, left
			}
		}
	}
	if len(best) > 0 && (!f.Converts || len(best) == len(t.Weights)) {
		return f, t.unfit(f, best[0], tensors)
	}
	for _, name := range best {
		module, _ := moduleOf(name) // TargetsOf has checked the name
		delete(t.Weights, name)
		t.Ignore = append(t.Ignore, module[:len(module)-1])
	}
	slices.Sort(t.Ignore)
	t.Left = best
	return f, nil
}

// left returns the names of the weights that a format cannot hold.
func (t *Targets) left(f Format, tensors []weights.Info) (names []string) {
	for _, info := range tensors {
		if !t.Weights[info.Name] {
			continue
		}
		if _, err := f.Tensors(info.Name, info.Shape[0], info.Shape[1], info.DType); err != nil {
			names = append(names, info.Name)
		}
	}
	return names
}

// unfit returns the error for a weight that a format cannot hold. The error advises a group size that fits all weights, if
// there is one.
func (t *Targets) unfit(f Format, name string, tensors []weights.Info) error {
	i := slices.IndexFunc(tensors, func(info weights.Info) bool { return info.Name == name })
	_, err := f.Tensors(name, tensors[i].Shape[0], tensors[i].Shape[1], tensors[i].DType)
	if f.Per != "group" {
		return err
	}
	if f.free {
		for _, size := range append(groupSizes, 8) {
			if g := f.withGroup(size); size < f.Block[1] && len(t.left(g, tensors)) == 0 {
				return fmt.Errorf("%w: choose a group size that all layers fit, as in %s", err, g)
			}
		}
	}
	return fmt.Errorf("%w: choose a format without groups, such as fp8 or int8", err)
}

// withGroup returns the format with groups of a given size.
func (f Format) withGroup(size int) Format {
	f.Block[1], f.sized = size, true
	return f
}
