package apply

import (
	"context"
	"io"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// place is where a conversion in parts is written: folders of a disk ([diskPlace]), or a folder of an object store ([storePlace]).
type place interface {
	// finished returns the manifest of an output that is whole; nil if there is none.
	finished(ctx context.Context) (*plan.Manifest, error)
	// checkFree returns an error if no part can be begun here. If one has been, it is fs.ErrExist.
	checkFree(ctx context.Context) error
	// begun is called once a part has been begun.
	begun() error
	// read, create and write are for small files about the parts, which are whole or not there. The errors of read and create
	// are fs.ErrNotExist and fs.ErrExist.
	read(ctx context.Context, name string) ([]byte, error)
	create(ctx context.Context, name string, data []byte) error
	write(ctx context.Context, name string, data []byte) error
	// work begins writing the shards of a part, and lockFinish the end; where there are locks, nobody else does the same.
	work(number int) (work, error)
	lockFinish() (io.Closer, error)
	// stat returns a shard's size in bytes, and a version that changes with the shard.
	stat(ctx context.Context, shard string) (size int64, version string, err error)
	// header opens a shard, and digest returns its SHA-256.
	header(ctx context.Context, shard string) (*weights.File, error)
	digest(ctx context.Context, shard string) (string, error)
	// unwritten says why a shard of a part has no record. It is errNoRecord if the record may only not be visible yet.
	unwritten(part int) error
	// refresh looks at the lists of files again.
	refresh()
	// path names a shard in messages.
	path(shard string) string
	// results lists the files of the result. Unfinished files of killed calls are removed.
	results(ctx context.Context) ([]string, error)
	// publish adds everything but the shards to the result, and makes the output appear.
	publish(ctx context.Context, c *conversion, man *plan.Manifest) error
	// remove removes what is kept about the parts, if the output has appeared.
	remove(ctx context.Context) error
}

// work is the writing of a part's shards.
type work interface {
	// create begins a shard like one of the source's.
	create(ctx context.Context, src *weights.File, head []byte, dataLen int64) (weights.Output, error)
	// add gives a closed shard its place, and returns what stat does.
	add(ctx context.Context, shard string) (size int64, version string, err error)
	Close() error
}
