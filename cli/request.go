package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/weights"
)

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
		Date: time.Now(), Command: term.CommandLine(os.Args[1:]...),
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
