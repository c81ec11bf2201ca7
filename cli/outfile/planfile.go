package outfile

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// WritePlan writes a plan, or a part of a plan, to a disk or into a bucket. The file appears whole or not at all. With
// an empty path, WritePlan does nothing.
func WritePlan(ctx context.Context, path string, data []byte) error {
	folder, name, err := flag.InBucket(path)
	if err != nil || folder == nil {
		return errors.Join(err, Write(path, data))
	}
	return folder.Write(ctx, name, data)
}

// PlanParts returns the files of the parts of the plan at path.
func PlanParts(ctx context.Context, path string) (files []string, err error) {
	folder, name, err := flag.InBucket(path)
	if err != nil {
		return nil, err
	}
	if folder == nil {
		return filepath.Glob(globQuote(path) + ".part-*-of-*")
	}
	list, err := folder.List(ctx)
	for _, o := range list {
		if rest, ok := strings.CutPrefix(o.Path, name+".part-"); ok && strings.Contains(rest, "-of-") && !strings.Contains(rest, "/") {
			files = append(files, folder.URL()+"/"+o.Path)
		}
	}
	return files, err
}

// globQuote escapes the characters that filepath.Glob reads as a pattern.
func globQuote(path string) string {
	return strings.NewReplacer(`*`, `[*]`, `?`, `[?]`, `[`, `[[]`).Replace(path)
}

// checkStoredPlan is [CheckPlan] for a bucket.
func checkStoredPlan(ctx context.Context, path, model string) error {
	if strings.HasPrefix(path, strings.TrimRight(model, "/")+"/") {
		return exit.OutputError(weights.FileErrorf(path, "lies in the model's folder: name a file elsewhere with -o"))
	}
	js, err := flag.ReadPlace(ctx, path, bounded.Plan)
	if flag.IsAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, notPlan := plan.Decode(js); notPlan != nil && len(js) > 0 {
		return exit.OutputExists(weights.FileErrorf(path, "exists and is not a plan, so lowtoggle does not replace it: name another file with -o"))
	}
	return nil
}
