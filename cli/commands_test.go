package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/card"
	"github.com/lowtoggle/lowtoggle/cli/model"
)

// facility is a feature of commands that a reader or program needs, such as --json.
type facility struct {
	name string
	of   func(cmd *cli.Command) string // the command's value; empty: none
	// without has the reason for each command that lacks the facility.
	without map[string]string
}

var facilities = []facility{
	{"`--json`, schema", jsonSchema, map[string]string{
		"completion": "prints a script of a shell",
		"man":        "prints a page of troff",
	}},
	{"`-o`", outputOf, map[string]string{
		"demo":       "a table of a few lines; `convert -o` reports on the model that `--keep` keeps",
		"reproduce":  "writes its figures and a report into OUT, and `--report` prints the report",
		"synth":      "writes a model; `inspect -o` reports on it",
		"families":   "reference text: docs/families.md",
		"passes":     "reference text: docs/passes.md",
		"completion": "prints a script",
		"man":        "prints a page",
	}},
	{"`--csv`", csvOf, map[string]string{
		"demo":       "a table of three rows; `--json` has them",
		"inspect":    "tables of tensors and totals with different columns; `--json --tensors` has them",
		"plan":       "steps differ by pass: `--json`",
		"convert":    "steps differ by pass: `--json`",
		"verify":     "findings are text; `--json` has the tables of losses and energy",
		"calibrate":  "OUT is the table of what was measured; `--from` reads CSV",
		"reproduce":  "OUT has a file for each series",
		"pattern":    "writes two tensors; `--json` describes them",
		"synth":      "reports one model: `--json`",
		"families":   "text: `--json`",
		"passes":     "text: `--json`",
		"completion": "prints a script",
		"man":        "prints a page",
	}},
	{"example in help", exampleOf, nil},
}

// TestCommands compares every command with the table of facilities. A command has each facility, or a reason in the
// table. -v prints the table.
func TestCommands(t *testing.T) {
	app := newApp(nil, nil)
	var table strings.Builder
	head, rule := "| command |", "|---|"
	for _, f := range facilities {
		head, rule = head+" "+f.name+" |", rule+"---|"
	}
	fmt.Fprintf(&table, "%s\n%s\n", head, rule)
	known := map[string]bool{}
	for _, cmd := range app.VisibleCommands() {
		known[cmd.Name] = true
		fmt.Fprintf(&table, "| `%s` |", cmd.Name)
		for _, f := range facilities {
			has, reason := f.of(cmd), f.without[cmd.Name]
			switch {
			case has == "" && reason == "":
				t.Errorf("%s has no %s: add it, or the reason to the table of facilities", cmd.Name, f.name)
			case has != "" && reason != "":
				t.Errorf("%s has %s: remove it from the exceptions", cmd.Name, f.name)
			case has == "":
				has = "– (" + reason + ")"
			}
			fmt.Fprintf(&table, " %s |", has)
		}
		table.WriteString("\n")
	}
	for _, f := range facilities {
		for name := range f.without {
			if !known[name] {
				t.Errorf("%s is no command", name)
			}
		}
	}
	t.Logf("\n%s", &table)
}

// TestExamplesOfHelp: the flags of every example exist.
func TestExamplesOfHelp(t *testing.T) {
	app := newApp(nil, nil)
	for _, cmd := range app.VisibleCommands() {
		for _, words := range examplesOf(cmd) {
			if _, err := arrange(app, words); err != nil {
				t.Errorf("help of %s: lowtoggle %s: %v", cmd.Name, strings.Join(words, " "), err)
			}
		}
	}
}

func flagOf(cmd *cli.Command, name string) cli.Flag {
	for _, f := range cmd.Flags {
		for _, n := range f.Names() {
			if n == name {
				return f
			}
		}
	}
	return nil
}

func jsonSchema(cmd *cli.Command) string {
	if flagOf(cmd, "json") == nil || model.Documents[cmd.Name] == nil && card.Documents[cmd.Name] == nil {
		return ""
	}
	return cmd.Name + schemaSuffix
}

// outputOf describes the file that -o writes.
func outputOf(cmd *cli.Command) string {
	f, ok := flagOf(cmd, "o").(*cli.StringFlag)
	if !ok {
		return ""
	}
	for _, kind := range []struct{ usage, text string }{
		{"report (.html) or picture", "report, picture"}, {"a report", "report"}, {"the plan", "the plan"}, {"draw", "picture of components"}, {"the operands", "the operands"},
	} {
		if strings.Contains(f.Usage, kind.usage) {
			return kind.text
		}
	}
	return ""
}

func csvOf(cmd *cli.Command) string {
	if flagOf(cmd, "csv") == nil {
		return ""
	}
	return "yes"
}

func exampleOf(cmd *cli.Command) string {
	for _, words := range examplesOf(cmd) {
		if words[0] == cmd.Name {
			return "yes"
		}
	}
	return ""
}

// examplesOf returns the command lines in a command's description, without the program's name. Lines are indented by
// three spaces. Comments and redirections are left out.
func examplesOf(cmd *cli.Command) (all [][]string) {
	for line := range strings.Lines(cmd.Description) {
		line, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "   lowtoggle ")
		if !ok {
			continue
		}
		for _, end := range []string{"  ", " #", " > ", " | man", " <("} {
			line, _, _ = strings.Cut(line, end)
		}
		all = append(all, strings.Fields(line))
	}
	return all
}
