package sweep

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// shown is a machine whose driver shows other things of the card.
type shown struct {
	measure.Machine
	used      uint64
	processes []power.Process
}

func (s shown) Card() power.Card { return shownCard{s.Machine.Card(), s} }

type shownCard struct {
	power.Card
	as shown
}

func (c shownCard) Unwrap() power.Card { return c.Card }

func (c shownCard) Processes() ([]power.Process, error) { return c.as.processes, nil }

func (c shownCard) Info() power.Info {
	info := c.Card.Info()
	info.MemoryUsed = &c.as.used
	return info
}

// TestContainers: where the driver lists no processes, or this one by another number, a sweep is possible, and reports that it
// could not see other processes. Memory in use still reveals another process.
func TestContainers(t *testing.T) {
	before, after := candidates()
	for name, c := range map[string]struct {
		card   shown
		held   bool
		warned bool
	}{
		"none":           {shown{used: 1e9}, false, true},
		"by the host":    {shown{used: 1e9, processes: []power.Process{{PID: 4e6}}}, false, true},
		"ours":           {shown{used: 1e9, processes: []power.Process{{PID: os.Getpid()}}}, false, false},
		"two":            {shown{used: 1e9, processes: []power.Process{{PID: 4e6}, {PID: 4e6 + 1}}}, true, false},
		"hidden":         {shown{used: 60e9}, true, false},
		"ours and other": {shown{used: 60e9, processes: []power.Process{{PID: os.Getpid()}}}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := c.card
			m.Machine = open(t, quiet())
			r, err := Run(t.Context(), m, planOf(t, m, Setting{Cap: 400}), before, after, short)
			if c.held {
				if !errors.Is(err, ErrInUse) || r != nil {
					t.Error(err, r)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if warned := strings.Contains(strings.Join(r.Warnings, "\n"), "does not list this process"); warned != c.warned {
				t.Error(r.Warnings)
			}
		})
	}
}

// TestSomebodyComes: a sweep ends and restores the settings when another process appears.
func TestSomebodyComes(t *testing.T) {
	o := quiet()
	o.Other, o.OtherFrom = 50, 100*time.Second
	m := open(t, o)
	before, after := candidates()
	r, err := Run(t.Context(), m, planOf(t, m, Setting{Cap: 300}, Setting{Cap: 400}, Setting{Cap: 500}), before, after, short)
	if !errors.Is(err, ErrInUse) && !errors.Is(err, power.ErrDisturbed) || r == nil || r.Stopped != "failed" || r.Valid || limitOf(t, m) != 700 {
		t.Errorf("%v, %+v", err, r)
	}
}

// closing looks at the card's limit when a batch is closed.
type closing struct {
	measure.Machine
	at *[]float64
	t  *testing.T
}

type closingBatch struct {
	measure.Batch
	m closing
}

func (m closing) NewBatch(ctx context.Context, name string, products []cuda.Product, o cuda.Options) (measure.Batch, error) {
	b, err := m.Machine.NewBatch(ctx, name, products, o)
	return closingBatch{b, m}, err
}

func (b closingBatch) Close() error {
	*b.m.at = append(*b.m.at, limitOf(b.m.t, b.m.Machine))
	return b.Batch.Close()
}

// TestSettingsBeforeMemory: closing batches waits for the card, which may hang, so settings are restored first.
func TestSettingsBeforeMemory(t *testing.T) {
	o := quiet()
	o.State = filepath.Join(t.TempDir(), "card")
	m := open(t, o)
	g, err := power.Govern(m.Card())
	if err != nil {
		t.Fatal(err)
	}
	if err := g.SetPowerLimit(640); err != nil {
		t.Fatal(err)
	}
	var at []float64
	before, after := candidates()
	if _, err := Run(t.Context(), closing{m, &at, t}, planOf(t, m, Setting{Cap: 300}), before, after, short); err != nil {
		t.Fatal(err)
	}
	if len(at) != 3 || at[0] != 640 || at[2] != 640 {
		t.Errorf("batches closed at %v W", at)
	}
}
