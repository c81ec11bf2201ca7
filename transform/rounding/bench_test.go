package rounding

import (
	"context"
	"fmt"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Run these benchmarks with -cpu 1, because they compare speed per core.

func BenchmarkRound(b *testing.B) {
	bf16 := format(b, weights.BF16)
	trellis := Trellis{Format: bf16, Rates: risingRates(bf16), Lambda: 1e-4}
	coupled := trellis
	coupled.Rates.Differ, coupled.Rates.Sign, coupled.Rates.Run = 0.1, 0.05, 4
	for _, s := range [][2]int{{1408, 512}, {512, 1408}} {
		n, k := s[0], s[1]
		w := storedNormal(1, n, k, bf16)
		h := secondMoment(2, k, 4*k)
		f, err := NewFactor(context.Background(), h, FactorOptions{})
		if err != nil {
			b.Fatal(err)
		}
		loss, err := Measure(context.Background(), w, w, h, 0)
		if err != nil {
			b.Fatal(err)
		}
		trellis.Scale, coupled.Scale = loss.Scale(n*k), loss.Scale(n*k)
		for _, c := range []struct {
			name string
			Chooser
		}{
			{"stored", Stored{bf16}},
			{"bits", Bits{bf16, 4}},
			{"grid", Grid{bf16, make([]int, n)}},
			{"trellis", trellis},
			{"coupled", coupled},
		} {
			for _, by := range []struct {
				name string
				*Factor
			}{{"feedback", f}, {"plain", Uncompensated(diagonalOf(h))}} {
				b.Run(fmt.Sprintf("%s/%s/n=%d/k=%d", c.name, by.name, n, k), func(b *testing.B) {
					for b.Loop() {
						if _, err := Round(context.Background(), w, by.Factor, c, Options{}); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(n*k)*float64(b.N)/b.Elapsed().Seconds(), "weights/s")
				})
			}
		}
	}
}

func BenchmarkFactor(b *testing.B) {
	for _, k := range []int{512, 1408, 4096} {
		h := secondMoment(1, k, 2*k)
		b.Run(fmt.Sprintf("k=%d", k), func(b *testing.B) {
			for b.Loop() {
				if _, err := NewFactor(context.Background(), h, FactorOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkPrune(b *testing.B) {
	for _, k := range []int{512, 1408} {
		h, w := secondMoment(1, k, 2*k), normal(2, 512, k)
		b.Run(fmt.Sprintf("k=%d", k), func(b *testing.B) {
			for b.Loop() {
				if _, err := Prune(context.Background(), w, h, PruneOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkMeasure(b *testing.B) {
	h, w := secondMoment(1, 512, 1024), normal(2, 1408, 512)
	q := sgemm.Dense(1408, 512, nil)
	for b.Loop() {
		if _, err := Measure(context.Background(), w, q, h, 0); err != nil {
			b.Fatal(err)
		}
	}
}
