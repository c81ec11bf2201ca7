package probe

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/component"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

func usualFacts(t *testing.T) *component.Facts {
	t.Helper()
	f, err := component.FactsFor("h200")
	if err != nil {
		t.Fatal(err)
	}
	return &f
}

// TestStresses: names tell kernels apart, work is positive, and held-out kernels judge the others.
func TestStresses(t *testing.T) {
	list, err := Stresses(1)
	if err != nil {
		t.Fatal(err)
	}
	seen, held, types := map[string]bool{}, 0, map[arith.Type][]float64{}
	random := func(Stress, Operands) (float64, float64, error) { return 1, 1, nil }
	for _, s := range list {
		if seen[s.Name] {
			t.Errorf("%s is there twice", s.Name)
		}
		seen[s.Name] = true
		k, err := s.kernel(random, nil, nil, usualFacts(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Validate(); err != nil || k.Name != s.Name {
			t.Error(err, k)
		}
		if (k.Ops > 0) != (len(s.Products) > 0) || s.Cold && k.Memory == 0 {
			t.Errorf("%s: %+v", s.Name, k)
		}
		if s.HeldOut {
			held++
			continue
		}
		if k.Type != 0 {
			types[k.Type] = append(types[k.Type], k.Ops)
		}
	}
	if held < 40 {
		t.Errorf("%d kernels are held out", held)
	}
	for _, name := range []string{"fp8 4096x4096x4096 constant", "fp8 8192x8192x8192 constant"} {
		if !seen[name] { // a smaller one is too short to tell at how many operations the card holds back its clock
			t.Errorf("%s is missing", name)
		}
	}
	for _, s := range list {
		for _, p := range s.Products {
			if s.HeldOut && len(types[p.Type]) < 2 {
				t.Errorf("%s: there are too few kernels of its type in the fit", s.Name)
			}
		}
	}
	if t.Logf("%d kernels", len(list)); len(list) > 100 {
		t.Error("so many kernels take more than two minutes")
	}
}

// TestComponents measures on the simulated card, continues an interrupted run, and fits.
func TestComponents(t *testing.T) {
	list, err := Stresses(32)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "components.json")
	ctx, cancel := context.WithCancel(t.Context())
	machine := measure.Simulated(power.DefaultSim())
	stop := ComponentOptions{Progress: func(done, _ int, _ component.Reading) {
		if done == 12 {
			cancel()
		}
	}}
	if _, err := Components(ctx, machine, file, list, stop); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled: %v", err)
	}
	half, err := component.Read(file)
	if err != nil || len(half.Readings) != 12 || half.Coefficients != nil {
		t.Fatalf("left behind: %v, %v", half, err)
	}
	if _, err := half.Split(half.Readings[0].Kernel); err == nil {
		t.Error("what was never fitted splits power")
	}
	told := 0
	count := func(int, int, component.Reading) { told++ }
	m, err := Components(t.Context(), machine, file, list, ComponentOptions{Progress: count})
	if err != nil {
		t.Fatal(err)
	}
	again := 0
	for i := range half.Readings {
		if m.Readings[i].Watts != half.Readings[i].Watts {
			t.Errorf("%s was measured anew", m.Readings[i].Name)
		}
	}
	for _, r := range m.Readings {
		if r.Name == list[0].Name {
			again++
		}
	}
	if told+12 != len(m.Readings) || again < 4 || len(m.Readings) != len(list)+again-1 || !m.Simulated {
		t.Errorf("%d readings, %d told, the first %d times", len(m.Readings), told, again)
	}
	if q := m.Quality; q.HeldOut < 40 || !(q.Drift < 0.1) || math.IsNaN(q.Mean) {
		t.Errorf("%+v", q)
	}
	read, err := component.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range m.Coefficients {
		if o := read.Coefficients[i]; o.Name != c.Name || math.Abs(o.Value-c.Value) > 1e-9*math.Abs(c.Value) {
			t.Errorf("written %+v, read %+v", c, o)
		}
	}
	told = 0
	if _, err := Components(t.Context(), machine, file, list, ComponentOptions{Progress: count}); err != nil || told != 0 {
		t.Errorf("of a complete file %d kernels were measured: %v", told, err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	stop.Anew = true
	if _, err := Components(ctx, machine, file, list, stop); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled: %v", err)
	}
	if begun, err := component.Read(file); err != nil || len(begun.Readings) != 12 {
		t.Errorf("anew: %v, %v", begun, err)
	}
	shared := power.DefaultSim()
	shared.Other = 50
	if _, err := Components(t.Context(), measure.Simulated(shared), filepath.Join(t.TempDir(), "c.json"), list, ComponentOptions{}); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("beside another process: %v", err)
	}
	other := power.DefaultSim()
	other.Cap = 500
	if _, err := Components(t.Context(), measure.Simulated(other), file, list, ComponentOptions{}); err == nil {
		t.Error("a card of another limit went on with the file")
	}
}

// card is an invented card: watts, picojoules of an operation of each type and of its bits, and picojoules of bytes.
type card struct {
	static, awake, leakage            float64 // leakage in watts per watt, by temperature
	ops, bits                         map[arith.Type]float64
	cache, cacheBits, way, wayBits    float64
	memory, memoryBits, again, sensor float64
	rates                             map[arith.Type]float64
	noise                             func() float64
}

// at returns the reading of a kernel at a clock.
func (c *card) at(k component.Kernel, clock float64) (read component.Reading) {
	f := clock / 1980
	memory := (k.Memory + 0.25*k.Again) / 4.4e12
	chip := max(k.Ops/c.rates[k.Type], k.Asked/9e12) / f
	const launch = 1e-6
	k.Seconds, k.Clock = launch*float64(max(1, k.Launches))+k.Idle+math.Pow(math.Pow(chip, 6)+math.Pow(memory, 6), 1./6), clock
	on := f * 1e-12 / k.Seconds
	hbm := 1e-12 / k.Seconds * (c.memory*k.Memory + c.memoryBits*k.Moved*k.Memory + c.again*k.Again)
	read.Kernel = k
	read.Watts = c.static + c.awake*k.Awake*(1-(launch*float64(max(1, k.Launches))+k.Idle)/k.Seconds)*f*f + hbm + on*(k.Ops*(c.ops[k.Type]+c.bits[k.Type]*k.Bits)+
		k.Asked*(c.cache+c.cacheBits*k.Moved)+k.Memory*(c.way+c.wayBits*k.Moved)+k.Again*c.again)
	read.Watts /= 1 - c.leakage
	sensor := 45 + hbm - c.sensor*(read.Watts-300) + 3*c.noise()
	read.MemoryWatts = &sensor
	return read
}

// TestStressesTell: on a card such as an H200, with readings that scatter by a per cent, whose leakage follows
// its temperature and whose memory's sensor is off by what else the card does, the kernels tell enough
// of the components for ten that the fit has not seen.
func TestStressesTell(t *testing.T) {
	list, err := Stresses(1)
	if err != nil {
		t.Fatal(err)
	}
	facts := usualFacts(t)
	bits := func(_ Stress, s Operands) (float64, float64, error) {
		of := func(p string) float64 {
			switch {
			case p == "zeros" || strings.HasPrefix(p, "const"):
				return 0
			case strings.Contains(p, "|"):
				return 0.8
			}
			return 1
		}
		x, w := of(s.X.String()), of(s.W.String())
		_, random := facts.Random(s.Type)
		share := float64(s.M) / float64(s.M+s.N)
		return x*w*0.7 + 0.3*(x+w)/2, random * (share*x + (1-share)*w), nil
	}
	draw := rand.New(rand.NewPCG(3, 4))
	for range 3 {
		c := card{static: 95, awake: 55, leakage: 0.05,
			ops:   map[arith.Type]float64{arith.BF16: 0.05, arith.FP16: 0.04, arith.FP8: 0.03, arith.INT8: 0.05, arith.TF32: 0.1, arith.FP32: 3},
			bits:  map[arith.Type]float64{arith.BF16: 0.7, arith.FP16: 0.8, arith.FP8: 0.42, arith.INT8: 0.4, arith.TF32: 1.4, arith.FP32: 5},
			rates: map[arith.Type]float64{arith.BF16: 9e14, arith.FP16: 9e14, arith.FP8: 1.8e15, arith.INT8: 1.8e15, arith.TF32: 4.5e14, arith.FP32: 5e13, 0: 1},
			cache: 12, cacheBits: 8, way: 25, wayBits: 30, memory: 33, memoryBits: 12, again: 12, sensor: 0.04,
			noise: func() float64 { return draw.NormFloat64() }}
		m := component.Model{Card: "made up", FullClock: 1980, PowerLimit: 700, Facts: *facts}
		for _, s := range list {
			k, err := s.kernel(bits, nil, nil, facts)
			if err != nil {
				t.Fatal(err)
			}
			clock := 1980.
			for clock > 900 && c.at(k, clock).Watts > 691 {
				clock -= 5
			}
			r := c.at(k, clock)
			r.HeldOut = s.HeldOut
			if !r.HeldOut {
				r.Watts *= 1 + 0.01*c.noise()
			}
			m.Readings = append(m.Readings, r)
		}
		if err := m.Fit(); err != nil {
			t.Fatal(err)
		}
		q := m.Quality
		t.Logf("left out %.1f %% (%.1f %%, %s), held out %.1f %% (%.1f %%)", 100*q.Mean, 100*q.Worst, q.WorstKernel, 100*q.HeldOutMean, 100*q.HeldOutWorst)
		if q.HeldOutMean > 0.02 || q.HeldOutWorst > 0.05 {
			for _, r := range m.Readings {
				if s, err := m.Split(r.Kernel); err == nil && r.HeldOut {
					t.Errorf("%s: %.0f W, predicted %.0f", r.Name, r.Watts, s.Watts)
				}
			}
		}
	}
}

// TestAnew: a damaged file is refused, and replaced anew; another card's is left alone in any case.
func TestAnew(t *testing.T) {
	list, err := Stresses(32)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "components.json")
	try := func(anew bool) error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, err := Components(ctx, measure.Simulated(power.DefaultSim()), file, list, ComponentOptions{Anew: anew, Progress: func(int, int, component.Reading) { cancel() }})
		return err
	}
	for _, damaged := range []string{"", `{"components_version":1,"card":"simulated card","dri`} {
		if err := os.WriteFile(file, []byte(damaged), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := try(false); err == nil || !strings.Contains(err.Error(), "calibrate --components --anew") {
			t.Errorf("%q: %v", damaged, err)
		}
		if err := try(true); !errors.Is(err, context.Canceled) {
			t.Errorf("%q anew: %v", damaged, err)
		}
		if m, err := component.Read(file); err != nil || len(m.Readings) != 1 {
			t.Errorf("%q anew: %v, %v", damaged, m, err)
		}
	}
	facts := usualFacts(t)
	other := component.Model{Card: "another", Facts: *facts}
	if err := other.Write(file); err != nil {
		t.Fatal(err)
	}
	for _, anew := range []bool{false, true} {
		if err := try(anew); err == nil || !strings.Contains(err.Error(), "choose another OUT") {
			t.Errorf("another card's, anew %v: %v", anew, err)
		}
	}
}
