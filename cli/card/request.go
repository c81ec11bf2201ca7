package card

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/operand"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// request holds the flags of the commands that multiply matrices.
type request struct {
	flag.Options
	w, x    operand.Source // an empty x is the default for the type
	against []operand.Source
	dtype   arith.Type    // 0: the type of the weights
	m       int           // tokens; 0: as many as x has, or the number for prefill
	shape   *gemm.Problem // shape of patterns; nil: weights from files have their own
	cold    bool          // read the weights from memory
	kernel  cost.Kernel   // of quantised layers; empty: the default ones
	onCard  bool          // for a card, not for predictions
	seed    uint64
	meter   power.Options
	duties  []float64    // empty: no gaps
	set     *operand.Set // nil until operands are made
}

// operands returns the options from which the request's operands are made.
func (q *request) operands() operand.Options {
	o := operand.Options{Type: q.dtype, X: q.x, Tokens: q.m, Streaming: q.Role == cost.Streaming, Seed: q.seed, Family: q.Family,
		Quantised: true, Kernel: q.kernel, OnCard: q.onCard}
	if q.shape != nil {
		o.N, o.K = q.shape.N, q.shape.K
	}
	return o
}

// pathsOf returns the files and folders that sources are read from.
func pathsOf(sources ...operand.Source) (paths []string) {
	for _, s := range sources {
		if s.Path != "" {
			paths = append(paths, s.Path)
		}
	}
	return paths
}

// models returns the files and folders that operands are read from.
func (q *request) models() []string { return pathsOf(append(q.against, q.w, q.x)...) }

// Close closes the models that were opened for operands.
func (q *request) Close() error {
	if q.set == nil {
		return nil
	}
	return q.set.Close()
}

func measureRequest(c *cli.Context) (*request, error) {
	var o flag.Options
	var err error
	if o.Role, err = cost.ParseRole(c.String("role")); err != nil {
		return nil, exit.Usage(fmt.Errorf("--role: %w", err))
	}
	if o.Family, err = flag.ReadFamily(c); err != nil {
		return nil, err
	}
	q, err := meterRequest(c, o)
	if err != nil {
		return nil, err
	}
	q.cold = c.Bool("cold")
	if c.IsSet("dtype") {
		if q.dtype, err = arith.ParseType(strings.ToLower(c.String("dtype"))); err != nil {
			return nil, exit.Usage(fmt.Errorf("--dtype: %w", err))
		}
	}
	q.w = operand.DefaultW(q.dtype)
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
	seen := map[string]bool{q.w.Text: true}
	if slices.Equal(against, []string{"none"}) {
		against = nil
	}
	for _, text := range against {
		text = flag.Path(text)
		if text == "none" {
			return nil, exit.Usagef("--against none excludes every other --against: leave the others out")
		}
		s, err := operand.Parse(text)
		if err != nil {
			return nil, sourceError("against", err)
		}
		if seen[text] {
			return nil, exit.Usagef("--against %s is given twice or equals --w: leave it out; a copy of --w is always measured", text)
		}
		seen[text] = true
		q.against = append(q.against, s)
	}
	if q.w.Path == "" {
		if i := slices.IndexFunc(q.against, func(s operand.Source) bool { return s.Path != "" }); i >= 0 {
			return nil, exit.Usagef("--against %s: weights from a file can only be compared with weights from a file: give a tensor of a file as --w, too", q.against[i].Text)
		}
	}
	if len(q.against) > 0 {
		noticeOrder(c, q.w, q.against[0])
	}
	return q, q.readShape(c.String("shape"), q.w.HasShape())
}

// meterRequest reads the flags of every command that measures.
func meterRequest(c *cli.Context, o flag.Options) (*request, error) {
	q := &request{Options: o, seed: c.Uint64("seed"), onCard: true}
	var err error
	if name := c.String("kernel"); name != "" {
		if q.kernel, err = cost.ParseKernel(name); err != nil {
			return nil, exit.Usage(fmt.Errorf("--kernel: %w", err))
		}
	}
	q.meter = power.Options{
		Time: c.Duration("time"), Window: c.Duration("window"), Seed: q.seed,
		Date: time.Now(), Command: term.CommandLine(os.Args[1:]...),
	}
	if q.duties, err = parseDuties(c.String("duty")); err != nil {
		return nil, exit.Usage(fmt.Errorf("--duty: %w", err))
	}
	precision, err := parseShare(c.String("precision"), usualPrecision)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("--precision: %w", err))
	}
	q.meter.Precision = precision
	if c.Duration("time") <= 0 {
		return nil, exit.Usagef("--time %v: give a time such as 60s", c.Duration("time"))
	}
	if c.IsSet("window") && c.Duration("window") == 0 {
		return nil, exit.Usagef("--window 0s: give a time such as 1s")
	}
	if err := q.meter.Validate(); err != nil {
		return nil, exit.Usage(err)
	}
	if w := c.Duration("window"); 4*w > q.meter.Time {
		return nil, exit.Usagef("--window %v: a block has at least four readings, but --time is %v: give a shorter --window or a longer --time", w, q.meter.Time)
	}
	return q, nil
}

// readShape reads MxNxK, or M alone if the weights are read from files.
func (q *request) readShape(text string, shaped bool) error {
	const advice = "give M, N and K as in 8192x8192x8192"
	var sizes []int
	if text != "" {
		for part := range strings.SplitSeq(strings.NewReplacer("X", "x", "×", "x").Replace(text), "x") {
			n, err := strconv.Atoi(part)
			if err != nil || n < 1 {
				return exit.Usagef("--shape %s: %q is not a size; %s", text, part, advice)
			}
			sizes = append(sizes, n)
		}
	}
	switch {
	case len(sizes) == 3:
	case len(sizes) == 0 && !shaped:
		sizes = []int{operand.PrefillTokens, operand.DefaultSize, operand.DefaultSize}
	case len(sizes) == 0:
		return nil
	case len(sizes) == 1 && shaped:
		q.m = sizes[0]
		return nil
	default:
		return exit.Usagef("--shape %s: %s", text, advice)
	}
	q.m = sizes[0]
	q.shape = &gemm.Problem{M: sizes[0], N: sizes[1], K: sizes[2], Type: q.dtype}
	if q.shape.Type == 0 {
		q.shape.Type = arith.BF16
	}
	if err := q.shape.Validate(); err != nil {
		return exit.Usage(fmt.Errorf("--shape: %w", err))
	}
	return nil
}

// usualPrecision is an example of a --precision.
const usualPrecision = 0.005

// parseShare reads "0.5%" or "0.005". Errors show the example.
func parseShare(text string, example float64) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a share: write %g%% or %g", text, 100*example, example)
	}
	if percent {
		v /= 100
	}
	if !(v > 0 && v < 1) {
		return 0, fmt.Errorf("%q: give a share between 0 and 1, such as %g%%", text, 100*example)
	}
	return v, nil
}
