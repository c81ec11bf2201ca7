package apply

import (
	"context"
	"crypto/sha256"
	"hash"
	"math/bits"

	"github.com/lowtoggle/lowtoggle/internal/pairhash"
	"github.com/lowtoggle/lowtoggle/weights"
)

// digests are the SHA-256 of a shard's source and result. Both are computed together, which takes less processor time
// than one after the other (see [pairhash]). The source's bytes at the result's place have just been read.
type digests struct {
	source, result hash.Hash
	src            *weights.File
	begun          bool  // the source's head is in its digest
	at             int   // byte of the source's data
	done, total    int64 // bytes of the result's data
}

// ahead is the number of bytes of the source that the system reads in advance.
const ahead = 16 << 20

// newDigests begins the digests of a shard whose result has a head and total bytes of data.
func newDigests(src *weights.File, head []byte, total int64) *digests {
	d := &digests{source: sha256.New(), result: sha256.New(), src: src, total: total}
	d.result.Write(head)
	d.prefetch(0, ahead)
	return d
}

// add adds the next bytes of the result, and the source's bytes at their place.
func (d *digests) add(out []byte) error {
	d.done += int64(len(out))
	to := uint64(len(d.src.Data()))
	if d.done < d.total {
		high, low := bits.Mul64(to, uint64(d.done))
		to, _ = bits.Div64(high, low, uint64(d.total))
	}
	return d.hash(int(to), out)
}

// end adds the rest of the source.
func (d *digests) end(ctx context.Context) error {
	for size := len(d.src.Data()); d.at < size || !d.begun; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := d.hash(min(d.at+chunkBytes, size), nil); err != nil {
			return err
		}
	}
	return nil
}

// hash adds the source's bytes before byte to, and bytes of the result. Each piece of the source has its own guard, so
// that memory of a store's file is released soon.
func (d *digests) hash(to int, out []byte) error {
	if !d.begun {
		d.begun = true
		if err := weights.Guard(d.src.Path, func() error { d.source.Write(d.src.Head()); return nil }); err != nil {
			return err
		}
	}
	for d.at < to || len(out) > 0 {
		piece := d.src.Data()[d.at:min(max(to, d.at), d.at+chunkBytes)]
		err := weights.GuardOf(d.src.Path, [][]byte{piece}, func() error {
			pairhash.Write(d.source, d.result, weights.Need(piece), out)
			return nil
		})
		if err != nil {
			return err
		}
		d.prefetch(d.at+ahead, d.at+ahead+len(piece))
		d.at += len(piece)
		out = nil
	}
	return nil
}

// prefetch advises the system that bytes of the source are needed soon. A file in a store is read in advance anyway.
func (d *digests) prefetch(first, end int) {
	if weights.IsURL(d.src.Path) {
		return
	}
	data := d.src.Data()
	weights.Prefetch(data[min(first, len(data)):min(end, len(data))])
}
