package sgemm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
)

// Run these with -cpu 1: what is compared is speed per core.

// shapes are the products of a small transformer: its layers, the product of their inputs with themselves, an attention head's
// scores and its values.
var shapes = []struct {
	m, n, k        int
	transA, transB bool
}{
	{m: 8192, n: 512, k: 512},
	{m: 8192, n: 512, k: 512, transB: true},
	{m: 8192, n: 1408, k: 512, transB: true},
	{m: 8192, n: 512, k: 1408, transB: true},
	{m: 2048, n: 1408, k: 1408},
	{m: 1408, n: 1408, k: 8192, transA: true},
	{m: 1024, n: 1024, k: 64, transB: true},
	{m: 1024, n: 64, k: 1024},
}

func BenchmarkMul(b *testing.B) {
	for _, by := range methods {
		for _, s := range shapes {
			op := Op{TransA: s.transA, TransB: s.transB}
			name := fmt.Sprintf("%s/m=%d/n=%d/k=%d", by.name, s.m, s.n, s.k)
			if s.transA {
				name += "/transA"
			}
			if s.transB {
				name += "/transB"
			}
			b.Run(name, func(b *testing.B) {
				rng := rand.New(rand.NewPCG(1, 2))
				c := Dense(s.m, s.n, nil)
				x := normal(rng, transposed(op.TransA, s.m, s.k))
				y := normal(rng, transposed(op.TransB, s.k, s.n))
				for b.Loop() {
					if err := newProduct(c, x, y, op, by.tile).run(context.Background()); err != nil {
						b.Fatal(err)
					}
				}
				flops := 2 * float64(s.m) * float64(s.n) * float64(s.k) * float64(b.N)
				b.ReportMetric(flops/1e9/b.Elapsed().Seconds(), "GFLOP/s")
			})
		}
	}
}

// transposed returns an empty matrix of the given shape, or of the transposed one.
func transposed(trans bool, rows, cols int) Matrix {
	if trans {
		rows, cols = cols, rows
	}
	return Dense(rows, cols, nil)
}

func normal(rng *rand.Rand, m Matrix) Matrix {
	for i := range m.Data {
		m.Data[i] = float32(rng.NormFloat64())
	}
	return m
}
