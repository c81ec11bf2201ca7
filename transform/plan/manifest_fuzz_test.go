package plan_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// FuzzManifest: a manifest that was read can be written and read again.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"manifest_version": 1, "drop_in": true, "shards": [{"file": "a", "source": "00", "output": "00"}], "plan": ` + string(golden(f)) + `, "previous": {"a": [1]}}`))
	f.Add([]byte(`{"manifest_version": 1, "shards": null, "plan": null}`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, js []byte) {
		path := filepath.Join(dir, plan.ManifestName)
		testmodel.OK(t, os.WriteFile(path, js, 0o666))
		m, err := plan.ReadManifest(dir)
		if err != nil {
			return
		}
		again, err := m.Encode()
		if err != nil {
			return // an invalid workload
		}
		testmodel.OK(t, os.WriteFile(path, again, 0o666))
		if _, err := plan.ReadManifest(dir); err != nil {
			t.Errorf("%v\n%s", err, again)
		}
	})
}
