package power

import (
	"math"
	"os"
	"testing"
	"time"
)

// startled is a simulated card on which the first window of each block takes more power.
type startled struct {
	*Sim
	first bool
}

// startledLoad draws 5 % more while it is the first of a block: while it settles and in its window.
type startledLoad struct {
	*SimLoad
	card *startled
	left int // starts that succeed before the failure
}

func (l *startledLoad) Start(n int) error {
	if l.card.first {
		l.card.first, l.left = false, 2
	}
	l.Draw(500, 0)
	if l.left > 0 {
		l.left--
		l.Draw(525, 0)
	}
	return l.SimLoad.Start(n)
}

// TestFirstOfBlock: the effect of the first place of a block cancels in the null comparison, for any number of other loads. It
// does not cancel within half of the blocks.
func TestFirstOfBlock(t *testing.T) {
	biased := 0
	for seed := range uint64(12) {
		for variants := range 3 {
			card := &startled{Sim: NewSim(quiet())}
			loads, windows := Loads{}, 0
			for i, name := range []string{"before", "copy", "a", "b"}[:2+variants] {
				l := &startledLoad{SimLoad: card.Load(name, 500, 0.001), card: card}
				switch i {
				case 0:
					loads.Baseline = l
				case 1:
					loads.Null = l
				default:
					loads.Variants = append(loads.Variants, l)
				}
			}
			m, err := NewMeter(card, Options{Clock: card, Self: os.Getpid(), Seed: seed, Precision: 1e-9, Time: time.Duration(variants+2) * 15 * time.Second,
				Progress: func(e Event) {
					if e.Stage == stageMeasure { // at its beginning, and after each window
						card.first = windows%(2*(2+variants)) == 0
						windows++
					}
				}})
			if err != nil {
				t.Fatal(err)
			}
			r, err := m.Compare(t.Context(), loads)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Blocks) < 4 {
				t.Fatalf("%d blocks, want 4", len(r.Blocks))
			}
			off := func(blocks ...Block) float64 {
				r.Blocks = blocks
				return math.Abs(r.comparison("copy", "before", m.opt).RelativeEnergy - 1)
			}
			b := r.Blocks
			biased += count(off(b[0], b[2]) > 0.01)
			if off := off(b[:4]...); off > 1e-4 {
				t.Errorf("seed %d, %d variants: the copy is off by %v", seed, variants, off)
			}
		}
	}
	if biased < 12 {
		t.Errorf("of 36 runs %d are off without the exchange: this test tests nothing", biased)
	}
}
