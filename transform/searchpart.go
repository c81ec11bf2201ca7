package transform

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lowtoggle/lowtoggle/internal/lock"
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/weights"
)

// SearchPart measures one part of the layers for a search with a budget of loss: their rate–distortion curves, and
// the sensitivity of the model's outputs. It stores the measurements in o.Tokens.Dir, which all parts share, and
// returns the number of layers. Parts may run on different machines, at the same time, in any order, any number of
// times. Existing measurements are not repeated. Afterwards, [Plan] with the same options, tokens and folder uses the
// measurements and makes the same plan as without parts. With o.Search.Measured, Plan returns an error if a
// measurement is missing.
//
// The part that starts first, with any number, collects the calibration statistics; parts that begin meanwhile wait for them. The error is an
// [apply.ErrTemporary] if another process is measuring the part, after an interrupt, and for errors of the network or
// a full or vanished disk.
func SearchPart(ctx context.Context, m *weights.Model, o Options, part apply.Part) (layers int, err error) {
	if err := part.Check(); err != nil {
		return 0, err
	}
	if o.Tokens == nil || o.Tokens.Dir == "" || o.Budget.MaxLoss == nil {
		return 0, errors.New("a part of a search needs tokens, a folder that all parts share (Tokens.Dir), and a budget of loss")
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("part %v: %w", part, apply.Temporary(err, o.Tokens.Dir))
		}
	}()
	unlock, err := lockPart(o.Tokens.Dir, part)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	o.Tokens.Shared, o.Tokens.Keep = true, true
	o.part = planPart{only: part, measured: &layers}
	_, err = Plan(ctx, m, o)
	return layers, err
}

// lockPart locks a part against other processes, and creates the folder. On a file system without locks, two
// processes may measure the same part; they write the same measurements.
func lockPart(dir string, part apply.Part) (unlock func() error, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, fmt.Sprintf("part-%05d-of-%05d.lock", part.Number, part.Of))
	f, err := lock.Acquire(path)
	switch {
	case errors.Is(err, lock.ErrHeld):
		return nil, fmt.Errorf("another process is measuring this part in %s: wait until it ends (%w)", dir, err)
	case err != nil && !lock.None(err):
		return nil, err
	case f == nil:
		return func() error { return nil }, nil
	}
	return func() error { return errors.Join(os.Remove(path), f.Close()) }, nil
}
