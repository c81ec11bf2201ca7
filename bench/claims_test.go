package bench

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
)

// claim is a piece of a page whose figures a test computes. Each {} of text stands for a figure. A figure that cannot be computed
// here, because a model is missing, is empty.
type claim struct {
	text    string
	figures []string
	output  string // of the command that text is, if a page shows it
}

func says(text string, figures ...string) claim { return claim{text: text, figures: figures} }

// shows returns a claim about the block of a page that begins with a command. Its lines must be in the command's output. "…" stands for
// lines that the page leaves out. If this machine cannot compute the output, it is empty.
func shows(command, output string) claim {
	return claim{text: command, figures: []string{""}, output: output}
}

// claims are the pieces of each page, by its path from the repository's root.
var claims = map[string]func(*evidence) []claim{
	"README.md":                readmeClaims,
	"docs/accuracy.md":         accuracyClaims,
	"docs/predicting.md":       predictingClaims,
	"docs/ordering.md":         orderingClaims,
	"docs/rounding.md":         roundingClaims,
	"docs/scaling.md":          scalingClaims,
	"docs/recipes.md":          recipesClaims,
	"docs/results.md":          resultsClaims,
	"docs/packages.md":         packagesClaims,
	"docs/scale.md":            scaleClaims,
	"docs/stores.md":           storesClaims,
	"docs/own-card.md":         ownCardClaims,
	"docs/limits.md":           limitsClaims,
	"docs/own-family.md":       ownFamilyClaims,
	"docs/passes.md":           passesClaims,
	"docs/reliability.md":      reliabilityClaims,
	"docs/serving.md":          servingClaims,
	"docs/sweep.md":            sweepClaims,
	"docs/quantised-values.md": quantisedValuesClaims,
	"docs/measuring.md":        measuringClaims,
	"docs/quantised.md":        quantisedClaims,
	"docs/quantising.md":       quantisingClaims,
	"docs/power-h200.md":       powerClaims,
	"docs/quantised-energy.md": quantisedEnergyClaims,
	"docs/quantised-speed.md":  quantisedSpeedClaims,
}

// place is where a figure stands in a page.
type place struct{ from, to int }

// pattern matches the claim's text with any figures. Spaces match line breaks, too.
func (c claim) pattern() (*regexp.Regexp, error) {
	parts := strings.Split(c.text, "{}")
	if len(parts) != len(c.figures)+1 || parts[len(parts)-1] == "" {
		return nil, fmt.Errorf("%d figures for %q, which must not end with one", len(c.figures), c.text)
	}
	for i, part := range parts {
		part = regexp.QuoteMeta(part)
		parts[i] = spaces.ReplaceAllString(part, `\s+`)
	}
	return regexp.Compile(strings.Join(parts, `([^|]{1,80}?)`))
}

var spaces = regexp.MustCompile(`\s+`)

func oneLine(text string) string { return strings.TrimSpace(spaces.ReplaceAllString(text, " ")) }

// table returns an output in one line, with columns of any width.
func table(output string) string { return rules.ReplaceAllString(oneLine(output), "─") }

var rules = regexp.MustCompile(`─+`)

// in finds the claim in a page, and returns the places of its figures.
func (c claim) in(page string) ([]place, error) {
	if strings.HasPrefix(c.text, "$ ") {
		return c.block(page)
	}
	p, err := c.pattern()
	if err != nil {
		return nil, err
	}
	all := p.FindAllStringSubmatchIndex(page, -1)
	if len(all) != 1 {
		return nil, fmt.Errorf("%d places have the text %q, want one", len(all), c.text)
	}
	var places []place
	for i := 2; i < len(all[0]); i += 2 {
		places = append(places, place{all[0][i], all[0][i+1]})
	}
	return places, nil
}

// block finds the lines that follow the command.
func (c claim) block(page string) ([]place, error) {
	from := strings.Index(page, "\n"+c.text)
	length := strings.Index(page[from+1:], "\n```")
	if from < 0 || length < 0 {
		return nil, fmt.Errorf("no block begins with %q", c.text)
	}
	at := place{from + 1 + len(c.text), from + 1 + length}
	for _, lines := range strings.Split(page[at.from:at.to], "…\n") {
		if c.output != "" && !strings.Contains(table(c.output), table(lines)) {
			return nil, fmt.Errorf("%s does not print\n%s\nbut\n%s", c.text, lines, c.output)
		}
	}
	return []place{at}, nil
}

// TestPageFigures checks that every figure of README.md and docs is computed by a generator or a claim, or is given for a reason.
// With -update it corrects the figures of claims.
func TestPageFigures(t *testing.T) {
	e := newEvidence(t)
	pages := handwritten(t)
	known := slices.Collect(maps.Keys(claims))
	for _, g := range given {
		known = append(known, slices.Collect(maps.Keys(g.texts))...)
	}
	for _, page := range known {
		if !slices.Contains(pages, page) {
			t.Errorf("%s has claims or given figures, and is no page that is checked", page)
		}
	}
	for _, page := range pages {
		t.Run(filepath.Base(page), func(t *testing.T) {
			e.T = t
			var list []claim
			if of, ok := claims[page]; ok {
				list = of(e)
			}
			text := corrected(t, readPage(t, page), list)
			if *goldenfile.Update {
				if err := os.WriteFile(filepath.Join("..", page), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if left := uncovered(t, page, text, list); left != nil {
				t.Errorf("no test computes %d figures; give each a claim:\n%s", len(left), strings.Join(left, "\n"))
			}
		})
	}
}

// corrected reports figures that differ from a claim's, and returns the page with those of the claims.
func corrected(t *testing.T, text string, list []claim) string {
	for _, c := range list {
		places, err := c.in(text)
		if err != nil {
			t.Error(err)
			continue
		}
		for i, at := range slices.Backward(places) {
			have, want := text[at.from:at.to], c.figures[i]
			if want == "" || oneLine(have) == want {
				continue
			}
			t.Errorf("the page says %q, the record or the code says %q: %s", oneLine(have), want, oneLine(c.text))
			text = text[:at.from] + want + text[at.to:]
		}
	}
	return text
}

func readPage(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", page))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
