package bench

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/sweep"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// source returns the groups of a pattern that matches a source file once. Constants that packages do not export are read so.
func (e *evidence) source(file, pattern string) []string {
	e.Helper()
	return e.record(filepath.Join("..", "..", file), pattern)
}

// shifted returns a constant that is written as a shift.
func (e *evidence) shifted(file, name string) float64 {
	e.Helper()
	m := e.source(file, name+` = (\d+) << (\d+)`)
	return e.number(m[0]) * math.Exp2(e.number(m[1]))
}

func packagesClaims(e *evidence) []claim {
	return []claim{says("take at most {} MiB, or one larger block", printed(0, e.shifted("transform/apply/shard.go", "const inFlight")/(1<<20)))}
}

func ownCardClaims(e *evidence) []claim {
	large := e.number(e.source("cost/quality.go", `const largeError = (\S+)`)[0])
	return []claim{says("a mean error is above {} %", printed(0, 100*large)),
		says("joules / seconds within {} %", printed(0, 100*e.number(e.source("bench/probe/table.go", `math\.Abs\(off\) > (\S+) \{`)[0])))}
}

func storesClaims(e *evidence) []claim {
	const stores = "storecopy-cpu.txt"
	return []claim{
		says("the conversion took {} times as long as the copy, and {} times", e.record(stores, `wall time (\S+),`)[0], e.record(stores, `processor time (\S+)\.\n`)[0]),
		says("models, or {} MiB of smaller tensors", printed(0, e.shifted("transform/verify/window.go", "const leastWindow")/(1<<20))),
		says("hold {} MiB of the source", e.source("weights/remote.go", `spareBytes = int64\((\d+) << 20\)`)[0]),
		says("four parts, {} MiB.", printed(0, 4*e.shifted("weights/bucket/upload.go", "leastPart +")/(1<<20))),
		says("A test sets the {} MiB almost", e.source("weights/remote.go", `spareBytes = int64\((\d+) << 20\)`)[0]),
		says("tensor, in blocks of {} KiB", e.source("weights/remote.go", `blockBytes += (\d+) << 10`)[0]),
		says("hold less than {} MiB of a model", e.source("weights/planmemory_test.go", `const mostHeld = (\d+) << 20`)[0]),
		says("in parts of {} MiB or more", printed(0, e.shifted("weights/bucket/upload.go", "leastPart +")/(1<<20))),
	}
}

func limitsClaims(e *evidence) []claim {
	return []claim{says("up to {} GiB. The next", printed(0, e.shifted("gemm/forward/result.go", "const DefaultKeptBytes")/(1<<30)))}
}

func ownFamilyClaims(e *evidence) []claim {
	var recorded struct {
		Transformers string
		Pairs        map[string]struct{ Exact struct{ Apart float64 } }
	}
	read(e.T, "results/runtimes.json", &recorded)
	apart := 0.0
	for _, p := range recorded.Pairs {
		apart = max(apart, p.Exact.Apart)
	}
	families := fmt.Sprint(len(arch.Families()))
	return []claim{
		says("describes {} architectures", families), says("Three tests cover all {} architectures", families),
		says("transformers {} computes", recorded.Transformers[:strings.LastIndex(recorded.Transformers, ".")]),
		says("for\n  {} model folders, to {} of the largest output, in float64", fmt.Sprint(len(recorded.Pairs)), fmt.Sprintf("%.0e", apart)),
		says("differ by at most\n  {} of the largest output. The inverse", e.source("transform/catalogue_test.go", `const sameOutputs = (1e-\d+)`)[0]),
	}
}

func servingClaims(e *evidence) []claim {
	fills := func(name, unit string) string {
		return e.source("gemm/serve/options.go", `fill\(&o\.`+name+`, (\d+)\*time\.`+unit+`\)`)[0]
	}
	return []claim{
		says("at least {} s must have passed", fills("Settle", "Second")),
		says("`--window` ({} s) has passed", fills("Window", "Second")),
		says("`--time` ({}\nminutes by default)", fills("Time", "Minute")),
		says("within ± `--precision` ({} % by\ndefault)", printed(1, 100*e.number(e.source("gemm/serve/options.go", `fill\(&o\.Precision, (\S+)\)`)[0]))),
	}
}

// damping returns a default of compensate.
func (e *evidence) damping(name string) string {
	e.Helper()
	v, err := strconv.ParseFloat(e.source("transform/pass/compensate.go", name+` += (\S+)`)[0], 64)
	if err != nil {
		e.Fatal(err)
	}
	return fmt.Sprint(v)
}

// dampings returns the dampings that the search tries for compensate without an argument.
func (e *evidence) dampings() (list []string) {
	e.Helper()
	for _, text := range e.source("transform/pass/compensate.go", `return \[\]float64\{(1\S+), (\S+), (\S+)\}`) {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			e.Fatal(err)
		}
		list = append(list, fmt.Sprint(v))
	}
	return list
}

func passesClaims(e *evidence) []claim {
	model := e.llama()
	near, balanced := e.recipe("near-lossless"), e.recipe("balanced")
	percents := func(share *float64) string { return fmt.Sprintf("%v %%", 100**share) }
	less := func(grid string) string { return "−" + e.scaleAdds(grid) }
	random := filepath.Join(e.temp, "gpt2")
	if _, err := os.Stat(random); err != nil {
		e.command("synth", "../weights/synth/configs/gpt2-tiny.json", random, "--quiet")
	}
	shifted := e.verify(random, e.converted(random, "--passes", "shift=8"), "prefill")
	lowest := math.Inf(1)
	for _, t := range shifted.Tensors {
		if t.SNR != nil {
			lowest = min(lowest, *t.SNR)
		}
	}
	whole := regexp.MustCompile(`\.\d %`)
	return []claim{
		says("the measured energy of the linear layers of llama-17m by {} percentage points on top of grid=2, and by {} points on top of grid=4. Alone, scale changes the energy by {} %", less("grid2"), less("grid4"),
			whole.ReplaceAllStringFunc(percent(change(e.of("level-decode", "scale").RelativeEnergy), 1), func(s string) string { return strings.TrimSuffix(s, " %") })),
		says("layers in BF16 keep an output SNR of about {} dB.", printed(0, lowest)),
		says("The default of DAMP is {}, and {} for quantised weights", e.damping("defaultDamp"), e.damping("codesDamp")),
		says("search for --max-loss tries {}, {} and {} if", e.dampings()...),
		says("saving while perplexity rises by at most {} (llama-17m: perplexity {}, measured energy of linear layers in prefill {}). Without tokens, by grid and round: the largest saving with an output SNR of at least {} dB in every layer (llama-17m: perplexity {}, predicted energy of linear layers in prefill {})",
			percents(near.MaxLoss), e.rise("trellis-c-0.1", 3), strings.Split(e.spent("trellis-c-0.1"), " ±")[0], fmt.Sprint(*near.MinSNR),
			e.evaluatedWithin("near-lossless")[0], e.predicted(model, e.converted(model), "prefill")),
		says("rises by at most {}. Without tokens, by grid and round: the largest saving with an output SNR of at least {} dB in every layer (llama-17m: perplexity {}, measured energy of linear layers in prefill {})", percents(balanced.MaxLoss), fmt.Sprint(*balanced.MinSNR),
			e.lost("grid-4", 2), strings.Split(e.measured("layers-stationary", "grid-4", 1), " ±")[0]),
	}
}

func sweepClaims(e *evidence) []claim {
	law, settings := e.calibration().Facts.Power, e.calibration().Facts.Settings
	span := func(l cost.Likely) string { return fmt.Sprintf("%v to %v", l.Low, l.High) }
	drift := e.source("gemm/sweep/validity.go", `const mostDrift = (\S+)`)[0]
	missed := e.source("gemm/sweep/validity.go", `const off = (\S+)`)[0]
	memory := e.source("gemm/sweep/exclusive.go", `const ownMemory = (\d+)e9`)[0]
	percents := func(share string) string { return printed(0, 100*e.number(share)) + " %" }
	list := []claim{
		says("the exponent of power as a function of the clock ({}), static power ({} W), memory power ({} W),", span(law.ClockExponent), span(law.Static), span(law.Memory)),
		says("cards that draw {} less or {} more power than predicted.", printed(0, 100*(1-law.MemoryDraw.Low))+" %", printed(0, 100*(law.MemoryDraw.High-1))+" %"),
		says("Settings from {} to {} W and {} to {} MHz", fmt.Sprint(settings.LowestCap), fmt.Sprint(settings.DefaultCap), fmt.Sprint(settings.LowestClock), fmt.Sprint(settings.HighestClock)),
		says("more than {} GB of\n  used memory", memory),
		says("reference measurements differ by more than {}.\n", percents(drift)),
		says("exceeded by more than {}. For", percents(missed)),
		says("missed by more than {}.\n", percents(missed)),
	}
	least := [3]string{}
	limit := ""
	if model := e.llama(); model != "" {
		var result sweep.Result
		if err := json.Unmarshal([]byte(e.command("sweep", model, e.converted(model, "--passes", "round=4"), "--simulate", "--json")), &result); err != nil {
			e.Fatal(err)
		}
		for _, b := range result.Best {
			if b.Metric == "edp" {
				limit = fmt.Sprint(b.Setting.Cap)
				least = [3]string{fmt.Sprintf("%.3f", b.Setting.Value), fmt.Sprintf("%.3f", b.Transform.Value), fmt.Sprintf("%.3f", b.Both.Value)}
			}
		}
	}
	return append(list, says("predicts these least EDPs: {} with a limit of {} W alone, {}\nwith the conversion alone, {} with both.", least[0], limit, least[1], least[2]))
}
