package measure

import (
	"context"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// Machine runs batches of products and has the sensors that meter them.
type Machine interface {
	Card() power.Card
	// Clock is the time that the card lives in.
	Clock() power.Clock
	// Platform is the GPU as CUDA sees it; nil where there is none.
	Platform() *cuda.Info
	// NewBatch puts products on the card; see [cuda.Device.NewBatch].
	NewBatch(ctx context.Context, name string, products []cuda.Product, o cuda.Options) (Batch, error)
	// NewMix puts products and traffic on the card; see [cuda.Device.NewMix].
	NewMix(ctx context.Context, name string, products []cuda.Product, traffic []cuda.Traffic, o cuda.Options) (Mix, error)
	// NewSequence puts products on the card whose executions are noted; see [cuda.Device.NewSequence].
	NewSequence(ctx context.Context, name string, products []cuda.Product) (Sequence, error)
	// ReadClock reads the card's clock; the host's is Clock. It fails while something runs.
	ReadClock() (cuda.ClockReading, error)
	// Close gives everything back. Twice does nothing.
	Close() error
}

// Batch is products on a card; see [cuda.Batch].
type Batch interface {
	power.Load
	// Elapsed is the time that the last Start's replays took on the card.
	Elapsed() (time.Duration, error)
	// Check runs all products once and looks at their results.
	Check(ctx context.Context) ([]gemm.Deviation, error)
	// Replace puts other operands in a product's place; see [cuda.Batch.Replace].
	Replace(ctx context.Context, product int, x, w gemm.Matrix) error
	// Kernels says what runs for each product; empty where that is not known.
	Kernels() []cuda.Kernel
	// Passes is how often one execution goes through all products.
	Passes() int
	// Copies of all weights are used in turn, WeightBytes in all.
	Copies() int
	WeightBytes() int64
	// Ops is the number of operations of one execution.
	Ops() float64
	Close() error
}

// Mix is products and traffic on a card; see [cuda.Batch].
type Mix interface {
	power.Load
	Elapsed() (time.Duration, error)
	// Passes is how often one execution goes through everything.
	Passes() int
	Close() error
}

// Sequence is products whose executions are noted; see [cuda.Sequence].
type Sequence interface {
	Start(segments []cuda.Segment) error
	Wait(ctx context.Context) error
	Stamps() ([]cuda.Stamp, error)
	Close() error
}
