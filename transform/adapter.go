package transform

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// leftBehind returns the reason why an adapter in the model's folder cannot follow exact and compensated passes. The
// result is empty if there is no adapter, or if the adapter can follow. layout may be nil.
func leftBehind(m *weights.Model, layout *arch.Layout) string {
	if stray := m.StrayAdapters(); len(stray) > 0 {
		return fmt.Sprintf("%s is not converted with the model; only the adapter %s beside the model's own files is converted",
			strings.Join(stray, ", "), weights.AdapterName)
	}
	if layout != nil && layout.Adapter != nil && layout.Adapter.Problem != "" {
		return weights.AdapterName + " cannot be converted with the model: " + layout.Adapter.Problem
	}
	return ""
}

// checkAdapters returns an error if exact or compensated passes would make an adapter in the model's folder invalid.
func checkAdapters(m *weights.Model, layout *arch.Layout) error {
	if reason := leftBehind(m, layout); reason != "" {
		return fmt.Errorf("%s: %s: merge the adapter into the base model, move it out of the folder (it will not fit the result), "+
			"or give passes that leave every weight in its place, such as round=4", m.Dir, reason)
	}
	return nil
}

// refuseAdapter returns an error if m is an adapter and not a model.
func refuseAdapter(m *weights.Model) error {
	if m.Single && len(m.Shards) == 1 && filepath.Base(m.Shards[0].Path) == weights.AdapterName {
		return fmt.Errorf("%s: is an adapter, and adapters are converted with their base model: put the adapter and %s into a copy of the base model's folder, and give that folder",
			m.Shards[0].Path, weights.AdapterConfigName)
	}
	return nil
}
