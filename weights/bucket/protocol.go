package bucket

import (
	"context"
	"io"

	"github.com/lowtoggle/lowtoggle/weights"
)

// protocol sends a store's requests. A method sends one request, or a few that belong together, and does not repeat them:
// Folder.retry does. Keys, and the paths of objects, begin at the bucket's root. Versions have no quotation marks.
type protocol interface {
	// list returns at most most objects whose keys begin with prefix. next is the argument after of the next request; empty at
	// the end of the list.
	list(ctx context.Context, prefix, after string, most int) (found []weights.Object, next string, err error)
	// get returns n bytes of an object from byte at on; n < 0: all bytes. If o.Version is not empty, the object must have this
	// version. The result has the object's version, and its size if n < 0.
	get(ctx context.Context, o weights.Object, at, n int64) (io.ReadCloser, weights.Object, error)
	stat(ctx context.Context, key string) (weights.Object, error)
	// put writes an object. If fresh is true, an object that exists is an error.
	put(ctx context.Context, key string, data []byte, fresh bool) error
	// remove removes an object. A missing object is no error.
	remove(ctx context.Context, key string) error
	// multipart prepares an upload in parts. It sends no request.
	multipart(key string) multipart
	// failure returns the store's code and the HTTP status of an error; empty and 0 if the store has not answered.
	failure(err error) (code string, status int)
	// credentials returns the names of the credentials to check, for messages.
	credentials() string
}

// multipart is the upload of one object in parts, which may be sent concurrently. The object appears at complete.
type multipart interface {
	begin(ctx context.Context) error
	// part sends a part; the first one has number 1.
	part(ctx context.Context, number int, data []byte) error
	// complete joins all parts to an object of size bytes. It may be called again if an answer was lost.
	complete(ctx context.Context, size int64) error
	abort(ctx context.Context) error
}
