package apply_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/apply"
)

// TestPartsFolderBegunMeanwhile: a folder in which another part has begun is distinguished from other folders,
// whatever files the part has made besides parts.json.
func TestPartsFolderBegunMeanwhile(t *testing.T) {
	for _, c := range []struct {
		names            []string
		begun, temporary bool
	}{
		{[]string{"part-1", "parts.json", "records", "result"}, true, false},
		{[]string{"parts.json"}, true, false},
		{[]string{"part-1", "result"}, false, true},
		{[]string{"mine", "part-1"}, false, false},
		{[]string{".lowtoggle-journal"}, false, false},
	} {
		dir := t.TempDir()
		for _, name := range c.names {
			testmodel.OK(t, os.Mkdir(filepath.Join(dir, name), 0o777))
		}
		entries, err := os.ReadDir(dir)
		testmodel.OK(t, err)
		err = apply.MayBegin(entries)
		if err == nil || (err == fs.ErrExist) != c.begun || errors.Is(err, apply.ErrTemporary) != c.temporary {
			t.Errorf("%q: %v", c.names, err)
		}
	}
	testmodel.OK(t, apply.MayBegin(nil))
}
