package measure_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/operand"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
)

func simulated(names ...string) (cards []measure.Named) {
	for i, name := range names {
		o := power.DefaultSim()
		o.Seed = uint64(i) + 1
		cards = append(cards, measure.Named{Name: name, Machine: measure.Simulated(o)})
	}
	return cards
}

// batches records the batches that are uploaded to a card.
type batches struct {
	measure.Machine
	mu      sync.Mutex
	layers  []int // products of each batch
	refused int   // batches of more products than this have no room; 0: all have
}

func (m *batches) NewBatch(ctx context.Context, name string, products []cuda.Product, o cuda.Options) (measure.Batch, error) {
	m.mu.Lock()
	m.layers = append(m.layers, len(products))
	m.mu.Unlock()
	if m.refused > 0 && len(products) > m.refused {
		return nil, fmt.Errorf("batch %s: %w", name, cuda.ErrOutOfMemory)
	}
	return m.Machine.NewBatch(ctx, name, products, o)
}

var quick = power.Options{Time: time.Second}

// TestModels measures a total and a row for each kind in every phase, each of all its layers.
func TestModels(t *testing.T) {
	before, after := testmodel.Random(t, "llama-tiny", 1), testmodel.Random(t, "llama-tiny", 2)
	cards := simulated("card 0")
	seen := &batches{Machine: cards[0].Machine}
	cards[0].Machine = seen
	stages := map[string]bool{}
	r, err := measure.Models(t.Context(), cards, before, after, measure.ModelOptions{
		Operands: operand.Options{Seed: 3, Streaming: true}, Workload: cost.Workload{Prefill: 0.25, Decode: 0.75}, Meter: quick,
		Progress: func(card string, e measure.Event) {
			if card != "" {
				t.Errorf("a single card is called %q", card)
			}
			stages[e.Stage] = true
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	e := r.Cards[0].ModelEnergy
	if len(r.Cards) != 1 || r.Several() || !r.Measured() || e.Role != cost.Streaming || e.X != "normal(0,1)" || !e.Simulated || len(e.Phases) != 2 {
		t.Fatalf("%+v", e)
	}
	mixed := 0.0
	for i, p := range e.Phases {
		if p.Phase != []string{"prefill", "decode"}[i] || p.Tokens != []int{8192, 16}[i] || p.Total.Layers != 15 || len(p.Layers) != 8 {
			t.Errorf("%+v", p)
		}
		layers := 0
		for _, row := range p.Layers {
			layers += row.Layers
			if got := row.Run.Products[0].Problem; got.M != p.Tokens || !got.Streaming || row.Run.Cold != (p.Phase == "decode") {
				t.Errorf("%s %s: %v, cold %v", p.Phase, row.Kind, got, row.Run.Cold)
			}
		}
		if layers != 15 || !slices.IsSortedFunc(p.Layers, func(a, b measure.Row) int { return bytes.Compare([]byte(a.Kind), []byte(b.Kind)) }) {
			t.Errorf("%s: rows of %d layers", p.Phase, layers)
		}
		mixed += p.Share * p.Total.Relative
	}
	if d := mixed - e.Relative; d > 1e-12 || d < -1e-12 || e.Interval[0] >= e.Relative {
		t.Errorf("workload %v within %v, want %v", e.Relative, e.Interval, mixed)
	}
	if want := 2 * 9 * 3; len(seen.layers) != want || seen.layers[0] != 15 {
		t.Errorf("batches of %v layers", seen.layers)
	}
	for _, want := range []string{"prepare", "self-test", "warm-up", "prefill", "prefill lm_head", "decode", "decode mlp.up_proj"} {
		if !stages[want] {
			t.Errorf("no stage %q in %v", want, stages)
		}
	}
}

// TestModelsIdentical: nothing is put on a card for layers with the same bytes.
func TestModelsIdentical(t *testing.T) {
	cards := simulated("card 0")
	seen := &batches{Machine: cards[0].Machine}
	cards[0].Machine = seen
	r, err := measure.Models(t.Context(), cards, testmodel.Random(t, "gpt2-tiny", 1), testmodel.Random(t, "gpt2-tiny", 1), measure.ModelOptions{Meter: quick})
	if err != nil || len(seen.layers) > 0 || !r.Cards[0].Unchanged() || !r.Holds(true) || r.Cards[0].Relative != 0 {
		t.Errorf("batches %v, %+v (%v)", seen.layers, r.Cards[0], err)
	}
}

// TestModelsTooLarge: the total of a model that has no room is put together from its rows.
func TestModelsTooLarge(t *testing.T) {
	cards := simulated("card 0")
	cards[0].Machine = &batches{Machine: cards[0].Machine, refused: 3}
	r, err := measure.Models(t.Context(), cards, testmodel.Random(t, "llama-tiny", 1), testmodel.Random(t, "llama-tiny", 2), measure.ModelOptions{Meter: quick})
	if err != nil {
		t.Fatal(err)
	}
	p := r.Cards[0].Phases[0]
	if !p.TooLarge || p.Total == nil || p.Total.Run != nil || p.Total.Layers != 15 || len(p.Layers) != 8 || r.Cards[0].Relative != p.Total.Relative {
		t.Errorf("%+v", p)
	}
	low, high := 9., 0.
	for _, row := range p.Layers {
		low, high = min(low, row.Relative), max(high, row.Relative)
	}
	if p.Total.Relative < low || p.Total.Relative > high {
		t.Errorf("total %v of rows from %v to %v", p.Total.Relative, low, high)
	}
}

// TestModelsTogether: a card measures the same alone and among several, and totals lie between the cards' figures.
func TestModelsTogether(t *testing.T) {
	before, after := testmodel.Random(t, "llama-tiny", 1), testmodel.Random(t, "llama-tiny", 2)
	document := func(names ...string) (r *measure.ModelReport, doc map[string]any) {
		r, err := measure.Models(t.Context(), simulated(names...), before, after, measure.ModelOptions{Meter: power.Options{Time: 30 * time.Second}, TotalOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(r)
		if err == nil {
			err = json.Unmarshal(text, &doc)
		}
		if err != nil {
			t.Fatal(err)
		}
		return r, doc
	}
	alone, one := document("card 0")
	several, two := document("card 0", "card 1")
	if one["device"] != nil || one["gpu"] == nil || two["gpu"] != nil || two["cards"].([]any)[0].(map[string]any)["device"] != "card 0" {
		t.Errorf("%v\n%v", one, two)
	}
	a, b, c := alone.Cards[0].Relative, several.Cards[0].Relative, several.Cards[1].Relative
	if a != b || b == c || several.Total.Relative <= min(b, c) || several.Total.Relative >= max(b, c) || several.Spread == nil {
		t.Errorf("alone %v, together %v and %v: %+v", a, b, c, several.Total)
	}
}

// TestModelsCancelled: the report has what was measured until then.
func TestModelsCancelled(t *testing.T) {
	before, after := testmodel.Random(t, "llama-tiny", 1), testmodel.Random(t, "llama-tiny", 2)
	for _, at := range []string{"prepare", "prefill", "prefill lm_head"} {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := measure.Models(ctx, simulated("card 0"), before, after, measure.ModelOptions{Meter: quick, Progress: func(_ string, e measure.Event) {
			if e.Stage == at {
				cancel()
			}
		}})
		if !errors.Is(err, context.Canceled) || r == nil || r.Measured() != (at != "prepare") || at != "prefill" && r.Measured() && r.Cards[0].Phases[0].Total == nil {
			t.Errorf("at %s: %+v, %v", at, r, err)
		}
		cancel()
	}
}

// TestModelsMissing: a layer that the second model lacks ends everything before a card is used.
func TestModelsMissing(t *testing.T) {
	r, err := measure.Models(t.Context(), simulated("card 0"), testmodel.Random(t, "llama-tiny", 1), testmodel.Random(t, "gpt2-tiny", 1), measure.ModelOptions{})
	var missing *operand.NotFoundError
	if r != nil || !errors.As(err, &missing) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestNewCandidate: layers with the same number of inputs share activations in memory, and weights are not copied.
func TestNewCandidate(t *testing.T) {
	m := testmodel.Random(t, "llama-tiny", 1)
	set := operand.NewSet(operand.Options{Tokens: 4})
	products, err := set.Products(t.Context(), operand.Of(m))
	if err != nil {
		t.Fatal(err)
	}
	c, err := measure.NewCandidate(t.Context(), "c", products[0])
	if err != nil || c.Name != "c" || len(c.Products) != 15 || !slices.Equal(c.Files, []string{filepath.Join(m.Dir, "model.safetensors")}) {
		t.Fatalf("%s: %d products in %v (%v)", c.Name, len(c.Products), c.Files, err)
	}
	shared := map[int]*byte{}
	for _, p := range c.Products {
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
		w, _ := m.Tensor(p.Name)
		if x, seen := shared[p.Problem.K]; &w.Data[0] != &p.W.Data[0] || seen && x != &p.X.Data[0] {
			t.Errorf("%s: operands were copied", p.Name)
		}
		shared[p.Problem.K] = &p.X.Data[0]
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := measure.NewCandidate(ctx, "c", products[0]); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
