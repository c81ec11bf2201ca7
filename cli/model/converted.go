package model

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// openConverted opens the conversion out of the model src at path source. family is the file of --arch or empty. If out
// is absent or damaged, the error ends with the command that makes it.
func openConverted(ctx context.Context, src *weights.Model, source, out, family string) (*weights.Model, error) {
	m, err := flag.OpenModel(ctx, out)
	if err == nil {
		return m, nil
	}
	if weights.IsURL(out) {
		if man, unread := storedManifest(ctx, out); unread == nil && man.Plan != nil && man.Plan.CheckModel(src) == nil {
			return nil, &damagedError{err, man}
		}
		return nil, err
	}
	if _, absent := os.Lstat(out); errors.Is(absent, fs.ErrNotExist) && weights.FromHub(out) == "" {
		if p, _ := transform.Unfinished(out); p != nil || transform.HasSearch(besideOut(out)) {
			return nil, weights.Absent(out, "this conversion is not finished: wait until convert ends; after an interrupt, run the same convert command again with --resume")
		}
		return nil, weights.Absent(out, "there is no such file or folder: name the result of a conversion, or convert first:\n"+
			term.CommandIndent+term.CommandLine(withFamily(family, "convert", source, out)...))
	}
	if man, unread := plan.ReadManifest(out); unread == nil && man.Plan != nil && man.Plan.CheckModel(src) == nil {
		return nil, fmt.Errorf("%w\n%s:\n%s%s", &damagedError{err, man}, remake, term.CommandIndent, remakeCommand(family, man.Plan, source, out))
	}
	return nil, err
}

// storedManifest reads the manifest of a conversion in a bucket.
func storedManifest(ctx context.Context, out string) (*plan.Manifest, error) {
	path := manifestURL(out)
	js, err := flag.ReadPlace(ctx, path, bounded.Plan)
	if err != nil {
		return nil, err
	}
	return plan.DecodeManifest(path, js)
}

func manifestURL(out string) string { return strings.TrimRight(out, "/") + "/" + plan.ManifestName }

// damagedError is the error of a conversion of the source that cannot be opened although its manifest can be read.
type damagedError struct {
	error
	manifest *plan.Manifest
}

func (e *damagedError) Unwrap() error { return e.error }

// damaged returns the problem of a conversion whose files are missing, truncated or malformed. It returns nil for other
// errors, such as those of a disk.
func damaged(err error) *damagedError {
	var d *damagedError
	if !errors.As(err, &d) {
		return nil
	}
	if _, io := errors.AsType[syscall.Errno](err); io && !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return d
}

const remake = "OUT can be made again, into a new folder, from the plan in its lowtoggle.json"

// remakeCommand returns the command that makes the conversion out again from its plan p.
func remakeCommand(family string, p *plan.Plan, source, out string) string {
	manifest := filepath.Join(out, plan.ManifestName)
	if weights.IsURL(out) {
		manifest = manifestURL(out)
	}
	words := withFamily(family, "convert", source, "NEW", "--plan", manifest)
	if p.Request.Hessians != "" {
		words = append(words, "--tokens", "FILE")
	}
	return term.CommandLine(words...)
}

// inOrder returns an error if src is a conversion and out is not, so that the user probably swapped both.
func inOrder(src, out *weights.Model, args []string) error {
	if _, err := plan.ManifestOf(out); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := plan.ManifestOf(src); err != nil {
		return nil
	}
	return exit.Usagef("%s is a conversion and %s is not: give the source first, then its conversion:\n%s%s", args[0], args[1],
		term.CommandIndent, term.CommandLine("verify", args[1], args[0]))
}
