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

// SearchPart measures what a search for a budget of loss must know of one part of the layers: their rate–distortion curves and the
// sensitivity of the model's outputs. It keeps the measurements in o.Tokens.Dir, which all parts share, and returns the number of
// layers. Parts may run on different machines, at the same time, in any order, any number of times; what is measured is not measured
// again. [Plan] with the same options, tokens and folder then finds the measurements and makes the plan of a single run. With
// o.Search.Measured it makes the plan only if nothing is missing.
//
// The first part collects the calibration statistics, and parts that begin meanwhile wait for them. A part that another process is
// measuring, an interrupt, and errors of the network or a full or vanished disk are an [apply.ErrTemporary].
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

// lockPart keeps other processes from measuring the same part. It makes the folder. Without locks on the file system, two processes
// may measure the same part, and write the same measurements.
func lockPart(dir string, part apply.Part) (unlock func() error, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, fmt.Sprintf("part-%05d-of-%05d.lock", part.Number, part.Of))
	f, err := lock.Acquire(path)
	switch {
	case errors.Is(err, lock.ErrHeld):
		return nil, fmt.Errorf("another process measures this part in %s: %w", dir, err)
	case err != nil && !lock.None(err):
		return nil, err
	case f == nil:
		return func() error { return nil }, nil
	}
	return func() error { return errors.Join(os.Remove(path), f.Close()) }, nil
}
