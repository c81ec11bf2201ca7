package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Names in the folder of a conversion in parts. FinishParts first renames the folder of results to the output's name,
// and then removes the other files. The output is therefore whole before any file about the parts is removed.
const (
	partsName   = "parts.json"
	resultName  = "result"
	recordsName = "records"
	partPrefix  = "part-"
	lockName    = "lock" // in the folder of a part
)

// partsVersion is the version of partsName and of the records.
const partsVersion = 1

// common is the content of partsName. It is equal for all parts of a conversion.
type common struct {
	Version int    `json:"parts_version"`
	Tool    string `json:"lowtoggle"`
	Parts   int    `json:"parts"`
	Plan    string `json:"plan_sha256"`
	Last    string `json:"last,omitempty"` // in an object store: the file that makes the output whole
}

// record is written when a part has written a shard. It describes the shard.
type record struct {
	common
	Part int `json:"part"`
	plan.Shard
	Bytes   int64  `json:"bytes"`
	Head    string `json:"head_sha256"`
	Written string `json:"written"` // version of the file; on a disk its times, in nanoseconds since 1970
}

// partsFolder is a conversion in parts. On a disk its folder is out+".partial".
type partsFolder struct {
	place
	dir, out string
	plan     *plan.Plan
	common
}

// newPartsFolder returns the parts of a conversion to a folder on a disk, or in store if store is not nil.
func newPartsFolder(out string, store Store, m *weights.Model, p *plan.Plan, parts int, version string) (*partsFolder, error) {
	js, err := p.Plain()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(js)
	f := &partsFolder{plan: p, common: common{Version: partsVersion, Tool: version, Parts: parts, Plan: hex.EncodeToString(sum[:])}}
	if store != nil {
		f.out, f.dir, f.Last = store.URL(), store.URL()+"/"+weights.PartsFolder, lastOf(m)
		f.place = &storePlace{store, f.Last}
		return f, nil
	}
	f.out = filepath.Clean(out)
	f.dir = f.out + partialSuffix
	f.place = diskPlace{f.dir, f.out}
	return f, nil
}

// recordName returns the name of a shard's record.
func recordName(shard string) string { return recordsName + "/" + shard + ".json" }

// finishedBefore returns the manifest of an output that was finished with the same plan; nil if there is no output.
// An output of another plan is an error.
func (f *partsFolder) finishedBefore(ctx context.Context) (*plan.Manifest, error) {
	man, err := f.finished(ctx)
	if err != nil || man == nil {
		return nil, err
	}
	js, err := man.Plan.Plain()
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(js); hex.EncodeToString(sum[:]) != f.Plan {
		return nil, fmt.Errorf("%s: exists already, and was made with another plan: choose a new folder", f.out)
	}
	return man, nil
}

// open creates the folder, or checks that it belongs to the same plan, number of parts and version.
func (f *partsFolder) open(ctx context.Context) error {
	_, err := f.was(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		if err = f.begin(ctx); errors.Is(err, fs.ErrExist) { // another part may have created the folder
			if _, now := f.was(ctx); !errors.Is(now, fs.ErrNotExist) {
				err = now
			}
		}
	}
	if err == nil {
		err = f.begun()
	}
	return err
}

// begin writes partsName into an empty folder.
func (f *partsFolder) begin(ctx context.Context) error {
	if err := f.checkFree(ctx); err != nil {
		return err
	}
	js, err := json.Marshal(f.common)
	if err != nil {
		return err
	}
	return f.create(ctx, partsName, append(js, '\n'))
}

// was reads partsName. The error is fs.ErrNotExist if no part has begun. Parts of another conversion are an
// [ErrOther].
func (f *partsFolder) was(ctx context.Context) (was common, err error) {
	js, err := f.read(ctx, partsName)
	if err != nil {
		return was, err
	}
	if err := json.Unmarshal(js, &was); err != nil {
		return was, fmt.Errorf("%s: %w: move %s away and run all parts again", filepath.Join(f.dir, partsName), err, f.dir)
	}
	return was, f.differs(was)
}

// ErrOther marks an error of parts that were begun with another plan, version or number of parts. The same command
// fails again.
var ErrOther = errors.New("parts of another conversion")

// other is an [ErrOther] with its own text.
type other struct{ error }

func (other) Is(target error) bool { return target == ErrOther }
func (o other) Unwrap() error      { return o.error }

func otherf(format string, args ...any) error { return other{fmt.Errorf(format, args...)} }

// differs returns an [ErrOther] if was is of another plan, version or number of parts.
func (f *partsFolder) differs(was common) error {
	const advice = "or move the folder away and run all parts again"
	switch {
	case was.Version != partsVersion:
		return otherf("%s: the parts have version %d, and this program writes version %d: use the lowtoggle that began the parts, %s", f.dir, was.Version, partsVersion, advice)
	case was.Tool != f.Tool:
		return otherf("%s: was begun by lowtoggle %s, and this is lowtoggle %s: use one version for all parts, %s", f.dir, was.Tool, f.Tool, advice)
	case was.Plan != f.Plan:
		return otherf("%s: was begun with another plan (SHA-256 %.12s…, the given plan has %.12s…): give the same plan, %s", f.dir, was.Plan, f.Plan, advice)
	case f.Parts != 0 && was.Parts != f.Parts:
		return otherf("%s: was begun in %d parts, not %d: give the same number of parts, %s", f.dir, was.Parts, f.Parts, advice)
	}
	return nil
}

// add moves a durable shard to its place, and records it. It returns the shard's size in bytes.
func (f *partsFolder) add(ctx context.Context, w work, s plan.Shard, head string, part int) (int64, error) {
	size, version, err := w.add(ctx, s.File)
	if err != nil {
		return 0, err
	}
	js, err := json.Marshal(record{common: f.common, Part: part, Shard: s, Bytes: size, Head: head, Written: version})
	if err != nil {
		return 0, err
	}
	return size, f.write(ctx, recordName(s.File), append(js, '\n'))
}

func digestOf(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:]
}

// errNoRecord marks a shard without a record whose part has ended. The record may become visible later.
var errNoRecord = errors.New("is not written yet")

// errNotVisible marks a shard with a record but without a file.
var errNotVisible = errors.New("is recorded as written, but is missing")

// check returns the record of a shard. The record must agree with the file's header and size, with the plan, and with
// want, the expected header. check reads the shard's data only if the file's version has changed, because the file
// may then be a copy.
func (f *partsFolder) check(ctx context.Context, name string, want *weights.File, part int) (*record, error) {
	js, err := f.read(ctx, recordName(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoRecord
	}
	if err != nil {
		return nil, err
	}
	var r record
	if err := json.Unmarshal(js, &r); err != nil {
		return nil, fmt.Errorf("the shard's record is damaged: %w", err)
	}
	if err := f.differs(r.common); err != nil || r.File != name || r.Part != part {
		return nil, errors.Join(errors.New("the shard's record belongs to another conversion"), err)
	}
	size, version, err := f.stat(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errNotVisible
	case err != nil:
		return nil, err
	case size != r.Bytes:
		return nil, fmt.Errorf("has %d bytes, not the %d that were written", size, r.Bytes)
	}
	if err := f.checkHead(ctx, name, &r, want); err != nil {
		return nil, err
	}
	if version != r.Written {
		digest, err := f.digest(ctx, name)
		if err != nil {
			return nil, err
		}
		if digest != r.Output {
			return nil, errors.New("was changed after it was written")
		}
	}
	return &r, nil
}

// checkHead compares the header of a shard with the record and with the planned tensors. Steps may add tensors.
func (f *partsFolder) checkHead(ctx context.Context, name string, r *record, want *weights.File) error {
	s, err := f.header(ctx, name)
	if err != nil {
		return err
	}
	defer s.Close()
	head := ""
	err = weights.Guard(s.Path, func() error {
		head = hex.EncodeToString(digestOf(s.Head()))
		return nil
	})
	if err == nil && head != r.Head {
		err = errors.New("the header was changed after the shard was written")
	}
	if err != nil {
		return err
	}
	for i, t := range want.Tensors {
		if i >= len(s.Tensors) || s.Tensors[i].Name != t.Name || s.Tensors[i].DType != t.DType || !slices.Equal(s.Tensors[i].Shape, t.Shape) {
			return fmt.Errorf("has no tensor %q of the planned type and shape", t.Name)
		}
	}
	return nil
}

// begunInParts reports whether dir belongs to a conversion in parts.
func begunInParts(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, partsName))
	return err == nil && info.Mode().IsRegular()
}
