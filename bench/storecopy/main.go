// Command storecopy copies the objects of one folder of a bucket to another with lowtoggle's own client, for comparison with a
// conversion: storecopy s3://bucket/from s3://bucket/to.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/bucket"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "storecopy FROM TO")
		os.Exit(2)
	}
	start := time.Now()
	n, err := copyAll(context.Background(), os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%d bytes in %.2f s\n", n, time.Since(start).Seconds())
}

// pieceBytes are read with one request. The next piece is read while the last one is written.
const pieceBytes = 4 << 20

func copyAll(ctx context.Context, from, to string) (total int64, err error) {
	a, err := bucket.Open(from)
	if err != nil {
		return 0, err
	}
	b, err := bucket.Open(to)
	if err != nil {
		return 0, err
	}
	list, err := a.List(ctx)
	if err != nil {
		return 0, err
	}
	for _, o := range list {
		if err := copyOne(ctx, a, b, o); err != nil {
			return total, err
		}
		total += o.Size
	}
	return total, nil
}

func copyOne(ctx context.Context, a, b *bucket.Folder, o weights.Object) error {
	out := b.Create(ctx, o.Path, o.Size)
	type piece struct {
		data []byte
		err  error
	}
	const ahead = 4 // pieces that are read at a time
	queue := make(chan chan piece, ahead)
	go func() {
		defer close(queue)
		for at := int64(0); at < o.Size; at += pieceBytes {
			done := make(chan piece, 1)
			queue <- done
			go func() {
				p := make([]byte, min(pieceBytes, o.Size-at))
				done <- piece{p, a.ReadAt(ctx, o, p, at)}
			}()
		}
	}()
	for done := range queue {
		p := <-done
		if p.err == nil {
			_, p.err = out.Write(p.data)
		}
		if p.err != nil {
			out.Abort()
			return p.err
		}
	}
	return out.Close()
}
