package bucket

import (
	"context"
	"io"

	"github.com/lowtoggle/lowtoggle/weights"
)

// protocol sends a store's requests. A method sends one request, or a few that belong together, and does not repeat them: retry
// does. Keys are whole, and so is the path of an object. Versions have no quotation marks.
type protocol interface {
	// list returns at most most objects whose keys begin with prefix, and what the next request gives as after; empty at the end.
	list(ctx context.Context, prefix, after string, most int) (found []weights.Object, next string, err error)
	// get returns n bytes of an object from byte at on; n < 0: all bytes. A version of o that is not empty must be the object's.
	// Of the answer, size and version are used, the size only if n < 0.
	get(ctx context.Context, o weights.Object, at, n int64) (io.ReadCloser, weights.Object, error)
	stat(ctx context.Context, key string) (weights.Object, error)
	// put writes an object; fresh: only if there is none.
	put(ctx context.Context, key string, data []byte, fresh bool) error
	// remove removes an object. A missing object is no error.
	remove(ctx context.Context, key string) error
	// multipart prepares an upload in parts. It sends no request.
	multipart(key string) multipart
	// failure returns the store's code and HTTP's status of an error; nothing if the store has not answered.
	failure(err error) (code string, status int)
	// credentials says which credentials to check.
	credentials() string
}

// multipart is the upload of one object in parts, which may be sent at a time. The object appears at complete.
type multipart interface {
	begin(ctx context.Context) error
	// part sends a part; the first one has number 1.
	part(ctx context.Context, number int, data []byte) error
	// complete joins all parts to an object of size bytes. It may be called again if an answer was lost.
	complete(ctx context.Context, size int64) error
	abort(ctx context.Context) error
}
