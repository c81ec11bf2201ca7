package measure

import (
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// steadyWatts returns the watts of a load that has run for two seconds, the memory's watts, and the seconds per pass.
func steadyWatts(t *testing.T, m Machine, b Mix) (watts, memory, seconds float64) {
	t.Helper()
	if err := b.Start(1); err != nil {
		t.Fatal(err)
	}
	if err := b.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	one, err := b.Elapsed()
	if err != nil {
		t.Fatal(err)
	}
	if one < 4*time.Millisecond {
		t.Errorf("an execution takes %v", one)
	}
	if err := b.Start(int(3 * time.Second / one)); err != nil {
		t.Fatal(err)
	}
	if err := m.Clock().Sleep(t.Context(), 2*time.Second); err != nil {
		t.Fatal(err)
	}
	if watts, err = m.Card().Power(power.Instant, power.GPU); err != nil {
		t.Fatal(err)
	}
	if memory, err = m.Card().Power(power.Average, power.Memory); err != nil {
		t.Fatal(err)
	}
	if err := b.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return watts, memory, one.Seconds() / float64(b.Passes())
}

func TestSimulatedTraffic(t *testing.T) {
	const gib = 1 << 30
	zeros := shaped("zeros", 2048, 2048, 2048)
	took := zeros.Problem.Ops() / simOps
	copied := 2 * float64(gib) / simCopyBytes
	for name, c := range map[string]struct {
		products               []cuda.Product
		traffic                []cuda.Traffic
		watts, memory, seconds float64
	}{
		"copy":   {nil, []cuda.Traffic{{Kind: cuda.Copy, Bytes: gib}}, simCopyWatts, 90, copied},
		"cached": {nil, []cuda.Traffic{{Kind: cuda.Copy, Bytes: 16 << 20}}, simCachedWatts, 38, 2 * (16 << 20) / simCachedBytes},
		"fill":   {nil, []cuda.Traffic{{Kind: cuda.Fill, Bytes: gib}}, simFillWatts, 38 + simMemoryWatts*simFillBytes/simCopyBytes, gib / simFillBytes},
		"launch": {nil, []cuda.Traffic{{Kind: cuda.Launch}}, simLaunchWatts, 38, simKernel},
		"tiny":   {nil, []cuda.Traffic{{Kind: cuda.Copy, Bytes: 4}}, simCachedWatts, 38, simKernel},
		"read":   {nil, []cuda.Traffic{{Kind: cuda.Read, Bytes: gib, Rounds: 2}}, simCopyWatts, 90, copied},
		"few":    {nil, []cuda.Traffic{{Kind: cuda.Read, Bytes: 1 << 20, Rounds: 64, Blocks: 66}}, (simRestWatts + simCopyWatts) / 2, 38, 2 * (64 << 20) / simCopyBytes},
		"spin":   {nil, []cuda.Traffic{{Kind: cuda.Spin, Rounds: 50, Blocks: 66}}, (simRestWatts + simSpinWatts) / 2, 38, 50 * simSpinRound},
		"rest":   {nil, []cuda.Traffic{{Kind: cuda.Rest, Time: 40 * time.Microsecond}}, simRestWatts, 38, 40e-6},
		"mix": {[]cuda.Product{zeros}, []cuda.Traffic{{Kind: cuda.Copy, Bytes: gib}},
			(simStill*took + simCopyWatts*copied) / (took + copied),
			38 + (simMemory(zeros.Problem.Bytes()/took)*took+simMemoryWatts*copied)/(took+copied), took + copied},
	} {
		m := Simulated(still())
		b, err := m.NewMix(t.Context(), name, c.products, c.traffic, cuda.Options{})
		if err != nil {
			t.Fatal(err)
		}
		watts, memory, seconds := steadyWatts(t, m, b)
		near(t, name+": watts", watts, c.watts, 1e-3)
		near(t, name+": memory's watts", memory, c.memory, 1e-3)
		near(t, name+": seconds", seconds, c.seconds, 1e-3)
		if b.Name() != name || b.Close() != nil {
			t.Errorf("%s: named %s", name, b.Name())
		}
	}
}

func TestSimulatedTrafficRefuses(t *testing.T) {
	m := Simulated(still())
	for _, traffic := range [][]cuda.Traffic{nil, {{Kind: cuda.Copy}}, {{Kind: cuda.Fill, Bytes: -1}}, {{Kind: 99, Bytes: 4}}, {{Kind: cuda.Fill, Bytes: 5}}} {
		if b, err := m.NewMix(t.Context(), "m", nil, traffic, cuda.Options{}); err == nil || b != nil {
			t.Errorf("%v: %v, %v", traffic, b, err)
		}
	}
}
