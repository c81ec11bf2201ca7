package measure

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/weights"
)

// simulated is a machine without a GPU.
type simulated struct {
	card      *power.Sim
	addresses float64 // see [power.SimOptions].Addresses
	loaded    *int    // number of whole models and batches that have been loaded
}

// Simulated returns a machine without a GPU, for tests and trials. In virtual time, its card draws more power the more
// bits differ between neighbouring rows of the weights. o is [power.DefaultSim] with changes. Simulated panics if
// [OpenSimulated] returns an error.
func Simulated(o power.SimOptions) Machine { return newSimulated(power.NewSim(o), o) }

func newSimulated(card *power.Sim, o power.SimOptions) Machine {
	return simulated{card: card, addresses: o.Addresses, loaded: new(int)}
}

// OpenSimulated is [Simulated] but returns an error if o.State cannot be read or [power.OpenSim] rejects o.
func OpenSimulated(o power.SimOptions) (Machine, error) {
	card, err := power.OpenSim(o)
	if err != nil {
		return nil, err
	}
	return newSimulated(card, o), nil
}

func (s simulated) Card() power.Card     { return s.card }
func (s simulated) Clock() power.Clock   { return s.card }
func (s simulated) Platform() *cuda.Info { return nil }
func (s simulated) Close() error         { return s.card.Close() }

// Time and power of products on the simulated card. The numbers are invented, like those of [power.DefaultSim], and are
// the same for every type.
const (
	simOps       = 7e14 // operations per second
	simBytes     = 4e12 // bytes per second
	simStill     = 450  // watts of a product with constant weights
	simToggling  = 500  // additional watts if every bit toggles
	simExecution = 5e-3 // least seconds per execution
	simKernel    = 3e-6 // least seconds per kernel
)

// simProduct returns the power and time of one execution of product p.
func simProduct(ctx context.Context, p cuda.Product) (k power.SimKernel, err error) {
	if err := ctx.Err(); err != nil {
		return k, err
	}
	if err := p.Validate(); err != nil {
		return k, fmt.Errorf("%s: %w", p.Name, err)
	}
	k.Seconds = max(p.Problem.Ops()/simOps, p.Problem.Bytes()/simBytes)
	k.Memory = simMemory(p.Problem.Bytes() / k.Seconds)
	err = weights.Guard(p.Name, func() error {
		weights.Need(p.W.Data)
		k.Watts = simStill + simToggling*toggling(p.W)
		return nil
	})
	return k, err
}

// SimulatedKernel returns the power and time of one pass through products on a [Simulated] card.
func SimulatedKernel(ctx context.Context, products []cuda.Product) (power.SimKernel, error) {
	return (&simBatch{name: "products", products: products, stack: 1}).pass(ctx)
}

// nextPlace returns the factor by which the addresses of the next loaded model or batch change its power.
func (s simulated) nextPlace() float64 {
	defer func() { *s.loaded++ }()
	return 1 + s.addresses*float64(1-*s.loaded%3)
}

func (s simulated) NewBatch(ctx context.Context, name string, products []cuda.Product, o cuda.Options) (Batch, error) {
	b, err := s.newBatch(ctx, name, products, nil, o)
	if err != nil {
		return nil, err // not a nil *simBatch in an interface
	}
	return b, nil
}

func (s simulated) NewMix(ctx context.Context, name string, products []cuda.Product, traffic []cuda.Traffic, o cuda.Options) (Mix, error) {
	b, err := s.newBatch(ctx, name, products, traffic, o)
	if err != nil {
		return nil, err
	}
	return b, nil
}

func (s simulated) newBatch(ctx context.Context, name string, products []cuda.Product, traffic []cuda.Traffic, o cuda.Options) (*simBatch, error) {
	if len(products)+len(traffic) == 0 {
		return nil, fmt.Errorf("batch %s: give at least one product or traffic pattern", name)
	}
	b := &simBatch{name: name, products: slices.Clone(products), traffic: slices.Clone(traffic), stack: max(1, o.Stack), copies: 1, place: s.nextPlace()}
	k, err := b.pass(ctx)
	if err != nil {
		return nil, err
	}
	if o.Cold && len(products) > 0 {
		b.copies = 2
	}
	if o.Repeat < 1 {
		o.Repeat = max(1, int(simExecution/k.Seconds/float64(b.copies)))
	}
	b.passes = b.copies * o.Repeat
	b.SimLoad = s.card.Load(name, 0, k.Seconds*float64(b.passes))
	b.draw(k)
	return b, nil
}

// draw sets the power to k, multiplied by the effect of the addresses.
func (b *simBatch) draw(k power.SimKernel) {
	b.kernel = k
	b.Draw(k.Watts*b.place, k.Memory)
}

// pass returns the power and time of one pass through all products and traffic, without the effect of addresses.
func (b *simBatch) pass(ctx context.Context) (power.SimKernel, error) {
	var sum power.SimKernel // Watts holds joules here
	add := func(k power.SimKernel) {
		sum.Seconds += k.Seconds
		sum.Watts += k.Watts * k.Seconds
		sum.Memory += k.Memory * k.Seconds
	}
	for _, p := range b.products {
		k, err := simProduct(ctx, p)
		if err != nil {
			return sum, fmt.Errorf("batch %s: %w", b.name, err)
		}
		k.Seconds *= float64(b.stack)
		add(k)
	}
	for _, t := range b.traffic {
		k, err := simTraffic(t)
		if err != nil {
			return sum, fmt.Errorf("batch %s: %w", b.name, err)
		}
		add(k)
	}
	sum.Watts /= sum.Seconds
	sum.Memory /= sum.Seconds
	return sum, nil
}

// toggling returns the share of bits that differ between neighbouring rows.
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

// simBatch is a simulated load together with its products.
type simBatch struct {
	*power.SimLoad
	name                  string
	products              []cuda.Product
	traffic               []cuda.Traffic
	stack, copies, passes int
	place                 float64 // effect of the addresses on power, as a factor
	kernel                power.SimKernel
}

func (b *simBatch) Check(ctx context.Context) ([]gemm.Deviation, error) { return nil, ctx.Err() }

// Copy takes the power of the other batch, without the effect of that batch's addresses.
func (b *simBatch) Copy(from Batch) error {
	f := from.unwrapped().(*simBatch)
	for i, p := range b.products {
		if err := p.SameForm(f.products[i]); err != nil {
			return fmt.Errorf("batch %s: %s: %w", b.name, p.Name, err)
		}
	}
	b.products = slices.Clone(f.products)
	b.draw(f.kernel)
	return nil
}

func (b *simBatch) unwrapped() Batch { return b }

// Replace sets the power of the new operands x and w.
func (b *simBatch) Replace(ctx context.Context, i int, x, w gemm.Matrix) error {
	b.products[i].X, b.products[i].W = x, w
	k, err := b.pass(ctx)
	if err == nil {
		b.draw(k)
	}
	return err
}

func (b *simBatch) Kernels() []cuda.Kernel { return nil }
func (b *simBatch) Passes() int            { return b.passes }
func (b *simBatch) Copies() int            { return b.copies }
func (b *simBatch) Close() error           { return nil }

func (b *simBatch) WeightBytes() (n int64) {
	for _, p := range b.products {
		n += int64(p.W.Stored())
	}
	return n * int64(b.copies*b.stack)
}

func (b *simBatch) Ops() (n float64) {
	for _, p := range b.products {
		n += p.Problem.Ops()
	}
	return n * float64(b.passes*b.stack)
}
