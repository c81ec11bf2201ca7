package reference

import (
	"encoding/json"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

type fields = map[string]any

// changed returns a tiny model with other fields. A nil field is removed.
func changed(t *testing.T, name string, other fields) *weights.Model {
	t.Helper()
	js, err := synth.Config(name)
	if err != nil {
		t.Fatal(err)
	}
	config := fields{}
	if err := json.Unmarshal(js, &config); err != nil {
		t.Fatal(err)
	}
	maps.Copy(config, other)
	maps.DeleteFunc(config, func(_ string, v any) bool { return v == nil })
	return folder(t, config)
}

func folder(t *testing.T, config fields) *weights.Model {
	t.Helper()
	js, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "model")
	if err := synth.Folder(t.Context(), js, dir, synth.Options{}); err != nil {
		t.Fatal(err)
	}
	m, err := weights.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// problems turns a panic of a model's methods into a test failure.
func problems(t *testing.T) {
	if p, ok := recover().(problem); ok {
		t.Fatal(p)
	}
}

func logits(t *testing.T, m *weights.Model, tokens ...int32) [][]float64 {
	t.Helper()
	rows, err := Run(m, Inputs{Tokens: tokens})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestWindows(t *testing.T) {
	gemma2 := func(p *model) *decoder { return p.gemma2() }
	gemma3 := func(p *model) *decoder { return p.gemma3() }
	qwen2 := func(p *model) *decoder { return p.qwen2() }
	byRule := fields{"layer_types": nil, "num_hidden_layers": 7}
	both := fields{"use_bidirectional_attention": true}
	for _, c := range []struct {
		name        string
		other       fields
		of          func(*model) *decoder
		layer, t, u int
		want        bool
	}{
		{"gemma2-tiny", nil, gemma2, 0, 5, 2, true}, // four positions, including its own
		{"gemma2-tiny", nil, gemma2, 0, 5, 1, false},
		{"gemma2-tiny", nil, gemma2, 1, 5, 0, true}, // every other layer sees all positions
		{"gemma2-tiny", nil, gemma2, 1, 5, 6, false},
		{"gemma3-tiny", nil, gemma3, 0, 5, 1, false}, // as listed
		{"gemma3-tiny", nil, gemma3, 1, 5, 1, true},
		{"gemma3-tiny", byRule, gemma3, 4, 5, 1, false}, // the sixth layer sees all positions
		{"gemma3-tiny", byRule, gemma3, 5, 5, 1, true},
		{"gemma3-tiny", byRule, gemma3, 6, 5, 1, false},
		{"gemma3-tiny", both, gemma3, 0, 5, 7, true}, // 4/2 to either side
		{"gemma3-tiny", both, gemma3, 0, 5, 8, false},
		{"gemma3-tiny", both, gemma3, 1, 0, 8, true},
		{"qwen2-tiny", nil, qwen2, 0, 5, 0, true}, // from layer max_window_layers on
		{"qwen2-tiny", nil, qwen2, 1, 5, 0, false},
		{"qwen2-tiny", fields{"use_sliding_window": false}, qwen2, 1, 5, 0, true},
	} {
		p, err := newModel(changed(t, c.name, c.other))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.of(p).sees(c.layer, c.t, c.u); got != c.want {
			t.Errorf("%s with %v: layer %d, position %d sees %d: %v", c.name, c.other, c.layer, c.t, c.u, got)
		}
	}
}

// TestWindowForgets: two layers with windows of five positions see nine positions together.
func TestWindowForgets(t *testing.T) {
	m := changed(t, "mistral-tiny", nil)
	one := logits(t, m, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
	two := logits(t, m, 20, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
	for i := range one {
		if forgotten := slices.Equal(one[i], two[i]); forgotten != (i > 8) {
			t.Errorf("position %d: forgotten %v", i, forgotten)
		}
	}
}

// TestSpellings: published folders have a model's fields in several places and spellings.
func TestSpellings(t *testing.T) {
	want := logits(t, changed(t, "gemma3-tiny", nil), 5, 4, 3, 2, 1, 0)
	older := changed(t, "gemma3-tiny", fields{
		"rope_parameters": nil, "layer_types": nil, "sliding_window_pattern": 2,
		"rope_theta": 1e6, "rope_local_base_freq": 1e4,
		"rope_scaling": fields{"rope_type": "linear", "factor": 8.0},
	})
	if got := logits(t, older, 5, 4, 3, 2, 1, 0); apart(want, got) != 0 {
		t.Error("the fields of older releases mean another model")
	}
	text := fields{}
	if err := json.Unmarshal(older.Config, &text); err != nil {
		t.Fatal(err)
	}
	delete(text, "architectures")
	seeing := folder(t, fields{
		"model_type": "gemma3", "architectures": []string{"Gemma3ForConditionalGeneration"},
		"dtype": text["dtype"], "text_config": text,
	})
	if got := logits(t, seeing, 5, 4, 3, 2, 1, 0); apart(want, got) != 0 {
		t.Error("the same fields under text_config mean another model")
	}
}

func TestGemma3TurnsLayersDifferently(t *testing.T) {
	defer problems(t)
	p, err := newModel(changed(t, "gemma3-tiny", nil))
	if err != nil {
		t.Fatal(err)
	}
	local, global := p.gemma3().rope(0).frequency, p.gemma3().rope(1).frequency
	for i := range local { // 10000^(-i/4), and an eighth of 1000000^(-i/4)
		if x := math.Pow(10, -float64(i)); math.Abs(local[i]-x) > 1e-12 {
			t.Errorf("sliding layers, pair %d: %v, not %v", i, local[i], x)
		}
		if x := math.Pow(10, -1.5*float64(i)) / 8; math.Abs(global[i]-x) > 1e-12 {
			t.Errorf("full layers, pair %d: %v, not %v", i, global[i], x)
		}
	}
}

func TestLongRoPE(t *testing.T) {
	defer problems(t)
	p, err := newModel(changed(t, "phi3-long-tiny", nil))
	if err != nil {
		t.Fatal(err)
	}
	short, long := p.phiRotary(6, 8), p.phiRotary(6, 9) // originally trained with 8 positions
	for i, want := range []float64{1, 1.25, 1.5} {
		if got := math.Pow(10000, -float64(i)/3) / short.frequency[i]; math.Abs(got-want) > 1e-12 {
			t.Errorf("short, pair %d: divided by %v, not %v", i, got, want)
		}
	}
	for i, want := range []float64{1, 2.5, 6} {
		if got := math.Pow(10000, -float64(i)/3) / long.frequency[i]; math.Abs(got-want) > 1e-12 {
			t.Errorf("long, pair %d: divided by %v, not %v", i, got, want)
		}
	}
	if got := long.scale; math.Abs(got-math.Sqrt2) > 1e-12 { // √(1 + ln(64/8)/ln 8)
		t.Errorf("scale is %v, not √2", got)
	}
	y := long.halves([]float64{0, 0, 0, 0, 0, 0, 3, 4}, 5)
	if y[6] != 3 || y[7] != 4 {
		t.Errorf("channels behind the rotary ones became %v", y[6:])
	}
}

func TestHeads(t *testing.T) {
	for _, c := range []struct {
		name  string
		other fields
		width int // width of a row
	}{
		{"gemma-tiny", nil, 96},
		{"gemma-tiny", fields{"tie_word_embeddings": false}, 96},
		{"gemma-tiny", fields{"tie_word_embeddings": nil}, 96}, // tied
		{"gemma-tiny", fields{"architectures": []string{"GemmaModel"}}, 36},
		{"gemma-tiny", fields{"architectures": []string{"GemmaForSequenceClassification"}}, 36},
		{"olmo2-tiny", fields{"architectures": []string{"Olmo2Model"}}, 48},
	} {
		rows := logits(t, changed(t, c.name, c.other), 3, 1, 2)
		if len(rows) != 3 || len(rows[0]) != c.width {
			t.Errorf("%s with %v: %d rows of %d", c.name, c.other, len(rows), len(rows[0]))
		}
	}
	for _, row := range logits(t, changed(t, "gemma2-tiny", fields{"final_logit_softcapping": 0.25}), 3, 1, 2) {
		if top := slices.Max(row); !(top < 0.25 && top > 0.01) {
			t.Errorf("the largest of capped logits is %v", top)
		}
	}
}
