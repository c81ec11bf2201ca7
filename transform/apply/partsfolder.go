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
	"strings"

	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/internal/lock"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Names in the folder of a conversion in parts. Finish renames the folder of results to the output's name, and then removes
// the rest: the output is whole before anything that tells of its parts is gone.
const (
	partsName   = "parts.json"
	resultName  = "result"
	recordsName = "records"
	partPrefix  = "part-"
	lockName    = "lock" // in the folder of a part
)

// partsVersion is the version of partsName and of the records.
const partsVersion = 1

// common is what all parts of a conversion share, the content of partsName.
type common struct {
	Version int    `json:"parts_version"`
	Tool    string `json:"lowtoggle"`
	Parts   int    `json:"parts"`
	Plan    string `json:"plan_sha256"`
}

// record says that a part has written a shard, which has these properties.
type record struct {
	common
	Part int `json:"part"`
	plan.Shard
	Bytes    int64  `json:"bytes"`
	Head     string `json:"head_sha256"`
	Modified int64  `json:"modified_ns"` // the file's time, since 1970
	Changed  int64  `json:"changed_ns"`  // when the file's data, time or name last changed, which no program can set; 0: unknown
}

// partsFolder is the folder out+".partial" of a conversion in parts.
type partsFolder struct {
	dir, out string
	plan     *plan.Plan
	common
}

func newPartsFolder(out string, p *plan.Plan, parts int, version string) (*partsFolder, error) {
	js, err := p.Plain()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(js)
	out = filepath.Clean(out)
	return &partsFolder{dir: out + partialSuffix, out: out, plan: p, common: common{partsVersion, version, parts, hex.EncodeToString(sum[:])}}, nil
}

func (f *partsFolder) result(name string) string { return filepath.Join(f.dir, resultName, name) }
func (f *partsFolder) part(number int) string {
	return filepath.Join(f.dir, fmt.Sprint(partPrefix, number))
}
func (f *partsFolder) record(name string) string {
	return filepath.Join(f.dir, recordsName, name+".json")
}

// finishedBefore returns the manifest of an output that was finished with the same plan; nil if there is none. Another output
// is an error.
func (f *partsFolder) finishedBefore() (*plan.Manifest, error) {
	if _, err := os.Lstat(f.out); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	man, err := plan.ReadManifest(f.out)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", taken(f.out), err)
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

// open makes the folder, or checks that the folder belongs to the same plan, number of parts and version.
func (f *partsFolder) open() error {
	if err := os.Mkdir(f.dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	_, err := f.begun()
	if errors.Is(err, fs.ErrNotExist) {
		if err = f.begin(); errors.Is(err, fs.ErrExist) { // another part may have been quicker
			if _, now := f.begun(); !errors.Is(now, fs.ErrNotExist) {
				err = now
			}
		}
	}
	for _, name := range []string{resultName, recordsName} {
		if err == nil {
			err = os.MkdirAll(filepath.Join(f.dir, name), 0o777)
		}
	}
	return err
}

// begin writes partsName into a folder that holds nothing yet.
func (f *partsFolder) begin() error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	if err := f.mayBegin(entries); err != nil {
		return err
	}
	js, err := json.Marshal(f.common)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(f.dir, "."+partsName)
	if err != nil {
		return err
	}
	_, err = tmp.Write(append(js, '\n'))
	if err = errors.Join(err, tmp.Chmod(0o644), tmp.Sync(), tmp.Close()); err == nil {
		err = atomicfile.RenameNew(tmp.Name(), filepath.Join(f.dir, partsName))
	}
	if err != nil {
		os.Remove(tmp.Name())
		return err
	}
	return atomicfile.SyncFolder(f.dir)
}

// mayBegin returns an error if a folder with these entries is not empty. Another part may have begun the folder meanwhile:
// then the error is fs.ErrExist. If the other machine's parts.json is not visible yet, the error is temporary.
func (f *partsFolder) mayBegin(entries []fs.DirEntry) error {
	var err error
	for _, e := range entries {
		switch name := e.Name(); {
		case name == partsName:
			return fs.ErrExist
		case name == journalName || name == plan.ManifestName:
			return resumable{fmt.Errorf("%s: this folder holds a conversion that was begun without parts: resume it, or move the folder away", f.dir)}
		case strings.HasPrefix(name, "."+partsName): // of a killed call
		case strings.HasPrefix(name, partPrefix) || name == resultName || name == recordsName:
			if err == nil {
				err = retry{fmt.Errorf("%s: %s is not visible yet: wait, or move the folder away and run all parts again", f.dir, partsName)}
			}
		default:
			err = noConversion(f.dir)
		}
	}
	return err
}

// begun reads what all parts share. The error is fs.ErrNotExist if no part has been begun. Other parts than these are an error.
func (f *partsFolder) begun() (was common, err error) {
	js, err := bounded.ReadFile(filepath.Join(f.dir, partsName), bounded.Config)
	if err != nil {
		return was, err
	}
	if err := json.Unmarshal(js, &was); err != nil {
		return was, fmt.Errorf("%s: %w: move %s away and run all parts again", filepath.Join(f.dir, partsName), err, f.dir)
	}
	return was, f.differs(was)
}

// ErrOther marks an error of parts that were begun with another plan, version or number of parts. The same command
// always fails again.
var ErrOther = errors.New("parts of another conversion")

// other is an [ErrOther] with a text of its own.
type other struct{ error }

func (other) Is(target error) bool { return target == ErrOther }
func (o other) Unwrap() error      { return o.error }

// differs returns an [ErrOther] if something belongs to another plan, version or number of parts.
func (f *partsFolder) differs(was common) error {
	const advice = "or move the folder away and run all parts again"
	switch {
	case was.Version != partsVersion:
		return otherf("%s: parts of version %d, this program writes version %d: use the program that began them, %s", f.dir, was.Version, partsVersion, advice)
	case was.Tool != f.Tool:
		return otherf("%s: was begun by lowtoggle %s, this is %s: use one version for all parts, %s", f.dir, was.Tool, f.Tool, advice)
	case was.Plan != f.Plan:
		return otherf("%s: was begun with another plan (SHA-256 %.12s…, this one has %.12s…): give the same plan, %s", f.dir, was.Plan, f.Plan, advice)
	case f.Parts != 0 && was.Parts != f.Parts:
		return otherf("%s: was begun in %d parts, not %d: give the same number of parts, %s", f.dir, was.Parts, f.Parts, advice)
	}
	return nil
}

func otherf(format string, args ...any) error { return other{fmt.Errorf(format, args...)} }

// partFolder is where a part writes shards that are not finished. Each call has its own folder, as some file systems have no
// locks.
type partFolder struct {
	dir  string
	lock *os.File // nil where there are no locks
}

func (p *partFolder) path(name string) string { return filepath.Join(p.dir, name) }

func (p *partFolder) close() error {
	return errors.Join(os.RemoveAll(p.dir), p.lock.Close())
}

// lockPart locks a part, and removes the unfinished shards of killed calls.
func (f *partsFolder) lockPart(number int) (*partFolder, error) {
	dir := f.part(number)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	held, err := lock.Acquire(filepath.Join(dir, lockName))
	switch {
	case errors.Is(err, lock.ErrHeld):
		return nil, retry{fmt.Errorf("%s: another process is writing this part: wait until it ends (%w)", dir, err)}
	case err != nil && !lock.None(err):
		return nil, err
	case err == nil:
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, errors.Join(err, held.Close())
		}
		for _, e := range entries {
			if e.IsDir() {
				if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
					return nil, errors.Join(err, held.Close())
				}
			}
		}
	}
	own, err := os.MkdirTemp(dir, "call-")
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	return &partFolder{own, held}, nil
}

// add gives a shard that is on the disk its place, and records it. It returns the shard's size in bytes.
func (f *partsFolder) add(path string, s plan.Shard, part int) (int64, error) {
	to := f.result(s.File)
	head, err := headDigest(path)
	if err != nil {
		return 0, err
	}
	file, err := os.Open(path) // it may take time until the new name is visible
	if err != nil {
		return 0, err
	}
	defer file.Close()
	if err := os.Rename(path, to); err != nil {
		return 0, err
	}
	if err := atomicfile.SyncFolder(filepath.Dir(to)); err != nil {
		return 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	r := record{common: f.common, Part: part, Shard: s, Bytes: info.Size(), Head: head, Modified: info.ModTime().UnixNano(), Changed: changed(info)}
	js, err := json.Marshal(r)
	if err != nil {
		return 0, err
	}
	return r.Bytes, atomicfile.Write(f.record(s.File), append(js, '\n'))
}

// headDigest returns the SHA-256 of a safetensors file's head.
func headDigest(path string) (string, error) {
	s, err := weights.OpenFile(path)
	if err != nil {
		return "", err
	}
	defer s.Close()
	return hex.EncodeToString(digestOf(s.Head())), nil
}

func digestOf(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:]
}

// errNoRecord marks a shard without a record.
var errNoRecord = errors.New("is not written yet")

// unwritten says why a shard has no record: an errNoRecord if its part has ended, and the record may only not be visible yet.
func (f *partsFolder) unwritten(part int) error {
	dir := f.part(part)
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("is not written: its part has not begun")
	case err != nil:
		return err
	case errors.Is(lock.Check(filepath.Join(dir, lockName)), lock.ErrHeld):
		return errors.New("is not written yet: its part is running")
	case slices.ContainsFunc(entries, fs.DirEntry.IsDir):
		return errors.New("is not written: its part was killed, or is running where there are no locks")
	}
	return errNoRecord
}

// refresh reads the lists of files again. NFS then forgets which names were absent a moment ago.
func (f *partsFolder) refresh() {
	os.ReadDir(filepath.Join(f.dir, resultName))
	os.ReadDir(filepath.Join(f.dir, recordsName))
}

// errNotVisible marks a shard that has a record and is not there.
var errNotVisible = errors.New("is recorded as written, but is not there")

// check returns the record of a shard, if the record and the header and the size of the file fit each other, the plan and the
// header that is expected. It reads data only if the file's times have changed: then the file may be a copy.
func (f *partsFolder) check(ctx context.Context, name string, want *weights.File, part int) (*record, error) {
	js, err := bounded.ReadFile(f.record(name), bounded.Config)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoRecord
	}
	if err != nil {
		return nil, err
	}
	var r record
	if err := json.Unmarshal(js, &r); err != nil {
		return nil, fmt.Errorf("its record is damaged: %w", err)
	}
	if err := f.differs(r.common); err != nil || r.File != name || r.Part != part {
		return nil, errors.Join(errors.New("its record belongs to another conversion"), err)
	}
	path := f.result(name)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errNotVisible
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("is not a file")
	case info.Size() != r.Bytes:
		return nil, fmt.Errorf("has %d bytes, not the %d that were written", info.Size(), r.Bytes)
	}
	if err := checkHead(path, &r, want); err != nil {
		return nil, err
	}
	if info.ModTime().UnixNano() != r.Modified || changed(info) != r.Changed {
		digest, err := digestFile(ctx, path, func(int) {})
		if err != nil {
			return nil, err
		}
		if digest != r.Output {
			return nil, errors.New("was changed after it was written")
		}
	}
	return &r, nil
}

// checkHead compares the header of a shard with the record, and with the tensors that the plan gives it. Steps may add tensors.
func checkHead(path string, r *record, want *weights.File) error {
	s, err := weights.OpenFile(path)
	if err != nil {
		return err
	}
	defer s.Close()
	if hex.EncodeToString(digestOf(s.Head())) != r.Head {
		return errors.New("has another header than was written")
	}
	for i, t := range want.Tensors {
		if i >= len(s.Tensors) || s.Tensors[i].Name != t.Name || s.Tensors[i].DType != t.DType || !slices.Equal(s.Tensors[i].Shape, t.Shape) {
			return fmt.Errorf("does not hold tensor %q as planned", t.Name)
		}
	}
	return nil
}

// remove removes the folder with everything in it. parts.json is removed last: without it, the next call would not know the
// folder as one of its own, and would leave the rest.
func (f *partsFolder) remove() error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != partsName {
			if err := os.RemoveAll(filepath.Join(f.dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := atomicfile.SyncFolder(f.dir); err != nil {
		return err
	}
	return os.RemoveAll(f.dir)
}

// begunInParts reports whether a folder is that of a conversion in parts.
func begunInParts(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, partsName))
	return err == nil && info.Mode().IsRegular()
}
