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
// predicts the patterns of calibrate --list, and its plot uses columns that both tables have.
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

	script := fence("python")
	command := regexp.MustCompile(`(?s)command = \["lowtoggle", (.*?)\]\n`).FindStringSubmatch(script)
	if command == nil {
		t.Fatal("the script has no command of lowtoggle")
	}
	of := func(dtype string) (args, patterns []string) {
		for _, w := range regexp.MustCompile(`[^\s,]+`).FindAllString(`lowtoggle `+command[1], -1) {
			args = append(args, strings.Trim(w, `"`))
		}
		for variable, value := range map[string]string{"my-card.json": "../cost/calibrations/h200.json", "dtype": dtype, "shape": "8192x8192x8192", "role": "stationary"} {
			args[slices.Index(args, variable)] = value
		}
		var list bytes.Buffer
		if err := probe.WriteList(&list, false); err != nil {
			t.Fatal(err)
		}
		lines, err := csv.NewReader(&list).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lines {
			if l[1] == dtype && l[3] == "stationary" && l[4] == "false" {
				patterns = append(patterns, l[0])
			}
		}
		return append(args, patterns...), patterns
	}
	baseline := regexp.MustCompile("^(?:" + regexp.MustCompile(`fullmatch\(r"(.*)"\)`).FindStringSubmatch(script)[1] + ")$")
	var predicted [][]string
	for _, dtype := range []string{"fp16", "fp8", "int8"} {
		args, patterns := of(dtype)
		if n := len(slices.DeleteFunc(slices.Clone(patterns), func(p string) bool { return !baseline.MatchString(p) })); n != 1 {
			t.Errorf("%s: the script finds %d random weights in %q", dtype, n, patterns)
		}
		var stdout, stderr bytes.Buffer
		if status := Main(t.Context(), args, &stdout, &stderr); status != 0 {
			t.Fatalf("%q: status %d: %s", args, status, &stderr)
		}
		if _, err := probe.ReadTable("predicted.csv", bytes.NewReader(stdout.Bytes())); err != nil {
			t.Errorf("calibrate --from takes tables as predict --csv writes them: %v", err)
		}
		var err error
		if predicted, err = csv.NewReader(&stdout).ReadAll(); err != nil || len(predicted) != 1+len(patterns) {
			t.Fatalf("%d lines for %d patterns, %v", len(predicted), len(patterns), err)
		}
		for i, p := range patterns { // the script joins by these texts
			if predicted[1+i][0] != p {
				t.Errorf("%s: the list's %s is predicted as %s", dtype, p, predicted[1+i][0])
			}
		}
	}
	columns = append(columns, predicted[0]...)

	used := regexp.MustCompile(`\b(?:both|row|measured)\.([a-z_]+)\b`).FindAllStringSubmatch(script, -1)
	for _, u := range used {
		if !slices.Contains(append(columns, "groupby", "merge", "joules_random", "iterrows"), u[1]) {
			t.Errorf("the plot uses the column %s, which no table has: %q", u[1], columns)
		}
	}
	keys := regexp.MustCompile(`group = \[(.*)\]`).FindStringSubmatch(script)
	if len(used) < 5 || keys == nil {
		t.Fatalf("the plot uses %q and joins by %q", used, keys)
	}
	for _, k := range strings.Split(`"pattern", `+keys[1], ", ") {
		if k = strings.Trim(k, `"`); !strings.Contains(","+header+",", ","+k+",") || !slices.Contains(predicted[0], k) {
			t.Errorf("the plot joins both tables by %s", k)
		}
	}
}
