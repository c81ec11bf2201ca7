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
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// Path returns the path of a file:// argument. Other arguments are returned unchanged.
func Path(argument string) string {
	if u, err := url.Parse(argument); err == nil && u.Scheme == "file" && u.Host == "" && u.Path != "" {
		return u.Path
	}
	return argument
}

// Place returns the path on a disk, or the folder of a bucket, that an argument names.
func Place(argument string) (path string, folder *bucket.Folder, err error) {
	if argument = Path(argument); !weights.IsURL(argument) {
		return argument, nil, nil
	}
	if hub := weights.FromHub(argument); hub != "" && strings.HasPrefix(argument, "hf://") {
		return "", nil, weights.FileErrorf(argument, "lowtoggle does not read from a hub: %s", hub)
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
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, weights.ErrShardMissing) && !errors.As(err, new(*bucket.Error)) {
		err = weights.FileErrorf(folder.URL(), "there is no such model in the bucket: name its folder, or a safetensors file: %w", err)
	}
	return m, err
}

// InBucket returns the folder and name of a file in a bucket. For a path on a disk, folder is nil.
func InBucket(argument string) (folder *bucket.Folder, name string, err error) {
	path, folder, err := Place(argument)
	if err != nil || folder == nil {
		return nil, path, err
	}
	if folder, name = folder.Parent(); name == "" {
		return nil, "", weights.FileErrorf(argument, "is a bucket: name a file in it")
	}
	return folder, name, nil
}

// ReadPlace reads a file on a disk or in a bucket. A file of more than most bytes is an error.
func ReadPlace(ctx context.Context, argument string, most int64) ([]byte, error) {
	folder, name, err := InBucket(argument)
	if err != nil {
		return nil, err
	}
	if folder == nil {
		return bounded.ReadFile(name, most)
	}
	return folder.Read(ctx, name, most)
}

// IsAbsent reports whether an error means that a file does not exist, on a disk or in an existing bucket.
func IsAbsent(err error) bool {
	e, stored := errors.AsType[*bucket.Error](err)
	return errors.Is(err, fs.ErrNotExist) && (!stored || !e.NoBucket())
}

// ReadTokens reads a token file on a disk or in a bucket. If the file does not exist, the error is fs.ErrNotExist.
func ReadTokens(ctx context.Context, argument string) (*tokens.File, error) {
	folder, name, err := InBucket(argument)
	if err != nil {
		return nil, err
	}
	if folder == nil {
		return tokens.Open(name)
	}
	o, err := folder.Stat(ctx, name)
	if err != nil {
		return nil, err
	}
	file, err := weights.OpenObject(ctx, folder, o)
	if err != nil {
		return nil, err
	}
	t, err := tokens.Read(file)
	return t, errors.Join(err, file.Close())
}
