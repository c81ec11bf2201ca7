package probe_test

import (
	"math"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/bench/probe"
)

// FuzzTable: a table of measurements is refused by file and line, or its rows are products that can be predicted.
func FuzzTable(f *testing.F) {
	const header = "pattern,type,shape,role,joules,seconds,watts,clock_mhz,cold\n"
	f.Add(header + "\"normal(0,0.02) | round(4)\",bf16,8192x8192x8192,stationary,1.9,0.004,475,1980,false\nzeros,bf16,16x4096x4096,streaming,2,1,,,\n")
	f.Add("\ufeffrole,Pattern,shape,joules,seconds,type,relative_energy,low,high\nstationary,zeros,8x8x8,1e300,1e-300,fp8,1,1,1\n")
	f.Add(header + "zeros,bf16,8x8,stationary,2,1,2\n")
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := probe.ReadTable("f.csv", strings.NewReader(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f.csv:") {
				t.Errorf("error %q", err)
			}
			return
		}
		for _, r := range rows {
			p := r.Product
			for _, v := range []float64{r.Joules, r.Seconds, r.Watts} {
				if !(v > 0) || math.IsInf(v, 0) {
					t.Errorf("row %+v", r)
				}
			}
			if r.Line < 2 || p.M < 1 || p.N < 1 || p.K < 1 || r.Weights.String() == "" {
				t.Errorf("row %+v", r)
			}
		}
	})
}
