package search

import (
	"os"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
)

// FuzzRecord: in a search's folder, a file that is incomplete or belongs to another search counts as missing.
func FuzzRecord(f *testing.F) {
	folder := Folder{Dir: f.TempDir(), Key: "key"}
	testmodel.OK(f, folder.Save("x", kept{}))
	whole, err := os.ReadFile(folder.path("x"))
	testmodel.OK(f, err)
	f.Add(whole)
	f.Add([]byte(`{"key": "key", "value": {"Curve": 1}, "crc32c": 0}`))
	f.Add([]byte(`{"key": "key", "value": null, "crc32c": 0}`))
	f.Fuzz(func(t *testing.T, js []byte) {
		testmodel.OK(t, os.WriteFile(folder.path("x"), js, 0o666))
		var v kept
		found, err := folder.Load("x", &v)
		testmodel.OK(t, err)
		if found {
			testmodel.OK(t, folder.Save("x", v))
		}
	})
}
