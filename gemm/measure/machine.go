package measure

import (
	"context"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// Machine runs batches of products and measures them with its sensors.
type Machine interface {
	Card() power.Card
	// Clock is the card's host clock, virtual for a simulated card.
	Clock() power.Clock
	// Platform describes the GPU; nil for a simulated card.
	Platform() *cuda.Info
	// NewBatch uploads products; see [cuda.Device.NewBatch].
	NewBatch(ctx context.Context, name string, products []cuda.Product, o cuda.Options) (Batch, error)
	// NewMix uploads products and traffic; see [cuda.Device.NewMix].
	NewMix(ctx context.Context, name string, products []cuda.Product, traffic []cuda.Traffic, o cuda.Options) (Mix, error)
	// NewSequence uploads products and traffic whose executions get time stamps; see [cuda.Device.NewSequence].
	NewSequence(ctx context.Context, name string, products []cuda.Product, traffic []cuda.Traffic) (Sequence, error)
	// NewRunner uploads a whole model, for sequences of at most longest tokens.
	NewRunner(ctx context.Context, m *weights.Model, layout *arch.Layout, longest int) (Runner, error)
	// ReadClock reads the card's own clock between two readings of Clock. It returns an error while the card is busy.
	ReadClock() (cuda.ClockReading, error)
	// Close frees everything. It is idempotent.
	Close() error
}

// Batch is a list of products on a card; see [cuda.Batch].
type Batch interface {
	power.Paced
	// Elapsed is the time of all replays of the last Start, by the card's clock.
	Elapsed() (time.Duration, error)
	// Check runs all products once and checks their results.
	Check(ctx context.Context) ([]gemm.Deviation, error)
	// Replace replaces a product's operands with x and w; see [cuda.Batch.Replace].
	Replace(ctx context.Context, product int, x, w gemm.Matrix) error
	// Copy overwrites the operands with the operands of another batch of the same machine; see [cuda.Batch.Copy].
	Copy(from Batch) error
	// unwrapped returns the machine's own batch. Wrappers embed a Batch.
	unwrapped() Batch
	// Kernels are the products' kernels; empty if unknown.
	Kernels() []cuda.Kernel
	// Passes is the number of passes through all products in one execution.
	Passes() int
	// Copies returns the number of copies of all weights, which the executions use in turn. WeightBytes returns the
	// total size of the copies.
	Copies() int
	WeightBytes() int64
	// Ops is the number of floating-point operations of one execution.
	Ops() float64
	Close() error
}

// repeats returns the [cuda.Options].Repeat with which another batch of the same products gets the same number of
// passes. Without Repeat, the other batch may get a different number.
func repeats(b Batch) int { return b.Passes() / b.Copies() }

// Mix is products and traffic on a card; see [cuda.Batch].
type Mix interface {
	power.Load
	Elapsed() (time.Duration, error)
	// Passes is the number of passes through all products and traffic in one execution.
	Passes() int
	Close() error
}

// Sequence is a launch sequence with time stamps; see [cuda.Sequence].
type Sequence interface {
	Start(segments []cuda.Segment) error
	Wait(ctx context.Context) error
	Stamps() ([]cuda.Stamp, error)
	Close() error
}
