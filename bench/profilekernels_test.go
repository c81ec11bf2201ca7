package bench

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/profile"
	"github.com/lowtoggle/lowtoggle/gemm/profile/stitch"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
)

// profiledKernels returns the recorded measurement of a GEMV, two GEMMs and a copy, each also right after another one, with bursts.
func profiledKernels(t *testing.T) *profile.Result {
	return readProfile(t, recorded+"profile-kernels.json.gz")
}

// tableProfiles are records of a GEMV, a copy and 2048³ with the runs that Table I asks for. They may be missing.
var tableProfiles = []string{"profile-gemv.json.gz", "profile-copy.json.gz", "profile-2048.json.gz"}

// longProfile is a record of the GEMV of tableProfiles with fewer runs of twice the length.
const longProfile = "profile-gemv-long.json.gz"

// readProfile reads a compressed record.
func readProfile(t *testing.T, path string) *profile.Result {
	t.Helper()
	return readPacked[profile.Result](t, path)
}

// readPacked reads a JSON document that is compressed by gzip.
func readPacked[T any](t *testing.T, path string) *T {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var r T
	unpacked, err := gzip.NewReader(file)
	if err == nil {
		err = json.NewDecoder(unpacked).Decode(&r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &r
}

// TestPowerPageKernels checks that the tables of docs/power-steady.md agree with the recorded profiles of kernels.
func TestPowerPageKernels(t *testing.T) {
	tables := "\n" + kernelTables(profiledKernels(t))
	for _, file := range append(slices.Clone(tableProfiles), longProfile) {
		if exists(recorded + file) {
			tables += "\n" + kernelTables(readProfile(t, recorded+file))
		}
	}
	goldenfile.SameBetween(t, "../docs/power-steady.md", "<!-- kernels: go test ./bench -run PowerPage -update -->\n", "<!-- end of kernels -->\n", tables)
}

// TestProfiledKernels checks the record: kernels below the cap keep steady power to the end, and bursts agree with the trace.
func TestProfiledKernels(t *testing.T) {
	r := profiledKernels(t)
	for i := range r.Profiles {
		p := &r.Profiles[i]
		name := p.Segments[0].Name
		if s := p.Steady.SSP; (s.Found && s.Lasts) != belowCap(p, *r.Card.PowerLimit) {
			t.Errorf("%s: below the cap: %v, but steady power is %+v", name, !s.Lasts, s)
		}
		for _, c := range p.Counted {
			if watts, low, high := p.Trace.Mean(c.From, c.To); c.Low > high || c.High < low {
				t.Errorf("%s from %v to %v: %.0f to %.0f W by energy, the trace has %.0f W", name, c.From, c.To, c.Low, c.High, watts)
			}
		}
		if len(p.Counted) == 0 || len(p.Readings) == 0 || len(p.Timelines) != p.Golden {
			t.Errorf("%s has no bursts or no readings, so that the trace cannot be computed again", name)
		}
	}
}

// belowCap reports whether power stays below the limit while the first kernel runs. It ignores the first 10 ms, in which the trace
// may oscillate, and the last cells, which also contain power of the next kernel.
func belowCap(p *profile.Profile, limit float64) bool {
	end := p.Segments[0].End
	end -= p.Trace.ResolutionAt(end)
	for i, watts := range p.Trace.Watts {
		if at := p.Trace.Start + stitch.Seconds(i)*p.Trace.Step; at >= 10*ms && at < end && watts > limit {
			return false
		}
	}
	return true
}

// kernelTables prints steady power, bursts, interleaving and Table I's numbers of each kernel.
func kernelTables(r *profile.Result) string {
	var b strings.Builder
	row := func(name string, cell func(i int, p *profile.Profile) string) {
		fmt.Fprintf(&b, "| %s |", name)
		for i := range r.Profiles {
			fmt.Fprintf(&b, " %s |", cell(i, &r.Profiles[i]))
		}
		b.WriteByte('\n')
	}
	name := func(product int) string { return strings.ReplaceAll(r.Products[product].Name, "x", "×") }
	head := func(first string) {
		row(first, func(i int, _ *profile.Profile) string { return name(i) })
		b.WriteString("|---|" + strings.Repeat("---|", len(r.Profiles)) + "\n")
	}

	fmt.Fprintf(&b, "Card %s (%.0f W, driver %s, CUDA %s) was measured on %s by this command:\n\n```\n%s\n```\n\n", r.Card.ID(), *r.Card.PowerLimit, r.Card.Driver,
		r.Card.CUDA, r.Date[:len("2006-01-02")], r.Command)
	head("steady power")
	row("time of an execution", func(_ int, p *profile.Profile) string {
		each := p.Segments[0].End / stitch.Seconds(p.Segments[0].Executions)
		return fmt.Sprintf("%.0f µs", 1e6*each.Seconds())
	})
	row("idle, before the work", func(_ int, p *profile.Profile) string {
		watts, low, high, _ := p.BeforeWork()
		return within(watts, low, high)
	})
	row("lowest clock during the work", func(_ int, p *profile.Profile) string {
		least := math.Inf(1)
		for _, s := range p.States {
			if s.SMClock != nil && s.At > 0 && s.At < p.Segments[0].End {
				least = min(least, *s.SMClock)
			}
		}
		return fmt.Sprintf("%.0f MHz", least)
	})
	row("steady power (SSP) at its start", func(_ int, p *profile.Profile) string {
		s := p.Steady.SSP
		if !s.Found {
			return "not found"
		}
		return within(s.Watts, s.Low, s.High) + fmt.Sprintf(" at %.0f ms", 1e3*s.At.Seconds())
	})
	row("steady power lasts until", func(_ int, p *profile.Profile) string {
		switch s := p.Steady.SSP; {
		case !s.Found:
			return "– (" + strings.TrimSuffix(strings.TrimSuffix(s.Why, ": take longer runs"), ": take more runs") + ")"
		case s.Lasts:
			return "the end of the work"
		default:
			return fmt.Sprintf("%.0f ms", 1e3*s.Until.Seconds())
		}
	})
	row("resolution within the work (coarsest cell)", func(_ int, p *profile.Profile) string {
		return fmt.Sprintf("%.0f ms", 1e3*p.Coarsest().Seconds())
	})

	b.WriteByte('\n')
	head("mean power by bursts; by the trace")
	for k, c := range r.Profiles[0].Counted {
		row(fmt.Sprintf("%.0f to %.0f ms", 1e3*c.From.Seconds(), 1e3*c.To.Seconds()), func(_ int, p *profile.Profile) string {
			c := p.Counted[k]
			return within(c.Watts, c.Low, c.High) + "; " + within(p.Trace.Mean(c.From, c.To))
		})
	}

	if r.Interleaved != nil {
		b.WriteString("\n| right after another kernel | mean power of the first 50 ms | steady power from idle, mean | ratio |\n|---|---|---|---|\n")
	}
	for _, a := range r.Interleaved {
		alone, ratio := "not found", "–"
		if a.Alone > 0 {
			alone, ratio = within(a.Alone, a.AloneLow, a.AloneHigh), fmt.Sprintf("%.3f ± %.3f", a.Ratio, (a.Interval[1]-a.Interval[0])/2)
		}
		fmt.Fprintf(&b, "| %s after %s | %s | %s | %s |\n", name(a.Product), name(a.Other), within(a.Watts, a.Low, a.High), alone, ratio)
	}

	b.WriteByte('\n')
	head("Table I of the paper")
	row("runs, of the number in Table I", func(_ int, p *profile.Profile) string {
		return fmt.Sprintf("%d of %d, %d golden", p.Taken, p.Advised, p.Golden)
	})
	row("readings within the first execution at steady power, of the number in Table I", func(_ int, p *profile.Profile) string {
		if !p.Steady.SSP.Found {
			return fmt.Sprintf("– of %d", p.Density.Asked)
		}
		return fmt.Sprintf("%d of %d", p.Density.SSP, p.Density.Asked)
	})
	row("readings within all executions of steady power", func(_ int, p *profile.Profile) string {
		return fmt.Sprint(p.Density.Steady)
	})
	row("runs that would give Table I's number of readings within one execution", func(_ int, p *profile.Profile) string {
		return fmt.Sprintf("about %.0f", math.Round(float64(p.Density.Runs)/100)*100)
	})
	return b.String()
}
