package sweep

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
)

// batchCache is a machine that uploads and checks every batch only once, because all settings compare the same batches.
type batchCache struct {
	measure.Machine
	batches map[string]*cachedBatch
}

type cachedBatch struct {
	measure.Batch
	holds string                      // the batch whose operands were copied here last
	found map[string][]gemm.Deviation // deviations by the batch that was copied here
}

// NewBatch returns the batch with the given name.
func (c *batchCache) NewBatch(ctx context.Context, name string, products []cuda.Product, o cuda.Options) (measure.Batch, error) {
	if b := c.batches[name]; b != nil {
		return b, nil
	}
	b, err := c.Machine.NewBatch(ctx, name, products, o)
	if err != nil {
		return nil, err
	}
	c.batches[name] = &cachedBatch{b, name, map[string][]gemm.Deviation{}}
	return c.batches[name], nil
}

// Copy overwrites the operands with those of another batch.
func (b *cachedBatch) Copy(from measure.Batch) error {
	b.holds = from.Name()
	return b.Batch.Copy(from)
}

// Check checks the results of the operands that were copied here last. It checks each batch only once.
func (b *cachedBatch) Check(ctx context.Context) ([]gemm.Deviation, error) {
	found, checked := b.found[b.holds]
	if checked {
		return found, nil
	}
	found, err := b.Batch.Check(ctx)
	if err == nil {
		b.found[b.holds] = found
	}
	return found, err
}

// Close keeps the batch on the card.
func (b *cachedBatch) Close() error { return nil }

// release frees all batches. It does nothing if the context has ended, because the card may still have queued work. The
// machine's Close then waits for the work.
func (c *batchCache) release(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	for _, b := range c.batches {
		_ = b.Batch.Close() // Close frees the card's memory; its error does not change the result
	}
}
