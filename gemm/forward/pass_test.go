package forward_test

import (
	"context"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/weights"
)

// many are sequences of different lengths for several batches.
func many(vocab int) [][]int32 {
	lengths := make([]int, 150)
	for i := range lengths {
		lengths[i] = 2 + i*13%31
	}
	return sequences(vocab, append(lengths, slices.Repeat([]int{32}, 60)...)...)
}

func TestSameBitsWithAnyNumberOfWorkers(t *testing.T) {
	others := []int{5, 0}
	if testing.Short() {
		others = others[:1]
	}
	for _, test := range forms(t) {
		m, d := model(t, test.base, test.changes)
		tokens := many(64)
		d.Workers = 1
		want := run(t, d, forward.Stored(m), tokens)
		for _, workers := range others {
			d.Workers = workers
			if diff := cmp.Diff(want, run(t, d, forward.Stored(m), tokens)); diff != "" {
				t.Errorf("%s: %d workers: (-1 worker +this)\n%s", test.name, workers, diff)
			}
		}
	}
}

func TestSameBitsInAnyBatch(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and the tests of workers share as much")
	}
	for _, test := range forms(t) {
		m, d := model(t, test.base, test.changes)
		tokens := many(64)
		together := run(t, d, forward.Stored(m), tokens)
		for _, i := range []int{0, 17, len(tokens) - 1} {
			alone := run(t, d, forward.Stored(m), tokens[i:i+1])
			if diff := cmp.Diff(together.Nats[i], alone.Nats[0]); diff != "" {
				t.Errorf("%s: sequence %d: (-among others +alone)\n%s", test.name, i, diff)
			}
		}
	}
}

// kept are weights that give the same values every time.
type kept struct {
	forward.Weights
	values map[string][]float32
}

func (k kept) Tensor(ctx context.Context, name string) ([]float32, error) {
	if v := k.values[name]; v != nil {
		return v, nil
	}
	v, err := k.Weights.Tensor(ctx, name)
	k.values[name] = v
	return v, err
}

func TestWeightsAreOnlyRead(t *testing.T) {
	for _, test := range bases(t) {
		m, d := model(t, test.base, test.changes)
		w, tokens := kept{forward.Stored(m), map[string][]float32{}}, sequences(64, 9, 20)
		first := run(t, d, w, tokens)
		if diff := cmp.Diff(first, run(t, d, w, tokens)); diff != "" {
			t.Errorf("%s: (-first run +second)\n%s", test.name, diff)
		}
	}
}

func TestLossDependsOnTokensBefore(t *testing.T) {
	for _, test := range []struct {
		variant
		first int // token that the last loss depends on
	}{
		{variant{"llama", "llama-tiny", fields{"max_position_embeddings": 400}}, 0},
		{variant{"bloom", "bloom-tiny", nil}, 0},
		// Each of two layers looks 129 tokens back.
		{variant{"mistral", "mistral-tiny", fields{"max_position_embeddings": 400, "sliding_window": 130}}, 298 - 2*129},
	} {
		m, d := model(t, test.base, test.changes)
		tokens := sequences(64, 300) // longer than a run of queries
		whole := run(t, d, forward.Stored(m), tokens).Nats[0]
		for _, n := range []int{2, 125, 126, 127, 128, 253, 299} {
			part := run(t, d, forward.Stored(m), [][]int32{tokens[0][:n]}).Nats[0]
			if diff := cmp.Diff(whole[:n-1], part); diff != "" {
				t.Errorf("%s: the first %d tokens: (-of all +alone)\n%s", test.name, n, diff)
			}
		}
		for _, at := range []int{0, test.first - 1, test.first} {
			if at < 0 {
				continue
			}
			other := slices.Clone(tokens[0])
			other[at] ^= 1
			changes := run(t, d, forward.Stored(m), [][]int32{other}).Nats[0][298] != whole[298]
			if changes != (at >= test.first) {
				t.Errorf("%s: the last loss depends on token %d: %v", test.name, at, changes)
			}
		}
	}
}

func TestBlockByBlockIsRun(t *testing.T) {
	m, d := model(t, "llama-tiny", nil)
	w, tokens := forward.Stored(m), sequences(128, 20, 30)
	want := run(t, d, w, tokens)
	s, err := d.Start(t.Context(), w, tokens)
	if err != nil {
		t.Fatal(err)
	}
	for i := range d.Blocks() {
		aside := s.Clone()
		if err := d.Block(t.Context(), i, w, s, nil); err != nil {
			t.Fatal(err)
		}
		// Running the clone with another layer changes the clone's results, and not the original.
		other := changed{w, "model.layers.1.mlp.down_proj.weight", 1.5}
		for j := i; j < d.Blocks(); j++ {
			if err := d.Block(t.Context(), j, other, aside, nil); err != nil {
				t.Fatal(err)
			}
		}
		scores, err := d.Score(t.Context(), other, aside, nil)
		if err != nil {
			t.Fatal(err)
		}
		if cmp.Equal(scores, want) {
			t.Error("another down_proj gives the same losses")
		}
	}
	got, err := d.Score(t.Context(), w, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-Run +block by block)\n%s", diff)
	}
}

// TestLogitsInChunks: the vocabulary is so large that a batch's logits are computed in several parts.
func TestLogitsInChunks(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and the tests of workers share as much")
	}
	m, d := model(t, "llama-tiny", fields{"vocab_size": 30_000})
	tokens := sequences(30_000, slices.Repeat([]int{64}, 6)...)
	w := forward.Stored(m)
	together := run(t, d, w, tokens)
	for i := range tokens {
		alone := run(t, d, w, tokens[i:i+1]) // fits into a chunk
		if diff := cmp.Diff(together.Nats[i], alone.Nats[0]); diff != "" {
			t.Errorf("sequence %d: (-in chunks +whole)\n%s", i, diff)
		}
	}
	other := changed{w, "model.norm.weight", 1.01}
	r := pass(t, d, w, tokens, forward.Keep{Bytes: -1})
	all, _, err := d.Divergence(t.Context(), r, r.End, other)
	if err != nil {
		t.Fatal(err)
	}
	mean := 0.0
	for i := range tokens {
		r := pass(t, d, w, tokens[i:i+1], forward.Keep{})
		one, _, err := d.Divergence(t.Context(), r, r.End, other)
		if err != nil {
			t.Fatal(err)
		}
		mean += one / float64(len(tokens))
	}
	if !(all > 0) || math.Abs(all-mean) > 1e-12 {
		t.Errorf("divergence %v in chunks, %v of the sequences' mean", all, mean)
	}
}

// moments adds up statistics of an Observer's inputs.
type moments struct {
	order []string
	rows  map[string]int
	cols  map[string]int
	sum   map[string]float64
}

func (m *moments) Input(names []string, x sgemm.Matrix) error {
	for _, name := range names {
		if m.rows[name] == 0 {
			m.order = append(m.order, name)
		}
		m.rows[name] += x.Rows
		m.cols[name] = x.Cols
		for i := range x.Rows {
			for _, v := range x.Row(i) {
				m.sum[name] += math.Abs(float64(v))
			}
		}
	}
	return nil
}

func TestObserverSeesEveryLayerOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing in it is shared by goroutines")
	}
	for _, test := range forms(t) {
		m, d := model(t, test.base, test.changes)
		tokens := many(64)
		n := 0
		for _, s := range tokens {
			n += len(s)
		}
		if n <= 2*2048 {
			t.Fatal("too few tokens for several batches")
		}
		seen := &moments{rows: map[string]int{}, cols: map[string]int{}, sum: map[string]float64{}}
		if _, err := d.Run(t.Context(), forward.Stored(m), tokens, seen); err != nil {
			t.Fatal(err)
		}
		var want []string
		block := 0
		routed := map[string]int{} // rows of all experts together
		for _, l := range d.Layers() {
			want = append(want, l.Tensor)
			if experts := expert.ReplaceAllString(l.Tensor, ""); experts != l.Tensor {
				routed[experts] += seen.rows[l.Tensor]
			} else if seen.rows[l.Tensor] != n {
				t.Errorf("%s: %s: seen %d rows, want %d", test.name, l.Tensor, seen.rows[l.Tensor], n)
			}
			if seen.cols[l.Tensor] != l.Inputs || seen.sum[l.Tensor] == 0 {
				t.Errorf("%s: %s: seen %d columns, want %d, not all 0", test.name, l.Tensor, seen.cols[l.Tensor], l.Inputs)
			}
			info, ok := m.Tensor(l.Tensor)
			if !ok || info.Len() != l.Inputs*l.Outputs {
				t.Errorf("%s: layer %+v has %v in the checkpoint", test.name, l, info.Shape)
			}
			if l.Block < block || l.Block > d.Blocks() {
				t.Errorf("%s: block %d of %s behind %d", test.name, l.Block, l.Tensor, block)
			}
			block = l.Block
		}
		for experts, rows := range routed {
			if used := number(t, m, "num_experts_per_tok"); rows != n*used {
				t.Errorf("%s: experts' %s: seen %d rows, want %d for each of %d tokens", test.name, experts, rows, used, n)
			}
		}
		if diff := cmp.Diff(want, seen.order); diff != "" {
			t.Errorf("%s: (-Layers +seen)\n%s", test.name, diff)
		}
		if missing := unlisted(m, d); len(missing) > 0 {
			t.Errorf("%s: matrices that are no layers: %v", test.name, missing)
		}
	}
}

// expert matches the number in the name of an expert's tensor.
var expert = regexp.MustCompile(`(experts\.)\d+\.`)

// number reads config.json.
func number(t *testing.T, m *weights.Model, field string) int {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal(m.Config, &all); err != nil {
		t.Fatal(err)
	}
	n, ok := all[field].(float64)
	if !ok {
		t.Fatalf("config.json has no %s", field)
	}
	return int(n)
}

// unlisted returns a checkpoint's matrices that are neither layers nor embeddings.
func unlisted(m *weights.Model, d *forward.Decoder) (names []string) {
	listed := map[string]bool{}
	for _, l := range d.Layers() {
		listed[l.Tensor] = true
	}
	for _, info := range m.Infos() {
		embedding := regexp.MustCompile(`(embed_tokens|embed_positions|embed_in|word_embeddings|wte|wpe)\.weight$`)
		if len(info.Shape) == 2 && !listed[info.Name] && !embedding.MatchString(info.Name) {
			names = append(names, info.Name)
		}
	}
	return names
}

// inputs records the inputs of one layer.
type inputs struct {
	layer string
	rows  [][]float32
}

func (in *inputs) Input(names []string, x sgemm.Matrix) error {
	if slices.Contains(names, in.layer) {
		for i := range x.Rows {
			in.rows = append(in.rows, slices.Clone(x.Row(i)))
		}
	}
	return nil
}

// TestInputsOfTheHead computes the losses from the head's inputs.
func TestInputsOfTheHead(t *testing.T) {
	m, d := model(t, "llama-tiny", nil)
	tokens := many(128)
	in := &inputs{layer: "lm_head.weight"}
	scores, err := d.Run(t.Context(), forward.Stored(m), tokens, in)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := forward.Stored(m).Tensor(t.Context(), "lm_head.weight")
	if err != nil {
		t.Fatal(err)
	}
	row := 0
	for i, sequence := range tokens {
		x := in.rows[row]
		logits := make([]float64, 128)
		for token := range logits {
			for j, v := range stored[token*len(x) : (token+1)*len(x)] {
				logits[token] += float64(v) * float64(x[j])
			}
		}
		want := -logSoftmax(logits)[sequence[1]]
		if got := scores.Nats[i][0]; math.Abs(got-want) > 1e-5*(1+want) {
			t.Errorf("sequence %d: loss %v, by the head's input %v", i, got, want)
		}
		row += len(sequence)
	}
}

// counting multiplies and counts.
type counting struct {
	calls atomic.Int64
}

func (c *counting) Mul(ctx context.Context, y, x, w sgemm.Matrix, transposed bool) error {
	c.calls.Add(1)
	return forward.CPU{Workers: 1}.Mul(ctx, y, x, w, transposed)
}

func TestProductsDoAllLayers(t *testing.T) {
	for _, test := range []variant{{"llama", "llama-tiny", nil}, {"llama tied", "llama-tiny", fields{"tie_word_embeddings": true}}} {
		m, d := model(t, test.base, test.changes)
		tokens := sequences(96, 20, 3)
		want := run(t, d, forward.Stored(m), tokens)
		c := &counting{}
		d.Products = c
		if diff := cmp.Diff(want, run(t, d, forward.Stored(m), tokens)); diff != "" {
			t.Errorf("%s: (-default +own products)\n%s", test.name, diff)
		}
		if calls := int(c.calls.Load()); calls != d.Blocks()*7+1 {
			t.Errorf("%s: %d products, want 7 for each of %d blocks and the head", test.name, calls, d.Blocks())
		}
	}
}

// strict is a Products that panics for products that package cuda does not support.
type strict struct{ t *testing.T }

func (s strict) Mul(ctx context.Context, y, x, w sgemm.Matrix, transposed bool) error {
	if x.Stride != x.Cols || w.Stride != w.Cols || x.Rows < 1 {
		s.t.Errorf("x of %d rows and %d columns has stride %d, w of %d columns stride %d", x.Rows, x.Cols, x.Stride, w.Cols, w.Stride)
	}
	return forward.CPU{Workers: 1}.Mul(ctx, y, x, w, transposed)
}

func TestOperandsHaveNoGaps(t *testing.T) {
	for _, test := range bases(t) {
		m, d := model(t, test.base, test.changes)
		d.Products = strict{t}
		run(t, d, forward.Stored(m), sequences(64, 3, 9))
	}
}
