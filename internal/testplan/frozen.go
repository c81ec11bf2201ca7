package testplan

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quantise"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// Frozen is a conversion of a small model. A golden file has its bytes and plan.
type Frozen struct {
	Model  string // a configuration of package synth, or a layout in testmodel.Quantisations
	Fields string // JSON of changed fields of the configuration
	Passes string
	MinSNR float64 // 0: no budget
	Format string
	Card   bool // costs of the built-in card; default: TogglesCost
	Decode bool
	DType  weights.DType // of the source; default: the configuration's
	Tokens bool          // errors are weighted by the layers' inputs
	// Of is the format of the source's codes, which should approximate the weights that they were made from. Default: the source
	// is not quantised, or Model is a layout.
	Of string
}

func (f Frozen) String() string {
	s := strings.Join(strings.Fields(fmt.Sprint(f.Model, " ", f.Passes, " ", f.Format)), " ")
	if f.MinSNR > 0 {
		s += fmt.Sprintf(" at %g dB", f.MinSNR)
	}
	if f.Card {
		s += ", card"
	}
	if f.Decode {
		s += ", decode"
	}
	if f.DType != 0 {
		s += ", " + f.DType.String()
	}
	if f.Tokens {
		s += ", tokens"
	}
	if f.Of != "" {
		s += ", near the original of " + f.Of
	}
	return s
}

// Narrow makes a configuration of one small layer.
const Narrow = `{"num_hidden_layers": 1}`

// FrozenPlain are conversions of weights stored as values, FrozenCodes are conversions of codes, and FrozenFormats
// are conversions that make codes.
var (
	FrozenPlain = []Frozen{
		{Model: "llama-tiny", Fields: Narrow, Passes: "scale,reorder,signs,grid=4"},
		{Model: "llama-tiny", Fields: Narrow, Passes: "scale,reorder,signs,grid=4", Decode: true, Card: true},
		{Model: "llama-tiny", Fields: Narrow, Passes: "sparsify,trellis,grid,round", MinSNR: 20, Card: true},
		{Model: "llama-tiny", Fields: Narrow, Passes: "grid,round", MinSNR: 30},
		{Model: "llama-tiny", Fields: Narrow, Passes: "shift=2", DType: weights.F16},
		{Model: "llama-tiny", Fields: Narrow, Passes: "shift=4/epilogue"},
		{Model: "llama-tiny", Fields: Narrow, Passes: "sparsify=0.1,grid=8,round=2", DType: weights.F32},
		{Model: "llama-tiny", Fields: Narrow, Passes: "sparsify=0.2/element,round=1", DType: weights.F8E4M3},
		{Model: "llama-tiny", Fields: Narrow, Passes: "sparsify=0.3/16x1"},
		{Model: "llama-tiny", Fields: Narrow, Passes: "sparsify=2:4,round=3/truncate"},
		{Model: "llama-tiny", Fields: Narrow, Passes: "trellis=0.01"},
		{Model: "gpt2-tiny", Passes: "scale,reorder,signs,trellis=0.02"},
		{Model: "qwen3_moe-tiny", Passes: "scale=labels,reorder,signs"},
		{Model: "bert-tiny", Passes: "reorder,signs,round=2"},
		{Model: "llama-tiny", Fields: Narrow, Passes: "scale,sparsify=0.2/16x1,grid,round", MinSNR: 24, DType: weights.F8E5M2, Card: true},
		{Model: "llama-tiny", Fields: Narrow, Passes: "sparsify=0.2/runs,grid=3,round", MinSNR: 9, DType: weights.I8, Decode: true},
		{Model: "gpt2-tiny", Passes: "reorder,shift,sparsify=0.2/runs,round", MinSNR: 16, Card: true},
	}
	FrozenCodes = func() (list []Frozen) {
		for i, q := range testmodel.Quantisations {
			if strings.HasPrefix(q.Name, "unknown") || strings.HasPrefix(q.Name, "bitsandbytes") {
				continue
			}
			for _, passes := range []string{"scales=2,round=1", "zeros,grid=2", "scales=1,trellis=0.1", "scale,reorder,signs"} {
				if i++; i%2 == 0 {
					list = append(list, Frozen{Model: q.Name, Passes: passes})
				}
			}
		}
		return list
	}()
	FrozenFormats = func() (list []Frozen) {
		for i, name := range []string{"fp8", "fp8-block", "deepseek-fp8", "int8", "int4", "int4-asym", "mxfp4", "nvfp4"} {
			passes := []string{"", "scales", "round=1", "trellis=0.1"}[i%4]
			list = append(list, Frozen{Model: "llama-tiny", Fields: testmodel.QuantisedShape, Passes: passes, Format: name})
		}
		for _, name := range []string{"int4-asym", "nvfp4"} {
			list = append(list, Frozen{Model: "llama-tiny", Fields: testmodel.QuantisedShape, Passes: "scales,trellis=0.1", Format: name})
		}
		for _, name := range []string{"int4=32", "fp8"} {
			list = append(list, Frozen{Model: "llama-tiny", Fields: testmodel.QuantisedShape, Passes: "scales=2", Format: name, Card: true, Decode: true})
		}
		return list
	}()
	// FrozenReference are conversions of codes that should approximate the weights that they were made from.
	FrozenReference = []Frozen{
		{Model: "llama-tiny", Fields: testmodel.QuantisedShape, Of: "int4=32", Passes: "scales=2"},
		{Model: "llama-tiny", Fields: testmodel.QuantisedShape, Of: "int4=32", Passes: "scales", MinSNR: 60},
		{Model: "llama-tiny", Fields: testmodel.QuantisedShape, Of: "fp8", Passes: "scales=3,round", MinSNR: 20},
		{Model: "llama-tiny", Fields: testmodel.QuantisedShape, Of: "int4=32", Passes: "zeros"},
		{Model: "llama-tiny", Fields: testmodel.QuantisedShape, Of: "nvfp4", Passes: "round=1,compensate", Tokens: true},
	}
	// FrozenTokens are conversions that weight errors by the layers' inputs.
	FrozenTokens = []Frozen{
		{Model: "llama-tiny", Fields: Narrow, Passes: "round=4,compensate", Tokens: true},
		{Model: "llama-tiny", Fields: Narrow, Passes: "scale,reorder,signs,grid=6,compensate=0.02", Tokens: true},
		{Model: "llama-tiny", Fields: Narrow, Passes: "sparsify=0.2/4x1,round=3,compensate", Tokens: true, DType: weights.F32},
		{Model: "llama-tiny", Fields: Narrow, Passes: "prune=0.3,trellis=0.05,compensate=0.01", Tokens: true, Card: true},
		{Model: "llama-tiny", Fields: Narrow, Passes: "grid,round,compensate", MinSNR: 18, Tokens: true},
		{Model: "gpt2-tiny", Passes: "signs,trellis=0.05,compensate", Tokens: true},
		{Model: "gpt2-tiny", Passes: "sparsify=0.2/16x1,round=2,compensate", Tokens: true},
		{Model: "qwen3_moe-tiny", Passes: "sparsify=0.1/element,grid=8", Tokens: true},
		{Model: "llama-tiny", Fields: testmodel.QuantisedShape, Passes: "compensate", Format: "int4", Tokens: true},
		{Model: "llama-tiny", Fields: testmodel.QuantisedShape, Passes: "scales,trellis=0.1,compensate=0.01", Format: "fp8-block", Tokens: true},
		{Model: "llama-tiny", Fields: testmodel.QuantisedShape, Passes: "round=1", Format: "nvfp4", Tokens: true},
		{Model: "fbgemm", Passes: "scales=2,round=1,compensate", Tokens: true},
		{Model: "gptq", Passes: "trellis=0.1", Tokens: true},
		{Model: "awq", Passes: "grid=2,compensate=0.02", Tokens: true},
		{Model: "gptq", Passes: "scales,round=1", Card: true, Decode: true},
	}
)

// CheckFrozen converts models and compares the digests of the results with the golden file at path. With verify, it
// also verifies the results, unchanged and with one byte changed.
func CheckFrozen(t *testing.T, path string, verify bool, list ...Frozen) {
	t.Helper()
	var b bytes.Buffer
	for _, f := range list {
		f.check(t, &b, verify)
	}
	goldenfile.Same(t, path, b.Bytes())
}

func (f Frozen) check(t *testing.T, b *bytes.Buffer, verify bool) {
	t.Helper()
	src := f.source(t)
	o, h := f.options(t, src)
	p, err := transform.Plan(t.Context(), src, o)
	if err != nil {
		fmt.Fprintf(b, "%s: %v\n", f, err)
		return
	}
	if p.Request.Hessians == "" {
		h = nil // no step uses the tokens
	}
	out := filepath.Join(t.TempDir(), "out")
	_, err = transform.Apply(t.Context(), src, p, out, transform.ApplyOptions{Hessians: h, Reference: o.Reference})
	testmodel.OK(t, err)
	js, err := json.Marshal(p.Steps)
	testmodel.OK(t, err)
	fmt.Fprintf(b, "%s: %d steps %.12x, %d notes, %s, %s, predictions %s\n", f, len(p.Steps), sha256.Sum256(js), len(p.Notes), testmodel.Digest(t, out, ".safetensors"), ratios(p), predicted(t, p))
	if !verify {
		return
	}
	show := func(what string) {
		r, err := transform.Verify(t.Context(), src, testmodel.Open(t, out), transform.VerifyOptions{Reference: o.Reference})
		if err != nil {
			fmt.Fprintf(b, "  %s: %v\n", what, err)
			return
		}
		problems := len(r.Problems)
		for i := range r.Tensors {
			x := &r.Tensors[i]
			if x.Problem != "" {
				problems++
				x.Problem = "some"
			}
		}
		fmt.Fprintf(b, "  %s: verified %v, drop-in %v, %d tensors %s, %d copied, %d problems\n", what, r.OK, r.DropIn, len(r.Tensors), rounded(t, r.Tensors), len(r.Quantised), problems)
	}
	show("result")
	rng := rand.New(rand.NewPCG(3, 4))
	names, err := filepath.Glob(filepath.Join(out, "*.safetensors"))
	testmodel.OK(t, err)
	for range 2 {
		name := names[rng.IntN(len(names))]
		data, err := os.ReadFile(name)
		testmodel.OK(t, err)
		at := len(data) - 1 - rng.IntN(len(data)/2)
		data[at] ^= 0x44
		testmodel.OK(t, os.WriteFile(name, data, 0o666))
		show("changed")
		data[at] ^= 0x44
		testmodel.OK(t, os.WriteFile(name, data, 0o666))
	}
}

// options returns the options of the conversion, with its Hessians; nil without tokens.
func (f Frozen) options(t *testing.T, src *weights.Model) (o transform.Options, h program.Hessians) {
	t.Helper()
	o = transform.Options{Cost: testmodel.TogglesCost{}, Workers: 2}
	var err error
	if f.Card {
		o.Cost, err = cost.FindCalibration("h200")
		testmodel.OK(t, err)
	}
	if f.Decode {
		o.Workload = cost.Workload{Decode: 1}
	}
	if f.Passes != "" {
		o.Passes, err = transform.ParsePasses(f.Passes)
		testmodel.OK(t, err)
	}
	if f.Format != "" {
		o.Format, err = quantise.Parse(f.Format)
		testmodel.OK(t, err)
	}
	if f.MinSNR > 0 {
		o.Budget.MinSNR = &f.MinSNR
	}
	if f.Of != "" {
		o.Reference = f.original(t)
	}
	if f.Tokens {
		h = testmodel.HessiansOf(t, src)
		o.Hessians = h
	}
	return o, h
}

// ratios returns the numbers of predictions with an SNR of the weights, of a sample and of the inputs, with the least of each, and of
// refused requests.
func ratios(p *plan.Plan) string {
	var n [3]int
	least := [3]float64{math.Inf(1), math.Inf(1), math.Inf(1)}
	missed := 0
	for _, o := range p.Predictions {
		for i, v := range []*float64{o.SNR, o.SampleSNR, o.InputSNR} {
			if v != nil {
				n[i]++
				least[i] = min(least[i], *v)
			}
		}
		if o.Missed != "" {
			missed++
		}
	}
	return fmt.Sprintf("%d SNRs from %.4g dB, %d missed", n, least, missed)
}

// predicted returns a digest of the predictions of a plan, without the texts of refused requests.
func predicted(t *testing.T, p *plan.Plan) string {
	t.Helper()
	list := slices.Clone(p.Predictions)
	for i := range list {
		if list[i].Missed != "" {
			list[i].Missed = "something"
		}
	}
	return rounded(t, list)
}

// number is a number of JSON.
var number = regexp.MustCompile(`-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?\b`)

// rounded returns a digest of a value's JSON, with numbers of at most 5 digits.
func rounded(t *testing.T, v any) string {
	t.Helper()
	js, err := json.Marshal(v)
	testmodel.OK(t, err)
	js = number.ReplaceAllFunc(js, func(text []byte) []byte {
		x, err := strconv.ParseFloat(string(text), 64)
		if err != nil || x == math.Trunc(x) {
			return text
		}
		return strconv.AppendFloat(nil, x, 'g', 5, 64)
	})
	return fmt.Sprintf("%.4x", sha256.Sum256(js))
}

// source makes the source model.
func (f Frozen) source(t *testing.T) *weights.Model {
	t.Helper()
	for _, q := range testmodel.Quantisations {
		if q.Name == f.Model {
			return testmodel.Open(t, testmodel.Quantised(t, q, testmodel.With{}))
		}
	}
	if f.Of != "" {
		format, err := quantise.Parse(f.Of)
		testmodel.OK(t, err)
		return testmodel.Open(t, testmodel.Folder(t, testmodel.Config(t, f.Model, f.Fields), synth.Options{Seed: 5, Format: format}))
	}
	return f.original(t)
}

// original makes the model that is not quantised.
func (f Frozen) original(t *testing.T) *weights.Model {
	t.Helper()
	return testmodel.Open(t, testmodel.Folder(t, testmodel.Config(t, f.Model, f.Fields), synth.Options{Seed: 5, ShardBytes: 60_000, DType: f.DType}))
}
