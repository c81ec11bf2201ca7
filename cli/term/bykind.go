package term

import (
	"fmt"
	"strings"
)

// ByKind collects remarks about tensors. Lines returns each remark once: with the tensor's name, or with the kinds of
// several tensors.
type ByKind struct {
	Texts   []string            // the remarks, in order of appearance
	Tensors map[string][]string // tensors of each remark, in order of appearance
}

// Add adds a remark about a tensor.
func (b *ByKind) Add(text, tensor string) {
	if b.Tensors == nil {
		b.Tensors = map[string][]string{}
	}
	if b.Tensors[text] == nil {
		b.Texts = append(b.Texts, text)
	}
	b.Tensors[text] = append(b.Tensors[text], tensor)
}

// Lines returns the remarks as text; kind returns the kind of a tensor.
func (b *ByKind) Lines(kind func(tensor string) string) (list []string) {
	for _, text := range b.Texts {
		if one := b.Tensors[text]; len(one) == 1 {
			list = append(list, one[0]+": "+text)
			continue
		}
		n := map[string]int{}
		var kinds, parts []string
		for _, tensor := range b.Tensors[text] {
			k := kind(tensor)
			if n[k]++; n[k] == 1 {
				kinds = append(kinds, k)
			}
		}
		for _, k := range kinds {
			parts = append(parts, fmt.Sprintf("%d × %s", n[k], k))
		}
		list = append(list, text+": "+strings.Join(parts, ", "))
	}
	return list
}
