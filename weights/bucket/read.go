package bucket

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
)

// pageKeys is the largest number of objects in one answer to a list request.
const pageKeys = 1000

// List returns all objects below the folder, sorted by path.
func (f *Folder) List(ctx context.Context) (list []weights.Object, err error) {
	for after := ""; ; {
		found, next, err := f.page(ctx, after, pageKeys)
		if err != nil {
			return nil, err
		}
		for _, o := range found {
			if name, ok := strings.CutPrefix(o.Path, f.prefix); ok && name != "" && !strings.HasSuffix(name, "/") {
				o.Path = name
				list = append(list, o)
			}
		}
		if after = next; after == "" {
			slices.SortFunc(list, func(a, b weights.Object) int { return strings.Compare(a.Path, b.Path) }) // Azure's folders are in another order
			return list, nil
		}
	}
}

func (f *Folder) page(ctx context.Context, after string, keys int) (found []weights.Object, next string, err error) {
	err = f.retry(ctx, listing, "", func(ctx context.Context) (err error) {
		found, next, err = f.protocol.list(ctx, f.prefix, after, keys)
		return err
	})
	return found, next, err
}

// ReadAt fills p with an object's bytes from byte at on. After a broken connection it continues at the first missing byte. It
// is an error if the object's version is no longer o.Version.
func (f *Folder) ReadAt(ctx context.Context, o weights.Object, p []byte, at int64) error {
	if len(p) == 0 {
		return nil
	}
	got := 0
	changed := &Error{URL: f.path(o.Path), err: fmt.Errorf("changed while lowtoggle read it"), advice: "run the command again"}
	return f.retry(ctx, reading, o.Path, func(ctx context.Context) error {
		body, now, err := f.protocol.get(ctx, weights.Object{Path: f.key(o.Path), Version: o.Version}, at+int64(got), int64(len(p)-got))
		if err != nil {
			if _, status := f.protocol.failure(err); status == http.StatusPreconditionFailed {
				return changed
			}
			return err
		}
		defer body.Close()
		if o.Version != "" && now.Version != o.Version {
			return changed
		}
		n, err := io.ReadFull(body, p[got:])
		got += n
		if err != nil {
			return fmt.Errorf("the connection was cut at byte %d: %w", at+int64(got), err)
		}
		return nil
	})
}

// Stat returns an object's path, size and version. The error for a missing object is fs.ErrNotExist.
func (f *Folder) Stat(ctx context.Context, name string) (o weights.Object, err error) {
	err = f.retry(ctx, reading, name, func(ctx context.Context) (err error) {
		o, err = f.protocol.stat(ctx, f.key(name))
		o.Path = name
		return err
	})
	return o, err
}

// Read returns the bytes of an object. An object of more than most bytes is an error. The error for a missing object is
// fs.ErrNotExist.
func (f *Folder) Read(ctx context.Context, name string, most int64) (data []byte, err error) {
	err = f.retry(ctx, reading, name, func(ctx context.Context) error {
		body, o, err := f.protocol.get(ctx, weights.Object{Path: f.key(name)}, 0, -1)
		if err != nil {
			return err
		}
		defer body.Close()
		if o.Size > most {
			return &Error{URL: f.path(name), err: fmt.Errorf("is too large: it has %d bytes, and lowtoggle reads at most %d MiB: check that this is the right file", o.Size, most>>20)}
		}
		data = make([]byte, o.Size)
		_, err = io.ReadFull(body, data)
		return err
	})
	return data, err
}
