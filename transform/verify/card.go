package verify

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// cardName is the model card's file name.
const cardName = "README.md"

// sameCard checks that the output's model card has the source's lines. Parts that a conversion writes are ignored.
func (r *Report) sameCard(src, out *weights.Model) error {
	var lines [2][]string
	for i, m := range []*weights.Model{src, out} {
		if i == 0 && !slices.Contains(m.Others, cardName) {
			continue
		}
		text, err := m.ReadFile(cardName, bounded.Config)
		switch {
		case errors.Is(err, fs.ErrNotExist) && i == 1:
			r.problem("file %s is missing from the output", cardName)
			return nil
		case err != nil:
			return err
		}
		lines[i] = ownLines(string(text))
	}
	if !slices.Equal(lines[0], lines[1]) {
		r.problem("file %s differs from the source's, outside of the section and fields that a conversion writes", cardName)
	}
	return nil
}

// ownLines returns the lines of a model card that no conversion writes. It leaves out empty lines, the section
// between lowtoggle's two comments, and the fields of the base model in the front matter. It also leaves out the
// lines "---" around the front matter, because a conversion adds them to a card without front matter.
func ownLines(card string) (own []string) {
	for {
		before, rest, found := strings.Cut(card, "<!-- lowtoggle: end -->")
		i := strings.LastIndex(before, "<!-- lowtoggle: begin -->")
		if !found || i < 0 {
			break
		}
		card = before[:i] + rest
	}
	front, field := false, false // within the front matter; within a field of the base model
	for i, line := range strings.Split(strings.TrimPrefix(card, "\ufeff"), "\n") {
		line = strings.TrimRight(line, "\r")
		switch {
		case strings.TrimRight(line, " \t") == "---" && (i == 0 || front):
			front, field = i == 0, false
		case front && (strings.HasPrefix(line, "base_model:") || strings.HasPrefix(line, "base_model_relation:")):
			field = true
		case field && front && line != "" && strings.ContainsRune(" \t-", rune(line[0])):
		case line == "":
		default:
			own, field = append(own, line), false
		}
	}
	return own
}

// leftOut returns the manifest's list of files that were not copied, without entries that a conversion must copy.
func leftOut(src *weights.Model, man *plan.Manifest) (list []weights.Leftover) {
	if man == nil || len(man.LeftOut) == 0 {
		return nil
	}
	allowed := src.Leftovers(nil)
	for _, l := range man.LeftOut {
		if slices.ContainsFunc(allowed, func(a weights.Leftover) bool { return a.Path == l.Path }) {
			list = append(list, l)
		}
	}
	return list
}
