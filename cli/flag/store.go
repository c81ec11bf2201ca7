package flag

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"strings"

	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/bucket"
)

// Place returns the path that an argument names on a disk, or the folder of a bucket. file:// is a path.
func Place(argument string) (path string, folder *bucket.Folder, err error) {
	if !weights.IsURL(argument) {
		return argument, nil, nil
	}
	if u, err := url.Parse(argument); err == nil && u.Scheme == "file" && u.Host == "" {
		return u.Path, nil, nil
	}
	if hub := weights.FromHub(argument); hub != "" && strings.HasPrefix(argument, "hf://") {
		return "", nil, weights.FileErrorf(argument, "is a name on a hub: %s", hub)
	}
	folder, err = bucket.Open(argument)
	return argument, folder, err
}

// openStored opens a model in a bucket.
func openStored(ctx context.Context, folder *bucket.Folder) (*weights.Model, error) {
	file := ""
	if strings.HasSuffix(folder.URL(), ".safetensors") {
		folder, file = folder.Parent()
	}
	m, err := weights.OpenStore(ctx, folder, file)
	if errors.Is(err, fs.ErrNotExist) && !errors.As(err, new(*bucket.Error)) {
		err = weights.FileErrorf(folder.URL(), "there is no such model in the bucket: name its folder, or a safetensors file: %w", err)
	}
	return m, err
}

// ReadPlace reads a file of at most most bytes that an argument names, on a disk or in a bucket.
func ReadPlace(ctx context.Context, argument string, most int64) ([]byte, error) {
	path, folder, err := Place(argument)
	if err != nil {
		return nil, err
	}
	if folder == nil {
		return bounded.ReadFile(path, most)
	}
	folder, name := folder.Parent()
	return folder.Read(ctx, name, most)
}
