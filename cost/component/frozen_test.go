package component

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
)

var number = regexp.MustCompile(`-?\d+\.\d+(e[-+]\d+)?`)

// sixDigits returns v as JSON, with six digits of each number.
func sixDigits(t *testing.T, v any) []byte {
	t.Helper()
	js, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return rounded(t, js)
}

// rounded returns JSON with six digits of each number.
func rounded(t *testing.T, js []byte) []byte {
	return number.ReplaceAllFunc(js, func(text []byte) []byte {
		v, err := strconv.ParseFloat(string(text), 64)
		if err != nil {
			t.Fatal(err)
		}
		if v < 1e-9 && v > -1e-9 { // rounding error of zero
			v = 0
		}
		return strconv.AppendFloat(nil, v, 'g', 6, 64)
	})
}

// TestModelIsFrozen: an invented card's readings give the frozen coefficients, splits, clocks and advice, to six
// digits. The readings have noise, so every step of the fit affects the results.
func TestModelIsFrozen(t *testing.T) {
	js, err := json.MarshalIndent(said(t, inventedFacts(), someReadings(t)), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	goldenfile.Same(t, "testdata/model.json", append(rounded(t, js), '\n'))
}

// TestAdviceIsFrozen: the built-in card's model gives the frozen clocks, advice and components, for kernels limited
// by multipliers, caches or memory.
func TestAdviceIsFrozen(t *testing.T) {
	m, err := Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	choice := func(name string, c Choice) {
		fmt.Fprintf(&b, "  %s: %.6g MHz, energy %.6g ± %.3g, time %.6g, EDP %.6g, extrapolated %v\n", name, c.Clock, c.Energy, c.EnergyError, c.Time, c.EDP, c.Extrapolated)
	}
	for _, c := range []struct {
		gemm    Gemm
		seconds float64
	}{
		{Gemm{Type: arith.BF16, M: 8192, N: 8192, K: 8192, Bits: 1, Moved: 0.7}, 1.6e-3},
		{Gemm{Type: arith.BF16, M: 2048, N: 2048, K: 2048, Bits: 0.5, Moved: 0.3}, 3e-5},
		{Gemm{Type: arith.FP8, M: 4096, N: 8192, K: 4096, Bits: 1, Moved: 0.7, Around: 1 << 30}, 2.4e-4},
		{Gemm{Type: arith.BF16, M: 16, N: 8192, K: 8192, Bits: 1, Moved: 0.7, Cold: true}, 3.4e-5},
		{Gemm{Type: arith.BF16, M: 1, N: 1, K: 1}, 2e-6},
	} {
		g := c.gemm
		k, err := g.Kernel("k", &m.Facts)
		if err != nil {
			t.Fatal(err)
		}
		k.Seconds, k.Clock = c.seconds, 1980
		fmt.Fprintf(&b, "%s %d×%d×%d: %.6g\n", g.Type, g.M, g.N, g.K, []float64{k.Ops, k.Asked, k.Memory, k.Again, k.Awake, m.Clock([]Kernel{k})})
		a, err := m.Advise("prefill", []Kernel{k})
		if err != nil {
			fmt.Fprintf(&b, "  %v\n", err)
			continue
		}
		fmt.Fprintf(&b, "  default %.6g MHz, %.6g W, %d settings from %.6g MHz\n", a.Default.Clock, a.Default.Watts, len(a.Settings), a.Settings[len(a.Settings)-1].Clock)
		choice("1 %", a.Within1)
		choice("5 %", a.Within5)
		choice("EDP", a.LeastEDP)
	}
	goldenfile.Same(t, "testdata/advice.txt", b.Bytes())
}
