package bench

import (
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// readNulls returns all comparisons of at least two blocks, with readings of a second back to back, in the records below a
// folder. A comparison with [nullApart] may have one block, because there are many of the same weights.
func readNulls(t *testing.T, folder string) (all []*measure.Result) {
	t.Helper()
	err := filepath.WalkDir(folder, func(file string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".json" {
			return err
		}
		for _, c := range comparisonsIn(t, file) {
			blocks := c.run.Null.Blocks
			enough := blocks > 1 || blocks == 1 && slices.Contains(c.run.Apart, nullApart)
			partly := strings.Contains(strings.Join(c.run.Warnings, " "), "arrangements of the memory")
			if enough && !partly && c.run.Window > 0.9 && c.run.Pacing == nil {
				all = append(all, c.run)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// hasOwnMemory reports whether a load ran at other addresses than the baseline.
func hasOwnMemory(r *measure.Result, load string) bool {
	arranged := slices.ContainsFunc(r.Blocks, func(b power.Block) bool { return b.Arrangement > 0 })
	return !r.SameMemory && !arranged || slices.Contains(r.Apart, load)
}

// quantity is the value of a reading that is compared: time or energy.
type quantity func(power.Window) float64

func energyOf(w power.Window) float64 { return w.PerExecution }
func timeOf(w power.Window) float64   { return w.Seconds }

// copied is a load's difference from the baseline in a run, in per cent: the mean over arrangements, the passes' sum of squares
// about their arrangement's mean, and its degrees of freedom.
type copied struct {
	mean, squares   float64
	passes, freedom int
}

// differenceIn compares a load with the baseline in all complete blocks.
func differenceIn(r *measure.Result, load string, of quantity) (d copied) {
	groups := map[int][]float64{}
	for _, b := range r.Blocks {
		if !b.Complete {
			continue
		}
		values := map[string][]float64{}
		for _, w := range b.Windows {
			values[w.Load] = append(values[w.Load], math.Log(of(w)))
		}
		for i, v := range values[load] {
			groups[b.Arrangement] = append(groups[b.Arrangement], 100*(v-values[r.Baseline.Name][i]))
		}
	}
	for _, arrangement := range slices.Sorted(maps.Keys(groups)) {
		g := groups[arrangement]
		mean := stat.Mean(g, nil)
		d.mean += mean / float64(len(groups))
		for _, v := range g {
			d.squares += (v - mean) * (v - mean)
		}
		d.passes += len(g)
	}
	d.freedom = d.passes - len(groups)
	return d
}

// pooled is the copies' differences in several runs, in per cent: the random effects of runs, the standard deviation of a pass, and
// the chance of runs so far apart if they differed in nothing but their passes.
type pooled struct {
	stats.RandomEffects
	runs         int
	pass, chance float64
}

// pool returns an analysis of variance. Passes have the same deviation in all runs.
func pool(list []copied) pooled {
	var squares, freedom float64
	for _, d := range list {
		squares += d.squares
		freedom += float64(d.freedom)
	}
	var runs []stats.Estimate
	var between, mean, passes float64
	for _, d := range list {
		n := float64(d.passes)
		runs = append(runs, stats.Estimate{Value: d.mean, Error: math.Sqrt(squares / freedom / n)})
		mean, passes = mean+n*d.mean, passes+n
	}
	k := float64(len(list))
	for _, d := range list {
		between += float64(d.passes) * math.Pow(d.mean-mean/passes, 2) / (k - 1)
	}
	chance := 1 - distuv.F{D1: k - 1, D2: freedom}.CDF(between/(squares/freedom))
	return pooled{stats.Combine(runs), len(list), math.Sqrt(squares / freedom), chance}
}

// seat is a reading's place in the order of a block.
type seat struct {
	name string
	is   func(b power.Block, i int) bool
}

var seats = []seat{
	{"the first of a block", func(b power.Block, i int) bool { return i == 0 }},
	{"the second of two readings of the same weights in a row", func(b power.Block, i int) bool { return i > 0 && b.Windows[i-1].Load == b.Windows[i].Load }},
	{"after weights that draw less than 97 % of this reading's power", func(b power.Block, i int) bool { return i > 0 && b.Windows[i-1].Watts < 0.97*b.Windows[i].Watts }},
	{"in the second half of a block", func(b power.Block, i int) bool { return 2*i >= len(b.Windows) }},
}

// effect returns the difference of readings in a place from other readings of the same weights in the same run and arrangement, in per
// cent, with the half width of its 95 % interval.
func (p seat) effect(all []*measure.Result, of quantity) (mean, half float64) {
	type key struct {
		load        string
		arrangement int
	}
	var sum, weights, squares, freedom float64
	for _, r := range all {
		in, out := map[key][]float64{}, map[key][]float64{}
		for _, b := range r.Blocks {
			for i, w := range b.Windows {
				k := key{w.Load, b.Arrangement}
				if !b.Complete || w.Load != r.Baseline.Name && w.Load != r.Null.Name {
					continue
				}
				if v := 100 * math.Log(of(w)); p.is(b, i) {
					in[k] = append(in[k], v)
				} else {
					out[k] = append(out[k], v)
				}
			}
		}
		for k, a := range in {
			b := out[k]
			if len(b) == 0 {
				continue
			}
			na, nb := float64(len(a)), float64(len(b))
			weight := na * nb / (na + nb)
			sum += weight * (stat.Mean(a, nil) - stat.Mean(b, nil))
			weights += weight
			squares += na*stat.PopVariance(a, nil) + nb*stat.PopVariance(b, nil)
			freedom += na + nb - 2
		}
	}
	return sum / weights, stats.Student(freedom, 0.95) * math.Sqrt(squares/freedom/weights)
}

// TestNullsPage checks that docs/meter-error.md agrees with the null comparisons of all records.
func TestNullsPage(t *testing.T) {
	goldenfile.SameBetween(t, "../docs/meter-error.md", "<!-- copies: go test ./bench -run NullsPage -update -->\n", "<!-- end of copies -->\n", nullsSection(t, readNulls(t, recorded)))
}

func nullsSection(t *testing.T, all []*measure.Result) string {
	split, names := map[bool][]*measure.Result{}, map[bool]string{false: "below the cap", true: "at the cap"}
	for _, r := range all {
		capped := r.Baseline.Capped != nil && *r.Baseline.Capped
		split[capped] = append(split[capped], r)
	}
	var b strings.Builder
	b.WriteString(`
| power | addresses | of the copy | runs | mean | between runs | between passes | by chance |
|---|---|---|---|---|---|---|---|
`)
	row := func(power, addresses, of string, p pooled) {
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %s %% ± %.3f | %.3f %% | %.3f %% | %s |\n", power, addresses, of, p.runs, signed(p.Mean, 3), p.Interval[1]-p.Mean, p.Between, p.pass, chance(p.chance))
	}
	var exchanged []copied
	for _, capped := range []bool{false, true} {
		for _, own := range []bool{true, false} {
			addresses := map[bool]string{true: "its own", false: "the source's"}[own]
			time, energy := pool(differences(split[capped], own, timeOf)), pool(differences(split[capped], own, energyOf))
			row(names[capped], addresses, "time", time)
			row(names[capped], addresses, "energy", energy)
			switch {
			case !own:
				exchanged = append(exchanged, differences(split[capped], own, energyOf)...)
				if time.chance < 0.05 || energy.chance < 0.05 {
					t.Errorf("%s, runs with the same addresses differ: %+v, %+v", names[capped], time, energy)
				}
			case capped && (time.chance > 0.05 || energy.Interval[1] > 0), !capped && max(time.chance, energy.chance) > 0.05:
				t.Errorf("%s, runs with other addresses do not differ as the text says: %+v, %+v", names[capped], time, energy)
			}
		}
	}
	row("both", "the source's", "energy", pool(exchanged))
	b.WriteString(`
- Below the cap, time and energy of copies in their own memory differ more between runs than the passes of a run explain. Addresses can
  cause these differences. The order of the candidates cannot.
- At the cap, copies in their own memory use less energy and time than the source on average. The times differ more between runs than
  the passes of a run explain, and energy follows time.
- With copies at the source's addresses, no difference between runs is significant beyond the differences between passes.

The next table shows whether a reading's place in the block matters. Each reading is relative to other readings of the same weights in
the same run:

| power | reading | time | energy |
|---|---|---|---|
`)
	for _, capped := range []bool{false, true} {
		for _, p := range seats {
			time, timeHalf := p.effect(split[capped], timeOf)
			energy, energyHalf := p.effect(split[capped], energyOf)
			fmt.Fprintf(&b, "| %s | %s | %s %% ± %.3f | %s %% ± %.3f |\n", names[capped], p.name, signed(time, 3), timeHalf, signed(energy, 3), energyHalf)
		}
	}
	return b.String()
}

// differences lists the copies' differences from the baseline, and those of [nullApart]: of the copies with their own addresses,
// or of those with the baseline's.
func differences(all []*measure.Result, own bool, of quantity) (list []copied) {
	for _, r := range all {
		for _, load := range append([]string{r.Null.Name}, r.Apart...) {
			if hasOwnMemory(r, load) == own && (load == r.Null.Name || load == nullApart) {
				list = append(list, differenceIn(r, load, of))
			}
		}
	}
	return list
}

func chance(p float64) string {
	if p < 0.001 {
		return "< 0.001"
	}
	return fmt.Sprintf("%.2g", p)
}

// TestPool: the analysis of variance finds the planted deviations of runs and passes, and zero deviation of runs if none was planted.
func TestPool(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	for _, deviation := range []float64{0, 0.1} {
		var list []copied
		for i := range 400 {
			run := &measure.Result{Result: &power.Result{Baseline: power.Summary{Name: "a"}}}
			own := 0.05 + deviation*random.NormFloat64()
			for arrangement := range 2 {
				for range 1 + i%3 {
					b := power.Block{Complete: true, Arrangement: arrangement}
					for range 2 { // addresses change the load by 1 % in one arrangement, and the baseline in the other
						off := own + float64(1-2*arrangement) + 0.2*random.NormFloat64()
						b.Windows = append(b.Windows, power.Window{Load: "a", Seconds: 1}, power.Window{Load: "b", Seconds: math.Exp(off / 100)})
					}
					run.Blocks = append(run.Blocks, b)
				}
			}
			list = append(list, differenceIn(run, "b", timeOf))
		}
		p := pool(list)
		if math.Abs(p.Mean-0.05) > 4*p.Error || math.Abs(p.pass-0.2) > 0.01 || math.Abs(p.Between-deviation) > 0.02 || (p.chance < 1e-3) != (deviation > 0) {
			t.Errorf("runs ± %v: %+v", deviation, p)
		}
	}
}
