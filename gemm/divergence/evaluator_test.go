package divergence_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/gemm/divergence"
	"github.com/lowtoggle/lowtoggle/gemm/forward"
)

func TestTheModelDoesNotDivergeFromItself(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and the tests of workers share as much")
	}
	for name, m := range map[string]model{"trained": trained(t, 2, 20), "tied": tied(t)} {
		e := m.evaluator(t)
		var want []result
		for _, layer := range m.names() {
			want = append(want, result{layer, 0})
		}
		for _, base := range []divergence.Weights{nil, m.stored} {
			if diff := cmp.Diff(want, perLayer(t, e, base, m.stored)); diff != "" {
				t.Errorf("%s: each layer by itself: (-want +got)\n%s", name, diff)
			}
		}
		divergence, loss, interval, err := e.WholeModel(context.Background(), m.stored)
		if err != nil || divergence != 0 || loss != 0 || interval != [2]float64{} {
			t.Errorf("%s: whole model %v, %v, %v, %v, want nothing but zeros", name, divergence, loss, interval, err)
		}
	}
}

// TestWholeModelIsWhatForwardSays compares WholeModel with whole passes of package forward.
func TestWholeModelIsWhatForwardSays(t *testing.T) {
	m := trained(t, 3, 40)
	ctx, e, coarse := context.Background(), m.evaluator(t), grid(m.stored, 1./16)
	losses := func(w forward.Weights) *forward.Scores {
		s, err := m.Run(ctx, w, m.tokens, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	end := func(w forward.Weights) *forward.State {
		s, err := m.Start(ctx, w, m.tokens)
		for i := 0; i < m.Blocks() && err == nil; i++ {
			err = m.Block(ctx, i, w, s, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	own, err := m.Pass(ctx, m.stored, m.tokens, forward.PassOptions{Keep: forward.Keep{Bytes: -1}})
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := m.Divergence(ctx, own, end(coarse), coarse)
	if err != nil {
		t.Fatal(err)
	}
	before, after := losses(m.stored), losses(coarse)
	c, err := forward.Compare(before, after)
	if err != nil {
		t.Fatal(err)
	}
	divergence, loss, interval, err := e.WholeModel(ctx, coarse)
	if err != nil {
		t.Fatal(err)
	}
	if !(want > 0) || divergence != want {
		t.Errorf("divergence %v, want %v", divergence, want)
	}
	if loss != c.Difference || interval != [2]float64{c.Low, c.High} {
		t.Errorf("loss rises by %v in %v, want %+v", loss, interval, c)
	}
	if e.Loss() != before.Loss() {
		t.Errorf("the model's loss is %v, want %v", e.Loss(), before.Loss())
	}
}

func TestPerLayerIsWholeModelWithThatLayer(t *testing.T) {
	for name, m := range map[string]model{"trained": trained(t, 2, 20), "tied": tied(t)} {
		e, coarse := m.evaluator(t), grid(m.stored, 1./16)
		var want []result
		for _, layer := range m.names() {
			want = append(want, result{layer, wholeModel(t, e, only(coarse, layer))})
		}
		got := perLayer(t, e, nil, coarse)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-whole model +per layer)\n%s", name, diff)
		}
		for _, r := range got {
			if !(r.Nats > 0) {
				t.Errorf("%s: another %s diverges by %v, want more than 0", name, r.Layer, r.Nats)
			}
		}
	}
}

// TestBaseIsRespected evaluates with a base that has other layers, another norm and another embedding.
func TestBaseIsRespected(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and the tests of workers share as much")
	}
	m := trained(t, 2, 20)
	e, names := m.evaluator(t), m.names()
	const norm, embedding = "model.norm.weight", "model.embed_tokens.weight"
	base := only(grid(m.stored, 1./16), names[1], names[12], names[len(names)-1], norm, embedding)
	changed := grid(m.stored, 1./8)
	var want []result
	for _, layer := range names {
		want = append(want, result{layer, wholeModel(t, e, first(only(changed, layer), base))})
	}
	if diff := cmp.Diff(want, perLayer(t, e, base, changed)); diff != "" {
		t.Errorf("(-whole model +per layer)\n%s", diff)
	}
	// The divergence is from the model, not from the base.
	if got, want := perLayer(t, e, base, only(m.stored, names[0])), wholeModel(t, e, base); !(want > 0) || got[0].Nats != want {
		t.Errorf("the base itself diverges by %v, want %v", got, want)
	}
}

// TestLayersMayBeLeftOut also checks the tensors that are read from changed.
func TestLayersMayBeLeftOut(t *testing.T) {
	m := trained(t, 1, 10)
	e, names := m.evaluator(t), m.names()
	some := []string{names[2], names[9], names[10], names[len(names)-1]}
	var asked []string
	coarse := only(grid(m.stored, 1./16), some...)
	got := perLayer(t, e, nil, source(func(ctx context.Context, name string) ([]float32, error) {
		asked = append(asked, name)
		return coarse.Tensor(ctx, name)
	}))
	var layers []string
	for _, r := range got {
		layers = append(layers, r.Layer)
	}
	if !slices.Equal(layers, some) {
		t.Errorf("evaluated %v, want %v", layers, some)
	}
	if diff := cmp.Diff(names, asked); diff != "" {
		t.Errorf("asked for (-each layer once +got)\n%s", diff)
	}
}

func TestSameBitsWithAnyNumberOfWorkers(t *testing.T) {
	m := trained(t, 3, 30)
	coarse := grid(m.stored, 1./16)
	type all struct {
		PerLayer         []result
		Divergence, Loss float64
		Interval         [2]float64
	}
	evaluated := func(workers int) (a all) {
		m.Workers = workers
		e := m.evaluator(t)
		a.PerLayer = perLayer(t, e, nil, only(coarse, m.names()[3], m.names()[20]))
		var err error
		if a.Divergence, a.Loss, a.Interval, err = e.WholeModel(context.Background(), coarse); err != nil {
			t.Fatal(err)
		}
		return a
	}
	want := evaluated(1)
	for _, workers := range []int{2, 5} {
		if diff := cmp.Diff(want, evaluated(workers)); diff != "" {
			t.Errorf("%d workers: (-1 worker +this)\n%s", workers, diff)
		}
	}
}

func TestProgressCountsBlocksAndHead(t *testing.T) {
	m := tied(t)
	var got, want [][2]int
	_, err := divergence.New(context.Background(), m.Decoder, m.stored, m.tokens, divergence.Options{
		Progress: func(done, total int) { got = append(got, [2]int{done, total}) },
	})
	for i := range m.Blocks() + 1 {
		want = append(want, [2]int{i + 1, m.Blocks() + 1})
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("progress %v, %v, want %v", got, err, want)
	}
}
