package transform

import (
	"fmt"
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
		return fmt.Sprintf("%s is not converted with the model: only %s beside the model's own files can be",
			strings.Join(stray, ", "), weights.AdapterName)
	}
	if layout != nil && layout.Adapter != nil && layout.Adapter.Problem != "" {
		return weights.AdapterName + " cannot be converted with the model: " + layout.Adapter.Problem
	}
	return ""
}

// checkAdapters returns an error where passes that keep the function would break it for an adapter in the
// model's folder.
func checkAdapters(m *weights.Model, layout *arch.Layout) error {
	if reason := leftBehind(m, layout); reason != "" {
		return fmt.Errorf("%s: %s: merge it into the base or move it out of the folder (it will not fit the result), "+
			"or ask for passes that leave every weight in its place, such as round=4", m.Dir, reason)
	}
	return nil
}

// refuseAdapter returns an error for an adapter that is given as though it were a model.
func refuseAdapter(m *weights.Model) error {
	if m.Single && len(m.Shards) == 1 && filepath.Base(m.Shards[0].Path) == weights.AdapterName {
		return fmt.Errorf("%s: is an adapter, which is converted along with its base: put it and %s into a copy of the base model's folder, and give that folder",
			m.Shards[0].Path, weights.AdapterConfigName)
	}
	return nil
}
