package cli

import (
	"fmt"
	"strings"
)

// byKind gathers remarks about tensors, so that each is made once: with the tensor's name, or with
// the kinds of the tensors that it is about.
type byKind struct {
	texts   []string // in order of appearance, as are the tensors of each
	tensors map[string][]string
}

func (b *byKind) add(text, tensor string) {
	if b.tensors == nil {
		b.tensors = map[string][]string{}
	}
	if b.tensors[text] == nil {
		b.texts = append(b.texts, text)
	}
	b.tensors[text] = append(b.tensors[text], tensor)
}

// lines spells the remarks; kind says what kind of tensor one is.
func (b *byKind) lines(kind func(tensor string) string) (list []string) {
	for _, text := range b.texts {
		if one := b.tensors[text]; len(one) == 1 {
			list = append(list, one[0]+": "+text)
			continue
		}
		n := map[string]int{}
		var kinds, parts []string
		for _, tensor := range b.tensors[text] {
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
