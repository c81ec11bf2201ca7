package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm/operand"
	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// mostWatts is more than any card draws. A larger power comes from a wrong unit.
const mostWatts = 10000

// Table describes a fit to rows that another program has measured.
type Table struct {
	Rows []Row
	Card string // the name of the card
	Date string // of the measurements, as in 2026-11-23
	// Kept is the path of a file for computed features. After an interrupt, a later call continues from this file. A successful
	// call removes the file. Empty: no file.
	Kept string
	// Prior gives the facts that the rows do not contain; nil: the built-in calibration nearest to the card.
	Prior *cost.Calibration
	// Progress is called with the number of rows whose operands were analysed, by one goroutine at a time; may be nil.
	Progress func(done, total int)
}

// Fewest is the number of rows that a fit needs for each type, without rows of random weights. With fewer rows the fit cannot be
// tested on rows that are left out.
const Fewest = 12

// Calibrate fits the cost model to the table. Rows are grouped by type, shape and role. The baseline of a group is its first row
// of random weights with no operation after them, such as normal(0,0.02). Rows with the same pattern are averaged. Copies are left
// out. The inputs are assumed to be [operand.DefaultX]. Without a clock, the baseline is assumed to run at the highest clock of the
// prior, and predictions have no clock. Calibrate returns an error for a group without a baseline, and for a type with fewer than
// [Fewest] other rows.
func (t Table) Calibrate(ctx context.Context) (*cost.Calibration, error) {
	switch {
	case t.Card == "":
		return nil, errors.New("the table has no name of the card: set Table.Card")
	case len(t.Rows) == 0:
		return nil, errors.New("the table has no rows: write a line for each measured GEMM below its header")
	}
	prior := t.Prior
	if prior == nil {
		var err error
		if prior, err = cost.CalibrationFor(t.Card); err != nil {
			return nil, err
		}
	}
	c := &cost.Calibration{Card: t.Card, Date: t.Date, Facts: prior.Facts}
	groups, err := t.series(&prior.Facts)
	if err != nil {
		return nil, err
	}
	swapped := swappedIn(groups)
	if err := t.observe(ctx, c, groups, swapped); err != nil {
		return nil, err
	}
	c.Series = groups
	if err := c.Fit(func(typ arith.Type) bool { return swapped[typ] }, prior); err != nil {
		return nil, err
	}
	if t.Kept != "" {
		os.Remove(t.Kept) // a file that stays does no harm
	}
	return c, nil
}

// series groups the rows, without features.
func (t Table) series(facts *cost.Facts) (all []cost.Series, err error) {
	var products []cost.Product
	rows := map[cost.Product][]Row{}
	for _, r := range t.Rows {
		if r.Copy {
			continue
		}
		if rows[r.Product] == nil {
			products = append(products, r.Product)
		}
		rows[r.Product] = append(rows[r.Product], r)
	}
	count := map[arith.Type]map[bool]int{}
	for _, p := range products {
		s, err := seriesOf(p, rows[p], facts)
		if err != nil {
			return nil, err
		}
		s.Date = t.Date
		all = append(all, s)
		if count[p.Type] == nil {
			count[p.Type] = map[bool]int{}
		}
		count[p.Type][p.Cold] += len(s.Points)
	}
	for typ, by := range count {
		for cold, n := range by {
			if n < Fewest {
				return nil, fmt.Errorf("%v with weights %s: a fit needs %d patterns of several kinds besides random weights, and the table has %d: measure more, or remove these rows",
					typ, map[bool]string{true: "from memory (M ≤ 64)", false: "on chip"}[cold], Fewest, n)
			}
		}
	}
	return all, nil
}

// seriesOf relates the rows of one product to their baseline.
func seriesOf(p cost.Product, rows []Row, facts *cost.Facts) (cost.Series, error) {
	static, first, last := facts.Power.Static.Usual, rows[0].Line, rows[len(rows)-1].Line
	s := cost.Series{Product: p, Change: "weights"}
	rows = averaged(rows)
	at := slices.IndexFunc(rows, func(r Row) bool { return random(r.Weights) })
	if at < 0 {
		return s, fmt.Errorf("lines %d to %d, %v %dx%dx%d %v: no baseline row: measure the random weights of lowtoggle calibrate --list as well, because the other rows are compared with their energy",
			first, last, p.Type, p.M, p.N, p.K, p.Role)
	}
	base := rows[at]
	s.Baseline = cost.Baseline{X: operand.DefaultX(p.Type).Text, W: base.Weights.String(), Joules: digits(base.Joules), Seconds: digits(base.Seconds),
		Watts: digits(base.Watts), Clock: digits(base.Clock)}
	b := &s.Baseline
	if b.Watts <= static {
		return s, fmt.Errorf("line %d: random weights draw %g W, but the model assumes %g W of static power: the model fits only cards of several hundred watts", base.Line, b.Watts, static)
	}
	if b.Watts > mostWatts {
		return s, fmt.Errorf("line %d: random weights draw %g W, but no card draws over %d W: give the joules and the seconds of one multiplication, not millijoules or microseconds", base.Line, b.Watts, mostWatts)
	}
	if allZero(base.Weights, p.Type.Operand()) {
		return s, fmt.Errorf("line %d: %s is nothing but zeros in %s, so the other rows cannot be compared with it: measure random weights such as normal(0,%g)", base.Line, b.W, p.Type.Operand(), cost.RandomSigma(p.Type.Operand()))
	}
	known := base.Clock > 0
	if !known {
		b.Clock, b.ClockAssumed = facts.Settings.HighestClock, true
	}
	for i, r := range rows {
		if i == at {
			continue
		}
		if times := r.Joules / b.Joules; times > mostTimes || times < 1/mostTimes {
			return s, fmt.Errorf("line %d: the energy is %.3g × the energy of the random weights: give joules and seconds of one execution", r.Line, times)
		}
		o := cost.Observation{X: b.X, W: r.Weights.String(), Family: familyOf(r.Weights), Energy: digits(r.Joules / b.Joules), Time: digits(r.Seconds / b.Seconds), Clock: 1}
		switch {
		case known && r.Clock > 0:
			o.Clock = digits(r.Clock / b.Clock)
		case !p.Cold: // the multipliers are the bottleneck
			o.Clock = digits(b.Seconds / r.Seconds)
		}
		s.Points = append(s.Points, o)
	}
	return s, nil
}

// averaged returns one row for each pattern, with the means of the pattern's rows. Patterns are in the order of their first lines.
// The clock is 0 unless all rows of the pattern have a clock.
func averaged(rows []Row) (means []Row) {
	at, count := map[string]int{}, []float64{}
	for _, r := range rows {
		i, again := at[r.Weights.String()]
		if !again {
			at[r.Weights.String()] = len(means)
			means, count = append(means, r), append(count, 1)
			continue
		}
		m := &means[i]
		m.Joules, m.Seconds, m.Watts = m.Joules+r.Joules, m.Seconds+r.Seconds, m.Watts+r.Watts
		if m.Clock == 0 || r.Clock == 0 {
			m.Clock = 0
		} else {
			m.Clock += r.Clock
		}
		count[i]++
	}
	for i, n := range count {
		m := &means[i]
		m.Joules, m.Seconds, m.Watts, m.Clock = m.Joules/n, m.Seconds/n, m.Watts/n, m.Clock/n
	}
	return means
}

// Repeats returns the number of rows that a fit leaves out as copies, and the number of rows that it averages into an earlier row.
func (t Table) Repeats() (copies, repeated int) {
	type of struct {
		cost.Product
		w string
	}
	seen := map[of]bool{}
	for _, r := range t.Rows {
		key := of{r.Product, r.Weights.String()}
		switch {
		case r.Copy:
			copies++
		case seen[key]:
			repeated++
		}
		seen[key] = seen[key] || !r.Copy
	}
	return copies, repeated
}

// mostTimes is the largest plausible ratio of a row's energy to the baseline's. With a larger ratio, the row probably has another
// unit or another number of executions.
const mostTimes = 10.0

// allZero reports whether random weights all become zero in a type.
func allZero(p pattern.Pattern, d weights.DType) bool {
	const side = 64
	data, err := p.Generate(context.Background(), pattern.Spec{DType: d, Rows: side, Cols: side}, 1)
	f, _ := d.Format()
	for i := range len(data) * 8 / f.Bits {
		if f.Value(f.Elem(data, i)) != 0 {
			return false
		}
	}
	return err == nil
}

// random reports whether a pattern is random weights with no operation after them.
func random(p pattern.Pattern) bool {
	text := p.String()
	return !strings.Contains(text, "|") && (strings.HasPrefix(text, "normal(") || strings.HasPrefix(text, "uniform("))
}

// familyOf returns a pattern's family: the name of its last operation. A test of the fit leaves out one family at a time.
func familyOf(p pattern.Pattern) string {
	steps := strings.Split(p.String(), "|")
	name, _, _ := strings.Cut(strings.TrimSpace(steps[len(steps)-1]), "(")
	switch name {
	case "const":
		return "constant"
	case "set":
		return "few values"
	case "zero", "random", "flip":
		return "bits"
	}
	return name
}

// swappedIn returns the types of swappedTypes from the series of a table.
func swappedIn(all []cost.Series) map[arith.Type]bool {
	energy := map[arith.Type]map[cost.Role]float64{}
	for _, s := range all {
		for _, o := range s.Points {
			if !s.Cold && strings.HasSuffix(o.W, runsOfRows) {
				if energy[s.Type] == nil {
					energy[s.Type] = map[cost.Role]float64{}
				}
				energy[s.Type][s.Role] = o.Energy
			}
		}
	}
	return swappedBy(energy)
}

// observe computes the features of all operands.
func (t Table) observe(ctx context.Context, c *cost.Calibration, all []cost.Series, swapped map[arith.Type]bool) error {
	kept, err := readKept(t.Kept)
	if err != nil {
		return err
	}
	type job struct {
		series *cost.Series
		w      string
		to     **cost.Features
	}
	var jobs []job
	for i := range all {
		s := &all[i]
		jobs = append(jobs, job{s, s.Baseline.W, &s.Baseline.Features})
		for k := range s.Points {
			jobs = append(jobs, job{s, s.Points[k].W, &s.Points[k].Features})
		}
	}
	var mu sync.Mutex
	done, fresh := 0, 0
	err = parallel.Run(ctx, len(jobs), 0, func(ctx context.Context, i int) error {
		j := jobs[i]
		key := fmt.Sprintf("%+v %t %s %s", j.series.Product, swapped[j.series.Type], j.series.Baseline.X, j.w)
		mu.Lock()
		f := kept[key]
		mu.Unlock()
		if f == nil {
			var err error
			if f, err = featuresOfTable(ctx, c, j.series, swapped[j.series.Type], j.w); err != nil {
				return fmt.Errorf("%s: %w", j.w, err)
			}
			mu.Lock()
			fresh++
			mu.Unlock()
		}
		mu.Lock()
		defer mu.Unlock()
		*j.to, kept[key] = f, f
		if done++; t.Progress != nil {
			t.Progress(done, len(jobs))
		}
		if fresh == saveEvery {
			fresh = 0
			return writeKept(t.Kept, kept)
		}
		return nil
	})
	if err != nil {
		return errors.Join(err, writeKept(t.Kept, kept))
	}
	return nil
}

// saveEvery is the number of points after which features are saved: some ten seconds of work.
const saveEvery = 16

func featuresOfTable(ctx context.Context, c *cost.Calibration, s *cost.Series, swapped bool, w string) (*cost.Features, error) {
	d := s.Type.Operand()
	draw := func(text string, rows int, seed uint64) (cost.Operand, error) {
		p, err := pattern.Parse(text)
		if err != nil {
			return nil, err
		}
		return Operand(ctx, p, pattern.Spec{DType: d, Rows: rows, Cols: s.K, Seed: seed})
	}
	xs, err := draw(s.Baseline.X, s.M, 1)
	if err != nil {
		return nil, err
	}
	ws, err := draw(w, s.N, 2)
	if err != nil {
		return nil, err
	}
	return c.Observe(ctx, d, s.Product, swapped, xs, ws)
}

// keptVersion is the version of files of kept features. Version 1 rounded the features.
const keptVersion = 2

// keptFile holds features without rounding, so that a continued fit has the same bytes as an uninterrupted fit. A nil rate is NaN.
type keptFile struct {
	Version  int                   `json:"features_version"`
	Features map[string][]*float64 `json:"features"`
}

// readKept returns the features in a file. It returns none if the file is absent or of version 1, and skips features with another
// number of rates.
func readKept(name string) (map[string]*cost.Features, error) {
	all := map[string]*cost.Features{}
	if name == "" {
		return all, nil
	}
	data, err := bounded.ReadFile(name, bounded.Config)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	var head struct {
		Version int `json:"features_version"`
	}
	var k keptFile
	switch err := json.Unmarshal(data, &head); {
	case err == nil && head.Version == 1:
		return all, nil
	case err != nil || head.Version != keptVersion || json.Unmarshal(data, &k) != nil || k.Features == nil:
		return nil, fmt.Errorf("%s: is not a file of an interrupted calibration: move the file away", name)
	}
	for key, rates := range k.Features {
		var f cost.Features
		if len(rates) != len(f) {
			continue
		}
		for i, v := range rates {
			if f[i] = math.NaN(); v != nil {
				f[i] = *v
			}
		}
		all[key] = &f
	}
	return all, nil
}

func writeKept(name string, kept map[string]*cost.Features) error {
	if name == "" {
		return nil
	}
	k := keptFile{keptVersion, map[string][]*float64{}}
	for key, f := range kept {
		rates := make([]*float64, len(f))
		for i := range f {
			if !math.IsNaN(f[i]) {
				rates[i] = &f[i]
			}
		}
		k.Features[key] = rates
	}
	data, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return atomicfile.Write(name, data)
}
