package verify

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/transform/card"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// sameCard checks that the output's model card has the source's text, beside what lowtoggle writes.
func (r *Report) sameCard(src, out *weights.Model) error {
	var texts [2][]byte
	for i, m := range []*weights.Model{src, out} {
		if i == 0 && !slices.Contains(m.Others, card.Name) {
			continue
		}
		text, err := bounded.ReadFile(filepath.Join(m.Dir, card.Name), bounded.Config)
		switch {
		case errors.Is(err, fs.ErrNotExist) && i == 1:
			r.problem("file %s is missing from the output", card.Name)
			return nil
		case err != nil:
			return err
		}
		texts[i] = text
	}
	if !bytes.Equal(card.Kept(texts[0]), card.Kept(texts[1])) {
		r.problem("file %s has another text than the source's, beside the section and the fields of a conversion", card.Name)
	}
	return nil
}

// leftOut lists what the manifest says was left out, as far as it is what may be.
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
