package decoder

import (
	"strconv"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// unclaimed returns the tensors with an unknown effect on the loss: the tensors that the family does not claim. It leaves out
// stored shifts (tensors *[weights.ShiftSuffix]), layers for multi-token prediction (numbers above config.json's count), and the
// encoders of images and audio in multimodal models.
func unclaimed(f family, c *config, l *arch.Layout) []string {
	text, layers := "", "" // prefixes of names
	for name, claim := range l.Claims {
		switch {
		case claim.Role == 0: // an adapter's tensor
		case claim.Kind == f.embedding.tokens:
			text = strings.TrimSuffix(name, claim.Kind+".weight")
		case claim.Kind == f.attention.out && claim.Layer == 0:
			layers = strings.TrimSuffix(name, "0."+claim.Kind+".weight")
		}
	}
	_, beside := c.lookup("text_config").(map[string]any)
	var all []string
	for _, name := range l.Unclaimed {
		rest, inLayers := strings.CutPrefix(name, layers)
		number, _, _ := strings.Cut(rest, ".")
		layer, err := strconv.Atoi(number)
		further := inLayers && err == nil && layer >= l.Dims["layers"]
		weight, isShift := strings.CutSuffix(name, weights.ShiftSuffix)
		if isShift && l.Claims[weight] != nil {
			continue
		}
		if !further && (!beside || strings.HasPrefix(name, text)) {
			all = append(all, name)
		}
	}
	return all
}
