package apply

import (
	"context"
	"io"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// place is where a conversion in parts writes: folders on a disk ([diskPlace]), or a folder in an object store
// ([storePlace]).
type place interface {
	// finished returns the manifest of a whole output; nil if there is none.
	finished(ctx context.Context) (*plan.Manifest, error)
	// checkFree returns an error if no part can begin here. If a part has begun before, the error is fs.ErrExist.
	checkFree(ctx context.Context) error
	// begun is called when a part has begun.
	begun() error
	// read, create and write are for small files about the parts. A file appears whole or not at all. If there is no
	// file, the error of read is fs.ErrNotExist; if there is one, the error of create is fs.ErrExist.
	read(ctx context.Context, name string) ([]byte, error)
	create(ctx context.Context, name string, data []byte) error
	write(ctx context.Context, name string, data []byte) error
	// work begins writing a part's shards; lockFinish begins FinishParts. Where there are locks, a second caller gets
	// an error.
	work(number int) (work, error)
	lockFinish() (io.Closer, error)
	// stat returns a shard's size in bytes, and a version that changes with the shard's content.
	stat(ctx context.Context, shard string) (size int64, version string, err error)
	// header opens a shard, and digest returns its SHA-256.
	header(ctx context.Context, shard string) (*weights.File, error)
	digest(ctx context.Context, shard string) (string, error)
	// unwritten returns the reason why a shard of a part has no record. The reason is errNoRecord if the record may
	// become visible later.
	unwritten(part int) error
	// refresh drops cached lists of files.
	refresh()
	// path returns a shard's name for messages.
	path(shard string) string
	// results lists the files of the result, and removes unfinished files of killed calls.
	results(ctx context.Context) ([]string, error)
	// publish adds all files except the shards to the result, and makes the output appear.
	publish(ctx context.Context, c *conversion, man *plan.Manifest) error
	// remove removes the files about the parts. The output must have appeared before.
	remove(ctx context.Context) error
}

// work writes a part's shards.
type work interface {
	// create begins a shard with the permissions of a source shard.
	create(ctx context.Context, src *weights.File, head []byte, dataLen int64) (weights.Output, error)
	// add moves a closed shard to its place. It returns the size and version, like stat.
	add(ctx context.Context, shard string) (size int64, version string, err error)
	Close() error
}
