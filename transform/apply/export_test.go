package apply

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

const (
	PartialSuffix = partialSuffix
	JournalName   = journalName
)

// Stage is a stage with its parts.
type Stage = stage

// NewStage returns a stage whose folder may exist.
func NewStage(out string) *Stage { return &stage{dir: out + partialSuffix, out: out} }

// OpenStage opens the stage of a conversion.
func OpenStage(out string, m *weights.Model, p *plan.Plan, resume bool) (*Stage, error) {
	return openStage(out, conversionOf(m, p, resume))
}

func conversionOf(m *weights.Model, p *plan.Plan, resume bool) *conversion {
	return &conversion{Source: Source{Model: m}, plan: p, opt: Options{Workers: 1, Resume: resume}}
}

// Create, Claim, Lock, InPlace and Close call the stage's methods. Dir and Path return its names.
func (st *stage) Create(m *weights.Model, p *plan.Plan) error {
	return st.create(conversionOf(m, p, false))
}
func (st *stage) Claim(m *weights.Model, p *plan.Plan) error {
	return st.claim(conversionOf(m, p, false))
}
func (st *stage) Lock() error             { return st.lock() }
func (st *stage) InPlace() error          { return st.inPlace() }
func (st *stage) Close()                  { st.close() }
func (st *stage) Dir() string             { return st.dir }
func (st *stage) Path(name string) string { return st.path(name) }

// WithoutLock makes the stage behave like on a file system without locks.
func (st *stage) WithoutLock() {
	st.folder.Close()
	st.folder = nil
}

// WriteShard writes a shard of the source unchanged, except for its last bytes. end writes these bytes and finishes
// the shard.
func (st *stage) WriteShard(ctx context.Context, src *weights.File) (end func() error, err error) {
	out, err := st.createShard(ctx, src, src.Head(), src.DataSize())
	if err != nil {
		return nil, err
	}
	data := src.Data()
	if _, err := out.Write(data[:len(data)-1]); err != nil {
		return nil, err
	}
	return func() error {
		_, err := out.Write(data[len(data)-1:])
		return errors.Join(err, out.Close(), st.finish(plan.Shard{File: filepath.Base(src.Path)}))
	}, nil
}

// Whole calls the stage's whole.
func (st *stage) Whole() error { return st.whole() }

// Size returns the number of bytes that a conversion of a model writes.
func Size(m *weights.Model) int64 { return conversionOf(m, nil, false).size() }

// Finish records a shard of a folder in a journal.
func Finish(dir string, journal *os.File, r plan.Shard) error {
	return (&stage{dir: dir, journal: journal}).finish(r)
}

// MayBegin checks the entries of a folder in which parts are about to begin.
func MayBegin(entries []fs.DirEntry) error { return diskPlace{}.mayBegin(entries) }
