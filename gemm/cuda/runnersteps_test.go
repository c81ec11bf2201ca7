package cuda_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/cuda/runner"
	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// TestRunnerSteps: a decode step attends the cache with one row a sequence; all steps are replayed and freed. Heads of
// common sizes have kernels of their own, with BF16 and FP16.
func TestRunnerSteps(t *testing.T) {
	for _, c := range []struct {
		dtype   weights.DType
		changes string
		fast    bool
	}{
		{weights.F32, "", false}, {weights.BF16, "", false}, {weights.F32, `{"head_dim": 64}`, false}, {weights.BF16, `{"head_dim": 64}`, true},
		{weights.F16, `{"head_dim": 80}`, true}, {weights.BF16, `{"head_dim": 96}`, true}, {weights.F16, `{"head_dim": 128}`, true}, {weights.BF16, `{"head_dim": 256}`, true},
	} {
		card := cuda.NewFakeCard(t, 1<<30)
		m := newTiny(t, "llama-tiny", c.changes, c.dtype)
		on := m.mustLoad(t, card.Open(t), runner.Options{Resident: true})
		before := card.Kinds()
		for _, w := range []runner.Work{{Sequences: 3, Context: 5, Decode: true}, {Sequences: 3, Context: 5}} {
			s, err := on.NewStep(t.Context(), "step", w, nil)
			testmodel.OK(t, err)
			card.Launches()
			testmodel.OK(t, s.Start(2))
			testmodel.OK(t, s.Wait(t.Context()))
			launches := card.Launches()
			embed := named(launches, "embed_")
			if len(embed) != 2 || int(embed[0].Blocks[0]) != w.Tokens() || count(launches, "largest") != 2 {
				t.Errorf("%v: %v", w, embed)
			}
			kernel := map[bool]string{false: "attend_rows", true: "attend_cache"}[w.Decode]
			if c.fast {
				kernel = map[bool]string{false: "attention_prefill", true: "attention_decode"}[w.Decode]
			}
			if n := count(launches, kernel); n != 4 || count(launches, "att") != 4 {
				t.Errorf("%v, %v %s: %d launches of %s, %d of all kernels of attention", w, c.dtype, c.changes, n, kernel, count(launches, "att"))
			}
			if w.Decode {
				same(t, "places", ints(card, embed[0], "places", 3), []int32{4, 4, 4})
			}
			next, err := s.Next()
			if err != nil || len(next) != 3 || s.Work() != w {
				t.Error(next, err)
			}
			shapes := map[[3]int]bool{}
			for _, k := range s.Kernels() {
				shapes[[3]int{k.M, k.N, k.K}] = true
			}
			if !shapes[[3]int{128, 3, 48}] || !shapes[[3]int{200, w.Tokens(), 48}] || len(shapes) != 5 || len(s.Kernels()) != 5 { // gate and up; Q, K and V; down; O; head
				t.Errorf("%v: kernels of the shapes %v", w, shapes)
			}
			testmodel.OK(t, errors.Join(s.Close(), s.Close()))
		}
		after := card.Kinds()
		delete(before, "memory") // the model's buffers grow
		delete(before, "desc")   // and its products are described
		delete(before, "layout")
		delete(before, "event") // the timing of products keeps events
		for kind, n := range before {
			if after[kind] != n {
				t.Errorf("%d of kind %s are alive, %d before", after[kind], kind, n)
			}
		}
	}
}

// TestLinearStepReadsRealActivations: in every family, each layer of a step of linear layers alone reads and writes the
// memory that it does in the whole step.
func TestLinearStepReadsRealActivations(t *testing.T) {
	steps := 0
	for _, name := range synth.Names() {
		if !strings.HasSuffix(name, "-tiny") {
			continue
		}
		m := testmodel.Random(t, name, 1)
		layout := testmodel.LayoutOf(t, m)
		d, err := decoder.New(m, layout)
		if err != nil {
			continue // no decoder
		}
		card := cuda.NewFakeCard(t, 1<<30)
		on := tiny{m, layout, d}.mustLoad(t, card.Open(t), runner.Options{Resident: true})
		for _, w := range []runner.Work{{Sequences: 2, Context: 4, Decode: true}, {Sequences: 2, Context: 4}} {
			whole, err := on.NewStep(t.Context(), "whole", w, nil)
			testmodel.OK(t, err)
			steps++
			want := byWeight(card.Products())
			w.Linear = true
			linear, err := on.NewStep(t.Context(), "linear", w, whole)
			testmodel.OK(t, err)
			if got := byWeight(card.Products()); !maps.Equal(got, want) {
				t.Errorf("%s, %v: operands %v, in the whole step %v", name, w, got, want)
			}
			testmodel.OK(t, errors.Join(linear.Close(), whole.Close()))
		}
	}
	if steps < 20 {
		t.Errorf("%d steps", steps)
	}
}

// byWeight has the last product of each weight.
func byWeight(products []cuda.FakeProduct) map[cuda.Address]cuda.FakeProduct {
	last := map[cuda.Address]cuda.FakeProduct{}
	for _, p := range products {
		last[p.W] = p
	}
	return last
}

// TestStepsRepeatTheFirstRoutes: replays of a step, and of a step that shares its buffers, give each expert the rows of the
// first run, whatever the routers choose later. They compute the routers.
func TestStepsRepeatTheFirstRoutes(t *testing.T) {
	card := cuda.NewFakeCard(t, 1<<30)
	device := card.Open(t)
	m := newTiny(t, "mixtral-tiny", "", weights.BF16)
	later := false
	card.Ran(func(l cuda.FakeLaunch) {
		if !strings.HasPrefix(l.Name, "route") {
			return
		}
		rows, used := int(l.Blocks[0]), l.Argument("used").(int)
		data := card.Memory(address(l, "chosen"), 4*rows*used)
		for i := range rows * used {
			expert := uint32(0) // all rows, but the last of the first runs
			if !later && i == rows*used-1 {
				expert = 1
			}
			binary.LittleEndian.PutUint32(data[4*i:], expert)
		}
	})
	work := runner.Work{Sequences: 3, Context: 4, Decode: true}
	step, err := m.mustLoad(t, device, runner.Options{Resident: true}).NewStep(t.Context(), "step", work, nil)
	testmodel.OK(t, err)
	defer step.Close()
	later = true
	other, err := m.mustLoad(t, device, runner.Options{Resident: true}).NewStep(t.Context(), "other", work, step)
	testmodel.OK(t, err)
	defer other.Close()
	for _, s := range []*runner.Step{step, other} {
		card.Launches()
		testmodel.OK(t, s.Start(1))
		testmodel.OK(t, s.Wait(t.Context()))
		launches := card.Launches()
		var rows []uint32
		for _, l := range named(launches, "gather_bf16") {
			rows = append(rows, l.Blocks[0])
		}
		same(t, "rows of the experts", rows, []uint32{5, 1, 5, 1})
		for _, l := range named(launches, "gather_bf16") {
			if l.Blocks[0] == 1 {
				same(t, "the second expert's row", ints(card, l, "rows", 1), []int32{2})
			}
		}
		if count(launches, "route") != 2 {
			t.Errorf("%d routers ran, want 2", count(launches, "route"))
		}
	}
}

// TestStepsShareBuffersOfOneShape: a step with the buffers of another must be of a model of the same sizes and types. A
// buffer that must grow, which a captured graph reads, is an error.
func TestStepsShareBuffersOfOneShape(t *testing.T) {
	card := cuda.NewFakeCard(t, 1<<30)
	device := card.Open(t)
	work := runner.Work{Sequences: 2, Context: 4, Decode: true}
	like, err := newTiny(t, "llama-tiny", "", weights.BF16).mustLoad(t, device, runner.Options{Resident: true}).NewStep(t.Context(), "a", work, nil)
	testmodel.OK(t, err)
	defer like.Close()
	for _, c := range []struct {
		changes string
		dtype   weights.DType
		exact   bool
	}{
		{"", weights.F32, false}, {"", weights.BF16, true}, {`{"intermediate_size": 256}`, weights.BF16, false},
		{`{"num_key_value_heads": 6}`, weights.BF16, false}, {`{"num_hidden_layers": 3}`, weights.BF16, false}, {`{"vocab_size": 256}`, weights.BF16, false},
	} {
		other := newTiny(t, "llama-tiny", c.changes, c.dtype).mustLoad(t, device, runner.Options{Resident: true, Exact: c.exact})
		_, err := other.NewStep(t.Context(), "b", work, like)
		testmodel.WantError(t, err, "b: the two models differ in shapes, type or card")
	}
	// DeepSeek's short vectors are in no size of the attention's heads.
	short := newTiny(t, "deepseek_v3-tiny", `{"first_k_dense_replace": 3}`, weights.BF16).mustLoad(t, device, runner.Options{Resident: true})
	first, err := short.NewStep(t.Context(), "a", work, nil)
	testmodel.OK(t, err)
	defer first.Close()
	long := newTiny(t, "deepseek_v3-tiny", `{"first_k_dense_replace": 3, "kv_lora_rank": 256}`, weights.BF16).mustLoad(t, device, runner.Options{Resident: true})
	_, err = long.NewStep(t.Context(), "b", work, first)
	testmodel.WantError(t, err, `b: graph b: `, `buffer "short" must grow`)
	same, err := short.NewStep(t.Context(), "b", work, first)
	testmodel.OK(t, err)
	testmodel.OK(t, same.Close())
}

// TestRotateMovesWeights: after Rotate, each model's memory holds the weights of the model before it. Other memory does not change.
func TestRotateMovesWeights(t *testing.T) {
	card := cuda.NewFakeCard(t, 1<<30)
	device := card.Open(t)
	var all []*runner.Model
	weightsOf := func(m *runner.Model) (data [][]byte) {
		s, err := m.NewStep(t.Context(), "s", runner.Work{Sequences: 1, Context: 4}, nil)
		testmodel.OK(t, err)
		defer s.Close()
		all := byWeight(card.Products())
		for _, w := range slices.Sorted(maps.Keys(all)) {
			data = append(data, slices.Clone(card.Memory(w, 64)))
		}
		return data
	}
	equal := func(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) }
	var before [][][]byte
	for seed := range uint64(3) {
		folder := testmodel.Folder(t, testmodel.Config(t, "llama-tiny", ""), synth.Options{Seed: seed + 1, DType: weights.BF16})
		m := testmodel.Open(t, folder)
		layout := testmodel.LayoutOf(t, m)
		d, err := decoder.New(m, layout)
		testmodel.OK(t, err)
		on := tiny{m, layout, d}.mustLoad(t, device, runner.Options{Resident: true})
		all, before = append(all, on), append(before, weightsOf(on))
	}
	if len(before[0]) < 9 || equal(before[0], before[1]) {
		t.Fatalf("%d products: this test tests nothing", len(before[0]))
	}
	testmodel.OK(t, runner.Rotate(t.Context(), all...))
	for i, m := range all {
		if !equal(weightsOf(m), before[(i+2)%3]) {
			t.Errorf("model %d does not hold the weights of the one before", i)
		}
	}
	other := newTiny(t, "llama-tiny", `{"intermediate_size": 256}`, weights.BF16).mustLoad(t, device, runner.Options{Resident: true})
	testmodel.WantError(t, runner.Rotate(t.Context(), all[0], other), "the models differ in shapes, type or card, so their weights cannot be exchanged")
	closed := newTiny(t, "llama-tiny", "", weights.BF16).mustLoad(t, device, runner.Options{Resident: true})
	testmodel.OK(t, closed.Close())
	testmodel.WantError(t, runner.Rotate(t.Context(), all[0], closed), "the model was closed")
}

// TestStepsAreFinite: a step whose logits are NaN is refused, because its energy would not be representative.
func TestStepsAreFinite(t *testing.T) {
	card := cuda.NewFakeCard(t, 1<<30)
	on := newTiny(t, "llama-tiny", "", weights.F16).mustLoad(t, card.Open(t), runner.Options{Resident: true})
	card.Ran(func(l cuda.FakeLaunch) {
		if l.Name == "largest" { // of NaN it finds none
			binary.LittleEndian.PutUint32(card.Memory(address(l, "token"), 8)[4:], math.MaxInt32)
		}
	})
	_, err := on.NewStep(t.Context(), "s", runner.Work{Sequences: 2, Context: 4}, nil)
	testmodel.WantError(t, err, "s: the logits of sequence 1 are not finite in FP16")
}

// TestStepIsCancelled: a cancelled preparation of a step ends between two blocks and frees its memory.
func TestStepIsCancelled(t *testing.T) {
	card := cuda.NewFakeCard(t, 1<<30)
	on := newTiny(t, "llama-tiny", "", weights.F32).mustLoad(t, card.Open(t), runner.Options{Resident: true})
	before := card.Kinds()["memory"]
	for _, w := range []runner.Work{{Sequences: 2, Context: 4}, {Sequences: 2, Context: 4, Decode: true}} {
		ctx, cancel := context.WithCancel(t.Context())
		card.Ran(func(cuda.FakeLaunch) { cancel() })
		_, err := on.NewStep(ctx, "s", w, nil)
		card.Ran(nil)
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if n := count(card.Launches(), "place_"); n > 1 {
			t.Errorf("%v: %d blocks", w, n)
		}
		if n := card.Kinds()["memory"]; n != before {
			t.Errorf("%v: %d allocations, %d before", w, n, before)
		}
	}
}

// TestStepKeepsNoBuffers: the buffers that filled a step's cache are freed; they are larger than the step's own. The model keeps
// a buffer for the timing of products, which float32 activations do not need.
func TestStepKeepsNoBuffers(t *testing.T) {
	card := cuda.NewFakeCard(t, 1<<30)
	on := newTiny(t, "llama-tiny", "", weights.F32).mustLoad(t, card.Open(t), runner.Options{Resident: true, Exact: true})
	before := card.Kinds()["memory"]
	s, err := on.NewStep(t.Context(), "s", runner.Work{Sequences: 2, Context: 8, Decode: true}, nil)
	testmodel.OK(t, err)
	testmodel.OK(t, s.Close())
	if n := card.Kinds()["memory"]; n != before {
		t.Errorf("%d allocations, %d before", n, before)
	}
}

// TestProductsAreTimedAgain: a product whose timing failed is timed by the next step.
func TestProductsAreTimedAgain(t *testing.T) {
	card := cuda.NewFakeCard(t, 1<<30)
	on := newTiny(t, "llama-tiny", "", weights.BF16).mustLoad(t, card.Open(t), runner.Options{Resident: true})
	count := func(w runner.Work) int {
		card.Products()
		s, err := on.NewStep(t.Context(), "s", w, nil)
		testmodel.OK(t, err)
		testmodel.OK(t, s.Close())
		return len(card.Products())
	}
	count(runner.Work{Sequences: 1, Context: 2}) // the head's product is the same in all
	want := count(runner.Work{Sequences: 1, Context: 3})
	card.Fail("cuEventRecord", 0)
	_, err := on.NewStep(t.Context(), "s", runner.Work{Sequences: 1, Context: 4}, nil)
	testmodel.WantError(t, err, "cuEventRecord")
	card.Heal("cuEventRecord")
	if got := count(runner.Work{Sequences: 1, Context: 4}); got != want {
		t.Errorf("%d products, want %d", got, want)
	}
}
