package transform

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// leftBehind returns the reason why exact and compensated passes cannot convert an adapter in the model's folder. The
// result is empty if there is no adapter, or if they can convert it. layout may be nil.
func leftBehind(m *weights.Model, layout *arch.Layout) string {
	if stray := m.StrayAdapters(); len(stray) > 0 {
		return fmt.Sprintf("only the adapter %s beside the model's own files is converted with the model, not %s",
			weights.AdapterName, strings.Join(stray, ", "))
	}
	if layout != nil && layout.Adapter != nil && layout.Adapter.Problem != "" {
		return weights.AdapterName + " cannot be converted with the model: " + layout.Adapter.Problem
	}
	return ""
}

// checkAdapters returns an error if exact or compensated passes would make an adapter in the model's folder invalid.
func checkAdapters(m *weights.Model, layout *arch.Layout) error {
	if reason := leftBehind(m, layout); reason != "" {
		return fmt.Errorf("%s: %s: merge the adapter into the base model, move the adapter out of the folder (it will not fit the result), "+
			"or give only passes that do not move or scale weights, such as round=4", m.Dir, reason)
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
