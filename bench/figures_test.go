package bench

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// figure is a number that a reader may quote: one with a unit, a sign or decimals, or one that fills a cell of a table.
var figure = func() *regexp.Regexp {
	const number = `\d[\d ]*(?:\.\d+)?(?:e[-−]?\d+)?`
	units := `%|dB\b|[mµ]?J\b|[mk]?W\b|[mµ]?s\b|h\b|min\b|minutes?\b|seconds?\b|hours?\b|[KMGT]i?B(?:/s)?\b|[MG]Hz\b|°C|points?\b|times\b|` +
		`×(?:[ ,.;)|]|$)|nats?\b|TFLOP/s|[MB] (?:random )?weights|` + counted
	return regexp.MustCompile(`(?m)(?:[−+±]\s?)?` + number + `\s?(?:` + units + `)|\b\d+\.\d+\b|[−+±]\s?\d[\d.]*|\d(?:\.\d+)?e[-−]\d+|` +
		`\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty)\s(?:cards|H200s|runs)\b|\|[ *]*\d[\d .,]*[ *]*(?:\||$)`)
}()

// counted lists nouns that turn a number before them into a figure.
const counted = `cards\b|H200s\b|runs\b|series\b|architectures\b|models\b|kernels\b|linear layers\b`

// generated maps pages to the sources of their generators. Generators compute their figures, except those in the texts of the
// sources: each source counts as a page.
var generated = map[string][]string{
	"docs/cards.md":               {"bench/cardspage_test.go", "bench/cardsnotes_test.go"},
	"docs/collectives.md":         {"bench/collectivepage_test.go"},
	"docs/components.md":          {"bench/componentspage_test.go", "bench/componentstext_test.go"},
	"docs/cost.md":                {"bench/costpage_test.go"},
	"docs/cost-accuracy.md":       {"bench/costpage_test.go", "bench/belowcap_test.go"},
	"docs/components-accuracy.md": {"bench/componentspage_test.go", "bench/componentstext_test.go"},
	"docs/frontier.md":            {"bench/frontierpage_test.go"},
	"docs/measured.md":            {"bench/measured_test.go", "bench/measurednotes_test.go"},
	"docs/whole-model.md":         {"bench/wholepage_test.go", "bench/bill_test.go"},
	"docs/takeaways.md":           {"bench/paper/takeawayspage_test.go"},
	"docs/families.md":            nil, // of the files of architectures; it has no measurement
	"docs/patterns.md":            nil, // of the language's steps and their limits
	"docs/remaining.md":           {"bench/remaining_test.go"},
	"docs/reproduce.md":           {"bench/paper/page.go", "bench/paper/pagemeasured.go", "bench/paper/text.go"},
}

// parts maps pages to the sources of generators of their parts, between <!-- NAME: ... --> and <!-- end of NAME -->.
var parts = map[string][]string{
	"docs/meter-error.md":      {"bench/nulls_test.go"},
	"docs/bursts.md":           {"bench/clocks_test.go"},
	"docs/power-h200.md":       {"bench/profile_test.go"},
	"docs/power-steady.md":     {"bench/profilekernels_test.go"},
	"docs/quantised-energy.md": {"bench/quantisedpage_test.go"},
	"docs/serving.md":          {"bench/servepage_test.go"},
	"docs/sweep.md":            {"bench/sweeppage_test.go"},
}

// given lists the figures that nothing computes, by reason and page.
var given = []struct {
	why   string
	texts map[string][]string
}{
	{"sizes of models and machines, which their configs and records state", map[string][]string{
		"bench/servepage_test.go": {"3.95 B random weights"},
		"bench/wholepage_test.go": {"3.75 B weights"},
		"README.md":               {"17 M weights", "3.75 B weights", "3.95 B weights"},
		"docs/results.md":         {"17 M weights", "24 GB", "2.07 GB BF16 Llama"},
		"docs/scale.md":           {"2.07 GB BF16, relative"},
		"docs/accuracy.md":        {"7.24 B weights"},
		"docs/scaling.md":         {"3.75 B random weights"},
	}},
	{"what was asked for", map[string][]string{
		"bench/measured_test.go": {"60 s: ±0.3 %", "20 s: ±0.5 %", "within 2 %%"},
		"bench/costpage_test.go": {"rank\nof 0.95",
			"mean error was 1.5 percentage points", "contain 95 %% of the points"},
		"docs/scale.md":   {"at most 10 minutes", "at most 2 GB", "at most 20 MB", "at most 10 s", "at most 1.1"},
		"docs/results.md": {"at most 1.5", "100 MB", "at least 0.5", "under 60 s", "under 10 min", "1e-6 nats"},
	}},
	{"a convention: exit statuses, codes, versions of libraries that are needed", map[string][]string{
		"docs/quantised-values.md": {"all −1 means", "2^(byte − 127)"},
		"docs/sweep.md":            {"((k−1)·E", "energy has k−1 times"},
		"docs/quantised.md":        {"replaces −0 by +0", "code of −0 is NaN", "mean output SNR of the source is below 1 dB", "31.6 dB | 0 |"},
		"docs/quantising.md":       {"(+1.18 … +1.63) | 0 |"},
		"docs/library.md":          {"at least 0 dB, that is", "perplexity: 0.001 is 0.1 %."},
		"docs/formats.md":          {"| 0 | done", "| 1 | failed", "| 2 | wrong", "| 3 | done", "| 4 | no GPU", "| 75 | run the same"},
		"docs/passes.md":           {"1e-3 is gentle, 1e-1", "labels of an index by −1", "the code of −0 by the code of +0", "may be 0.25 to 2^20", "Passes that choose codes anew write +0"},
		"docs/quantised-energy.md": {"(CUDA 12.9 or later)"},
		"docs/quantised-speed.md":  {"| 1 | | |"},
		"README.md":                {"Apache 2.0"},
	}},
	{"settings of the method, which are constants of the code, and those of its paper", map[string][]string{
		"docs/power.md": {"every 20 or 100 ms", "A power ramp takes 10 ms", "takes 25 µs to 2 ms", "up to 0.1 s more, the", "cells of 2.5 ms", "resolved to 50 ms", "changes by at most 1 %", "than to ±1 %", "instead of 1 %",
			"above 3 % no", "up to 1 % per second", "each 5 or 10 µs", "one reading every 20 ms", "each length of 10, 20, 30 and 50 ms", "(energy of a 30 ms burst − energy of a 20 ms burst) / 10 ms", "from 20 to 30 ms", "at least 92 % of the cells of a ramp to 920 W"},
		"docs/power-h200.md":           {"one reading every 20 ms", "a time stamp of 1 ms", "(700 W, driver 580", "From 10 to 30 ms after idle", "limit of 700 W", "measurements differ by more than 3 %, because", "window of 25 ms is this filter's rise time from 10 to 90 %", "In more than 5 % of the cells", "800 W for 12 ms are 10 J"},
		"docs/power-steady.md":         {"From 10 ms on", "limit of 700 W", "a change of 1 %", "a run of 200 ms"},
		"docs/recipes.md":              {"at most 1 MiB"},
		"docs/reliability.md":          {"2, 5 and 10 s", "more than 35 %", "fewer than 1000 times", "3 s or longer"},
		"bench/collectivepage_test.go": {"on two cards", "after 25 ms"},
		"bench/componentstext_test.go": {"leakage·(°C − 50)", "with at most 1 %% more time", "with at most 5 %% more time", "mean error of power is at most 5 %%", "unseen kernels is above 15 %%", "by at\n  most 20 %%"},
	}},
	{"settings of an experiment, which its command or record has", map[string][]string{
		"docs/accuracy.md":             {"1e-6 nats per token", "\n| 0.1 % |", "\n| 0.5 % |", "\n| 1.2 % |", "\n| 0.1 %, `--workload"},
		"bench/measured_test.go":       {"sparse(50%)", "sparse(50%, block=64x64)", "normal(0,0.02)", "about ±4 levels", "--time 18s"},
		"bench/cardsnotes_test.go":     {"-cards-time 75s", "Rows of only two cards have no intervals"},
		"bench/measurednotes_test.go":  {"sparsify=0.5", "normal(0,0.02)"},
		"bench/wholepage_test.go":      {"for 18 s, at fixed addresses", "saves 4 %%", "saves 6 %%"},
		"bench/bill_test.go":           {"10 × %s mJ × %.0f %%", "8 × W / (8 × W"},
		"bench/remaining_test.go":      {"copy of 500.0 MB"},
		"bench/nulls_test.go":          {"after weights that draw less than 97 %"},
		"bench/profilekernels_test.go": {"mean power of the first 50 ms"},
		"bench/profile_test.go":        {"the lowest 2.5 ms", "the first 50 ms", "after 50 ms", "after 75 ms", "more than 3 %", "first 50 ms (median)", "2 s (median)"},
		"docs/measuring.md":            {"energy               95 %      time", "\nnormal(0,0.02)", "const(0.02)", "18 s is a short", "The savings of the two cards agree"},
		"docs/bursts.md":               {"At duty 0.4, whole"},
		"docs/serving.md":              {"fit (0.3 of the memory"},
		"docs/scaling.md":              {"relative to σ = 0.02", "| 0.04 | 0.08 | 0.16 | 0.32 | 0.64 | 1.28 | 2.56 |", "At σ = 0.64", "for σ = 0.02 a factor"},
	}},
}

// handwritten returns the pages that no generator writes, and the sources of the generators.
func handwritten(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../docs/*.md")
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	pages := []string{"README.md"}
	for _, f := range files {
		page := filepath.ToSlash(strings.TrimPrefix(f, ".."+string(filepath.Separator)))
		if sources, ok := generated[page]; ok {
			pages = append(pages, sources...)
		} else {
			pages = append(append(pages, page), parts[page]...)
		}
	}
	return pages
}

// uncovered returns the figures of a page, with their lines, that no claim computes and that are not given.
func uncovered(t *testing.T, page, text string, list []claim) (left []string) {
	shown := []byte(visible(t, page, text))
	cover := func(from, to int) {
		for i := from; i < to; i++ {
			if shown[i] != '|' && shown[i] != '\n' {
				shown[i] = ' '
			}
		}
	}
	for _, c := range list {
		places, _ := c.in(text) // corrected reports errors
		for _, at := range places {
			cover(at.from, at.to)
		}
	}
	for _, g := range given {
		for _, piece := range g.texts[page] {
			p := regexp.MustCompile(spaces.ReplaceAllString(regexp.QuoteMeta(piece), `\s+`))
			all := p.FindAllStringIndex(text, -1)
			if len(all) == 0 || figure.FindString(piece) == "" {
				t.Errorf("given has %q, which the page has not", piece)
			}
			for _, at := range all {
				cover(at[0], at[1])
			}
		}
	}
	for _, m := range figure.FindAllIndex(shown, -1) {
		line := 1 + strings.Count(text[:m[0]], "\n")
		left = append(left, strconv.Itoa(line)+": "+strings.Trim(oneLine(string(shown[m[0]:m[1]])), "| "))
	}
	return left
}

var (
	generatedPart = regexp.MustCompile(`(?s)<!-- \w+: go test .*?<!-- end of \w+ -->`)
	fences        = regexp.MustCompile("(?ms)^```[^\n]*\n.*?^```$")
	codeSpans     = regexp.MustCompile("`[^`\n]*(?:\n[^`\n]*)?`")
	targets       = regexp.MustCompile(`\]\([^)]*\)`)
	nameWords     = regexp.MustCompile(`\d{4}-\d\d-\d\d|\b[A-Za-z_][A-Za-z_-]*\d[\w.-]*|\d+(?:×\d+)+|\d+³`) // dates, names with digits, shapes
	verbs         = regexp.MustCompile(`%[-+#0]*\d*(?:\.\d+)?[a-z]`)                                        // of fmt
	intervals     = regexp.MustCompile(`95 %%?\s+(?:confidence )?intervals?|\(95 %[ :)]|\b95 %\s+(?:band|interval)`)
)

// visible returns a page of equal length whose commands, code, links, dates and generated parts are blank.
func visible(t *testing.T, page, text string) string {
	if strings.HasSuffix(page, ".go") {
		return literals(t, page, text)
	}
	text = generatedPart.ReplaceAllStringFunc(text, blanked)
	text = fences.ReplaceAllStringFunc(text, func(block string) string {
		if !strings.Contains(block, "\n$ ") { // commands only
			return blanked(block)
		}
		lines := strings.SplitAfter(block, "\n")
		command := false
		for i, line := range lines {
			if command = command || strings.HasPrefix(line, "$ "); command {
				lines[i] = blanked(line)
			}
			command = command && strings.HasSuffix(line, "\\\n")
		}
		return strings.Join(lines, "")
	})
	return replaceAll(text, codeSpans, targets, nameWords, intervals)
}

// replaceAll blanks what patterns match, one pattern after the other.
func replaceAll(text string, patterns ...*regexp.Regexp) string {
	for _, p := range patterns {
		text = p.ReplaceAllStringFunc(text, blanked)
	}
	return text
}

// blanked replaces all bytes but line breaks by spaces.
func blanked(text string) string {
	b := []byte(text)
	for i := range b {
		if b[i] != '\n' {
			b[i] = ' '
		}
	}
	return string(b)
}

// literals returns the source with all but its texts of several words blank.
func literals(t *testing.T, page, source string) string {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, page, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	out := []byte(blanked(source))
	ast.Inspect(f, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING && strings.Count(l.Value, " ") > 2 {
			from, to := files.Position(l.Pos()).Offset, files.Position(l.End()).Offset
			copy(out[from:to], replaceAll(source[from:to], verbs, targets, nameWords, intervals))
		}
		return true
	})
	return string(out)
}
