package cli

import (
	"fmt"
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
	xFlag         = &cli.StringFlag{Name: "x", Usage: "activations: a `SOURCE`", DefaultText: "normal(0,1); INT8: normal(0,32)"}
	deviceFlag    = &cli.StringFlag{Name: "device", Value: "0", Usage: "`NUMBER` of the GPU as CUDA counts, or simulated: no GPU, no meaning"}
	precisionFlag = &cli.StringFlag{Name: "precision", Value: "0.3%", Usage: "stop when every interval is ± this `SHARE` or narrower"}
	windowFlag    = &cli.DurationFlag{Name: "window", Usage: "`LENGTH` of one reading", DefaultText: "1s, or what leaves room for ten blocks"}
)

var measureCommand = &cli.Command{
	Name:  "measure",
	Usage: "run a product on the GPU with different weights and compare its energy",
	Description: `Measures y[M,N] = x[M,K]·w[N,K]ᵀ with the weights --w, with a copy of them, and with each --against,
in turns, until the intervals are as narrow as --precision or --time is spent.

A SOURCE is one of
   normal(MEAN,SIGMA), const(VALUE), zeros
   PATH:TENSOR      a tensor of a folder or a safetensors file
   PATH:            all linear layers, run one after the other; with a pattern, PATH:*up_proj.weight,
                    those that match. --against OTHER: takes the same layers of another model,
                    --against zeros draws them. For --x, the tensor named like the layer.

   lowtoggle measure --w MODEL: --against OUT:
   lowtoggle measure --against 'const(0.02)' --against zeros --shape 4096x4096x4096 --dtype fp8

Nothing about the card is ever changed. Exit status 3: invalid, or less precise than --precision
asked; 4: no GPU.`,
	Flags: flags([]cli.Flag{
		&cli.StringFlag{Name: "w", Value: "normal(0,0.02)", Usage: "weights to compare with: a `SOURCE`", DefaultText: "normal(0,0.02); INT8: normal(0,32)"},
		&cli.StringSliceFlag{Name: "against", Usage: "weights to compare: a `SOURCE`, may be repeated; none: the copy alone", DefaultText: "zeros"},
		xFlag,
		&cli.StringFlag{Name: "shape", Usage: "`MxNxK`, or M where --w is a tensor", DefaultText: "8192x8192x8192"},
		&cli.StringFlag{Name: "dtype", Usage: "`TYPE` to multiply in: fp32, tf32, fp16, bf16, fp16-cuda, fp8, int8", DefaultText: "the tensor's, or bf16"},
		roleFlag,
		&cli.BoolFlag{Name: "cold", Usage: "read the weights from memory as decoding does; layers are stacked to 32 MB", DisableDefaultText: true},
		precisionFlag,
		&cli.DurationFlag{Name: "time", Value: time.Minute, Usage: "stop after this `TIME` of measuring"},
		windowFlag, deviceFlag, seedFlag, archFlag,
		&cli.BoolFlag{Name: "bench", Usage: "print Go benchmark lines, a line for each block, for benchstat -col /w", DisableDefaultText: true},
		jsonFlag, quietFlag,
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
			baseline, variants, err = q.candidates()
			return err
		}); err != nil {
			return err
		}
		event, end := newProgress(c)
		r, err := q.compare(c, machine, baseline, variants, event)
		end()
		if r == nil {
			return err
		}
		report := measureReport{r, q.title(machine, baseline)}
		if failed := report.write(c); err == nil {
			err = failed
		}
		if err == nil && (!r.Valid || c.IsSet("precision") && r.Stopped != "precision") {
			return errShort
		}
		return err
	},
}

// request is what measure and verify --gpu are asked for.
type request struct {
	operands
	w       source
	against []source
	shape   *gemm.Problem // of drawn weights
	meter   power.Options
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
		if q.dtype, err = gemm.ParseType(c.String("dtype")); err != nil {
			return nil, usageError{fmt.Errorf("--dtype: %w", err)}
		}
	}
	if q.w, err = q.sourceFlag(c, "w", "normal(0,0.02)"); err != nil {
		return nil, err
	}
	if q.x, err = q.sourceFlag(c, "x", "normal(0,1)"); err != nil {
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
		s, err := parseSource(text)
		if err != nil {
			return nil, usageError{fmt.Errorf("--against: %w", err)}
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
	return q, nil
}

// sourceFlag reads a flag's source; drawn INT8 values need another scale than the usual.
func (q *request) sourceFlag(c *cli.Context, name, usual string) (source, error) {
	text := c.String(name)
	switch {
	case c.IsSet(name):
	case q.dtype == gemm.INT8:
		text = "normal(0,32)"
	default:
		text = usual
	}
	s, err := parseSource(text)
	if err != nil {
		return s, usageError{fmt.Errorf("--%s: %w", name, err)}
	}
	return s, nil
}

// readShape reads MxNxK, or M alone for weights from a file.
func (q *request) readShape(text string) error {
	const advice = "give M, N and K as in 8192x8192x8192"
	var sizes []int
	if text != "" {
		for part := range strings.SplitSeq(text, "x") {
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
func (q *request) candidates() (baseline measure.Candidate, variants []measure.Candidate, err error) {
	streaming := q.role == cost.Streaming
	var like []layer
	if q.w.path == "" {
		like = []layer{{name: "w", w: gemm.Matrix{DType: q.shape.Type.Operand(), Rows: q.shape.N, Cols: q.shape.K}}}
	}
	base, err := q.layers(q.w, like)
	if err != nil {
		return baseline, nil, err
	}
	if s := q.shape; s != nil && q.w.path != "" && (len(base) != 1 || base[0].w.Rows != s.N || base[0].w.Cols != s.K) {
		return baseline, nil, usagef("--shape: %s is %d layers, the first with N=%d, K=%d; give M alone", q.w.text, len(base), base[0].w.Rows, base[0].w.Cols)
	}
	if baseline, err = q.candidate(q.w.text, base, streaming); err != nil {
		return baseline, nil, err
	}
	for _, s := range q.against {
		layers, err := q.layers(s, base)
		if err != nil {
			return baseline, nil, err
		}
		v, err := q.candidate(s.text, layers, streaming)
		if err != nil {
			return baseline, nil, err
		}
		variants = append(variants, v)
	}
	return baseline, variants, nil
}

// compare measures, with progress.
func (q *request) compare(c *cli.Context, m measure.Machine, baseline measure.Candidate, variants []measure.Candidate, event func(transform.Event)) (r *measure.Result, err error) {
	o := measure.Options{Cold: q.cold, Meter: q.meter}
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
			event(transform.Event{Stage: "measure", Done: int64(min(spent, q.meter.Time)), Total: int64(q.meter.Time)})
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
	for path := range q.models {
		next, name := work, path
		work = func() error { return weights.Guard(name, next) }
	}
	return work()
}

// title says what was multiplied.
func (q *request) title(m measure.Machine, c measure.Candidate) string {
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
		what += ", weights from memory, in layers of 32 MB or more"
	}
	return fmt.Sprintf("%s: %s, x %s", m.Card().Info().Name, what, q.x.text)
}

// openMachine opens the GPU of that number, or a simulated one with noise of its own.
func openMachine(device string, seed uint64) (measure.Machine, error) {
	if device == "simulated" {
		o := power.H200Sim()
		o.Seed = seed + 1
		return measure.Simulated(o), nil
	}
	index, err := strconv.Atoi(device)
	if err != nil {
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
