package transform

import (
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// Layers initialised with zeros are real: every pass must live with one.
func TestLayerOfZerosUnderEveryPass(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing in it is shared by goroutines")
	}
	for _, family := range []string{"llama-tiny", "gpt2-tiny"} {
		dir := folder(t, config(t, family, ""), synth.Options{Seed: 1})
		edit(t, dir, func(info weights.Info, data []byte) {
			if strings.Contains(info.Name, ".1.") && strings.Contains(info.Name, "proj.weight") {
				clear(data)
			}
		})
		m := open(t, dir)
		for _, passes := range []string{"scale", "reorder", "signs", "shift", "grid", "grid=4", "round", "round=4", "sparsify",
			"sparsify=0.1", "sparsify=0.1/runs", "sparsify=0.1/16x1", "sparsify=2:4"} {
			applied(t, m, makePlan(t, m, passes, 20))
		}
	}
}

// A sample must hold whole blocks, and what is asked for by name is judged by the whole tensor.
func TestBudgetOfBlocksIsThatOfTheWholeLayer(t *testing.T) {
	const rows, cols = 1024, 256
	v := make([]float32, rows*cols)
	for i := range v {
		v[i] = float32(1 + i%7)
		if i/cols%64 < 16 {
			v[i] /= 10
		}
	}
	x := matrix(weights.F32, cols, v)
	for _, tile := range [][2]int{{64, 64}, {16, 1}} {
		target := alone(x, 0)
		s, err := target.sample([][]*Step{{{Pass: "sparsify", Zeros: &Zeros{Block: &tile, Threshold: 1}}}})
		ok(t, err)
		for _, r := range s.ranges {
			if r[0]%tile[0] != 0 || (r[1]-r[0])%tile[0] != 0 || r[1] > rows {
				t.Errorf("a range of rows %v cuts %d×%d blocks", r, tile[0], tile[1])
			}
		}
	}
	target := alone(x, 0)
	least := 5.0
	target.p.opt.MinSNR = &least
	z, err := target.combine(choices(t, "sparsify=0.3/16x1"))
	ok(t, err)
	_, out, err := target.choose(z, []string{"sparsify=0.3/16x1"})
	ok(t, err)
	if out.Missed != "" || out.SNR == nil || *out.SNR < 10 {
		t.Errorf("zeroing the small rows is refused: %+v", out)
	}
}

// However many workers compute, what they have computed and not yet written is bounded.
func TestBytesInFlightAreBounded(t *testing.T) {
	b := newBuffers()
	held := 0
	for b.room.TryAcquire(chunkBytes) {
		held += chunkBytes
	}
	if held != inFlight {
		t.Fatalf("%d bytes may be in flight, want %d", held, inFlight)
	}
	b.put(b.get(chunkBytes))
	if !b.room.TryAcquire(chunkBytes) {
		t.Error("a buffer that was given back makes no room")
	}
}
