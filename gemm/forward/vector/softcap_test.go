package vector

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestSoftcap(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 1000 {
		v, scale, cap := float32(r.NormFloat64()*math.Exp(8*r.Float64()-6)), r.Float64()+0.01, 50*r.Float64()+0.1
		row := []float32{v}
		Softcap(row, scale, cap)
		want := cap * math.Tanh(scale*float64(v)/cap)
		if off := math.Abs(float64(row[0]) - want); off > 1e-7*math.Abs(want)+1e-13*cap {
			t.Fatalf("softcap(%v) by %v and %v is %v, want %v", v, scale, cap, row[0], want)
		}
	}
	row := []float32{math.MaxFloat32, -math.MaxFloat32, float32(math.NaN())}
	if Softcap(row, 1, 30); row[0] != 30 || row[1] != -30 || row[2] == row[2] {
		t.Errorf("softcap at the ends: %v", row)
	}
}
