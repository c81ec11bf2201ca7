package collective

import (
	"context"
	"fmt"
	"os"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/progress"
)

// Result is the energy of a collective between all cards of a host, and of products that run at the same time. Joules, watts and
// seconds are totals over all cards for one pass through the products, one collective, or one of each.
type Result struct {
	Operation cuda.Collective `json:"collective"`
	// Bytes is the collective's size by the definition of nccl-tests; see [Bandwidth].
	Bytes     int64        `json:"bytes"`
	Library   string       `json:"library,omitempty"` // NCCL's version
	Simulated bool         `json:"simulated,omitempty"`
	Cards     []power.Info `json:"cards"`
	// Alone compares the collective in two sets of buffers. Products has every candidate without the collective, and Both has
	// every candidate while the collective runs.
	Alone    *power.Result `json:"alone"`
	Products *power.Result `json:"products"`
	Both     *power.Result `json:"both"`
	// Bandwidth is the bandwidth of the collective alone.
	Bandwidth *Bandwidth `json:"bandwidth,omitempty"`
	// Hidden is the time that the baseline saves if products and collective run at once instead of one after the other. It is a
	// share of the shorter of the two times.
	Hidden *float64 `json:"hidden_share,omitempty"`
}

// Options are the options of [Host.Compare].
type Options struct {
	// Meter has the options of each of the three comparisons, such as Time.
	Meter power.Options
	// Progress is called with the metering's progress. Default: not called.
	Progress func(progress.Event)
}

// Compare measures a collective of the given number of bytes, products with the baseline's and the variants' weights, and both at
// once. It first checks the results of products and of the collective: sums of small integers must be exact. The collective's
// data are random BF16 values from normal(0,1). After an error the result has the completed comparisons; it is nil if there are
// none.
func (h *Host) Compare(ctx context.Context, op cuda.Collective, bytes int64, baseline measure.Candidate, variants []measure.Candidate, o Options) (*Result, error) {
	if err := h.prepare(ctx, append([]measure.Candidate{baseline}, variants...), op, bytes); err != nil {
		return nil, err
	}
	r := &Result{Operation: op, Bytes: bytes, Library: h.backend.library()}
	for _, m := range h.Machines {
		r.Cards, r.Simulated = append(r.Cards, m.Card().Info()), m.Platform() == nil
	}
	o.Meter.Clock, o.Meter.Self, o.Meter.Progress = h.joint, os.Getpid(), o.Progress
	run := func(into **power.Result, loads power.Loads) (err error) {
		m, err := power.NewMeter(h.joint, o.Meter)
		if err != nil {
			return err
		}
		if *into, err = m.Compare(ctx, loads); *into != nil {
			o.Meter.SelfTest = (*into).SelfTest
		}
		return err
	}
	loads := func(buffers int) power.Loads {
		l := power.Loads{Baseline: h.backend.load(baseline.Name, 0, buffers), Null: h.backend.load(baseline.Name+" (copy)", 0, buffers)}
		for i, v := range variants {
			l.Variants = append(l.Variants, h.backend.load(v.Name, i+1, buffers))
		}
		return l
	}
	err := run(&r.Products, loads(-1))
	if err == nil {
		name := string(op)
		err = run(&r.Alone, power.Loads{Baseline: h.backend.load(name, -1, 0), Null: h.backend.load(name+" (other buffers)", -1, 1)})
	}
	if err == nil {
		err = run(&r.Both, loads(0))
	}
	if r.Products == nil {
		return nil, err
	}
	r.derive()
	return r, err
}

// prepare checks the size and prepares products and the collective.
func (h *Host) prepare(ctx context.Context, all []measure.Candidate, op cuda.Collective, bytes int64) error {
	if bytes < int64(16*len(h.Machines)) || bytes%int64(16*len(h.Machines)) != 0 {
		return fmt.Errorf("a collective of %d bytes for %d cards: give a positive multiple of %d bytes", bytes, len(h.Machines), 16*len(h.Machines))
	}
	return h.backend.prepare(ctx, all, op, bytes)
}

// derive computes Bandwidth and Hidden from the comparisons.
func (r *Result) derive() {
	if r.Alone == nil || r.Alone.Baseline.Seconds <= 0 {
		return
	}
	alone, products := r.Alone.Baseline.Seconds, r.Products.Baseline.Seconds
	b := BandwidthOf(r.Operation, r.Bytes, len(r.Cards), alone)
	r.Bandwidth = &b
	if r.Both != nil && r.Both.Baseline.Seconds > 0 && products > 0 {
		hidden := (alone + products - r.Both.Baseline.Seconds) / min(alone, products)
		r.Hidden = &hidden
	}
}

// Valid reports whether all three comparisons were completed and are valid.
func (r *Result) Valid() bool {
	for _, one := range []*power.Result{r.Alone, r.Products, r.Both} {
		if one == nil || !one.Valid {
			return false
		}
	}
	return true
}
