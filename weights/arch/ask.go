package arch

import (
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
)

// IsLinear reports whether a tensor is the weight of a linear layer. A nil layout takes every matrix
// of numbers whose name does not speak of an embedding for one.
func (l *Layout) IsLinear(t weights.Info) bool {
	if l != nil {
		c := l.Claims[t.Name]
		return c != nil && c.Role == Linear
	}
	if _, numbers := t.DType.Format(); !numbers || len(t.Shape) < 2 {
		return false
	}
	name := strings.ToLower(t.Name)
	for _, word := range []string{"embed", "wte", "wpe", "rotary", "position"} {
		if strings.Contains(name, word) {
			return false
		}
	}
	return true
}

// Kind is the type of layer that a tensor belongs to, such as "mlp.up_proj": the family's word for it,
// or, where the layout is nil or does not know the tensor, its name with "N" in place of numbers and
// without ".weight".
func (l *Layout) Kind(tensor string) string {
	if l != nil && l.Claims[tensor] != nil {
		return l.Claims[tensor].Kind
	}
	words := strings.Split(strings.TrimSuffix(tensor, ".weight"), ".")
	for i, w := range words {
		if strings.Trim(w, "0123456789") == "" {
			words[i] = "N"
		}
	}
	return strings.Join(words, ".")
}

// OutAxis is the stored dimension that counts a layer's outputs: 1 for a linear layer that is stored
// [in, out], else 0, which a nil layout assumes of every tensor.
func (l *Layout) OutAxis(tensor string) int {
	if l == nil || l.Claims[tensor] == nil {
		return 0
	}
	return l.Claims[tensor].OutAxis
}
