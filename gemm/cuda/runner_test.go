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

// The tests of runner*_test.go run package runner on the fake card, which keeps uploaded data and the arguments of every launch,
// but computes nothing.

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

// count returns the number of launches of a kernel whose name begins so.
func count(launches []cuda.FakeLaunch, name string) int { return len(named(launches, name)) }

func named(launches []cuda.FakeLaunch, name string) (all []cuda.FakeLaunch) {
	for _, l := range launches {
		if strings.HasPrefix(l.Name, name) {
			all = append(all, l)
		}
	}
	return all
}

// address returns the argument of a pointer.
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
