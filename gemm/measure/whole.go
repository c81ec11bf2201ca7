package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/cuda/runner"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/internal/progress"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// WholeOptions are the options of [Whole]. The zero value is ready to use.
type WholeOptions struct {
	// Family is the models' family. Default: the family in the catalogue.
	Family *arch.Family
	// Batches are the batch sizes (numbers of sequences) of the decode steps. Default: 1, 16, 64. Empty but not nil: no
	// decode.
	Batches []int
	// Context is the number of tokens of each sequence in a decode step. Default: the length of a [Request]'s sequence
	// at its middle output token, Prompt + Output/2, or 1024 without a prefill; at most the model's limit.
	Context int
	// Prompt is the number of tokens of the prefill. Default 4096, or the model's limit minus Output if that is
	// smaller. Negative: no prefill.
	Prompt int
	// Others are additional outputs of the same source, measured in the same steps. Default: none.
	Others []*weights.Model
	// Output is the number of tokens that a [Request] generates after its prompt. Default 256, or the model's limit
	// minus Prompt if that is smaller; half of the limit if Prompt is not given.
	Output int
	// Meter holds the options of each step's measurement. The machine's values replace Clock and Self. Precision or
	// Time ends a step.
	Meter power.Options
	// Progress is called with events while the models are loaded and measured. Default: not called.
	Progress func(Event)
}

// works lists the steps to measure.
func (o *WholeOptions) works() []runner.Work {
	var all []runner.Work
	for _, b := range o.Batches {
		all = append(all, runner.Work{Sequences: b, Context: o.Context, Decode: true, Seed: o.Meter.Seed})
	}
	if o.Prompt > 0 {
		all = append(all, runner.Work{Sequences: 1, Context: o.Prompt, Seed: o.Meter.Seed})
	}
	return all
}

// WholeReport is the energy of whole models, step by step.
type WholeReport struct {
	GPU       string      `json:"gpu"`
	CardID    string      `json:"card_id,omitempty"`   // as in [power.Info]
	Simulated bool        `json:"simulated,omitempty"` // whether the card is simulated; simulated figures say nothing about a real card
	Steps     []WholeStep `json:"steps"`
	// Note says whether the model's limit reduced a default of the options.
	Note string `json:"note,omitempty"`
	// Requests has one request for each decode step, if the prefill was measured too and left room for an output.
	Requests []Request `json:"requests,omitempty"`
	// Invalid lists the reasons why figures are not valid. Null comparisons whose misses chance explains are left out.
	Invalid []string `json:"invalid,omitempty"`
}

// WholeStep is one step of a server: a decode step or a prefill.
type WholeStep struct {
	Phase   string `json:"phase"` // decode or prefill
	Batch   int    `json:"batch"`
	Context int    `json:"context"` // tokens of each sequence
	Tokens  int    `json:"tokens"`  // tokens computed in the step
	// Relative is the output's energy relative to the source's, with its 95 % interval. RelativeTime is the relative
	// time.
	Relative     float64   `json:"relative_energy,omitempty"`
	Interval     []float64 `json:"interval,omitempty"`
	RelativeTime float64   `json:"relative_time,omitempty"`
	TimeInterval []float64 `json:"time_interval,omitempty"`
	// Before is the source, After the output, and Copy a copy of the source.
	Before StepCost `json:"before"`
	After  StepCost `json:"after"`
	Copy   StepCost `json:"copy"`
	// Others are the additional outputs, in the order of the options.
	Others []WholeOther `json:"others,omitempty"`
	// LinearEnergy and LinearTime are the energy and time of the source's linear layers run alone, as shares of the
	// source's energy and time.
	LinearEnergy float64       `json:"linear_share_of_energy,omitempty"`
	LinearTime   float64       `json:"linear_share_of_time,omitempty"`
	Kernels      []cuda.Kernel `json:"kernels,omitempty"` // kernels of the products, one for each shape
	Run          *power.Result `json:"run,omitempty"`     // joules and seconds are per step
}

// WholeOther is an additional output in a step. Its fields have the meaning of [WholeStep]'s fields.
type WholeOther struct {
	Model        string    `json:"model"` // its folder
	Relative     float64   `json:"relative_energy,omitempty"`
	Interval     []float64 `json:"interval,omitempty"`
	RelativeTime float64   `json:"relative_time,omitempty"`
	TimeInterval []float64 `json:"time_interval,omitempty"`
	After        StepCost  `json:"after"`
}

// StepCost is the energy and time per token of a step. Absent fields are unknown.
type StepCost struct {
	Joules    float64  `json:"joules_per_token,omitempty"`
	Seconds   float64  `json:"seconds_per_token,omitempty"` // step time divided by the tokens of all sequences; one sequence gets a token every Batch times this time
	Watts     float64  `json:"watts,omitempty"`
	SMClock   *float64 `json:"clock_mhz,omitempty"`
	Capped    *bool    `json:"capped,omitempty"`
	PerSecond float64  `json:"tokens_per_second,omitempty"`
}

// Request is the energy of a request. Its prompt is prefilled alone, and its output is decoded in a batch. It is an
// estimate from two measured steps. Every output token is assumed to cost as much as a token of the decode step, whose
// sequences have Context tokens. In a real request the sequence grows from Prompt to Prompt + Output tokens, and has
// Prompt + Output/2 tokens on average.
type Request struct {
	Batch   int `json:"batch"`
	Context int `json:"decode_context_tokens"`
	Prompt  int `json:"prompt_tokens"`
	Output  int `json:"output_tokens"`
	// The joules are per output token, and per token of prompt and output together, before and after the conversion.
	PerOutputBefore float64 `json:"joules_per_output_token_before"`
	PerOutputAfter  float64 `json:"joules_per_output_token_after"`
	PerTotalBefore  float64 `json:"joules_per_total_token_before"`
	PerTotalAfter   float64 `json:"joules_per_total_token_after"`
	// Relative is the mean of both steps' ratios, weighted by the source's energy in each. Interval combines their
	// intervals, whose errors are independent.
	Relative float64   `json:"relative_energy"`
	Interval []float64 `json:"interval,omitempty"`
}

// Whole measures the energy of whole models with all their operations, in a prefill and in decode steps at several
// batch sizes. In every step it compares the source with the output, with a copy of the source, and with the additional
// outputs. It then runs the source's linear layers alone. Activations have the type of the weights, as in common
// runtimes. The caller closes the models.
//
// All models run the source's kernels in the source's buffers and read the source's KV cache, except for the step's own
// token. Their steps therefore differ only in the values and addresses of the weights. Between two blocks the models
// exchange their memory, so that each model is measured at every set of addresses and the effects of addresses cancel
// in the ratios. After an exchange every model must compute the same tokens as before.
//
// In all models, routed experts get the tokens that the source's routers chose.
//
// All models and the copy must fit on the card, together with the KV cache of one step. Whole returns an error for a
// model that package decoder does not describe, and a [cuda.ErrNoCompiler] without NVRTC. After an error the report
// holds the steps so far; it is nil if nothing was measured.
func Whole(ctx context.Context, m Machine, before, after *weights.Model, o WholeOptions) (*WholeReport, error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	note, err := o.prepare(append([]*weights.Model{before, after}, o.Others...))
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, errors.New("no machine was given to measure on")
	}
	info := m.Card().Info()
	r := &WholeReport{GPU: info.Name, CardID: info.ID(), Note: note, Simulated: m.Platform() == nil, Steps: []WholeStep{}}
	w := wholeRun{WholeOptions: o, machine: m, report: r}
	err = w.load(ctx, before, after)
	for _, work := range o.works() {
		if err != nil {
			break
		}
		err = w.step(ctx, work)
	}
	r.finish(o)
	if ctx.Err() == nil { // if ctx has ended, closing would wait for the card's queue; the machine's Close frees the memory
		err = errors.Join(err, w.close())
	}
	if len(r.Steps) == 0 && err != nil {
		return nil, err
	}
	return r, err
}

// wholeRun measures models that exchange their memory. The weights of model i are in the memory of model (i+turned)
// modulo the number of models.
type wholeRun struct {
	WholeOptions
	machine  Machine
	report   *WholeReport
	models   []Runner // source, copy, output, additional outputs
	names    []string
	turned   int
	selfTest *power.SelfTest
}

// load puts the source, a copy and the outputs on the card.
func (w *wholeRun) load(ctx context.Context, before, after *weights.Model) error {
	longest := max(w.Context, w.Prompt)
	w.names = []string{"source", "source (copy)", "output"}
	all := append([]*weights.Model{before, before, after}, w.Others...)
	for i, m := range all {
		if i >= len(w.names) {
			w.names = append(w.names, m.Dir)
		}
		layout, err := arch.Resolve(m, w.Family)
		if err != nil {
			return fmt.Errorf("%s: %w", m.Dir, err)
		}
		on, err := w.machine.NewRunner(ctx, m, layout, longest)
		if errors.Is(err, cuda.ErrOutOfMemory) {
			return fmt.Errorf("%s: %w: the source, its copy and all outputs must fit on the card together: use a card with more memory, or measure the linear layers alone", m.Dir, err)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.Dir, err)
		}
		w.models = append(w.models, on)
		w.tell(progress.Event{Stage: "load", Done: int64(i + 1), Total: int64(len(all))})
	}
	return nil
}

func (w *wholeRun) tell(e Event) {
	if w.Progress != nil {
		w.Progress(e)
	}
}

func (w *wholeRun) close() error {
	var errs []error
	for _, m := range w.models {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

// place returns the number of the memory that holds model i.
func (w *wholeRun) place(i int) int { return (i + w.turned) % len(w.models) }

// turn exchanges the models' memory until each model is places memories from its own.
func (w *wholeRun) turn(ctx context.Context, places int) error {
	for w.turned != places%len(w.models) {
		if err := w.models[0].Rotate(ctx, w.models[1:]); err != nil {
			return fmt.Errorf("exchanging the memory of the models: %w", err)
		}
		w.turned = (w.turned + 1) % len(w.models)
	}
	return nil
}

// step measures a step and adds it to the report.
func (w *wholeRun) step(ctx context.Context, work runner.Work) (err error) {
	s := wholeStep{run: w, work: work}
	defer func() {
		if ctx.Err() == nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := s.prepare(ctx); err != nil {
		return err
	}
	o := w.Meter
	o.Clock, o.Self = w.machine.Clock(), os.Getpid()
	if w.selfTest != nil {
		o.SelfTest = w.selfTest
	}
	if w.Progress != nil {
		o.Progress = func(e Event) {
			if e.Stage == "measure" {
				e.Stage = work.String()
			}
			w.tell(e)
		}
	}
	meter, err := power.NewMeter(w.machine.Card(), o)
	if err != nil {
		return err
	}
	loads := power.Loads{Arrangements: len(w.models), Arrange: s.arrange}
	for i := range w.models {
		l := placed{&s, i}
		switch i {
		case 0:
			loads.Baseline = l
		case 1:
			loads.Null = l
		default:
			loads.Variants = append(loads.Variants, l)
		}
	}
	result, err := meter.Compare(ctx, loads)
	if result == nil {
		return err
	}
	for _, reason := range s.wrong {
		result.Invalidate("%s", reason)
	}
	w.selfTest = result.SelfTest
	done := w.newWholeStep(work, result)
	done.Kernels = s.steps[0].Kernels()
	w.report.Steps = append(w.report.Steps, done)
	if err == nil {
		err = s.linear(ctx, meter, &w.report.Steps[len(w.report.Steps)-1])
	}
	return err
}

// wholeStep is a step that is being measured.
type wholeStep struct {
	run   *wholeRun
	work  runner.Work
	steps []Step    // one step for each memory
	next  [][]int32 // tokens that each model computed before any exchange
	wrong []string  // models whose later tokens differ
}

// prepare captures the step in every model's memory, and checks that the copy computes the source's tokens.
func (s *wholeStep) prepare(ctx context.Context) error {
	w := s.run
	if err := w.turn(ctx, 0); err != nil {
		return err
	}
	for i, m := range w.models {
		var like Step
		if i > 0 {
			like = s.steps[0]
		}
		step, err := m.NewStep(ctx, w.names[i], s.work, like)
		if errors.Is(err, cuda.ErrOutOfMemory) {
			err = fmt.Errorf("%w: measure a step with fewer sequences or fewer tokens", err)
		}
		if err != nil {
			return fmt.Errorf("%v: %w", s.work, err)
		}
		s.steps = append(s.steps, step)
	}
	for _, step := range s.steps {
		next, err := tokensOf(ctx, step)
		if err != nil {
			return err
		}
		s.next = append(s.next, next)
	}
	s.check("the copy and the source computed different tokens", s.next[1], s.next[0])
	return nil
}

// tokensOf runs a step once.
func tokensOf(ctx context.Context, s Step) ([]int32, error) {
	if err := s.Start(1); err != nil {
		return nil, err
	}
	if err := s.Wait(ctx); err != nil {
		return nil, err
	}
	return s.Next()
}

func (s *wholeStep) check(reason string, got, want []int32) {
	if !slices.Equal(got, want) && !slices.Contains(s.wrong, reason) {
		s.wrong = append(s.wrong, reason)
	}
}

// arrange moves every model places memories from its own, and checks that its results have not changed.
func (s *wholeStep) arrange(ctx context.Context, places int) error {
	if places == s.run.turned {
		return nil
	}
	if err := s.run.turn(ctx, places); err != nil {
		return err
	}
	for i, name := range s.run.names {
		got, err := tokensOf(ctx, s.at(i))
		if err != nil {
			return err
		}
		s.check(fmt.Sprintf("%s computed different tokens after the models exchanged their memory", name), got, s.next[i])
	}
	return nil
}

// at returns the step of the memory that holds model i.
func (s *wholeStep) at(i int) Step { return s.steps[s.run.place(i)] }

// linearSettle is how long the linear layers run before a window. It is short, because their power is close to the
// step's power.
const linearSettle = 500 * time.Millisecond

// linear measures the linear layers of the source alone, in two windows.
func (s *wholeStep) linear(ctx context.Context, m *power.Meter, into *WholeStep) error {
	if into.Before.Joules == 0 {
		return nil
	}
	at := s.run.place(0)
	work := s.work
	work.Linear = true
	step, err := s.run.models[at].NewStep(ctx, "linear layers of the source", work, s.steps[0])
	if err != nil {
		return fmt.Errorf("%v: %w", work, err)
	}
	s.steps = append(s.steps, step)
	const windows = 2
	var energy, time float64
	for range windows {
		r, err := m.Reading(ctx, step, linearSettle)
		if err != nil {
			return err
		}
		energy += r.PerExecution / into.Run.Baseline.Joules / windows
		time += r.Seconds / into.Run.Baseline.Seconds / windows
	}
	into.LinearEnergy, into.LinearTime = energy, time
	return nil
}

func (s *wholeStep) close() (err error) {
	for _, step := range slices.Backward(s.steps) {
		err = errors.Join(err, step.Close())
	}
	return err
}

// placed is a model's step in the memory that holds the model at the moment.
type placed struct {
	step  *wholeStep
	model int
}

func (p placed) Name() string                    { return p.step.run.names[p.model] }
func (p placed) Start(n int) error               { return p.step.at(p.model).Start(n) }
func (p placed) Wait(ctx context.Context) error  { return p.step.at(p.model).Wait(ctx) }
func (p placed) Elapsed() (time.Duration, error) { return p.step.at(p.model).Elapsed() }

func (w *wholeRun) newWholeStep(work runner.Work, run *power.Result) WholeStep {
	s := WholeStep{Phase: "prefill", Batch: work.Sequences, Context: work.Context, Tokens: work.Tokens(), Run: run}
	if work.Decode {
		s.Phase = "decode"
	}
	if len(run.Variants) == 0 {
		return s
	}
	after := run.Variants[0]
	s.Relative, s.Interval = after.RelativeEnergy, after.Interval
	s.RelativeTime, s.TimeInterval = after.RelativeTime, after.TimeInterval
	s.Before, s.After, s.Copy = stepCost(run.Baseline, s.Tokens), stepCost(after.Summary, s.Tokens), stepCost(run.Null.Summary, s.Tokens)
	for i, v := range run.Variants[1:] {
		s.Others = append(s.Others, WholeOther{Model: w.Others[i].Dir, Relative: v.RelativeEnergy, Interval: v.Interval,
			RelativeTime: v.RelativeTime, TimeInterval: v.TimeInterval, After: stepCost(v.Summary, s.Tokens)})
	}
	return s
}

func stepCost(s power.Summary, tokens int) StepCost {
	c := StepCost{Joules: s.Joules / float64(tokens), Seconds: s.Seconds / float64(tokens), Watts: s.Watts, SMClock: s.SMClock, Capped: s.Capped}
	if s.Seconds > 0 {
		c.PerSecond = float64(tokens) / s.Seconds
	}
	return c
}

// finish computes the requests and lists the reasons why figures are not valid.
func (r *WholeReport) finish(o WholeOptions) {
	var names []string
	var runs []*Result
	var prefill *WholeStep
	for i := range r.Steps {
		s := &r.Steps[i]
		names, runs = append(names, s.Name()), append(runs, &Result{Result: s.Run})
		if s.Phase == "prefill" && s.Relative > 0 {
			prefill = s
		}
	}
	r.Invalid = InvalidReasons(names, runs)
	if prefill == nil || o.Output == 0 {
		return
	}
	for _, s := range r.Steps {
		if s.Phase != "decode" || s.Relative == 0 {
			continue
		}
		q := Request{Batch: s.Batch, Context: s.Context, Prompt: o.Prompt, Output: o.Output}
		all := func(prefill, decode float64) (perOutput, perTotal float64) {
			joules := float64(q.Prompt)*prefill + float64(q.Output)*decode
			return joules / float64(q.Output), joules / float64(q.Prompt+q.Output)
		}
		q.PerOutputBefore, q.PerTotalBefore = all(prefill.Before.Joules, s.Before.Joules)
		q.PerOutputAfter, q.PerTotalAfter = all(prefill.After.Joules, s.After.Joules)
		share := float64(q.Output) * s.Before.Joules / (float64(q.Output)*s.Before.Joules + float64(q.Prompt)*prefill.Before.Joules)
		q.Relative = share*s.Relative + (1-share)*prefill.Relative
		if s.Interval != nil && prefill.Interval != nil {
			off := func(end int) float64 {
				return math.Hypot(share*(s.Interval[end]-s.Relative), (1-share)*(prefill.Interval[end]-prefill.Relative))
			}
			q.Interval = []float64{q.Relative - off(0), q.Relative + off(1)}
		}
		r.Requests = append(r.Requests, q)
	}
}

// Name returns the step's description, such as "decode, batch 16, context 1024".
func (s *WholeStep) Name() string {
	return strings.TrimSpace(runner.Work{Sequences: s.Batch, Context: s.Context, Decode: s.Phase == "decode"}.String())
}

// Holds reports whether all steps are valid. If precise is true, they must also have reached the meter's precision.
func (r *WholeReport) Holds(precise bool) bool {
	short := func(s WholeStep) bool {
		return s.Relative == 0 || precise && s.Run.Stopped != power.StoppedPrecision
	}
	return len(r.Steps) > 0 && len(r.Invalid) == 0 && !slices.ContainsFunc(r.Steps, short)
}
