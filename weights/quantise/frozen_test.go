package quantise_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights/quantise"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// TestFrozenFormats: every format turns the same values into the recorded codes, scales, layout and config.json.
func TestFrozenFormats(t *testing.T) {
	var b bytes.Buffer
	for _, name := range quantise.Names() {
		f, err := quantise.Parse(name)
		testmodel.OK(t, err)
		for _, model := range []string{"llama-tiny", "qwen3_moe-tiny"} {
			dir := filepath.Join(t.TempDir(), "model")
			if err := synth.Folder(t.Context(), testmodel.Config(t, model, testmodel.QuantisedShape), dir, synth.Options{Seed: 9, Format: f}); err != nil {
				fmt.Fprintf(&b, "%s %s: %v\n", name, model, err)
				continue
			}
			fmt.Fprintf(&b, "%s %s: %s\n", name, model, testmodel.Digest(t, dir, ""))
		}
	}
	goldenfile.Same(t, "testdata/frozen.txt", b.Bytes())
}
