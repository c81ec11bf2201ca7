package transform

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"

	"github.com/lowtoggle/lowtoggle/gemm/divergence"
	"github.com/lowtoggle/lowtoggle/gemm/evaluate"
	"github.com/lowtoggle/lowtoggle/gemm/hessian"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
	"github.com/lowtoggle/lowtoggle/internal/elementary"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
	"github.com/lowtoggle/lowtoggle/transform/search"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// Tokens are the calibration and evaluation tokens of one model. Calibration tokens are for weighting rounding errors
// and choosing plans. Evaluation tokens are for comparing a result with the source. [NewTokens] returns Tokens; the
// zero value has no tokens and is an error.
type Tokens struct {
	// Dir is the folder for calibration statistics, the results of a search, and the best plan so far. A later call
	// with the same model, tokens and Dir continues from them. Dir is required for passes that use calibration
	// statistics, and for a budget of loss.
	Dir string
	// Keep is true if the files in Dir are kept for later calls; otherwise Remove is called at the end.
	Keep bool
	// Shared is true if several processes use Dir at the same time, such as the parts of a search. If Dir then has
	// statistics or measurements of another model, or of other tokens, options or devices, they are an error and are
	// not replaced.
	Shared bool
	// Device runs the model instead of the CPU; nil: the CPU. Set it before the first use of the tokens.
	Device Device

	given                 *arch.Family // argument of NewTokens; nil: the catalogue's
	fit, held, evaluation tokens.Set
	model                 *weights.Model
	scorer                *evaluate.Scorer    // for the evaluation tokens
	calibrated            evaluate.Calibrated // model on the device; nil until needed
	reference             evaluate.Reference  // reference model's outputs on held; nil until known
	fingerprint           plan.Model
	key, family           string
	count                 *counters
}

// ErrNoLoss marks a model whose loss cannot be computed.
var ErrNoLoss = errors.New("without tokens, give a budget of output SNR")

// NewTokens returns the calibration and evaluation tokens of a file for a model. family is the model's family; nil:
// the catalogue's. familyFile is the content of the file that family was read from, or nil. workers is the number of
// goroutines that run the model; 0: all processors.
//
// It returns an error if there are too few tokens, if package forward does not compute the model ([ErrNoLoss]), and
// for tokens beyond the model's vocabulary.
func NewTokens(m *weights.Model, file *tokens.File, family *arch.Family, familyFile []byte, workers int) (*Tokens, error) {
	if err := m.Usable(); err != nil {
		return nil, err
	}
	if file == nil {
		return nil, fmt.Errorf("no token file was given: read one with tokens.Open (%w)", ErrNoTokens)
	}
	calibration, err := file.Set(tokens.Calibration)
	if err != nil {
		return nil, err
	}
	t := &Tokens{model: m, given: family, family: hex.EncodeToString(sum(familyFile))}
	if t.evaluation, err = file.Set(tokens.Evaluation); err != nil {
		return nil, err
	}
	if t.fit, t.held, err = calibration.HoldBack(); err != nil {
		return nil, err
	}
	if t.scorer, err = evaluate.New(m, family, t.evaluation, workers); err != nil {
		return nil, fmt.Errorf("%w; %w", err, ErrNoLoss)
	}
	for _, set := range []tokens.Set{t.fit, t.held, t.evaluation} {
		if err := set.Error(t.scorer.Decoder.Check(set.Sequences)); err != nil {
			return nil, err
		}
	}
	if t.fingerprint, err = plan.Fingerprint(m); err != nil {
		return nil, err
	}
	t.key = hessian.Key(t.fingerprint.SHA256, m.Config, familyFile, t.fit, t.held)
	return t, nil
}

// familyBeside returns the family of a call with these tokens. t may be nil. family may be nil, for the family of the
// tokens. Two different families are an error, because statistics of one family's layers do not fit the other's.
func (t *Tokens) familyBeside(family *arch.Family) (*arch.Family, error) {
	if t == nil || family == t.given {
		return family, nil
	}
	own := t.given
	if own == nil {
		var err error
		if own, err = arch.Detect(t.model.Config); err != nil {
			return nil, err
		}
	}
	if family != nil && !sameFamily(*family, *own) {
		return nil, fmt.Errorf("the family %s differs from the family of the tokens: give NewTokens the same family, or give no family here", family.Name)
	}
	return own, nil
}

// sameFamily reports whether two families have the same content.
func sameFamily(a, b arch.Family) bool {
	a.Digest, b.Digest = "", ""
	return reflect.DeepEqual(a, b)
}

func sum(data []byte) []byte {
	h := sha256.Sum256(data)
	return h[:]
}

// Key identifies the model, the calibration tokens and the device. Plans made with the tokens record it as
// [plan.Request.Hessians].
func (t *Tokens) Key() string { return deviceKey(t.key, t.Device) }

// Effort is the size of a search under a loss budget.
type Effort struct {
	Layers     int   // linear layers
	Fit, Held  int   // calibration tokens: for fitting, and held out for trials of whole models
	Few        int   // held-out tokens for comparing single layers
	Statistics int64 // approximate bytes of the calibration statistics in Dir
}

// Effort returns the size of a search under a loss budget with these tokens, if Dir has no results yet.
func (t *Tokens) Effort() Effort {
	few := divergence.FewSequences(t.held.Sequences)
	return Effort{Layers: len(t.scorer.Decoder.Layers()), Fit: t.fit.N * t.fit.T, Held: t.held.N * t.held.T, Few: few * t.held.T,
		Statistics: 2 * hessian.Bytes(t.scorer.Decoder)}
}

// hessians are the calibration statistics of the fitting and the held-out tokens.
type hessians struct {
	key       string
	fit, held *hessian.Store
	rounder   rounding.Device // nil: the CPU rounds
}

// Device implements [program.DeviceHessians].
func (h hessians) Device() rounding.Device { return h.rounder }

// Input implements [program.DeviceHessians].
func (h hessians) Input(tensor string) string { return h.fit.Input(tensor) }

// Triangle implements [program.DeviceHessians].
func (h hessians) Triangle(ctx context.Context, tensor string, held bool) (*rounding.Triangle, error) {
	of := h.fit
	if held {
		of = h.held
	}
	data, err := of.ReadTriangle(ctx, tensor)
	if err != nil {
		return nil, err
	}
	width := int(math.Sqrt(float64(2 * len(data)))) // 2·len = n²+n lies between n² and (n+1)²
	return &rounding.Triangle{Width: width, Data: data}, nil
}

func (h hessians) Key() string { return h.key }

func (h hessians) Has(tensor string) bool {
	return h.fit != nil && h.fit.Has(tensor) && h.held.Has(tensor)
}

func (h hessians) Fit(ctx context.Context, tensor string) (sgemm.Matrix, error) {
	return h.fit.Read(ctx, tensor)
}

func (h hessians) Held(ctx context.Context, tensor string) (sgemm.Matrix, error) {
	return h.held.Read(ctx, tensor)
}

// hessians collects the calibration statistics, or reads them from Dir. For a budget of loss, the same pass over the
// held-out tokens also computes the reference model's outputs for the evaluator.
func (t *Tokens) hessians(ctx context.Context, spend bool, workers int, progress func(Event)) (hessians, error) {
	h := hessians{key: t.Key()}
	if t.Dir == "" {
		return h, errors.New("calibration statistics need a folder: set Tokens.Dir")
	}
	if err := t.mark(); err != nil {
		return h, err
	}
	on := t.calibrate()
	rounder := t.rounder(ctx)
	var err error
	options := func(before int) hessian.Options {
		return hessian.Options{Workers: workers, Key: h.key, Shared: t.Shared, Waiting: func() {
			if progress != nil {
				progress(Event{Stage: "wait for another process's statistics"})
			}
		}, Progress: func(n, total int) {
			if progress != nil {
				progress(Event{Stage: "statistics", Done: int64(before*total + n), Total: int64(2 * total)})
			}
		}}
	}
	fit, held := filepath.Join(t.Dir, "fit"), filepath.Join(t.Dir, "held")
	if h.fit, err = on.Collect(ctx, t.fit.Sequences, fit, options(0)); err != nil {
		return h, t.failed(ctx, fit, t.fit.Error(err))
	}
	t.count.heldPass(t.reference == nil)
	if t.reference != nil || !spend {
		h.held, err = on.Collect(ctx, t.held.Sequences, held, options(1))
	} else {
		h.held, t.reference, err = on.CollectAndScore(ctx, t.held.Sequences, held, options(1))
	}
	if err != nil {
		return h, t.failed(ctx, held, t.held.Error(err))
	}
	h.rounder, err = rounder()
	return h, err
}

// rounder opens the device that rounds, while statistics are collected. The returned function waits for the device; a
// nil device means that the CPU rounds.
func (t *Tokens) rounder(ctx context.Context) func() (rounding.Device, error) {
	if t.Device == nil {
		return func() (rounding.Device, error) { return nil, nil }
	}
	type opened struct {
		device rounding.Device
		err    error
	}
	ready := make(chan opened, 1)
	go func() {
		d, err := t.Device.Rounder(ctx)
		ready <- opened{d, err}
	}()
	return func() (rounding.Device, error) {
		o := <-ready
		return o.device, o.err
	}
}

// failed removes incomplete statistics, unless an interrupted call can continue with them.
func (t *Tokens) failed(ctx context.Context, dir string, err error) error {
	if ctx.Err() != nil || t.Keep {
		return err
	}
	err = errors.Join(err, os.RemoveAll(dir))
	if !HasSearch(t.Dir) {
		err = errors.Join(err, t.Remove())
	}
	return err
}

// search returns the search options for a budget of loss.
func (t *Tokens) search(o *Options) (s search.Options, err error) {
	s = o.Search
	s.Evaluator = t.reference
	key, err := t.searchKey(o)
	folder := search.Folder{Dir: filepath.Join(t.Dir, "search"), Key: key}
	s.Record = folder
	if err == nil && t.Shared {
		err = folder.Claim()
	}
	return s, err
}

// doubt returns a warning if the tokens may not be for this model; empty otherwise.
func (t *Tokens) doubt() string {
	guess, loss := elementary.Log(float64(t.scorer.Decoder.Vocabulary())), t.reference.Loss()
	if loss <= guess {
		return ""
	}
	return fmt.Sprintf("the model's loss on the %s tokens is %.3f nats per token, above the %.3f of uniform guesses: check that the tokens come from this model's tokenizer and from texts like its training data",
		t.held.Purpose, loss, guess)
}

// searchKey identifies all inputs that affect a search's results. Searches with different budgets have the same key
// and share results.
func (t *Tokens) searchKey(o *Options) (string, error) {
	cost, err := json.Marshal(o.Cost)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	const format = 3 // of the records
	fmt.Fprintf(h, "%d\n%s\n%s\n%v\n%v\n%v\n%x\n%s\n", format, t.Key(), o.Version, o.Passes, o.Workload, o.Role, sum(cost), t.family)
	if !o.Selection.Empty() || o.KeepRouters {
		fmt.Fprintf(h, "%q %v\n", o.Selection, o.KeepRouters)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// keepBest writes the best plan so far to Dir.
func (t *Tokens) keepBest(p *plan.Plan) error {
	js, err := p.Encode()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(t.Dir, 0o777); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(t.Dir, "plan.json"), js)
}

// usable returns an error for the zero value. nil is usable where tokens are optional.
func (t *Tokens) usable() error {
	if t != nil && t.scorer == nil {
		return fmt.Errorf("these Tokens are empty: make Tokens with NewTokens (%w)", ErrNoTokens)
	}
	return nil
}

// evaluationSteps returns the number of progress events of Compare.
func (t *Tokens) evaluationSteps() int { return 2 * t.scorer.Steps() }

// Compare computes the losses of the model and of a converted model on the evaluation tokens. progress may be nil.
func (t *Tokens) Compare(ctx context.Context, out *weights.Model, progress func(Event)) (*evaluate.Comparison, error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	if t == nil {
		return nil, ErrNoTokens
	}
	if err := t.usable(); err != nil {
		return nil, err
	}
	done := 0
	s := *t.scorer
	s.Step = func() {
		done++
		if progress != nil {
			progress(Event{Stage: "evaluate", Done: int64(done), Total: int64(t.evaluationSteps())})
		}
	}
	if t.Device != nil {
		return t.Device.Compare(ctx, &s, t.model, out)
	}
	return s.Compare(ctx, t.model, out, nil)
}
