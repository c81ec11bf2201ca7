package transform

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/spelling"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
	"github.com/lowtoggle/lowtoggle/weights/quantise"
)

// Recipe is a named choice of passes and budget.
type Recipe struct {
	Name string `json:"name"`
	Doc  string `json:"doc,omitempty"`
	// Passes is a list of passes in the syntax of ParsePasses.
	Passes string `json:"passes"`
	// InDecode are exact passes that come before Passes in workloads with decode. They are for models that runtimes
	// compute in BF16; see [Recipe.For]. Empty: none.
	InDecode string `json:"in_decode,omitempty"`
	// OnCodes are passes that come before Passes and WithTokens in quantised models, if they can change the model's
	// codes; see [Recipe.For]. Empty: none.
	OnCodes string `json:"on_codes,omitempty"`
	// MinSNR is the lowest output SNR of a layer in decibels; nil: nothing may be lost, or the passes' arguments
	// decide.
	MinSNR *float64 `json:"min_snr_db,omitempty"`
	// WithTokens are the passes of a conversion with tokens. MaxLoss is the budget of a conversion with tokens: the
	// largest rise of perplexity, as a share. Empty and nil: tokens have no effect.
	WithTokens string   `json:"with_tokens,omitempty"`
	MaxLoss    *float64 `json:"max_loss,omitempty"`
	// Selection names weights that no pass changes.
	plan.Selection
	// Routers lets lossy passes change routers too. Default: they do not change routers.
	Routers bool `json:"routers,omitempty"`
	// TrustFamily asserts that a model with its own code computes its family's function; see [Options].
	TrustFamily bool `json:"trust_family,omitempty"`
}

func ptr(v float64) *float64 { return &v }

// uncachedPowers is a pass that saves energy in decode without loss. Scales of FP8 and INT8 KV caches stay valid.
const uncachedPowers = "scale=uncached"

// inDecode is the part of a recipe's documentation about uncachedPowers.
const inDecode = ". Without tokens and in workloads with decode, scale=uncached comes first if the model is in BF16 " +
	"(docs/scaling.md). The result must then run in BF16 or FP32"

// newScales is the pass for quantised weights in recipes whose budget allows new scales.
const newScales = "scales"

// onCodes documents newScales in a recipe's description.
const onCodes = ". In quantised models the recipe also runs scales"

// searched are the passes that the search for a budget of loss selects from.
const searched = "trellis,compensate"

// Recipes are the built-in recipes. With their budgets, the perplexity of llama-17m rises by less than the recipes
// state.
var Recipes = []Recipe{
	{
		Name:   "exact",
		Doc:    "changes powers of two, order and signs, and keeps the model's function exactly",
		Passes: "scale,reorder,signs",
	}, {
		Name: "near-lossless",
		Doc: "with tokens, by trellis and compensate: the largest saving while perplexity rises by at most 0.1 % " +
			"(llama-17m: perplexity +0.070 %, measured energy of linear layers in prefill −3.7 %). Without tokens, by " +
			"grid and round: the largest saving with an output SNR of at least 31 dB in every layer (llama-17m: " +
			"perplexity +0.020 %, predicted energy of linear layers in prefill −2.7 %)" + inDecode + onCodes,
		Passes: "grid,round", InDecode: uncachedPowers, OnCodes: newScales,
		MinSNR:     ptr(31),
		WithTokens: searched, MaxLoss: ptr(0.001),
	}, {
		Name: "balanced",
		Doc: "with tokens, by trellis and compensate: the largest saving while perplexity rises by at most 1 %. " +
			"Without tokens, by grid and round: the largest saving with an output SNR of at least 20 dB in every " +
			"layer (llama-17m: perplexity +0.43 %, measured energy of linear layers in prefill −4.1 %)" + inDecode + onCodes,
		Passes: "grid,round", InDecode: uncachedPowers, OnCodes: newScales,
		MinSNR:     ptr(coarsest),
		WithTokens: searched, MaxLoss: ptr(0.01),
	},
}

// FormatPasses returns the default passes of a conversion to a format.
func FormatPasses(f quantise.Format, tokens bool) string {
	var names []string
	q := &quant.Quantised{Format: quant.Format{Codes: f.Codes, Per: f.Per, Block: f.Block}, Shape: []int{1, 1}}
	if (pass.Choice{Pass: pass.Scales}).Fits(q) == "" {
		names = append(names, pass.Scales.Name)
	}
	if tokens {
		names = append(names, pass.Compensate.Name)
	}
	return strings.Join(names, ",")
}

// coarsest is the lowest output SNR in dB that a built-in recipe allows.
const coarsest = 20

// LowSNR returns the output SNR in dB below which a layer gets a warning: 20 dB, the lowest SNR that a recipe allows.
// source is the SNR of the source's layer relative to a reference; nil without a reference. If source is below 23 dB,
// the limit is 3 dB below source.
func LowSNR(source *float64) float64 {
	if source != nil {
		return min(coarsest, *source-3)
	}
	return coarsest
}

// DefaultRecipe is the recipe of a conversion without options.
const DefaultRecipe = "near-lossless"

// FindRecipe returns a built-in recipe by name, or reads a recipe from a file in YAML or JSON (see docs/recipes.md).
// A file of more than 1 MiB is an error. Errors about the content name the line and field.
func FindRecipe(name string) (Recipe, error) {
	var names []string
	for _, r := range Recipes {
		if r.Name == name {
			return r, nil
		}
		names = append(names, r.Name)
	}
	r, err := readRecipe(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Recipe{}, fmt.Errorf("recipe %q is neither one of %s nor a file%s: name one of these recipes or a YAML file", name, strings.Join(names, ", "),
			spelling.DidYouMean("", name, names))
	case err != nil:
		return Recipe{}, err
	}
	return r, nil
}

// For returns the recipe for a model and a workload: InDecode and OnCodes are moved into Passes, or dropped. InDecode
// is dropped without an error in these cases: the family is unknown; the model has its own code; powers of two could
// harm FP16 activations, quantised weights whose activations may have fixed scales, or an adapter that is not
// converted. A nil family means the family in the catalogue.
func (r Recipe) For(m *weights.Model, family *arch.Family, l cost.Workload) Recipe {
	if r.InDecode != "" && l.Decode > 0 && computesInBF16(m, family) && (r.TrustFamily || arch.CustomCode(m.Config) == "") {
		r.Passes = r.InDecode + "," + r.Passes
	}
	r.InDecode = ""
	if r.OnCodes != "" && ChangesCodes(m, r.OnCodes) {
		r.Passes = r.OnCodes + "," + r.Passes
		if r.WithTokens != "" {
			r.WithTokens = r.OnCodes + "," + r.WithTokens
		}
	}
	r.OnCodes = ""
	return r
}

// Options returns the options that `lowtoggle convert --recipe` uses for this model and workload, without tokens. The
// caller sets Cost, and may change the rest. A nil family means the family in the catalogue. The zero workload means
// prefill. It returns an error for a nil or closed model, an invalid workload, or passes that cannot be parsed.
func (r Recipe) Options(m *weights.Model, family *arch.Family, l cost.Workload) (Options, error) {
	if l == (cost.Workload{}) {
		l = cost.DefaultWorkload
	}
	if err := errors.Join(m.Usable(), l.Validate()); err != nil {
		return Options{}, err
	}
	suited := r.For(m, family, l)
	if suited.Passes == "" {
		return Options{}, errors.New("the recipe names no passes: set its field Passes, or get a recipe from FindRecipe")
	}
	passes, err := ParsePasses(suited.Passes)
	if err != nil {
		return Options{}, err
	}
	return Options{
		Passes: passes, Budget: pass.Budget{MinSNR: r.MinSNR, OrSource: true}, Selection: r.Selection, KeepRouters: !r.Routers,
		TrustFamily: r.TrustFamily, Workload: l, Family: family,
	}, nil
}

// ChangesCodes reports whether a list of passes, in the syntax of [ParsePasses], can change codes of a model's
// quantised weights. For an invalid list or model it returns false.
func ChangesCodes(m *weights.Model, passes string) bool {
	d, err := quant.Describe(m)
	list, unknown := ParsePasses(passes)
	return err == nil && unknown == nil && slices.ContainsFunc(d.Weights, func(q *quant.Quantised) bool {
		return q.CanRead() == nil && slices.ContainsFunc(list, func(c pass.Choice) bool { return c.Fits(q) == "" })
	})
}

// OnlyCodes reports whether all passes of a list change quantised weights only.
func OnlyCodes(passes []string) bool {
	list, err := ParsePasses(strings.Join(passes, ","))
	return err == nil && !slices.ContainsFunc(list, func(c pass.Choice) bool { return !c.Pass.CodesOnly })
}

// computesInBF16 reports whether config.json and all tensors with an index have type BF16. Codes of quantised weights
// have other types and are ignored.
func computesInBF16(m *weights.Model, family *arch.Family) bool {
	layout, err := arch.Resolve(m, family)
	if err != nil || leftBehind(m, layout) != "" {
		return false
	}
	if d, err := arch.ConfigDType(m.Config); err != nil || d != weights.BF16 {
		return false
	}
	stored := quant.Group(m, layout.Quantised)
	for _, x := range layout.Indices {
		for _, u := range x.Uses {
			if w, ok := stored.Weight(u.Tensor); !ok || w.DType != weights.BF16 {
				return false
			}
		}
	}
	return true
}
