package card

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/clitest"
	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// runCard runs one of the commands of this package, with flags first.
func runCard(ctx context.Context, args ...string) ([]byte, error) {
	return clitest.Run(ctx, []*cli.Command{Measure, Calibrate, Reproduce}, args...)
}

// printed runs a command and decodes its JSON output.
func printed(t *testing.T, args ...string) map[string]any {
	t.Helper()
	stdout, err := runCard(t.Context(), args...)
	if err != nil && !errors.Is(err, exit.ErrShort) {
		t.Fatalf("%v: %v", args, err)
	}
	var d map[string]any
	if err := json.Unmarshal(stdout, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestCardsAsBefore: the output for a card among several equals the output for the card alone.
func TestCardsAsBefore(t *testing.T) {
	args := []string{"measure", "--shape", "64x64x64", "--time", "10s", "--json", "--device"}
	alone, several := printed(t, append(args, "simulated")...), printed(t, append(args, "simulated,simulated,simulated")...)
	delete(several, "invalid") // few blocks fit into ten seconds
	cards := several["cards"].([]any)
	if len(cards) != 3 || len(several) != 3 {
		t.Fatalf("%d cards, %d keys", len(cards), len(several))
	}
	first := cards[0].(map[string]any)
	if first["device"] != "simulated 1" {
		t.Errorf("the card's name is %v", first["device"])
	}
	delete(first, "device")
	for _, d := range []map[string]any{alone, first} {
		delete(d, "date")
	}
	if d := cmp.Diff(alone, first); d != "" {
		t.Error(d)
	}
	if cmp.Equal(cards[1].(map[string]any)["blocks"], first["blocks"]) {
		t.Error("two cards have the same noise")
	}
}

// cancelling cancels its context after a given number of started batches.
type cancelling struct {
	measure.Machine
	starts int
	cancel func()
}

func (m *cancelling) NewBatch(ctx context.Context, name string, products []cuda.Product, o cuda.Options) (measure.Batch, error) {
	b, err := m.Machine.NewBatch(ctx, name, products, o)
	return &cancellingBatch{b, m}, err
}

type cancellingBatch struct {
	measure.Batch
	of *cancelling
}

func (b *cancellingBatch) Start(n int) error {
	if b.of.starts--; b.of.starts == 0 {
		b.of.cancel()
	}
	return b.Batch.Start(n)
}

// measuring returns a command's context, and a small product to measure on two cards.
func measuring(t *testing.T) (c *cli.Context, cards machines, baseline measure.Candidate, variants []measure.Candidate) {
	t.Helper()
	cards, err := openMachines("simulated,simulated", 0)
	if err != nil {
		t.Fatal(err)
	}
	app := cli.NewApp()
	app.ErrWriter = &bytes.Buffer{}
	c = cli.NewContext(app, flag.NewFlagSet("", flag.ContinueOnError), nil)
	x := gemm.Matrix{DType: arith.BF16.Operand(), Rows: 8, Cols: 8, Data: make([]byte, 128)}
	w := gemm.Matrix{DType: arith.BF16.Operand(), Rows: 8, Cols: 8, Data: bytes.Repeat([]byte{1, 2, 3, 4, 9, 8, 7, 6}, 16)}
	p := cuda.Product{Name: "w", Problem: gemm.Problem{M: 8, N: 8, K: 8, Type: arith.BF16}, X: x, W: w}
	return c, cards, measure.Candidate{Name: "w", Products: []cuda.Product{p}}, []measure.Candidate{{Name: "same", Products: []cuda.Product{p}}}
}

// TestCancelledTogether: all cards stop, whatever they are doing, and the report has their measurements.
func TestCancelledTogether(t *testing.T) {
	for _, starts := range []int{5, 60, 200} {
		c, cards, baseline, variants := measuring(t)
		ctx, cancel := context.WithCancel(t.Context())
		c.Context = ctx
		var once sync.Once
		cards[1].Machine = &cancelling{cards[1].Machine, starts, func() { once.Do(cancel) }}
		r, err := measure.CompareOn(ctx, cards, baseline, variants, measure.Options{Meter: power.Options{Precision: 1e-9, Time: 1e15}}, nil)
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if r == nil || len(r.Cards) != 2 || r.Cards[0].Stopped != power.StoppedCancelled || r.Cards[1].Stopped != power.StoppedCancelled {
			t.Fatalf("results %+v", r)
		}
		var out bytes.Buffer
		c.App.Writer = &out
		if err := writeMeasured(c, r, "title", nil); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "note: the measurement was interrupted"); n != 2 {
			t.Errorf("after %d starts: %s", starts, out.String())
		}
		cancel()
	}
}

// TestCardsThatDiffer: the report names cards that differ. If the cards agree, it says so.
func TestCardsThatDiffer(t *testing.T) {
	ratio := func(name string, v float64) measure.Spread {
		differ := v > 0.91
		return measure.Spread{Name: name, Differ: &differ, RelativeEnergy: &measure.Range{Smallest: 0.9, Largest: v, SmallestCard: "card 3", LargestCard: "card 0"},
			Joules: &measure.Range{Smallest: 1, Largest: 1.1, SmallestCard: "card 0", LargestCard: "card 3"}, Clock: &measure.Range{Smallest: 1500.2, Largest: 1499.8}}
	}
	base := measure.Spread{Name: "before", Joules: &measure.Range{Smallest: 0.98, Largest: 1.1, SmallestCard: "card 0", LargestCard: "card 3"}}
	for _, c := range []struct {
		loads []measure.Spread
		want  []string
	}{
		{[]measure.Spread{base, ratio("a", 0.905), ratio("b", 0.909)}, []string{"cards: the cards agree within their intervals\n", "  1500  ", "before takes 0.980 J per pass on card 0 and 1.100 J on card 3: 12.2 % more"}},
		{[]measure.Spread{base, ratio("a", 0.905), ratio("b", 0.95)}, []string{"cards: b: energy changes by −10.00 % on card 3 and by −5.00 % on card 0, and the difference is\n  larger than the intervals explain\n", "−10.00 … −5.00 %", "differ\n"}},
		{[]measure.Spread{base, {Name: "c", RelativeEnergy: &measure.Range{Smallest: 0.9, Largest: 0.9}}}, []string{"c: whether the cards agree is unknown", "−10.00 %"}},
		{[]measure.Spread{{Name: "before"}, {Name: "d"}}, []string{"d"}},
	} {
		var out bytes.Buffer
		printSpreads(&out, "weights", c.loads)
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no %q in\n%s", want, out.String())
			}
		}
		if agree := strings.Contains(out.String(), "agree within"); agree != strings.Contains(c.want[0], "agree within") {
			t.Errorf("they agree: %v\n%s", agree, out.String())
		}
	}
}
