package transform

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// leftBehind says which adapter in the model's folder could not follow what an exact or compensated
// pass does to the base, and why; empty where none lies there or the one that does can. layout may be
// nil.
func leftBehind(m *weights.Model, layout *arch.Layout) string {
	if stray := m.StrayAdapters(); len(stray) > 0 {
		return fmt.Sprintf("%s is not converted along: only %s beside the model's own files is",
			strings.Join(stray, ", "), weights.AdapterName)
	}
	if layout != nil && layout.Adapter != nil && layout.Adapter.Problem != "" {
		return weights.AdapterName + " cannot be converted along: " + layout.Adapter.Problem
	}
	return ""
}

// checkAdapters is an error where passes that keep the function would break it for an adapter in the
// model's folder.
func checkAdapters(m *weights.Model, layout *arch.Layout) error {
	if reason := leftBehind(m, layout); reason != "" {
		return fmt.Errorf("%s: %s: merge it into the base or move it out of the folder (it will not fit the result), "+
			"or ask for passes that leave every weight in its place, such as round=4", m.Dir, reason)
	}
	return nil
}

// isAdapter is an error for an adapter that is given as though it were a model.
func isAdapter(m *weights.Model) error {
	if m.Others == nil && len(m.Shards) == 1 && filepath.Base(m.Shards[0].Path) == weights.AdapterName {
		return fmt.Errorf("%s: is an adapter, which is converted along with its base: put it and %s into a copy of the base model's folder, and give that folder",
			m.Shards[0].Path, weights.AdapterConfigName)
	}
	return nil
}

// forgetAdapter drops what an interrupted conversion made of another adapter than lies beside the model
// now: a plan does not say which one it was.
func (c *conversion) forgetAdapter(ctx context.Context, st *stage) error {
	record, ok := st.finished[weights.AdapterName]
	if !ok || c.model.Adapter == nil {
		return nil
	}
	sum, err := digestFile(ctx, c.model.Adapter.Path, func(int) {})
	if err != nil || sum == record.Source {
		return err
	}
	delete(st.finished, weights.AdapterName)
	return os.Remove(st.path(weights.AdapterName))
}

// noteAdapter says what becomes of the adapter beside the model.
func (p *planner) noteAdapter() {
	if p.model.Adapter == nil {
		return
	}
	n := len(p.model.Adapter.Tensors)
	switch reason := leftBehind(p.model, p.layout); {
	case p.plan.Moves():
		p.note("the adapter %s (%d tensors) is converted along with its base", weights.AdapterName, n)
	case reason != "":
		p.note("%s; it stays as it is, and so does every weight's place", reason)
	default:
		p.note("the adapter %s (%d tensors) stays as it is", weights.AdapterName, n)
	}
}

// Moves reports whether the result is no longer what adapters were trained for: weights have other
// places, signs or scales, or a norm is folded into them. Such adapters fit where they lay beside the
// source and were converted along.
func (p *Plan) Moves() bool {
	for _, s := range p.Steps {
		if pass, _ := Lookup(s.Pass); pass != nil && pass.Class != Lossy {
			return true
		}
	}
	return false
}
