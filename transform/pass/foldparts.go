package pass

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// foldPart is one of the steps that together fold a norm into the layers that read its output. The fields are those
// of [Shifted].
type foldPart struct {
	tensor              string
	scale, bias, weight string
	fill                float64
	filled              bool
}

func foldPartOf(s *plan.Step) (foldPart, error) {
	sh, err := plan.Data[Shifted](s)
	part := foldPart{tensor: s.Tensor}
	switch {
	case sh.Fill != nil:
		part.fill, part.filled = *sh.Fill, true
	case sh.Bias != "":
		part.bias, part.weight = sh.Bias, sh.Weight
	default:
		part.scale = sh.Scale
	}
	return part, err
}

// checkFolds compares steps with the norms of a layout. A LayerNorm must be folded completely, because a partial fold
// changes the function.
func checkFolds(layout *arch.Layout, steps []*plan.Step) error {
	parts := foldParts(layout)
	given, begun := map[foldPart]bool{}, map[string]bool{} // begun by the norm's weight
	for _, s := range steps {
		part, err := foldPartOf(s)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", s.Tensor, err)
		}
		norm, known := parts[part]
		switch {
		case known:
			given[part], begun[norm] = true, true
		case part.filled && layout.Claims[s.Tensor] != nil && layout.Claims[s.Tensor].Role == arch.Norm && (part.fill == 0 || part.fill == 1):
			return fmt.Errorf("tensor %q: no fold of a norm fills this tensor with %g: make the plan again", s.Tensor, part.fill)
		}
	}
	var missing []foldPart
	for part, norm := range parts {
		if begun[norm] && !given[part] {
			missing = append(missing, part)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	first := slices.MinFunc(missing, func(a, b foldPart) int { return cmp.Compare(a.tensor, b.tensor) })
	return fmt.Errorf("%s is folded only in part, for example without the step on %q (missing steps: %d): keep all steps of the fold or none",
		parts[first], first.tensor, len(missing))
}

// foldParts lists the parts of folding every LayerNorm, by the norm's weight. If a layer has no bias that could absorb
// the norm's bias, the list has a part that no step can match.
func foldParts(layout *arch.Layout) map[foldPart]string {
	parts := map[foldPart]string{}
	for _, c := range layout.Claims {
		n := c.Norm
		if c.Role != arch.Linear || n == nil || n.Kind != arch.LayerNorm {
			continue
		}
		parts[foldPart{tensor: c.Name, scale: n.Weight}] = n.Weight
		parts[foldPart{tensor: n.Weight, fill: 1, filled: true}] = n.Weight
		if n.Bias != "" {
			parts[foldPart{tensor: c.Bias, bias: n.Bias, weight: c.Name}] = n.Weight
			parts[foldPart{tensor: n.Bias, fill: 0, filled: true}] = n.Weight
		}
	}
	return parts
}
