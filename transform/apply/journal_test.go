package apply

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
)

// TestJournalWithoutAPage: a loss of power may leave incomplete lines, or zeros for a page in the middle of a line.
// Such lines are removed, and the lines before them stay.
func TestJournalWithoutAPage(t *testing.T) {
	const (
		sources = `{"sources":{}}` + "\n"
		plan    = `{"plan_version": 2, "drop_in": true, "steps": []}` + "\n"
		record  = `{"file": "a.safetensors", "source_sha256": "00", "output_sha256": "00"}` + "\n"
	)
	zeros := func(text string) string { return string(bytes.Repeat([]byte{0}, len(text)-1)) + "\n" }
	for _, of := range []struct {
		journal, left string
		records       int
	}{
		{sources + plan + record, sources + plan + record, 1},
		{zeros(sources) + plan + record, "", 0},
		{sources + zeros(plan), "", 0},
		{sources + plan + record + zeros(record), sources + plan + record, 1},
		{sources + plan + zeros(record[:9]) + record[9:], sources + plan, 0},
	} {
		path := filepath.Join(t.TempDir(), journalName)
		testmodel.OK(t, os.WriteFile(path, []byte(of.journal), 0o666))
		f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
		testmodel.OK(t, err)
		b, err := readJournal(f)
		testmodel.OK(t, err)
		testmodel.OK(t, f.Close())
		left, err := os.ReadFile(path)
		testmodel.OK(t, err)
		if string(left) != of.left || len(b.records) != of.records || (b.plan != nil) != (of.left != "") {
			t.Errorf("%q: %q is left, and %d records; want %q and %d", of.journal, left, len(b.records), of.left, of.records)
		}
	}
}
