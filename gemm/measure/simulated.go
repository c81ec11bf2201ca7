package measure

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// simulated is a machine without a GPU.
type simulated struct{ card *power.Sim }

// Simulated is a machine that multiplies nothing: it lets a simulated card draw more power the
// more bits differ between neighbouring rows of the weights, in virtual time. It exists to test
// and to try out what uses a Machine.
func Simulated(o power.SimOptions) Machine { return simulated{power.NewSim(o)} }

func (s simulated) Card() power.Card     { return s.card }
func (s simulated) Clock() power.Clock   { return s.card }
func (s simulated) Platform() *cuda.Info { return nil }
func (s simulated) Close() error         { return s.card.Close() }

// What the simulated card takes, roughly as an H200 in BF16.
const (
	simOps       = 7e14 // a second
	simBytes     = 4e12 // a second
	simStill     = 450  // watts of a product by weights that are all alike
	simToggling  = 500  // and the watts on top if every bit toggled
	simExecution = 5e-3 // seconds, at least
)

func (s simulated) NewBatch(ctx context.Context, name string, products []cuda.Product, o cuda.Options) (Batch, error) {
	b := simBatch{name: name, products: slices.Clone(products), stack: max(1, o.Stack), copies: 1}
	watts, seconds, err := b.draw(ctx)
	if err != nil {
		return nil, err
	}
	if o.Cold {
		b.copies = 2
	}
	b.passes = b.copies * max(1, int(simExecution/seconds/float64(b.copies)))
	b.SimLoad = s.card.Load(name, watts, seconds*float64(b.passes))
	return &b, nil
}

// draw is the mean power of a pass through the products, and its time.
func (b *simBatch) draw(ctx context.Context) (watts, seconds float64, err error) {
	var joules float64
	for _, p := range b.products {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		if err := p.Validate(); err != nil {
			return 0, 0, fmt.Errorf("batch %s: %s: %w", b.name, p.Name, err)
		}
		t := float64(b.stack) * max(p.Problem.Ops()/simOps, p.Problem.Bytes()/simBytes)
		seconds += t
		joules += t * (simStill + simToggling*toggling(p.W))
	}
	return joules / seconds, seconds, nil
}

// toggling is the share of bits that differ from one row to the next.
func toggling(w gemm.Matrix) float64 {
	stride := len(w.Data) / w.Rows
	a, b := w.Data[:len(w.Data)-stride], w.Data[stride:]
	n, all := 0, 8*len(a)
	for ; len(a) >= 8; a, b = a[8:], b[8:] {
		n += bits.OnesCount64(binary.LittleEndian.Uint64(a) ^ binary.LittleEndian.Uint64(b))
	}
	for i := range a {
		n += bits.OnesCount8(a[i] ^ b[i])
	}
	return float64(n) / float64(max(1, all))
}

// simBatch is a planted load that knows its products.
type simBatch struct {
	*power.SimLoad
	name                  string
	products              []cuda.Product
	stack, copies, passes int
}

func (b *simBatch) Check(ctx context.Context) ([]gemm.Deviation, error) { return nil, ctx.Err() }

// Replace plants what the new operands draw.
func (b *simBatch) Replace(ctx context.Context, i int, x, w gemm.Matrix) error {
	b.products[i].X, b.products[i].W = x, w
	watts, _, err := b.draw(ctx)
	if err == nil {
		b.Draw(watts)
	}
	return err
}

func (b *simBatch) Kernels() []cuda.Kernel { return nil }
func (b *simBatch) Passes() int            { return b.passes }
func (b *simBatch) Copies() int            { return b.copies }
func (b *simBatch) Close() error           { return nil }

func (b *simBatch) WeightBytes() (n int64) {
	for _, p := range b.products {
		n += int64(len(p.W.Data))
	}
	return n * int64(b.copies*b.stack)
}

func (b *simBatch) Ops() (n float64) {
	for _, p := range b.products {
		n += p.Problem.Ops()
	}
	return n * float64(b.passes*b.stack)
}

func (s simulated) NewMix(ctx context.Context, name string, products []cuda.Product, traffic []cuda.Traffic, o cuda.Options) (Mix, error) {
	return nil, errors.New("not built")
}

func (s simulated) NewTrain(ctx context.Context, name string, products []cuda.Product) (Train, error) {
	return nil, errors.New("not built")
}

func (s simulated) ReadClock() (cuda.ClockReading, error) {
	return cuda.ClockReading{}, errors.New("not built")
}
