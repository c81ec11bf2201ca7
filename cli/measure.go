package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
)

var (
	xFlag         = &cli.StringFlag{Name: "x", Usage: "activations: a `SOURCE`", DefaultText: "as usual"}
	deviceFlag    = &cli.StringFlag{Name: "device", Value: "0", Usage: "`NUMBER` of the GPU, or simulated", DefaultText: "0"}
	precisionFlag = &cli.StringFlag{Name: "precision", Value: "0.3%", Usage: "stop when all intervals are ± this `SHARE`", DefaultText: "0.3%"}
	benchFlag     = &cli.BoolFlag{Name: "bench", Usage: "print Go benchmark lines, one for each reading", DisableDefaultText: true}
	windowFlag    = &cli.DurationFlag{Name: "window", Usage: "`LENGTH` of one reading", DefaultText: "1s"}
)

var measureCommand = &cli.Command{
	Name:  "measure",
	Usage: "run a product on the GPU with different weights and compare its energy",
	Description: `Measures y[M,N] = x[M,K]·w[N,K]ᵀ with the weights --w, with a copy of them, and with every
--against, in turns, until the intervals are as narrow as --precision or --time is spent.

A SOURCE is one of
   normal(MEAN,SIGMA), const(VALUE), zeros
   PATH:TENSOR   a tensor of a folder or a safetensors file
   PATH:         all linear layers, one after the other; PATH:*up_proj.weight those that match.
                 For --against, the same layers of another model; for --x, the tensor that is
                 named like the layer.
Usual are normal(0,0.02) for w and normal(0,1) for x; normal(0,1) for both in FP8, normal(0,32)
in INT8. Tensors of other types are scaled by a power of two to the range of these two.

   lowtoggle measure --w MODEL: --against OUT:
   lowtoggle measure --against 'const(1)' --against zeros --shape 4096x4096x4096 --dtype fp8
   lowtoggle measure --against none                  # the copy alone: how sure is a run?

TYPE is fp32, tf32, fp16, bf16, fp16-cuda (no tensor cores), fp8 or int8. --device simulated
needs no GPU and shows what a report looks like. Lines of --bench are for benchstat -col /w.

Nothing about the card is ever changed. Exit status 3: invalid, or less precise than --precision
asked; 4: no GPU.`,
	Flags: flags([]cli.Flag{
		&cli.StringFlag{Name: "w", Usage: "weights to compare with: a `SOURCE`", DefaultText: "as usual"},
		&cli.StringSliceFlag{Name: "against", Usage: "weights to compare: a `SOURCE`", DefaultText: "zeros"},
		xFlag,
		&cli.StringFlag{Name: "shape", Usage: "`MxNxK`, or M where --w is a tensor", DefaultText: "8192 each"},
		&cli.StringFlag{Name: "dtype", Usage: "`TYPE` to multiply in", DefaultText: "the tensor's, or bf16"},
		&cli.StringFlag{Name: "role", Value: "stationary", Usage: "the weights' `ROLE`; the other is streaming", DefaultText: "stationary"},
		&cli.BoolFlag{Name: "cold", Usage: "read the weights from memory, as decoding does", DisableDefaultText: true},
		precisionFlag,
		&cli.DurationFlag{Name: "time", Value: time.Minute, Usage: "begin no block that ends later", DefaultText: "1m0s"},
		windowFlag, deviceFlag, seedFlag, archFlag, benchFlag, jsonFlag, quietFlag,
	}),
	Action: func(c *cli.Context) (err error) {
		if _, err := arguments(c); err != nil {
			return err
		}
		if c.Bool("json") && c.Bool("bench") {
			return usagef("--json and --bench exclude each other")
		}
		q, err := measureRequest(c)
		if err != nil {
			return err
		}
		defer closing(&err, q.Close)
		machine, err := openMachine(c.String("device"), q.seed)
		if err != nil {
			return err
		}
		defer closing(&err, machine.Close)
		var baseline measure.Candidate
		var variants []measure.Candidate
		if err := q.guard(func() error {
			baseline, variants, err = q.candidates(c.Context, machine)
			return err
		}); err != nil {
			return err
		}
		event, end := newProgress(c)
		r, err := q.compare(c, machine, q.meter, q.cold, baseline, variants, event)
		end()
		if r == nil {
			return err
		}
		report := measureReport{r, q.title(baseline)}
		if failed := report.write(c); err == nil {
			err = failed
		}
		if err == nil && (!r.Valid || c.IsSet("precision") && r.Stopped != stoppedByPrecision) {
			return errShort
		}
		return err
	},
}

// How a comparison ends ([power.Result]).
const stoppedByPrecision, stoppedByTime = "precision", "time"

// request is what measure and verify --gpu are asked for.
type request struct {
	operands
	w       source
	against []source
	m       int           // tokens; 0: as many as x has, or defaultTokens
	shape   *gemm.Problem // of drawn weights
	cold    bool          // read the weights from memory
	meter   power.Options
	mapped  []string // models that the command has opened itself
}

func measureRequest(c *cli.Context) (*request, error) {
	var o readings
	var err error
	if o.role, err = cost.ParseRole(c.String("role")); err != nil {
		return nil, usageError{fmt.Errorf("--role: %w", err)}
	}
	if o.family, err = family(c); err != nil {
		return nil, err
	}
	q, err := meterRequest(c, o)
	if err != nil {
		return nil, err
	}
	q.cold = c.Bool("cold")
	if c.IsSet("dtype") {
		if q.dtype, err = gemm.ParseType(strings.ToLower(c.String("dtype"))); err != nil {
			return nil, usageError{fmt.Errorf("--dtype: %w", err)}
		}
	}
	q.w = usualW(q.dtype)
	if err := readSource(c, "w", &q.w); err != nil {
		return nil, err
	}
	if err := readSource(c, "x", &q.x); err != nil {
		return nil, err
	}
	against := c.StringSlice("against")
	if len(against) == 0 {
		against = []string{"zeros"}
	}
	seen := map[string]bool{q.w.text: true}
	if slices.Equal(against, []string{"none"}) {
		against = nil
	}
	for _, text := range against {
		if text == "none" {
			return nil, usagef("--against none excludes every other --against")
		}
		s, err := parseSource(text)
		if err != nil {
			return nil, aboutFlag("against", err)
		}
		if seen[text] {
			return nil, usagef("--against %s is given twice or is what --w is; a copy of --w is measured in any case", text)
		}
		seen[text] = true
		q.against = append(q.against, s)
	}
	if q.w.path == "" {
		if i := slices.IndexFunc(q.against, func(s source) bool { return s.path != "" }); i >= 0 {
			return nil, usagef("--against %s: weights from a file are compared with those of a file: give --w a tensor too", q.against[i].text)
		}
	}
	return q, q.readShape(c.String("shape"))
}

// meterRequest reads the flags that every command with a meter has.
func meterRequest(c *cli.Context, o readings) (*request, error) {
	q := &request{operands: operands{readings: o, seed: c.Uint64("seed"), models: map[string]*weights.Model{}, drawn: map[shape]gemm.Matrix{}}}
	q.meter = power.Options{
		Time: c.Duration("time"), Window: c.Duration("window"), Seed: q.seed,
		Date: time.Now(), Command: command(os.Args[1:]...),
	}
	precision, err := parseShare(c.String("precision"))
	if err != nil {
		return nil, usageError{fmt.Errorf("--precision: %w", err)}
	}
	q.meter.Precision = precision
	if c.Duration("time") <= 0 {
		return nil, usagef("--time %v: give a time such as 60s", c.Duration("time"))
	}
	if err := q.meter.Validate(); err != nil {
		return nil, usageError{err}
	}
	if w := c.Duration("window"); 4*w > q.meter.Time {
		return nil, usagef("--window %v: a block takes at least four such readings, and --time is %v", w, q.meter.Time)
	}
	return q, nil
}

// readSource reads a flag's source, where it is given.
func readSource(c *cli.Context, name string, to *source) (err error) {
	if !c.IsSet(name) {
		return nil
	}
	*to, err = parseSource(c.String(name))
	return aboutFlag(name, err)
}

// aboutFlag says which flag an error is about; that a file is not there is no wrong usage.
func aboutFlag(name string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("--%s: %w", name, err)
	if errors.Is(err, errNoSuchFile) {
		return err
	}
	return usageError{err}
}

// readShape reads MxNxK, or M alone for weights from a file.
func (q *request) readShape(text string) error {
	const advice = "give M, N and K as in 8192x8192x8192"
	var sizes []int
	if text != "" {
		for part := range strings.SplitSeq(strings.NewReplacer("X", "x", "×", "x").Replace(text), "x") {
			n, err := strconv.Atoi(part)
			if err != nil || n < 1 {
				return usagef("--shape %s: %q is no size; %s", text, part, advice)
			}
			sizes = append(sizes, n)
		}
	}
	drawn := q.w.path == ""
	switch {
	case len(sizes) == 3:
	case len(sizes) == 0 && drawn:
		sizes = []int{defaultTokens, defaultTokens, defaultTokens}
	case len(sizes) == 0:
		return nil
	case len(sizes) == 1 && !drawn:
		q.m = sizes[0]
		return nil
	default:
		return usagef("--shape %s: %s", text, advice)
	}
	q.m = sizes[0]
	q.shape = &gemm.Problem{M: sizes[0], N: sizes[1], K: sizes[2], Type: q.dtype}
	if q.shape.Type == 0 {
		q.shape.Type = gemm.BF16
	}
	if err := q.shape.Validate(); err != nil {
		return usageError{fmt.Errorf("--shape: %w", err)}
	}
	return nil
}

// candidates makes the products of --w and of every --against.
func (q *request) candidates(ctx context.Context, m measure.Machine) (baseline measure.Candidate, variants []measure.Candidate, err error) {
	streaming := q.role == cost.Streaming
	var like []layer
	if q.w.path == "" {
		if err := q.fits(m); err != nil {
			return baseline, nil, err
		}
		like = []layer{{name: "w", w: gemm.Matrix{DType: q.shape.Type.Operand(), Rows: q.shape.N, Cols: q.shape.K}}}
	}
	base, err := q.layers(ctx, q.w, like)
	if err != nil {
		return baseline, nil, err
	}
	if s := q.shape; s != nil && q.w.path != "" && (len(base) != 1 || base[0].w.Rows != s.N || base[0].w.Cols != s.K) {
		return baseline, nil, usagef("--shape: %s is %s with N=%d, K=%d; give M alone", q.w.text, plural(len(base), "layer", "layers, the first"), base[0].w.Rows, base[0].w.Cols)
	}
	if baseline, err = q.candidate(ctx, q.label(q.w), base, base, q.m, streaming); err != nil {
		return baseline, nil, err
	}
	for _, s := range q.against {
		layers, err := q.layers(ctx, s, base)
		if err != nil {
			return baseline, nil, err
		}
		v, err := q.candidate(ctx, q.label(s), layers, base, q.m, streaming)
		if err != nil {
			return baseline, nil, err
		}
		variants = append(variants, v)
	}
	return baseline, variants, nil
}

// label is what a source is called in tables: the tensors are left out where all have the same.
func (q *request) label(s source) string {
	if s.path == "" || slices.ContainsFunc(q.against, func(a source) bool { return a.path != "" && a.tensors != q.w.tensors }) {
		return s.text
	}
	return s.path + ":"
}

// fits refuses drawn operands that the card has no room for, before they fill the host's memory.
func (q *request) fits(m measure.Machine) error {
	room := 16e9 // of a simulated card
	if p := m.Platform(); p != nil {
		room = float64(p.Memory)
	}
	if need := float64(2+len(q.against)) * q.shape.Bytes(); need > room {
		return fmt.Errorf("--shape: %s take %s on the card, and it has %s: choose a smaller shape",
			plural(2+len(q.against), "product", "products"), size(int64(min(need, math.MaxInt64/2))), size(int64(room)))
	}
	return nil
}

// compare measures, with progress.
func (q *request) compare(c *cli.Context, m measure.Machine, meter power.Options, cold bool, baseline measure.Candidate, variants []measure.Candidate, event func(transform.Event)) (r *measure.Result, err error) {
	o := measure.Options{Cold: cold, Meter: meter}
	o.Prepared = func(done, total int) {
		event(transform.Event{Stage: "prepare", Done: int64(done), Total: int64(total)})
	}
	var from *float64 // when the comparison's first window began, in the meter's seconds
	comparing := false
	o.Meter.Events = power.Events{
		Stage: func(name string) {
			comparing = name == "compare"
			event(transform.Event{Stage: name, Total: 1})
		},
		Window: func(w power.Window) {
			if !comparing {
				return
			}
			if from == nil {
				from = &w.Begin
			}
			spent := time.Duration((w.Begin + w.Length - *from) * float64(time.Second))
			event(transform.Event{Stage: "measure", Done: int64(min(spent, meter.Time)), Total: int64(meter.Time)})
		},
	}
	err = q.guard(func() (err error) {
		r, err = measure.Compare(c.Context, m, baseline, variants, o)
		return err
	})
	return r, err
}

// guard is for work that reads the models' mapped memory.
func (q *request) guard(work func() error) error {
	paths := slices.Clone(q.mapped)
	for _, s := range append([]source{q.w, q.x}, q.against...) {
		if s.path != "" && !slices.Contains(paths, s.path) {
			paths = append(paths, s.path)
		}
	}
	return weights.Guard(strings.Join(paths, ", "), work)
}

// title says what was multiplied.
func (q *request) title(c measure.Candidate) string {
	first := c.Products[0].Problem
	what := first.String()
	if n := len(c.Products); n > 1 {
		role := "stationary"
		if first.Streaming {
			role = "streaming"
		}
		what = fmt.Sprintf("%d layers, %d tokens, %v %s", n, first.M, first.Type, role)
	}
	if q.cold {
		what += ", weights from memory"
	}
	what += ", x " + q.xText(first.Type)
	if q.w.tensors != "" {
		what += ", w " + q.w.tensors
	}
	return what
}

// xText is how --x would be written.
func (o *operands) xText(typ gemm.Type) string {
	if o.x.text == "" {
		return usualX(typ).text
	}
	return o.x.text
}

// openMachine opens the GPU of that number, or a simulated one with noise of its own.
func openMachine(device string, seed uint64) (measure.Machine, error) {
	if device == "simulated" {
		o := power.H200Sim()
		o.Seed = seed + 1
		return measure.Simulated(o), nil
	}
	index, err := strconv.Atoi(device)
	if err != nil || index < 0 {
		return nil, usagef("--device %s: give a number, 0 for the first GPU, or simulated", device)
	}
	return measure.Open(index)
}

// parseShare reads "0.5%" or "0.005".
func parseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no share: write 0.5%% or 0.005", text)
	}
	if percent {
		v /= 100
	}
	if !(v > 0 && v < 1) {
		return 0, fmt.Errorf("%q: give a share between 0 and 1, such as 0.5%%", text)
	}
	return v, nil
}
