package cost

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
	"github.com/lowtoggle/lowtoggle/weights"
)

// TestTables: small functions have the recorded values at many arguments, on the built-in card.
func TestTables(t *testing.T) {
	c, err := FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, table := range []struct {
		name  string
		write func(t *testing.T, c *Calibration, b *strings.Builder)
	}{
		{"samples", tableOfSamples}, {"places", tableOfPlaces}, {"settings", tableOfSettings}, {"products", tableOfProducts}, {"sums", tableOfSums},
		{"responses", tableOfResponses}, {"errors", tableOfErrors}, {"toggling", tableOfToggling},
	} {
		fmt.Fprintf(&b, "# %s\n", table.name)
		table.write(t, c, &b)
	}
	goldenfile.Same(t, "testdata/tables.txt", []byte(b.String()))
}

func tableOfSamples(_ *testing.T, _ *Calibration, b *strings.Builder) {
	for _, rows := range []int{0, 1, 47, 192, 193, 300, 1000, 8192, 300_000} {
		for _, cols := range []int{0, 1, 64, 170, 171, 1024, 50_000, 300_000} {
			for _, unit := range []int{1, 32} {
				fmt.Fprintf(b, "%d×%d, %d: %v\n", rows, cols, unit, SampleRows(rows, cols, unit))
			}
		}
	}
}

func tableOfPlaces(_ *testing.T, _ *Calibration, b *strings.Builder) {
	for _, ranges := range [][][2]int{{{0, 9}}, {{0, 16}}, {{2, 5}, {7, 20}}, {{3, 7}, {9, 14}, {20, 64}}, {{0, 3}, {5, 8}}} {
		for _, n := range []int{1, 4, 5, 8} {
			for _, unit := range []int{1, 4} {
				fmt.Fprintf(b, "%v, %d by %d:", ranges, n, unit)
				for _, u := range []float64{0, 0.1, 0.3, 0.5, 0.77, 0.999, 1} {
					from, length := place(ranges, u, n, unit)
					fmt.Fprintf(b, " %d+%d", from, length)
				}
				fmt.Fprintln(b)
			}
		}
	}
}

func tableOfSettings(_ *testing.T, c *Calibration, b *strings.Builder) {
	work := [][]Work{
		{{Seconds: 2, Watts: 690, Clock: 1500, compute: 2}}, {{Seconds: 2, Watts: 400, Clock: 1980, compute: 0.5}}, {{Seconds: 1, Watts: 80, Clock: 1980, compute: 1}},
		{{Seconds: 3, Watts: 500, Clock: 1700, compute: 3}, {Seconds: 1, Watts: 450, Clock: 1980, compute: 0.9}}, {{Seconds: 1, Watts: 300, Clock: 2100, compute: 0.3}},
	}
	unlimited := &Calibration{Card: c.Card, Facts: c.Facts, Series: c.Series}
	for _, s := range []Setting{{}, {Cap: 1}, {Cap: -1}, {Cap: 0.5}, {Cap: 199.9}, {Cap: 200}, {Cap: 350}, {Cap: 699}, {Cap: 700}, {Cap: 700.1}, {Clock: 1}, {Clock: -1}, {Clock: math.NaN()}, {Clock: 344.9},
		{Clock: 345}, {Clock: 700}, {Clock: 1400}, {Clock: 1500}, {Clock: 1980}, {Clock: 1980.1}, {Cap: 420, Clock: 1200}, {Cap: 250, Clock: 1900}} {
		for i, w := range work {
			for _, of := range []*Calibration{c, unlimited} {
				o, err := of.AtSetting(w, s)
				fmt.Fprintf(b, "%v, work %d, limit %v: %.6g, %v\n", s, i, of.PowerLimit, []float64{o.Joules, o.Seconds, o.Watts, o.Clock, o.JoulesInterval[0], o.JoulesInterval[1], o.SecondsInterval[0], o.SecondsInterval[1]}, err)
				if err != nil {
					break
				}
			}
			if err := s.Cap < 0 || s.Clock < 0; err {
				break
			}
		}
		fmt.Fprintf(b, "%v extrapolates: %v, %v\n", s, c.Extrapolates(s), unlimited.Extrapolates(s))
	}
	joules, seconds, watts := 0.5, 0.001, 500.0
	for _, clock := range []float64{1500, 2500} {
		for _, m := range []int{1, 16, 63, 64, 65, 1000, 8192} {
			for _, cold := range []bool{false, true} {
				for _, typ := range []arith.Type{arith.BF16, arith.FP8} {
					for _, stack := range []int{0, 1, 8} {
						p := Product{Type: typ, M: m, N: 3000, K: 500, Cold: cold}
						w, err := c.Work(p, Prediction{Joules: &joules, Seconds: &seconds, Watts: &watts, Clock: &clock}, stack)
						fmt.Fprintf(b, "%s %d cold %v of %d: %.6g, %v\n", typ, m, cold, stack, []float64{w.Seconds * 1e3, w.Watts, w.Clock, w.compute * 1e3}, err)
					}
				}
			}
		}
	}
	fmt.Fprintf(b, "drawn %.6g and %.6g\n", c.Drawn(), (&Calibration{}).Drawn())
}

func tableOfProducts(_ *testing.T, c *Calibration, b *strings.Builder) {
	k := &c.Facts.Kernels
	for _, typ := range []arith.Type{arith.BF16, arith.FP8} {
		for _, m := range []int{1, 16, 500, 2048, 8192, 100_000} {
			for _, n := range []int{8, 100, 2048, 30_000} {
				for _, depth := range []int{64, 2048, 9000, 40_000} {
					for _, cold := range []bool{false, true} {
						p := Product{Type: typ, M: m, N: n, K: depth, Cold: cold, Role: Role(n % 3 % 2), Scaling: []string{"", "block", "group"}[depth%3]}
						s, far := c.nearest(p)
						operands, sums := k.sharesOfScaling(p)
						fmt.Fprintf(b, "%s %s %d×%d×%d cold %v: %d×%d×%d %s, %d points, far %v, inside %s, %.6g, measured %v\n", typ, p.Role, m, n, depth, cold, s.M, s.N, s.K, s.Role, len(s.Points), far,
							k.roleInside(p), []float64{k.shareOfProducts(p), operands, sums, p.work()}, c.measured(p))
					}
				}
			}
		}
	}
	for _, kernel := range []Kernel{"", CuBLASLt, CUTLASS} {
		for _, m := range []int{k.StreamedTokensRatio*10 - 1, k.StreamedTokensRatio * 10} {
			fmt.Fprintf(b, "%q, %d: %s\n", kernel, m, k.roleInside(Product{M: m, N: 10, Role: Streaming, Kernel: kernel}))
		}
	}
}

func tableOfSums(t *testing.T, c *Calibration, b *strings.Builder) {
	d := &c.Facts.Datapath
	for _, dtype := range []weights.DType{weights.F32, weights.F16, weights.BF16, weights.F8E4M3, weights.F8E5M2, weights.I8} {
		f, _ := dtype.Format()
		dec := newDecoder(f)
		a := dec.arithmetic(d)
		fmt.Fprintf(b, "%s: %+v\n", dtype, a)
		// Tiles of all sizes of a few kinds of operands, with tiny and with all-zero rows.
		for _, text := range []string{"normal(0,1)", "const(1)", "zeros", "normal(0,1e-3) | sparse(0.7)", "normal(0,8) | repeat(rows=3)", "normal(0,1) | sparse(0.6,block=1x16)"} {
			for _, size := range [][2]int{{d.stationaryTile(), d.streamingTile()}, {d.StationaryRows, 5}, {1, 2 * d.round()}} {
				counter := newTileCounter(d, dec)
				var tiles []tile
				for i, other := range []string{"normal(0,1)", text} {
					wide := d.tileK()
					x, _ := drawn(t, text, dtype, size[0], wide, uint64(i))
					y, _ := drawn(t, other, dtype, size[1], wide, uint64(i)+7)
					tiles = append(tiles, tile{dec.rows(make([]element, size[0]*wide), x, size[0], wide, wide), dec.rows(make([]element, size[1]*wide), y, size[1], wide, wide)})
				}
				p := spreadOf(tiles)
				for i, tile := range tiles {
					counter.add(tile, p, float64(100*i))
				}
				var s Features
				counter.into(&s)
				fmt.Fprintf(b, "%s, %d of %d: %.6g, spread %.6g\n", text, size[0], size[1], s, []float64{p.mean, p.variance})
			}
		}
	}
	for _, n := range []float64{0, 1, 40, 999.5} {
		for j := range 4 {
			fmt.Fprintf(b, "otherwise %v %d: %v\n", n, j, otherwise(n, j))
		}
		for _, values := range [][]float64{{0, 0}, {1, 1}, {1e-3, -2e-3}, {0.5, 3}} {
			var s, u row
			for _, v := range values {
				s, u = append(s, element{value: v}), append(u, element{value: 0.25})
			}
			fmt.Fprintf(b, "%v: %.6g\n", values, spread{0.01, 0.5}.accumulated(n, s, u, 0.3))
		}
	}
}

func tableOfResponses(_ *testing.T, c *Calibration, b *strings.Builder) {
	p := &c.Facts.Power
	for i := range c.Series {
		s := &c.Series[i]
		if i%5 != 0 {
			continue
		}
		for _, a := range []float64{-1, 0, 0.05, 0.73, 1, 1.27, 1.3, 2} {
			energy, time, clock := p.energyAt(s, a)
			fmt.Fprintf(b, "%d at %v: %.6g\n", i, a, []float64{energy, time, clock, p.activity(s, &Observation{Energy: energy, Time: time, Clock: clock})})
		}
		again := Series{Product: s.Product, Baseline: s.Baseline, Points: s.Points}
		p.respond(&again)
		fmt.Fprintf(b, "%d: %.6g\n", i, again.Response)
		var r Prediction
		for _, a := range []float64{-0.2, 0.0, 0.1, 0.9, 1.2, 1.5} {
			r.Warnings = nil
			r.warn(p, s, a > 1, a)
			fmt.Fprintf(b, "%v: %q\n", a, r.Warnings)
		}
	}
}

func tableOfErrors(_ *testing.T, c *Calibration, b *strings.Builder) {
	for _, q := range []Quality{{}, {Floor: 0.01}, {Growth: 0.2}, {Floor: 0.004, Growth: 0.5}} {
		for _, energy := range []float64{0.5, 0.98, 1, 1.1} {
			fmt.Fprintf(b, "%+v at %v: %.6g\n", q, energy, q.HalfWidth(energy))
		}
	}
	var list []LeftOut
	for i := range 60 {
		saved := 0.001 * float64(i*i%90)
		list = append(list, LeftOut{Point: &Observation{Energy: 1 - saved + 0.0003*float64(i%17-8)}, Predicted: 1 - saved, Repeated: i%13 == 0})
		fmt.Fprintf(b, "%d: %+v\n", i+1, qualityOf(list))
	}
	fmt.Fprintf(b, "%v\n", LeftOut{}.Error())
	var values []float64
	for i := range 45 {
		values = append(values, float64(i*7%45))
		fmt.Fprintf(b, "%v ", quantile95(values, -1))
	}
	fmt.Fprintln(b)
	for _, m := range c.Models {
		for _, r := range Rivals {
			sum, n := 0.0, 0
			for _, l := range c.LeaveOutBy(r, m.Type, m.Cold) {
				if sum += l.Predicted; n%40 == 0 {
					fmt.Fprintf(b, "%.5g ", l.Predicted)
				}
				n++
			}
			fmt.Fprintf(b, "%s, %s cold %v: %d, %.6g\n", r.Name, m.Type, m.Cold, n, sum)
		}
	}
	few := &Calibration{Facts: c.Facts, Names: c.Names, Models: append([]Model(nil), c.Models[:2]...)}
	for n := range []int{0, 1, 2} {
		few.Series = c.Series[:4*n]
		few.Models[0].Quality = Quality{Points: n, Mean: 0.029 + 0.001*float64(n)}
		fmt.Fprintf(b, "%d series: %q\n", len(few.Series), few.Doubts())
	}
}

func tableOfToggling(t *testing.T, c *Calibration, b *strings.Builder) {
	random, features := c.Series[0].Baseline.Features, c.Series[0].Points[2].Features
	part := func(keep func(m Model) bool) *Calibration {
		some := &Calibration{Facts: c.Facts, Names: c.Names}
		for _, m := range c.Models {
			if keep(m) {
				some.Models = append(some.Models, m)
			}
		}
		return some
	}
	for name, of := range map[string]*Calibration{"all": c, "on chip": part(func(m Model) bool { return !m.Cold }), "from memory": part(func(m Model) bool { return m.Cold })} {
		for _, typ := range []arith.Type{arith.BF16, arith.FP8, arith.INT8} {
			for i, s := range [][2]*Features{{features, random}, {nil, random}, {features, nil}, {random, random}} {
				multiplied, moved := of.TogglingOf(typ, s[0], s[1])
				if known := name == "all" && i%3 == 0; known == math.IsNaN(multiplied+moved) {
					t.Errorf("%s, %s, %d: %v, %v", name, typ, i, multiplied, moved)
				} else if known {
					fmt.Fprintf(b, "%s: %.6g, %.6g\n", typ, multiplied, moved)
				}
			}
		}
	}
	unknown := *random
	for i := range unknown {
		unknown[i] = math.NaN()
	}
	for _, constant := range []float64{0, 0.4, 0.999, 1, 1.2} {
		m := &coefficients{constant: constant}
		m.of[weightElement], m.of[quadSum] = 0.3, 0.2
		fmt.Fprintf(b, "constant %v: %.6g\n", constant, []float64{m.toggling(features, random), m.moved(features, random), m.moved(features, &unknown), m.activity(features, random)})
	}
}
