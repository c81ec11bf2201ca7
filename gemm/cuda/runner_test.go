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
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// The tests of this file run package runner on the pretended card: it holds what is uploaded and the arguments of every
// launch, but computes nothing.

// tiny is a small random model.
type tiny struct {
	model   *weights.Model
	layout  *arch.Layout
	decoder *decoder.Decoder
}

func newTiny(t *testing.T, name, changes string, d weights.DType) tiny {
	t.Helper()
	m := testmodel.Open(t, testmodel.Folder(t, testmodel.Config(t, name, changes), synth.Options{Seed: 1, DType: d}))
	layout := testmodel.LayoutOf(t, m)
	on, err := decoder.New(m, layout)
	testmodel.OK(t, err)
	return tiny{m, layout, on}
}

func (m tiny) load(ctx context.Context, d *cuda.Device, o runner.Options) (*runner.Model, error) {
	return runner.New(ctx, d, m.decoder, runner.Stored(m.model, m.layout), o)
}

func (m tiny) mustLoad(t *testing.T, d *cuda.Device, o runner.Options) *runner.Model {
	t.Helper()
	on, err := m.load(t.Context(), d, o)
	testmodel.OK(t, err)
	t.Cleanup(func() { testmodel.OK(t, on.Close()) })
	return on
}

var sequences = [][]int32{{5, 7, 9}, {11, 2}, {1, 3, 5, 7, 9}}

// count is the number of launches of a kernel whose name begins so.
func count(launches []cuda.FakeLaunch, name string) int { return len(named(launches, name)) }

func named(launches []cuda.FakeLaunch, name string) (all []cuda.FakeLaunch) {
	for _, l := range launches {
		if strings.HasPrefix(l.Name, name) {
			all = append(all, l)
		}
	}
	return all
}

// address is the argument of a pointer.
func address(l cuda.FakeLaunch, parameter string) cuda.Address {
	return l.Argument(parameter).(cuda.Address)
}

// ints reads n numbers that a pointer of a launch points at.
func ints(card cuda.FakeCard, l cuda.FakeLaunch, parameter string, n int) (v []int32) {
	data := card.Memory(address(l, parameter), 4*n)
	for ; len(data) > 0; data = data[4:] {
		v = append(v, int32(binary.LittleEndian.Uint32(data)))
	}
	return v
}

func floats(card cuda.FakeCard, l cuda.FakeLaunch, parameter string, n int) (v []float32) {
	for _, i := range ints(card, l, parameter, n) {
		v = append(v, math.Float32frombits(uint32(i)))
	}
	return v
}

func same[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestRunnerDescribesSequences: kernels get every row's token, place and length, and where the sequences begin.
func TestRunnerDescribesSequences(t *testing.T) {
	card := cuda.NewFakeCard(t, 1<<30)
	m := newTiny(t, "llama-tiny", "", weights.F32)
	on := m.mustLoad(t, card.Open(t), runner.Options{})
	pass, err := on.Pass(t.Context(), sequences, nil)
	testmodel.OK(t, err)
	defer pass.Close()
	launches := card.Launches()
	embed := named(launches, "embed_fp32")[0]
	if embed.Blocks[0] != 10 {
		t.Errorf("embed: %v", embed)
	}
	same(t, "tokens", ints(card, embed, "tokens", 10), []int32{5, 7, 9, 11, 2, 1, 3, 5, 7, 9})
	same(t, "places", ints(card, embed, "places", 10), []int32{0, 1, 2, 0, 1, 0, 1, 2, 3, 4})
	place := named(launches, "place_fp32")[0]
	same(t, "lengths", ints(card, place, "lengths", 10), []int32{3, 3, 3, 2, 2, 5, 5, 5, 5, 5})
	attend := named(launches, "attend_rows_fp32")
	if want := [3]uint32{1, 6, 3}; len(attend) != 2 || attend[0].Blocks != want {
		t.Errorf("attention: %v", attend)
	}
	same(t, "starts", ints(card, attend[0], "starts", 4), []int32{0, 3, 5, 10})
	loss := named(launches, "loss")[0]
	same(t, "targets", ints(card, loss, "targets", 10), []int32{7, 9, -1, 2, -1, 3, 5, 7, 9, -1})
	for i, nats := range pass.Scores.Nats {
		if len(nats) != len(sequences[i])-1 {
			t.Errorf("sequence %d has %d losses", i, len(nats))
		}
	}
}

// TestRunnerRotaryTables: a table has cosines, then sines, of every pair at every position, and both blocks share it.
func TestRunnerRotaryTables(t *testing.T) {
	card := cuda.NewFakeCard(t, 1<<30)
	m := newTiny(t, "llama-tiny", "", weights.F32)
	on := m.mustLoad(t, card.Open(t), runner.Options{Longest: 7})
	pass, err := on.Pass(t.Context(), sequences, nil)
	testmodel.OK(t, err)
	defer pass.Close()
	place := named(card.Launches(), "place_fp32")
	if len(place) != 2 || address(place[0], "turns") != address(place[1], "turns") || address(place[0], "long_turns") != 0 {
		t.Fatalf("%v", place)
	}
	a := m.decoder.Blocks[0][0][0].Parts[0].Attention
	pairs := len(a.Rotary.Radians)
	table := floats(card, place[0], "turns", 7*2*pairs)
	for p := range 7 {
		for i, r := range a.Rotary.Radians {
			c, s := table[p*2*pairs+i], table[p*2*pairs+pairs+i]
			angle := float64(float32(p) * r)
			if c != float32(math.Cos(angle)) || s != float32(math.Sin(angle)) {
				t.Fatalf("position %d, pair %d: %v and %v", p, i, c, s)
			}
		}
	}
	// Six queries, two keys and two values of twelve channels.
	same(t, "columns", ints(card, place[0], "columns", 10), []int32{0, 12, 24, 36, 48, 60, 72, 84, 96, 108})
	for parameter, want := range map[string]int{"stride": 120, "queries": 6, "kv": 2, "size": 12, "valueSize": 12, "first": 0, "pairs": 6, "neighbours": 0} {
		if got := place[0].Argument(parameter); got != want {
			t.Errorf("%s is %v, want %d", parameter, got, want)
		}
	}
}

// TestRunnerConvertsWeights: the embedding lies on the card in the type of activations, whatever type it is stored in.
func TestRunnerConvertsWeights(t *testing.T) {
	for _, stored := range []weights.DType{weights.F32, weights.BF16, weights.F16} {
		for _, exact := range []bool{false, true} {
			card := cuda.NewFakeCard(t, 1<<30)
			m := newTiny(t, "llama-tiny", "", stored)
			on := m.mustLoad(t, card.Open(t), runner.Options{Exact: exact})
			pass, err := on.Pass(t.Context(), sequences, nil)
			testmodel.OK(t, err)
			embed := named(card.Launches(), "embed_")[0]
			tensor := testmodel.TensorOf(t, m.model, "model.embed_tokens.weight")
			if exact || stored == weights.F32 {
				var want []float32
				for _, v := range testmodel.Values(tensor) {
					want = append(want, float32(v))
				}
				same(t, "values", floats(card, embed, "table", len(want)), want)
			} else if got := card.Memory(address(embed, "table"), len(tensor.Data)); !bytes.Equal(got, tensor.Data) {
				t.Errorf("%v: the embedding is not the stored one", stored)
			}
			if want := map[weights.DType]string{weights.F32: "fp32", weights.BF16: "bf16", weights.F16: "fp16"}[stored]; !exact && embed.Name != "embed_"+want {
				t.Errorf("%v runs %s", stored, embed.Name)
			}
			testmodel.OK(t, pass.Close())
			testmodel.OK(t, on.Close())
		}
	}
}

// TestRunnerSplitsSequences: a batch has at most 8192 tokens, and the rows of each count from its first sequence.
func TestRunnerSplitsSequences(t *testing.T) {
	card := cuda.NewFakeCard(t, 1<<30)
	m := newTiny(t, "llama-tiny", `{"num_hidden_layers": 1}`, weights.F32)
	on := m.mustLoad(t, card.Open(t), runner.Options{})
	long := make([]int32, 64)
	many := slices.Repeat([][]int32{long}, 129)
	many = append(many, []int32{3, 4, 5})
	pass, err := on.Pass(t.Context(), many, nil)
	testmodel.OK(t, err)
	defer pass.Close()
	launches := card.Launches()
	embed := named(launches, "embed_")
	if len(embed) != 2 || embed[0].Blocks[0] != 8192 || embed[1].Blocks[0] != 67 {
		t.Fatalf("batches %v", embed)
	}
	same(t, "the last tokens", ints(card, embed[1], "tokens", 67)[64:], []int32{3, 4, 5})
	loss := named(launches, "loss")
	same(t, "the last targets", ints(card, loss[1], "targets", 67)[64:], []int32{4, 5, -1})
	if n := pass.Scores.Nats; len(n) != 130 || len(n[128]) != 63 || len(n[129]) != 2 {
		t.Errorf("losses of %d sequences", len(n))
	}
}

// TestRunnerLoadsBlocks: blocks that do not fit are loaded for every pass, and freed.
func TestRunnerLoadsBlocks(t *testing.T) {
	m := newTiny(t, "llama-tiny", "", weights.F32)
	for _, c := range []struct {
		free     int
		resident bool
		want     bool
	}{{1 << 30, false, true}, {100_000, false, false}, {100_000, true, true}} {
		card := cuda.NewFakeCard(t, c.free)
		on := m.mustLoad(t, card.Open(t), runner.Options{Resident: c.resident})
		if on.Resident() != c.want {
			t.Errorf("%d bytes free, Resident %v: resident %v", c.free, c.resident, on.Resident())
		}
		var steps []int
		step := func(done, total int) error { steps = append(steps, done, total); return nil }
		first, err := on.Pass(t.Context(), sequences, step)
		testmodel.OK(t, err)
		same(t, "steps", steps, []int{1, 3, 2, 3, 3, 3})
		testmodel.OK(t, first.Close())
		before := card.Kinds()
		second, err := on.Pass(t.Context(), sequences, nil)
		testmodel.OK(t, err)
		testmodel.OK(t, errors.Join(second.Close(), second.Close()))
		if after := card.Kinds(); !maps.Equal(before, after) {
			t.Errorf("alive after a pass: %v, before: %v", after, before)
		}
		if _, err := on.NewStep(t.Context(), "s", runner.Work{Sequences: 1, Context: 2}, nil); !c.want && (err == nil || !strings.Contains(err.Error(), "s: the weights do not fit on the card")) {
			t.Error(err)
		}
	}
}

// TestRunnerNamesTheLayer: the first layer with outputs that are not finite is named.
func TestRunnerNamesTheLayer(t *testing.T) {
	card := cuda.NewFakeCard(t, 1<<30)
	on := newTiny(t, "llama-tiny", "", weights.F32).mustLoad(t, card.Open(t), runner.Options{})
	checks := 0
	card.Ran(func(l cuda.FakeLaunch) {
		if l.Name == "check_fp32" {
			if checks++; checks == 3 || checks == 4 { // of four linear layers of a block
				card.Memory(address(l, "flag"), 4)[0] = 1
			}
		}
	})
	_, err := on.Pass(t.Context(), sequences, nil)
	testmodel.WantError(t, err, `block 0, sequences from 0 on: tensor "model.layers.0.mlp.gate_proj.weight": the layer's outputs are not finite`)
	card.Ran(func(l cuda.FakeLaunch) {
		if l.Name == "loss" { // of the second token of the second sequence
			binary.LittleEndian.PutUint64(card.Memory(address(l, "nats"), 80)[8*3:], math.Float64bits(math.Inf(1)))
		}
	})
	_, err = on.Pass(t.Context(), sequences, nil)
	testmodel.WantError(t, err, "the loss in sequence 1 at position 0 is not finite")
}

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
// buffer that would move, which a captured graph reads, is an error.
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
	testmodel.WantError(t, err, `b: graph b: `, `buffer "short" would move`)
	same, err := short.NewStep(t.Context(), "b", work, first)
	testmodel.OK(t, err)
	testmodel.OK(t, same.Close())
}

// TestRotateMovesWeights: after an exchange each model's memory holds the bytes that the model before had, all others stay.
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

// TestStepsAreFinite: a step whose logits are NaN is refused: its energy would be that of no real step.
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

// TestObserveAfterAFailure: kernels of statistics that were not found are freed, and asked for again.
func TestObserveAfterAFailure(t *testing.T) {
	card := cuda.NewFakeCard(t, 1<<30)
	on := newTiny(t, "llama-tiny", "", weights.F32).mustLoad(t, card.Open(t), runner.Options{Exact: true})
	before := card.Kinds()["module"]
	o := runner.Observation{Each: func(runner.Gram) error { return nil }}
	for after := range 3 { // kernels
		card.Fail("cuModuleGetFunction", after)
		_, err := on.Observe(t.Context(), sequences, o, nil)
		testmodel.WantError(t, err, "gram.cu: kernel gram_")
		card.Heal("cuModuleGetFunction")
		if n := card.Kinds()["module"]; n != before {
			t.Errorf("%d modules, %d before", n, before)
		}
	}
	pass, err := on.Observe(t.Context(), sequences, o, nil)
	testmodel.OK(t, err)
	testmodel.OK(t, pass.Close())
}

// TestResidentWithHead: the head, which is on the card already, is not counted among the blocks that must fit.
func TestResidentWithHead(t *testing.T) {
	m := newTiny(t, "llama-tiny", "", weights.F32)
	bytes := 0
	for _, l := range m.decoder.Layers() {
		if l.Block < len(m.decoder.Blocks) {
			bytes += 4 * l.Inputs * l.Outputs
		}
	}
	for _, c := range []struct {
		free int
		want bool
	}{{(bytes/2 + 1) * 3, true}, {(bytes/2 - 1) * 3, false}} {
		if on := m.mustLoad(t, cuda.NewFakeCard(t, c.free).Open(t), runner.Options{}); on.Resident() != c.want {
			t.Errorf("%d bytes free, %d in blocks: resident %v", c.free, bytes, on.Resident())
		}
	}
}

// TestClosedIsRefused: what was closed gives an error, and no kernel gets its memory.
func TestClosedIsRefused(t *testing.T) {
	card := cuda.NewFakeCard(t, 1<<30)
	on, err := newTiny(t, "llama-tiny", "", weights.F32).load(t.Context(), card.Open(t), runner.Options{Exact: true})
	testmodel.OK(t, err)
	open, err := on.Pass(t.Context(), sequences, nil)
	testmodel.OK(t, err)
	closed, err := on.Pass(t.Context(), sequences, nil)
	testmodel.OK(t, err)
	testmodel.OK(t, closed.Close())
	card.Launches()
	refused := func(p, reference *runner.Pass, want string) {
		t.Helper()
		_, err := p.Divergence(t.Context(), reference)
		testmodel.WantError(t, err, want)
	}
	refused(open, closed, "the pass was closed")
	refused(closed, open, "the pass was closed")
	_, err = closed.Logits(t.Context())
	testmodel.WantError(t, err, "the pass was closed")
	_, _, err = closed.Changed(t.Context(), nil)
	testmodel.WantError(t, err, "the pass was closed")
	testmodel.WantError(t, closed.PerLayer(t.Context(), nil, nil), "the pass was closed")
	testmodel.OK(t, on.Close())
	refused(open, open, "the model was closed")
	_, err = on.Pass(t.Context(), sequences, nil)
	testmodel.WantError(t, err, "the model was closed")
	_, err = on.NewStep(t.Context(), "s", runner.Work{Sequences: 1, Context: 2}, nil)
	testmodel.WantError(t, err, "s: the model was closed")
	_, err = on.Observe(t.Context(), sequences, runner.Observation{}, nil)
	testmodel.WantError(t, err, "the model was closed")
	testmodel.OK(t, open.Close())
	if n := len(card.Launches()); n > 0 {
		t.Errorf("%d launches", n)
	}
}

// TestStepIsCancelled: a step that is prepared ends between two blocks, and frees its memory.
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

// TestStepKeepsNoBuffers: the buffers that filled a step's cache, which are larger than the step's own, are freed. Float32
// activations need no timing of products, whose buffer the model keeps.
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

// TestRunnerOnLessSharedMemory: heads of 256 channels run on a card with 99 KiB of shared memory, as served. The kernels of
// any head size have no room there, and the error says so.
func TestRunnerOnLessSharedMemory(t *testing.T) {
	card := cuda.NewFakeCard(t, 1<<30)
	card.Ada()
	device := card.Open(t)
	m := newTiny(t, "llama-tiny", `{"head_dim": 256}`, weights.BF16)
	on := m.mustLoad(t, device, runner.Options{Resident: true})
	pass, err := on.Pass(t.Context(), sequences, nil)
	testmodel.OK(t, err)
	testmodel.OK(t, pass.Close())
	_, err = m.load(t.Context(), device, runner.Options{Exact: true})
	testmodel.WantError(t, err, "kernel attend_rows_fp32: 101 KiB of shared memory for a block, on Fake: ")
}

func TestRunnerRefuses(t *testing.T) {
	card := cuda.NewFakeCard(t, 1<<30)
	device := card.Open(t)
	m := newTiny(t, "llama-tiny", "", weights.F32)
	before := card.Kinds()
	_, err := m.load(t.Context(), device, runner.Options{Longest: 65})
	testmodel.WantError(t, err, "sequences of 65 tokens: the model takes at most 64")
	_, err = m.load(t.Context(), device, runner.Options{Longest: -1})
	testmodel.WantError(t, err, "sequences of -1 tokens: give at least 1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.load(ctx, device, runner.Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if after := card.Kinds(); !maps.Equal(before, after) {
		t.Errorf("alive: %v, before: %v", after, before)
	}
	on := m.mustLoad(t, device, runner.Options{Longest: 4})
	for _, c := range []struct {
		tokens [][]int32
		want   string
	}{
		{nil, "no sequences of tokens"},
		{[][]int32{{1}}, "sequence 0 has 1 tokens"},
		{[][]int32{{1, 2}, {1, 128}}, "sequence 1, position 1: token 128 is outside the vocabulary"},
		{[][]int32{{1, 2}, {1, 2, 3, 4, 5}}, "sequence 1 has 5 tokens, the model was loaded for at most 4: set Options.Longest"},
	} {
		_, err := on.Pass(t.Context(), c.tokens, nil)
		testmodel.WantError(t, err, c.want)
	}
	for _, w := range []runner.Work{{Context: 1}, {Sequences: 1}, {Sequences: 1, Context: 5}} {
		_, err := on.NewStep(t.Context(), "s", w, nil)
		testmodel.WantError(t, err, "s: ", "the model was loaded for sequences of 1 to 4 tokens")
	}
	_, err = on.NewStep(t.Context(), "s", runner.Work{Sequences: 65536, Context: 2, Decode: true}, nil)
	testmodel.WantError(t, err, "s: decode, batch 65536, context 2: a step takes at most 65535 sequences")
	_, err = on.NewStep(t.Context(), "s", runner.Work{Sequences: 1, Context: 2, Linear: true}, nil)
	testmodel.WantError(t, err, "s: a step of linear layers alone")
	like, err := on.NewStep(t.Context(), "s", runner.Work{Sequences: 1, Context: 2}, nil)
	testmodel.OK(t, err)
	_, err = on.NewStep(t.Context(), "s", runner.Work{Sequences: 2, Context: 2}, like)
	testmodel.WantError(t, err, "s: prefill, 2 × 2 tokens shares no buffers with prefill, 1 × 2 tokens")
	testmodel.OK(t, like.Close())
	planted := errors.New("enough")
	if _, err := on.Pass(t.Context(), [][]int32{{1, 2}}, func(done, _ int) error { return planted }); !errors.Is(err, planted) {
		t.Error(err)
	}
	if _, err := on.Pass(ctx, [][]int32{{1, 2}}, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	a, err := on.Pass(t.Context(), [][]int32{{1, 2}}, nil)
	testmodel.OK(t, err)
	defer a.Close()
	b, err := on.Pass(t.Context(), [][]int32{{1, 3}}, nil)
	testmodel.OK(t, err)
	defer b.Close()
	_, err = a.Divergence(t.Context(), b)
	testmodel.WantError(t, err, "passes with the same tokens")
	card.NoCompiler()
	if _, err := m.load(t.Context(), device, runner.Options{}); !errors.Is(err, cuda.ErrNoCompiler) {
		t.Error(err)
	}
}

// TestRunnerFamilies: a pass of every family of decoders launches kernels on memory that is allocated.
func TestRunnerFamilies(t *testing.T) {
	families := 0
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
		families++
		card := cuda.NewFakeCard(t, 1<<30)
		on := tiny{m, layout, d}.mustLoad(t, card.Open(t), runner.Options{})
		a, err := on.Pass(t.Context(), sequences, nil)
		testmodel.OK(t, err)
		b, err := on.Pass(t.Context(), sequences, nil)
		testmodel.OK(t, err)
		if nats, err := b.Divergence(t.Context(), a); err != nil || nats != 0 {
			t.Errorf("%s: divergence %v, %v", name, nats, err)
		}
		if rows, err := b.Logits(t.Context()); err != nil || len(rows) != 10 || len(rows[0]) != d.Vocab {
			t.Errorf("%s: %d rows of logits, %v", name, len(rows), err)
		}
		testmodel.OK(t, errors.Join(a.Close(), b.Close(), on.Close()))
	}
	if families < 15 {
		t.Errorf("%d families", families)
	}
}

// Whichever call fails, at any time, everything is freed and the error says so.
func TestRunnerIsFreedAfterFailures(t *testing.T) {
	for _, name := range []string{"llama-tiny", "mixtral-tiny"} {
		m := newTiny(t, name, `{"num_hidden_layers": 1}`, weights.BF16)
		for _, call := range []string{"cuMemAlloc", "cuModuleLoadData", "cuModuleGetFunction", "cuLaunchKernel", "cublasLtMatmul", "cublasLtMatmulDescCreate",
			"cublasLtLayoutCreate", "cuCtxSynchronize", "nvrtcCompileProgram", "cuStreamEndCapture", "cuGraphInstantiate"} {
			if name == "mixtral-tiny" && (strings.HasPrefix(call, "cuGraph") || strings.HasPrefix(call, "cuStream")) {
				continue // a step of routed experts is refused
			}
			failures := 0
			for after := 0; ; after += 1 + after/8 {
				card := cuda.NewFakeCard(t, 1<<30)
				device := card.Open(t)
				before := card.Kinds()
				card.Fail(call, after)
				err := m.useOnce(t.Context(), device)
				card.Heal(call)
				if after := card.Kinds(); after["memory"] != before["memory"] || after["module"]+after["exec"]+after["desc"]+after["layout"]+after["program"]+after["graph"] != 0 {
					t.Errorf("%s: %s: alive: %v, before: %v", name, call, after, before)
				}
				if card.Failures() == 0 {
					testmodel.OK(t, err)
					break
				}
				failures++
				if call != "cublasLtMatmul" && err == nil { // a kernel that fails while it is timed is skipped
					t.Errorf("%s: %s failed after %d calls and nobody noticed", name, call, after)
				}
			}
			if failures == 0 {
				t.Errorf("%s was never called", call)
			}
		}
	}
}

// useOnce loads a model, runs a pass and a step, and closes all.
func (m tiny) useOnce(ctx context.Context, d *cuda.Device) (err error) {
	on, err := m.load(ctx, d, runner.Options{Resident: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, on.Close()) }()
	pass, err := on.Pass(ctx, sequences, nil)
	if err != nil {
		return err
	}
	if err := pass.Close(); err != nil || m.decoder.Family == "mixtral" {
		return err
	}
	s, err := on.NewStep(ctx, "step", runner.Work{Sequences: 2, Context: 4, Decode: true}, nil)
	if err != nil {
		return err
	}
	return s.Close()
}
