package transform

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// partialSuffix follows the output's name while it is being made.
const partialSuffix = ".partial"

// journalName is the file in the stage that records the plan and each finished shard. It goes
// before the folder gets its name.
const journalName = ".lowtoggle-journal"

// stage is the folder in which an output is made.
type stage struct {
	dir, out string
	journal  *os.File
	finished map[string]ShardRecord
}

// ErrUnfinished is returned where a conversion to the same folder was interrupted.
var ErrUnfinished = errors.New("an unfinished conversion lies there")

// openStage makes the stage, or with resume takes up the one that is there.
func openStage(out string, plan *Plan, resume bool, need int64) (*stage, error) {
	out = filepath.Clean(out)
	st := &stage{dir: out + partialSuffix, out: out, finished: map[string]ShardRecord{}}
	_, err := os.Lstat(st.dir)
	switch {
	case err == nil && resume:
		if err := st.reopen(plan); err != nil {
			st.journal.Close() // and with it the lock
			return nil, err
		}
		return st, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if err := checkRoom(filepath.Dir(out), need); err != nil {
		return nil, err
	}
	if err := os.Mkdir(st.dir, 0o777); err != nil {
		return nil, err
	}
	if err := st.begin(plan); err != nil {
		st.journal.Close()
		os.RemoveAll(st.dir)
		return nil, err
	}
	return st, nil
}

// begin starts the journal; its first line is the plan.
func (st *stage) begin(plan *Plan) (err error) {
	st.journal, err = os.OpenFile(st.path(journalName), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	if err := lock(st.journal); err != nil {
		return fmt.Errorf("%s: another process is writing it: %w", st.dir, err)
	}
	return st.log(plan)
}

func (st *stage) log(record any) error {
	js, err := json.Marshal(record)
	if err != nil {
		return err
	}
	if _, err := st.journal.Write(append(js, '\n')); err != nil {
		return err
	}
	return st.journal.Sync()
}

// reopen reads the journal and removes what was not finished.
func (st *stage) reopen(plan *Plan) (err error) {
	st.journal, err = os.OpenFile(st.path(journalName), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	if err := lock(st.journal); err != nil {
		return fmt.Errorf("%s: another process is writing it: %w", st.dir, err)
	}
	begun, records, err := readJournal(st.journal)
	if err != nil {
		return fmt.Errorf("%s: %w", st.path(journalName), err)
	}
	if begun == nil { // killed before the plan was on the disk, or when all was done but the name
		return errors.Join(st.removeUnfinished(), st.log(plan))
	}
	js, err := plan.Encode()
	if err != nil {
		return err
	}
	if was, err := begun.Encode(); err != nil || string(was) != string(js) {
		return errors.Join(err, fmt.Errorf("%s: was begun with another plan: give the same options as before, or remove it", st.dir))
	}
	for _, r := range records {
		if _, err := os.Lstat(st.path(r.File)); err == nil {
			st.finished[r.File] = r
		}
	}
	return st.removeUnfinished()
}

// readJournal returns the plan and the finished shards. A last line that was cut short is as if it
// had not been written.
func readJournal(f *os.File) (plan *Plan, records []ShardRecord, err error) {
	r := bufio.NewReader(f)
	var good int64
	for first := true; ; first = false {
		line, err := r.ReadBytes('\n')
		if err != nil {
			break
		}
		if first {
			if plan, err = DecodePlan(line); err != nil {
				return nil, nil, err
			}
		} else {
			var record ShardRecord
			if err := json.Unmarshal(line, &record); err != nil {
				return nil, nil, err
			}
			records = append(records, record)
		}
		good += int64(len(line))
	}
	return plan, records, f.Truncate(good)
}

func (st *stage) removeUnfinished() error {
	entries, err := os.ReadDir(st.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, ok := st.finished[e.Name()]; ok || e.Name() == journalName {
			continue
		}
		if err := os.RemoveAll(st.path(e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (st *stage) path(name string) string { return filepath.Join(st.dir, name) }

// finish records a shard that is on the disk.
func (st *stage) finish(r ShardRecord) error {
	if err := syncDir(st.dir); err != nil {
		return err
	}
	return st.log(r)
}

// commit gives the folder its name.
func (st *stage) commit() error {
	if err := os.Remove(st.path(journalName)); err != nil {
		return err
	}
	if err := syncDir(st.dir); err != nil {
		return err
	}
	if err := renameNew(st.dir, st.out); err != nil {
		return err
	}
	st.journal.Close()
	return syncDir(filepath.Dir(st.out))
}

// fail leaves the stage for a later resume where the work was interrupted, and removes it after
// any other error.
func (st *stage) fail(ctx context.Context, err error) error {
	st.journal.Close()
	if ctx.Err() != nil {
		return fmt.Errorf("%w: what is finished stays in %s; go on with --resume", ctx.Err(), st.dir)
	}
	return errors.Join(err, os.RemoveAll(st.dir))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Unfinished returns the plan of the conversion to out that was interrupted; nil where there is
// none, or none that got as far as a plan.
func Unfinished(out string) (*Plan, error) {
	f, err := os.Open(filepath.Join(filepath.Clean(out)+partialSuffix, journalName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	line, err := bufio.NewReader(f).ReadBytes('\n')
	if err != nil {
		return nil, nil // the plan was still being written
	}
	return DecodePlan(line)
}
