package bucket

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/lowtoggle/lowtoggle/weights"
)

// pageKeys is the number of objects that a request lists.
const pageKeys = 1000

// List returns all objects below the folder, sorted by path.
func (f *Folder) List(ctx context.Context) (list []weights.Object, err error) {
	for after := ""; ; {
		page, err := f.page(ctx, after, pageKeys)
		if err != nil {
			return nil, err
		}
		for _, o := range page.Contents {
			if name, ok := strings.CutPrefix(o.Key, f.prefix); ok && name != "" && !strings.HasSuffix(name, "/") {
				list = append(list, weights.Object{Path: name, Size: o.Size, Version: version(o.ETag)})
			}
		}
		if after = page.NextContinuationToken; !page.IsTruncated || after == "" {
			return list, nil
		}
	}
}

func (f *Folder) page(ctx context.Context, after string, keys int) (page minio.ListBucketV2Result, err error) {
	err = f.retry(ctx, listing, "", func(ctx context.Context) (err error) {
		page, err = ended(ctx, func() (minio.ListBucketV2Result, error) {
			return f.core.ListObjectsV2(f.bucket, f.prefix, "", after, "", keys)
		})
		return err
	})
	return page, err
}

// ended returns the result of call, or ctx's error if ctx ends first. It is needed because the library lists without a context.
// The result of a later end of call is discarded.
func ended[T any](ctx context.Context, call func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := call()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return *new(T), ctx.Err()
	}
}

func version(etag string) string { return strings.Trim(etag, `"`) }

// ReadAt fills p with an object's bytes from byte at on. After a cut connection it continues at the byte where the data ended. An
// object with another version by now is an error.
func (f *Folder) ReadAt(ctx context.Context, o weights.Object, p []byte, at int64) error {
	if len(p) == 0 {
		return nil
	}
	got := 0
	return f.retry(ctx, reading, o.Path, func(ctx context.Context) error {
		var options minio.GetObjectOptions
		if err := options.SetRange(at+int64(got), at+int64(len(p))-1); err != nil {
			return err
		}
		if o.Version != "" {
			if err := options.SetMatchETag(o.Version); err != nil {
				return err
			}
		}
		body, info, _, err := f.core.GetObject(ctx, f.bucket, f.key(o.Path), options)
		if err != nil {
			if minio.ToErrorResponse(err).StatusCode == http.StatusPreconditionFailed {
				return &Error{URL: f.path(o.Path), err: fmt.Errorf("has changed while it was read"), advice: "run the command again"}
			}
			return err
		}
		defer body.Close()
		if o.Version != "" && version(info.ETag) != o.Version {
			return &Error{URL: f.path(o.Path), err: fmt.Errorf("has changed while it was read"), advice: "run the command again"}
		}
		n, err := io.ReadFull(body, p[got:])
		got += n
		if err != nil {
			return fmt.Errorf("the connection was cut at byte %d: %w", at+int64(got), err)
		}
		return nil
	})
}

// Stat returns an object's path, size and version. A missing object is fs.ErrNotExist.
func (f *Folder) Stat(ctx context.Context, name string) (o weights.Object, err error) {
	err = f.retry(ctx, reading, name, func(ctx context.Context) error {
		info, err := f.core.StatObject(ctx, f.bucket, f.key(name), minio.StatObjectOptions{})
		o = weights.Object{Path: name, Size: info.Size, Version: version(info.ETag)}
		return err
	})
	return o, err
}

// Read returns the bytes of an object, of which there may be at most most. A missing object is fs.ErrNotExist.
func (f *Folder) Read(ctx context.Context, name string, most int64) (data []byte, err error) {
	err = f.retry(ctx, reading, name, func(ctx context.Context) error {
		body, info, _, err := f.core.GetObject(ctx, f.bucket, f.key(name), minio.GetObjectOptions{})
		if err != nil {
			return err
		}
		defer body.Close()
		if info.Size > most {
			return &Error{URL: f.path(name), err: fmt.Errorf("has %d bytes, and lowtoggle reads at most %d MiB of it", info.Size, most>>20)}
		}
		data = make([]byte, info.Size)
		_, err = io.ReadFull(body, data)
		return err
	})
	return data, err
}
