package apply

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/transform/card"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// journalName is the file in the stage that records the plan and each finished shard. The manifest has the same data,
// so the journal is removed when the manifest is on the disk, before the folder is renamed.
const journalName = ".lowtoggle-journal"

// journalSources is the first line of the journal, with the stamps of the source's shards. A stamp shows whether a
// source shard without a record was changed since the plan was made. The next line is the plan, followed by the
// records of finished shards.
type journalSources struct {
	Sources map[string]weights.Stamp `json:"sources"` // by file name
}

// sourcesPrefix begins the line of the sources. Journals of older versions lack this line.
var sourcesPrefix = []byte(`{"sources":`)

// stamps returns the stamps of the source's shards. The adapter has none, because the plan does not identify the
// adapter.
func (c *conversion) stamps() map[string]weights.Stamp {
	stamps := map[string]weights.Stamp{}
	for _, f := range c.Model.Files() {
		if f != c.Model.Adapter {
			stamps[filepath.Base(f.Path)] = f.Stamp()
		}
	}
	return stamps
}

// sameSources returns an error if an unfinished shard of the source has another stamp than at the journal's
// beginning. The digest of an unfinished shard is unknown. For finished shards, [conversion.check] compares digests.
func (st *stage) sameSources(c *conversion, was map[string]weights.Stamp) error {
	now := c.stamps()
	for _, f := range c.Model.Files() {
		name := filepath.Base(f.Path)
		stamp, known := was[name]
		if _, finished := st.finished[name]; !known || finished || f == c.Model.Adapter {
			continue
		}
		switch n := now[name]; {
		case n.Bytes != stamp.Bytes || n.Modified != stamp.Modified:
			return changedSource(f.Path, "has changed", st.dir)
		case n.Changed != stamp.Changed: // chmod, a hard link or a copy of the model also change this time
			return changedSource(f.Path, "may have changed", st.dir)
		}
	}
	return nil
}

// changedSource returns an error that a shard of the source has changed, or may have changed. what is the verb.
func changedSource(path, what, dir string) error {
	return weights.FileErrorf(path, "%s since the conversion was begun: move %s away and convert again", what, dir)
}

// begin starts a new journal.
func (st *stage) begin(c *conversion) (err error) {
	st.journal, err = os.OpenFile(st.path(journalName), os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(st.log(journalSources{c.stamps()}, c.plan), atomicfile.SyncFolder(st.dir))
}

// log appends lines to the journal.
func (st *stage) log(records ...any) error {
	var lines []byte
	for _, r := range records {
		js, err := json.Marshal(r)
		if err != nil {
			return err
		}
		lines = append(append(lines, js...), '\n')
	}
	if _, err := st.journal.Write(lines); err != nil {
		return err
	}
	return st.journal.Sync()
}

// begun is the content of a journal.
type begun struct {
	sources map[string]weights.Stamp // nil: an older version wrote the journal
	plan    *plan.Plan               // nil: the process ended before the plan was on the disk
	records []plan.Shard             // of finished shards
}

// recorded reads the plan and the finished shards from the journal. A folder that only needs to be renamed has no
// journal. Then recorded reads the manifest, and checks that every other file is one of the model's.
func (st *stage) recorded(c *conversion) (b begun, err error) {
	journal, err := os.OpenFile(st.path(journalName), os.O_RDWR|os.O_APPEND, 0)
	if err == nil {
		st.journal = journal
		if b, err = readJournal(journal); err != nil {
			err = weights.FileErrorf(journal.Name(), "%w", err)
		}
		return b, err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return b, err
	}
	entries, err := os.ReadDir(st.dir)
	if err != nil || len(entries) == 0 { // the process was killed before it began the journal
		return b, err
	}
	for _, e := range entries {
		if !c.holds(e.Name()) && e.Name() != plan.ManifestName && e.Name() != card.Name {
			return b, noConversion(st.dir)
		}
	}
	man, err := plan.ReadManifest(st.dir)
	if err != nil {
		return b, fmt.Errorf("%w (%w)", noConversion(st.dir), err)
	}
	return begun{plan: man.Plan, records: man.Shards}, nil
}

// readLine returns the next line of a journal. It returns io.EOF at a line that was not on the disk at a power
// failure: the line is incomplete, or contains zeros of an unwritten page. All later lines are lost too, because each
// line is begun after the previous one is on the disk.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := bounded.Line(r, bounded.Plan)
	if err == nil && bytes.IndexByte(line, 0) >= 0 {
		return nil, io.EOF
	}
	return line, err
}

// readJournal reads a journal and truncates it at the first lost line. If the plan's line is lost, it removes all
// lines.
func readJournal(f *os.File) (b begun, err error) {
	r := bufio.NewReader(f)
	var good int64
	for {
		line, err := readLine(r)
		if err == io.EOF {
			break
		}
		if err == nil {
			err = b.add(line)
		}
		if err != nil {
			return begun{}, err
		}
		good += int64(len(line))
	}
	if b.plan == nil {
		return begun{}, f.Truncate(0)
	}
	return b, f.Truncate(good)
}

func (b *begun) add(line []byte) (err error) {
	switch {
	case b.plan == nil && b.sources == nil && bytes.HasPrefix(line, sourcesPrefix):
		var s journalSources
		err = json.Unmarshal(line, &s)
		b.sources = s.Sources
	case b.plan == nil:
		b.plan, err = plan.Decode(line)
	default:
		var record plan.Shard
		err = json.Unmarshal(line, &record)
		b.records = append(b.records, record)
	}
	return err
}

// Unfinished returns the plan of an interrupted conversion to out. The plan is nil if there is no such conversion, or
// if it was interrupted before its plan was written. A journal line longer than [bounded.Plan] is a
// [bounded.ErrTooLarge].
func Unfinished(out string) (*plan.Plan, error) {
	dir := filepath.Clean(out) + partialSuffix
	f, err := os.Open(filepath.Join(dir, journalName))
	if errors.Is(err, fs.ErrNotExist) { // only the renaming is missing, or nothing was written
		man, err := plan.ReadManifest(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return man.Plan, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	for {
		line, err := readLine(r)
		if err == io.EOF {
			return nil, nil // the process ended while writing the plan
		}
		if err != nil {
			return nil, weights.FileErrorf(f.Name(), "%w", err)
		}
		if !bytes.HasPrefix(line, sourcesPrefix) {
			return plan.Decode(line)
		}
	}
}
