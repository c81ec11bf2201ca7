package cli

import (
	"bytes"
	"encoding/csv"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/bench/probe"
)

// TestOwnCardPage runs the examples of docs/own-card.md, without pandas. The page's table is read, its command
// predicts, and its plot uses columns that both tables have.
func TestOwnCardPage(t *testing.T) {
	data, err := os.ReadFile("../docs/own-card.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	fence := func(language string) string {
		_, rest, _ := strings.Cut(page, "\n```"+language+"\n")
		block, _, ok := strings.Cut(rest, "```")
		if !ok {
			t.Fatalf("the page has no block of %q", language)
		}
		return block
	}

	table := strings.TrimLeft(fence(""), "\n")
	if rows, err := probe.ReadTable("the page", strings.NewReader(table)); err != nil || len(rows) < 3 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	header, _, _ := strings.Cut(table, "\n")
	columns := append(strings.Split(header, ","), "relative") // the plot computes the last one

	command := regexp.MustCompile(`(?s)\n(lowtoggle predict .*?) > predicted\.csv\n`).FindStringSubmatch(page)
	if command == nil {
		t.Fatal("the page shows no lowtoggle predict ... > predicted.csv")
	}
	var args []string
	for _, w := range regexp.MustCompile(`'([^']*)'|([^\s'\\]+)`).FindAllStringSubmatch(command[1], -1) {
		args = append(args, w[1]+w[2])
	}
	args[slices.Index(args, "my-card.json")] = "../cost/calibrations/h200.json"
	var stdout, stderr bytes.Buffer
	if status := Main(t.Context(), args, &stdout, &stderr); status != 0 {
		t.Fatalf("%q: status %d: %s", args, status, &stderr)
	}
	if _, err := probe.ReadTable("predicted.csv", bytes.NewReader(stdout.Bytes())); err != nil {
		t.Errorf("calibrate --from takes tables as predict --csv writes them: %v", err)
	}
	predicted, err := csv.NewReader(&stdout).ReadAll()
	if err != nil || len(predicted) != 5 {
		t.Fatalf("%d lines, %v", len(predicted), err)
	}
	columns = append(columns, predicted[0]...)

	script := fence("python")
	used := regexp.MustCompile(`\b(?:both|row|measured)\.([a-z_]+)\b`).FindAllStringSubmatch(script, -1)
	for _, u := range used {
		if !slices.Contains(append(columns, "set_index", "map", "iterrows"), u[1]) {
			t.Errorf("the plot uses the column %s, which no table has: %q", u[1], columns)
		}
	}
	keys := regexp.MustCompile(`keys = \[(.*)\]`).FindStringSubmatch(script)
	if len(used) < 5 || keys == nil {
		t.Fatalf("the plot uses %q and joins by %q", used, keys)
	}
	for _, k := range strings.Split(keys[1], ", ") {
		if k = strings.Trim(k, `"`); !strings.Contains(","+header+",", ","+k+",") || !slices.Contains(predicted[0], k) {
			t.Errorf("the plot joins both tables by %s", k)
		}
	}
}
