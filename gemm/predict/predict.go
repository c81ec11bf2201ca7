package predict

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/operand"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/internal/progress"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Event reports progress. Stage "predict" counts layers, and stage "energy" counts bytes of weights.
type Event = progress.Event

// Predictor predicts one product of operands x[M,K] and w[N,K]. [cost.Calibration] implements it.
type Predictor interface {
	Predict(ctx context.Context, p cost.Product, x, w cost.Operand) (cost.Prediction, error)
}

// Options are the options of [Models] and [Sources]. The zero value is ready to use and predicts prefill.
type Options struct {
	// Operands describe the products. For decode, set Operands.Tokens to [operand.DecodeTokens] and Cold to true.
	Operands operand.Options
	// Cold is true if the weights are read from memory, as in decode, and not from the cache. Default: false.
	Cold bool
	// Compare predicts every further source relative to the first source. If both are stored in files, both predictions
	// are relative to random weights of the first source's scale. Default: false.
	Compare bool
	// Progress is called after every layer. Default: not called.
	Progress func(Event)
}

// Report has a prediction for every source.
type Report struct {
	Predictions []Prediction `json:"predictions"`
}

// Prediction is the prediction of one pass through all layers of a source.
type Prediction struct {
	Name string `json:"name"`
	cost.Prediction
	// Over is the energy relative to the first source; nil if sources are not compared.
	Over *Ratio `json:"over_w,omitempty"`
	// Problem is the shape and type of the products; nil if the layers differ.
	Problem *gemm.Problem `json:"problem,omitempty"`
	Count   int           `json:"count"` // number of layers
	Cold    bool          `json:"cold"`
	X       string        `json:"x"` // the activations: a pattern or a tensor
	// Kernels are the assumed kernels of quantised layers.
	Kernels []string `json:"kernels,omitempty"`
	// Coverage is the part of a model that the prediction covers. It is nil if the prediction covers all linear layers,
	// or all layers that the source names.
	Coverage *Coverage `json:"coverage,omitempty"`
	Layers   []Layer   `json:"layers,omitempty"`

	work      []cost.Work
	workError error
}

// Layer is the prediction of one layer's product. Time, power and clock are computed for the layer's own shape at the
// calibration's settings, as in a sweep. They are not those of the nearest measured shape.
type Layer struct {
	Layer   string       `json:"layer"`
	Problem gemm.Problem `json:"problem"`
	cost.Prediction
}

// ErrNotComparable is the error for sources with different products.
var ErrNotComparable = errors.New("only sources with the same products can be compared")

// Models predicts all linear layers of a model and of its converted copy. Over in the second prediction is the copy's
// energy relative to the model. Errors are those of [Sources]. The caller closes the models.
func Models(ctx context.Context, by Predictor, before, after *weights.Model, o Options) (*Report, error) {
	for _, m := range []*weights.Model{before, after} {
		if err := m.Usable(); err != nil {
			return nil, err
		}
	}
	o.Compare = true
	return Sources(ctx, by, []operand.Source{operand.Of(before), operand.Of(after)}, o)
}

// Sources predicts the products with every source's weights. At least one source is needed. Patterns and other models
// get the shapes of the first source that is a file. Errors are those of [operand.Set.Products], and [ErrNotComparable]
// if sources to be compared have different products.
func Sources(ctx context.Context, by Predictor, sources []operand.Source, o Options) (r *Report, err error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = ctx.Err() // without the name of a layer
		}
	}()
	if by == nil {
		return nil, errors.New("a prediction needs a calibration")
	}
	if len(sources) == 0 {
		return nil, errors.New("a prediction needs sources: give patterns, tensors or models")
	}
	set := operand.NewSet(o.Operands)
	defer func() { err = errors.Join(err, set.Close()) }()
	products, err := set.Products(ctx, sources...)
	if err != nil {
		return nil, err
	}
	covered, err := Coverages(set, sources...)
	if err != nil {
		return nil, err
	}
	total := 0
	for i, s := range sources {
		if o.Compare {
			if err := comparable(sources[0], s, products[0], products[i]); err != nil {
				return nil, err
			}
		}
		total += len(products[i])
	}
	r = &Report{}
	done := 0
	for i, s := range sources {
		var layers []Layer
		kernels := operand.Kernels(products[i])
		for j, p := range products[i] {
			scale := 0.0
			if o.Compare && i > 0 && s.Path != "" && sources[0].Path != "" { // s may be the first source multiplied by powers of two
				scale = r.Predictions[0].Layers[j].Scale
			}
			e, err := product(ctx, by, p, o.Cold, scale)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", strings.TrimSuffix(s.Text, ":"), p.Layer, err)
			}
			products[i][j] = operand.Product{} // frees weights that were generated
			layers = append(layers, Layer{p.Layer, p.Problem, e})
			done++
			if o.Progress != nil {
				o.Progress(Event{Stage: "predict", Done: int64(done), Total: int64(total)})
			}
		}
		work, lacking := work(by, layers, o.Cold)
		r.add(s, layers, o)
		r.Predictions[i].work, r.Predictions[i].workError = work, lacking
		if text := otherBatch(by, layers[0].Problem); o.Cold && text != "" {
			r.Predictions[i].Warnings = append(slices.Clone(r.Predictions[i].Warnings), text)
		}
		r.Predictions[i].Kernels, r.Predictions[i].Coverage = kernels, covered[s.Text]
	}
	return r, nil
}

// dequantiser is a [Predictor] with predictions for dequantising kernels. [cost.Calibration] implements it.
type dequantiser interface {
	PredictDequantised(ctx context.Context, p cost.Product, x, w, codes cost.Operand) (cost.Prediction, error)
}

// product predicts a product relative to random weights of a scale; see [cost.Product].
func product(ctx context.Context, by Predictor, p operand.Product, cold bool, scale float64) (cost.Prediction, error) {
	q := costProduct(p.Problem, cold)
	q.Kernel, q.Scale = p.Assumed, scale
	if p.Format != nil {
		q.Scaling = p.Format.Per
	}
	if d, ok := by.(dequantiser); ok && p.Codes != nil {
		return d.PredictDequantised(ctx, q, p.X.Block, p.W.Block, p.Codes.Block)
	}
	return by.Predict(ctx, q, p.X.Block, p.W.Block)
}

// costProduct converts a problem to a product of the cost model.
func costProduct(p gemm.Problem, cold bool) cost.Product {
	q := cost.Product{Type: p.Type, M: p.M, N: p.N, K: p.K, Cold: cold}
	if p.Streaming {
		q.Role = cost.Streaming
	}
	return q
}

// comparable returns an error if two sources have different products.
func comparable(first, s operand.Source, w, other []operand.Product) error {
	if len(w) != len(other) {
		noun := map[bool]string{false: "layers", true: "layer"}[len(w) == 1]
		return fmt.Errorf("%s has %d %s and %s has %d: %w", first.Text, len(w), noun, s.Text, len(other), ErrNotComparable)
	}
	for i := range w {
		if !w[i].SameKernel(other[i]) {
			return fmt.Errorf("%s (%s) and %s (%s) use different kernels, and each prediction is relative to random weights in the same kernel: %w",
				first.Text, w[i].Multiplication(), s.Text, other[i].Multiplication(), ErrNotComparable)
		}
		if w[i].Problem != other[i].Problem {
			return fmt.Errorf("%s of %s is %v, and %s of %s is %v: %w",
				other[i].Layer, s.Text, other[i].Problem, w[i].Layer, first.Text, w[i].Problem, ErrNotComparable)
		}
	}
	return nil
}

// add adds the prediction of a source's layers.
func (r *Report) add(s operand.Source, layers []Layer, o Options) {
	first := layers[0].Problem
	p := Prediction{Name: s.Text, Prediction: sum(layers), Problem: &first, Count: len(layers), Cold: o.Cold, X: o.Operands.XText(first.Type), Layers: layers}
	if slices.ContainsFunc(layers, func(l Layer) bool { return l.Problem != first }) {
		p.Problem = nil
	}
	if o.Compare && len(r.Predictions) > 0 {
		p.Over = over(r.Predictions[0], p)
	}
	r.Predictions = append(r.Predictions, p)
}

// Warnings returns the warnings of all sources, without repetition. A warning that applies only to some sources names
// them.
func (r *Report) Warnings() (list []string) {
	var texts []string
	about := map[string][]string{}
	for _, p := range r.Predictions {
		for _, text := range p.Warnings {
			if about[text] == nil {
				texts = append(texts, text)
			}
			about[text] = append(about[text], p.Name)
		}
	}
	for _, text := range texts {
		if names := about[text]; len(names) < len(r.Predictions) {
			text = strings.Join(names, ", ") + ": " + text
		}
		list = append(list, text)
	}
	return list
}
