package bucket

import "context"

// contentType is the type of every object that is written.
const contentType = "application/octet-stream"

// Write creates or replaces an object.
func (f *Folder) Write(ctx context.Context, name string, data []byte) error {
	return f.put(ctx, name, data, false)
}

// WriteNew creates an object. If the object exists and the store supports conditional writes, the error is fs.ErrExist.
func (f *Folder) WriteNew(ctx context.Context, name string, data []byte) error {
	return f.put(ctx, name, data, true)
}

func (f *Folder) put(ctx context.Context, name string, data []byte, fresh bool) error {
	return f.retry(ctx, writing, name, func(ctx context.Context) error {
		return f.protocol.put(ctx, f.key(name), data, fresh)
	})
}

// Remove removes an object. A missing object is no error.
func (f *Folder) Remove(ctx context.Context, name string) error {
	return f.retry(ctx, removing, name, func(ctx context.Context) error {
		return f.protocol.remove(ctx, f.key(name))
	})
}
