package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/internal/progress"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Event reports the progress of a measurement. Stage "prepare" counts the candidates on the card. The other stages are
// those of [power.Options].
type Event = progress.Event

// Options are the options of [Compare]. The zero value is ready to use.
type Options struct {
	// Cold makes every product read its weights from memory, as in decode ([cuda.Options]). Layers smaller than 32 MB
	// on average are stacked, all by the same number, because kernel launches would otherwise dominate. Default: false.
	Cold bool
	// Duties are measured in turn; see [power.Options].Duty. The result is for the first duty, and its AtDuty holds the
	// results for the other duties. Default: one duty, back to back.
	Duties []float64
	// Meter holds the meter's options. The machine's values replace Clock and Self, and Duties replaces Duty.
	Meter power.Options
	// Progress is called after each candidate, including the null, has been uploaded and checked. During the
	// measurement it replaces Meter.Progress. Default: Meter.Progress, during the measurement only.
	Progress func(Event)
	// Ready is called when all candidates are on the card, before the measurement starts. Default: not called.
	Ready func()
}

// Compare measures one pass through the products, with the variants' weights and with a copy of the baseline's weights,
// against the baseline. Every candidate must have products of the same shapes in the same order. All candidates are on
// the card at once.
//
// All candidates run in the same memory: each is copied there before its windows, so addresses do not affect the
// ratios. The common memory has the size of the baseline. Candidates run in their own memory if [Candidate].Apart is
// set, or if the layout of their codes or scales differs from the baseline's.
//
// Errors: [gemm.ErrNotFinite] if operands or results are not finite, and another error if results are wrong; nothing is
// measured in either case. Once the measurement has started, the result is never nil: after an error it holds the
// measurements so far. When the context ends, Compare returns at once. The card's memory is then freed when the machine
// is closed.
func Compare(ctx context.Context, m Machine, baseline Candidate, variants []Candidate, o Options) (r *Result, err error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	var files []string
	for _, c := range append([]Candidate{baseline}, variants...) {
		for _, f := range c.Files {
			if !slices.Contains(files, f) {
				files = append(files, f)
			}
		}
	}
	err = weights.Guard(strings.Join(files, ", "), func() error {
		r, err = compare(ctx, m, baseline, variants, o)
		return err
	})
	return r, err
}

func compare(ctx context.Context, m Machine, baseline Candidate, variants []Candidate, o Options) (*Result, error) {
	if len(baseline.Products) == 0 {
		return nil, fmt.Errorf("%s: no products to measure", baseline.Name)
	}
	null := Candidate{Name: baseline.Name + " (copy)", Products: baseline.Products}
	all := append([]Candidate{baseline, null}, variants...)
	if err := sameProblems(all); err != nil {
		return nil, err
	}
	on := cuda.Options{Cold: o.Cold, Stack: 1}
	if o.Cold { // sized for the smallest candidate, so that all have equal stacks and copies
		least := bytesOf(baseline.Products)
		for _, c := range variants {
			least = min(least, bytesOf(c.Products))
		}
		on.Stack = gemm.Stack(len(baseline.Products), least)
		on.ColdBytes = on.Stack * least
	}
	r := &Result{Platform: m.Platform(), Simulated: m.Platform() == nil, Cold: on.Cold, Stack: on.Stack, SameMemory: true}
	put := &resident{}
	defer func() {
		if ctx.Err() == nil || r.Result == nil { // otherwise closing would wait for the card's queue; the machine's Close frees the memory
			put.close()
		}
	}()
	for i, c := range all {
		found, err := put.add(ctx, m, c, on)
		if err != nil {
			return nil, roomFor(err, len(all), baseline)
		}
		r.check(found)
		on.Repeat = repeats(put.batches[0]) // so that an execution has the same number of passes for all candidates
		if o.Progress != nil {
			o.Progress(Event{Stage: "prepare", Done: int64(i + 1), Total: int64(len(all))})
		}
	}
	for _, b := range put.apart {
		r.Apart = append(r.Apart, b.Name())
	}
	if o.Ready != nil {
		o.Ready()
	}
	r.describe(baseline.Products, put.memory.place)
	o.Meter.Clock, o.Meter.Self = m.Clock(), os.Getpid()
	if o.Progress != nil {
		o.Meter.Progress = o.Progress
	}
	if err := r.meter(ctx, m.Card(), put, o); r.Result == nil {
		return nil, err
	} else if err != nil || len(o.Duties) < 2 {
		return r, err
	}
	o.Meter.SelfTest = r.SelfTest
	for _, duty := range o.Duties[1:] {
		other := *r
		o.Duties, other.AtDuty = []float64{duty}, nil
		err := other.meter(ctx, m.Card(), put, o)
		if other.Result != nil {
			r.AtDuty = append(r.AtDuty, &other)
		}
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// meter measures the candidates at the first duty. The result is nil if nothing was measured.
func (r *Result) meter(ctx context.Context, card power.Card, put *resident, o Options) error {
	r.Result = nil
	if len(o.Duties) > 0 {
		o.Meter.Duty = o.Duties[0]
	}
	meter, err := power.NewMeter(card, o.Meter)
	if err != nil {
		return err
	}
	if r.Result, err = meter.Compare(ctx, put.loads); r.Result == nil {
		return err
	}
	first, baseline := put.memory.place, put.loads.Baseline.Name()
	r.Per(first.Passes() * r.Stack)
	for _, b := range put.apart {
		same := slices.Equal(b.Kernels(), first.Kernels())
		switch forced := slices.Contains(put.forced, b); {
		case forced && !same:
			r.Warn("%s uses different kernels from %s, and has its own memory: the kernels also change its ratios, and memory addresses change its ratios by some tenths of a per cent", b.Name(), baseline)
		case forced:
			r.Warn("%s ran in its own memory, because its weights have another type or form than %s's: memory addresses "+
				"change its ratios by some tenths of a per cent", b.Name(), baseline)
		case !same:
			r.Invalidate("%s and %s run different kernels, so the ratios show more than the difference in the weights", b.Name(), baseline)
		}
	}
	if r.Baseline.Seconds > 0 {
		r.Teraflops = r.Operations / r.Baseline.Seconds / 1e12
	}
	return err
}

func bytesOf(products []cuda.Product) (bytes int) {
	for _, p := range products {
		bytes += p.W.Stored()
	}
	return bytes
}

// sameProblems returns an error if candidates have products of different shapes. Types and roles may differ; the
// kernels then differ as well.
func sameProblems(all []Candidate) error {
	first := all[0]
	for _, c := range all[1:] {
		if len(c.Products) != len(first.Products) {
			noun := map[bool]string{false: "layers", true: "layer"}[len(first.Products) == 1]
			return fmt.Errorf("%s has %d %s and %s has %d, but only sources with the same products can be compared: choose layers that both have", first.Name, len(first.Products), noun, c.Name, len(c.Products))
		}
		for i, p := range c.Products {
			q := first.Products[i]
			if a, b := p.Problem, q.Problem; a.M != b.M || a.N != b.N || a.K != b.K {
				return fmt.Errorf("%s of %s is %v, but %s of %s is %v: only sources with the same products can be compared", q.Name, first.Name, q.Problem, p.Name, c.Name, p.Problem)
			}
		}
	}
	return nil
}

// roomFor adds the size of a comparison to an out-of-memory error.
func roomFor(err error, candidates int, c Candidate) error {
	if !errors.Is(err, cuda.ErrOutOfMemory) {
		return err
	}
	bytes, seen := 0, map[*byte]bool{}
	for _, p := range c.Products {
		bytes += p.W.Stored()
		if !seen[&p.X.Data[0]] {
			bytes += len(p.X.Data)
		}
		seen[&p.X.Data[0]] = true
	}
	return fmt.Errorf("%w; all %d candidates, of about %.3g GB each, must fit on the card together: compare fewer candidates, layers or tokens", err, candidates, float64(bytes)/1e9)
}

// check records the worst deviation among a candidate's results.
func (r *Result) check(found []gemm.Deviation) {
	for _, d := range found {
		if d.Compared == 0 {
			continue
		}
		if r.Deviation == nil || d.Worst > r.Deviation.Worst {
			r.Deviation = &d
		}
	}
}
