package bench

import (
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/bench/paper"
	"github.com/lowtoggle/lowtoggle/bench/probe"
	"github.com/lowtoggle/lowtoggle/cost/component"
	"github.com/lowtoggle/lowtoggle/gemm/collective"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/profile"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
)

// remainder is a part of bench/remaining.sh: the planned measurements, the recorded ones, and the remaining minutes on a card.
type remainder struct {
	part, what, asked, recorded string
	minutes                     float64
}

// TestRemainingPage checks docs/remaining.md against the records.
func TestRemainingPage(t *testing.T) {
	goldenfile.Same(t, "../docs/remaining.md", []byte(remainingPage(remainders(t, recorded))))
}

func remainingPage(list []remainder) string {
	var b strings.Builder
	b.WriteString(remainingIntroduction)
	b.WriteString("| part | measurement | planned | recorded | minutes left |\n|---|---|---|---|---|\n")
	all := 0.0
	for _, r := range list {
		minutes := "–"
		if r.minutes > 0 {
			minutes = fmt.Sprintf("%.0f", max(1, r.minutes))
		}
		all += r.minutes
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", r.part, r.what, r.asked, r.recorded, minutes)
	}
	fmt.Fprintf(&b, "| all | | | | %.0f |\n", all)
	b.WriteString(remainingCommands)
	return b.String()
}

const remainingIntroduction = "# What has not been measured yet?\n\nThis page is generated from [bench/results](../bench/results) by `go test ./bench -run RemainingPage -update`." +
	`
The table lists the planned measurements, their records, and the estimated minutes on a card for the missing measurements
(–: nothing is missing). The estimates for ` + "`points` and `seeds`" + ` come from the speed of the recorded series, all other estimates from
the settings of the script.

`

const remainingCommands = `
## How to make these measurements

` + "`bench/remaining.sh`" + ` measures the named parts of the table. The script needs the program, the compiled tests of
` + "`bench`" + ` in the same folder, Python 3 and a card:

` + "```" + `
go build -o bin/ . && go test -c -o bin/bench.test ./bench
mkdir records && cp -r bench/results/h200/null-pooled.json bench/results/h200/reproduce records
bench/remaining.sh bin/lowtoggle records cards null
` + "```" + `

One record takes at most nine minutes of measuring. ` + "`collectives` and `overtime`" + ` make four records each, and need NCCL and a second card. Each part prints
a short table and writes JSON records to the folder. If you run the command again, the script continues ` + "`points` and `seeds`" + `, and adds
records of ` + "`cards` and `null`" + `. Other records in the folder are not measured again. ` + "`DEVICE=1`" + ` uses the card with number 1.
` + "`SMALL=1 DEVICE=simulated`" + ` runs the script quickly on a simulated card. To publish the records, copy the folder's content to bench/results/h200 and run
` + "`go test ./bench -run Page -update`" + `.
`

// remainders reads the records of a folder.
func remainders(t *testing.T, folder string) []remainder {
	return slices.Concat([]remainder{cardsRemain(t, folder), nullRemains(t, folder)}, profilesRemain(t, folder),
		[]remainder{componentsRemain(t, folder), recordRemains(folder, "duty", "energy of decode in bursts with gaps: four weight patterns at three duties", dutyDecode, 8)},
		collectivesRemain(folder), seriesRemain(t, folder))
}

// Minutes of each part on a card, including the time to prepare its operands.
const (
	cardMinutes       = 8
	nullMinutes       = 5
	componentsMinutes = 3
)

const cardsAsked = 5

func cardsRemain(t *testing.T, folder string) remainder {
	cards := map[string]bool{}
	for _, r := range cardRecords(t, filepath.Join(folder, "cards")) {
		cards[r.Card] = true
	}
	return remainder{"cards", "energy of six conversions in prefill, prefill below the power cap and decode ([cards.md](cards.md))", fmt.Sprintf("%d cards", cardsAsked),
		fmt.Sprintf("%d: %s", len(cards), strings.Join(slices.Sorted(maps.Keys(cards)), ", ")), cardMinutes * float64(max(0, cardsAsked-len(cards)))}
}

// nullAsked is the largest distance of a null comparison's interval from zero, in per cent.
const nullAsked = 0.05

func nullRemains(t *testing.T, folder string) remainder {
	p := pool(differences(readNulls(t, folder), false, energyOf))
	half := p.Interval[1] - p.Mean
	far := math.Abs(p.Mean) + half
	r := remainder{"null", "difference in energy between two copies of the same weights ([meter-error.md](meter-error.md))", fmt.Sprintf("95 %% interval within ±%.2f %%", nullAsked),
		fmt.Sprintf("%s ± %.3f %%, %d runs", signed(p.Mean, 3), half, p.runs), 0}
	if far > nullAsked {
		// The half width falls with the square root of the number of runs. A call adds four.
		runs := float64(p.runs) * (math.Pow(half/max(0.01, nullAsked-math.Abs(p.Mean)), 2) - 1)
		r.minutes = nullMinutes * math.Ceil(runs/4)
	}
	return r
}

// profilesRemain compares the runs of profiles with those of Table I. Earlier records have fewer.
func profilesRemain(t *testing.T, folder string) (list []remainder) {
	kernels := profiledKernels(t).Profiles
	of := func(name string) *profile.Profile {
		return &kernels[slices.IndexFunc(kernels, func(p profile.Profile) bool { return p.Segments[0].Name == name })]
	}
	for _, p := range []struct {
		part, what, file string
		before           *profile.Profile
	}{
		{"copy", "power over time of a GEMV ([power-steady.md](power-steady.md))", tableProfiles[0], of("1x8192x8192")},
		{"copy", "power over time of a copy", tableProfiles[1], of("copy of 500.0 MB")},
		{"2048", "power over time of 2048³", tableProfiles[2], profiledProducts(t)[1].runs[0]},
	} {
		const bursts, pause = 24 * 25e-3, 0.65 // of six runs of four lengths, and between two runs, in seconds
		asked, taken := p.before.Advised, p.before.Taken
		if path := filepath.Join(folder, p.file); exists(path) {
			taken = max(taken, readProfile(t, path).Profiles[0].Taken)
		}
		r := remainder{p.part, p.what, fmt.Sprintf("%d runs (Table I of the FinGraV paper)", asked), fmt.Sprintf("%d runs", taken), 0}
		if taken < asked {
			r.minutes = (bursts + float64(asked)*(0.2+pause) + 60) / 60
		}
		list = append(list, r)
	}
	return list
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func componentsRemain(t *testing.T, folder string) remainder {
	all, err := probe.Stresses(1)
	testmodel.OK(t, err)
	files, err := filepath.Glob(filepath.Join(folder, "components", "*.json"))
	testmodel.OK(t, err)
	least, in := len(all), "no record"
	for _, file := range files {
		m, err := component.Read(file)
		testmodel.OK(t, err)
		missing := 0
		for _, s := range all {
			if !slices.ContainsFunc(m.Readings, func(r component.Reading) bool { return r.Name == s.Name }) {
				missing++
			}
		}
		if missing < least {
			least, in = missing, m.CardID
		}
	}
	r := remainder{"components", "kernels for the power by component ([components.md](components.md)), including the kernels of lowest power", fmt.Sprintf("%d kernels on one card", len(all)),
		fmt.Sprintf("%d: %s", len(all)-least, in), 0}
	if least > 0 {
		r.minutes = componentsMinutes
	}
	return r
}

// recordRemains returns the remainder of a part that makes a single record.
func recordRemains(folder, part, what, file string, minutes float64) remainder {
	r := remainder{part, what, "1 record", "–", minutes}
	if exists(filepath.Join(folder, file)) {
		r.recorded, r.minutes = file, 0
	}
	return r
}

func collectivesRemain(folder string) (list []remainder) {
	for _, op := range []struct{ name, file string }{{"all-reduce", "allreduce"}, {"all-gather", "allgather"}} {
		for _, phase := range []string{"prefill", "decode"} {
			list = append(list, recordRemains(folder, "collectives", "energy of an "+op.name+" at the same time as a GEMM in "+phase, "collective-"+op.file+"-"+phase+".json", 4))
			if other := betweenCards + "collective-" + op.file + "-" + phase + ".json"; list[len(list)-1].minutes > 0 && exists(other) {
				last := &list[len(list)-1]
				last.recorded, last.minutes = "on two H100s: [collectives.md](collectives.md)", 0
			}
		}
	}
	for _, op := range []struct{ name, file string }{{"all-reduce", "allreduce"}, {"all-gather", "allgather"}} {
		for _, phase := range []string{"prefill", "decode"} {
			list = append(list, recordRemains(folder, "overtime", "power over time of an "+op.name+", of a GEMM and of both at once, on every card, in "+phase, "overtime-"+op.file+"-"+phase+".json.gz", 9))
		}
	}
	return list
}

func seriesRemain(t *testing.T, folder string) []remainder {
	all, err := experiment.LoadFolder(filepath.Join(folder, "reproduce"))
	testmodel.OK(t, err)
	points := remainder{part: "points", what: "patterns of both operands at 8192³ ([reproduce.md](reproduce.md))", asked: "every point with one seed"}
	seeds := remainder{part: "seeds", what: "main points of every series ([reproduce.md](reproduce.md))", asked: "every point with ten seeds"}
	left, draws := 0, 0
	for _, r := range paper.Remaining(all) {
		if r.Setup.M == 8192 && r.Setup.Change == experiment.Both {
			left += r.Points
			points.minutes += r.Pace * float64(r.Points) / 60
		}
		draws += r.Draws
		seeds.minutes += r.Pace * float64(r.Draws) / 60
	}
	points.recorded, seeds.recorded = allBut(left), allBut(draws)
	return []remainder{points, seeds}
}

func allBut(readings int) string {
	if readings == 0 {
		return "all readings"
	}
	return fmt.Sprintf("all but %d readings", readings)
}

// TestRemainingScript runs the script's quick parts on a simulated card, with this program as both programs.
func TestRemainingScript(t *testing.T) {
	if testing.Short() {
		t.Skip("runs programs for some seconds")
	}
	for _, tool := range []string{"sh", "python3", "gzip", "realpath"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	self, err := os.Executable()
	testmodel.OK(t, err)
	dir := t.TempDir()
	lowtoggle, folder := filepath.Join(dir, "lowtoggle"), filepath.Join(dir, "records")
	testmodel.OK(t, os.WriteFile(lowtoggle, []byte("#!/bin/sh\n"+childEnv+"=1 exec '"+self+"' \"$@\"\n"), 0o777))
	remain := func(parts ...string) string {
		t.Helper()
		cmd := exec.Command("./remaining.sh", append([]string{lowtoggle, folder}, parts...)...)
		cmd.Env = append(os.Environ(), "BENCH="+self, "SMALL=1", "DEVICE=simulated")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	shown := remain("cards", "null", "2048", "duty", "collectives", "overtime")
	for _, part := range []string{"grid=2", "in its own memory", "runs 4 of 400", "duty 0.3", "collective-allgather-decode.json", "overtime-allgather-decode.json.gz 16384 bytes"} {
		if !strings.Contains(shown, part) {
			t.Errorf("no %q in\n%s", part, shown)
		}
	}
	if again := remain("2048", "duty"); strings.Count(again, "measured already") != 2 {
		t.Errorf("records that are there are measured again:\n%s", again)
	}
	if n := len(readProfile(t, filepath.Join(folder, tableProfiles[2])).Profiles); n != 1 {
		t.Errorf("%d profiles", n)
	}
	var decode measure.Result
	if read(t, filepath.Join(folder, dutyDecode), &decode); len(decode.AtDuty) != 2 || len(decode.Variants) != 3 {
		t.Errorf("%d duties of %d weights", 1+len(decode.AtDuty), len(decode.Variants))
	}
	var exchange collective.Result
	if read(t, filepath.Join(folder, "collective-allreduce-prefill.json"), &exchange); exchange.Bandwidth == nil || len(exchange.Both.Variants) != 3 {
		t.Errorf("%+v", exchange)
	}
	overTime := readPacked[collective.OverTime](t, filepath.Join(folder, "overtime-allreduce-prefill.json.gz"))
	if len(overTime.Cards) != 2 || len(overTime.Parts) != 6 {
		t.Errorf("%d cards, %d parts", len(overTime.Cards), len(overTime.Parts))
	}
	var null nullRecord
	if read(t, filepath.Join(folder, "null-pooled.json"), &null); len(null.Runs) != 2 {
		t.Errorf("%d null comparisons", len(null.Runs))
	}
	files, err := filepath.Glob(filepath.Join(folder, "cards", "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	var card cardRecord
	read(t, files[0], &card)
	var rows []string
	for _, p := range card.Phases {
		for name, run := range p.runs() {
			rows = append(rows, fmt.Sprintf("%s %d", name, len(run.Variants)))
		}
	}
	if got := strings.Join(rows, ", "); got != "prefill 6, prefill below the cap 6, decode 6" {
		t.Error(got)
	}
}
