package sweep

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
)

// kept is a machine that puts every batch on the card once: the same are compared at all settings.
type kept struct {
	measure.Machine
	batches map[string]*keptBatch
}

type keptBatch struct {
	measure.Batch
	checked bool
	found   []gemm.Deviation
}

func (k *kept) NewBatch(ctx context.Context, name string, products []cuda.Product, o cuda.Options) (measure.Batch, error) {
	if b := k.batches[name]; b != nil {
		return b, nil
	}
	b, err := k.Machine.NewBatch(ctx, name, products, o)
	if err != nil {
		return nil, err
	}
	k.batches[name] = &keptBatch{Batch: b}
	return k.batches[name], nil
}

// Check looks at the results once.
func (b *keptBatch) Check(ctx context.Context) (found []gemm.Deviation, err error) {
	if !b.checked {
		if b.found, err = b.Batch.Check(ctx); err != nil {
			return nil, err
		}
		b.checked = true
	}
	return b.found, nil
}

// Close keeps it.
func (b *keptBatch) Close() error { return nil }

// close lets all batches go, unless the context is done: then the card has work queued, and the machine's
// Close waits for it.
func (k *kept) close(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	for _, b := range k.batches {
		_ = b.Batch.Close() // memory on a card that goes back in any case; the result stands
	}
}
