package model

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/internal/printable"
	"github.com/lowtoggle/lowtoggle/internal/spelling"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

var Families = &cli.Command{
	Name:      "families",
	Usage:     "list the known architectures and the symmetries of each",
	ArgsUsage: "[NAME]",
	Description: `A family is a model architecture. Without NAME, lists the families of the catalogue. With
NAME, shows which axes of the family's tensors may be permuted, negated and scaled together. Also
shows which symmetries are missing, with the reason. --arch FILE checks your own family file and
shows the family of the file instead.

   lowtoggle families
   lowtoggle families llama --tensors
   lowtoggle families --arch own.json`,
	Flags: flag.Join(flag.Common, []cli.Flag{flag.Arch,
		&cli.BoolFlag{Name: "tensors", Usage: "also list the tensors and the meaning of their axes", DisableDefaultText: true}}),
	Action: func(c *cli.Context) error {
		own, err := flag.ReadFamily(c)
		if err != nil {
			return err
		}
		if own == nil && c.NArg() == 0 {
			return listFamilies(c)
		}
		if own == nil {
			args, err := flag.Arguments(c, "NAME")
			if err != nil {
				return err
			}
			if own, err = familyNamed(args[0]); err != nil {
				return err
			}
		} else if c.NArg() > 0 {
			return exit.Usagef("NAME and --arch FILE exclude each other: give one of them; see lowtoggle families --help")
		}
		if c.Bool("json") {
			return term.JSON(c.App.Writer, newFamilyJSON(own))
		}
		printFamily(c.App.Writer, own)
		if c.Bool("tensors") {
			printTensors(c.App.Writer, own)
		}
		return nil
	},
}

func familyNamed(name string) (*arch.Family, error) {
	var names []string
	for _, f := range arch.Families() {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return nil, exit.Usagef("there is no family %q%s; the families are %s", name, spelling.DidYouMean("", name, names), strings.Join(names, ", "))
}

// familyJSON is a family in the output of families --json.
type familyJSON struct {
	Name          string         `json:"name"`
	Doc           string         `json:"doc"`
	ModelTypes    []string       `json:"model_types"`
	Architectures []string       `json:"architectures,omitempty"`
	Indices       []arch.Kind    `json:"indices"`
	Flags         []arch.Flag    `json:"flags,omitempty"`
	Tensors       []arch.Listed  `json:"tensors"`
	Absent        []arch.Absence `json:"absent,omitempty"`
}

// familiesJSON is the output of families --json without a name.
type familiesJSON struct {
	Families []familyJSON `json:"families"`
}

func newFamilyJSON(f *arch.Family) familyJSON {
	return familyJSON{f.Name, f.Doc, f.ModelTypes, f.Architectures, f.Kinds(), f.Flags(), f.Tensors(), f.Absent}
}

func listFamilies(c *cli.Context) error {
	if c.Bool("json") {
		list := []familyJSON{}
		for _, f := range arch.Families() {
			list = append(list, newFamilyJSON(f))
		}
		return term.JSON(c.App.Writer, familiesJSON{list})
	}
	indent := strings.Repeat(" ", 14)
	for _, f := range arch.Families() {
		fmt.Fprint(c.App.Writer, term.Wrap(f.Doc, fmt.Sprintf("%-14s", f.Name), indent, term.Width))
	}
	fmt.Fprintln(c.App.Writer, "\nMore about a family: lowtoggle families NAME")
	return nil
}

func printFamily(w io.Writer, f *arch.Family) {
	const indent = "      "
	fmt.Fprintf(w, "%s, for model_type %s\n", printable.Quote(f.Name), printable.Quote(strings.Join(f.ModelTypes, ", ")))
	fmt.Fprint(w, term.Wrap(f.Doc, "  ", "  ", term.Width))
	fmt.Fprintln(w, "\nIndices that several tensors share, and the changes that these tensors allow along each index:")
	for _, k := range f.Kinds() {
		name := k.Name
		if len(k.Per) > 0 {
			name += " of each " + strings.Join(k.Per, " and ")
		}
		fmt.Fprint(w, "\n", term.Wrap(name+": "+freedoms(k), "  ", "    ", term.Width))
		if k.Doc != "" {
			fmt.Fprint(w, term.Wrap(k.Doc, indent, indent, term.Width))
		}
	}
	printFlags(w, f)
	if len(f.Absent) > 0 {
		fmt.Fprintln(w, "\nSymmetries that this family lacks, with the reason:")
	}
	for _, a := range f.Absent {
		fmt.Fprint(w, "\n", term.Wrap(a.What, "  ", "    ", term.Width), term.Wrap(a.Why, indent, indent, term.Width))
	}
}

// printTensors lists the tensors with the index and the sign of each axis.
func printTensors(w io.Writer, f *arch.Family) {
	fmt.Fprint(w, "\n", term.Wrap("Tensors and the meaning of their axes (go doc ./weights/arch in lowtoggle's source explains the expressions):", "", "", term.Width))
	for _, t := range f.Tensors() {
		what := t.Role.String()
		if len(t.Axes) > 0 {
			what += ": " + strings.Join(t.Axes, " × ")
		}
		if t.When != "" {
			what += " (" + arch.InWords(t.When) + ")"
		}
		fmt.Fprint(w, "\n", term.Wrap(t.Name, "  ", "    ", term.Width), term.Wrap(what, "      ", "      ", term.Width))
	}
}

// printFlags names the fields of config.json that decide the conditions in the result of freedoms.
func printFlags(w io.Writer, f *arch.Family) {
	for _, flag := range f.Flags() {
		where := fmt.Sprintf("%s: set by %s of config.json. %s", flag.Name, strings.Join(flag.Fields, " or "), flag.Doc)
		fmt.Fprint(w, "\n", term.Wrap(where, "  ", "    ", term.Width))
	}
}

// freedoms lists the allowed changes along a kind of index: order, signs, powers of two.
func freedoms(k arch.Kind) string {
	var list []string
	for _, f := range []struct{ what, when string }{{"order", k.Order}, {"signs", k.Signs}, {"powers of two", k.Powers}} {
		switch f.when {
		case "":
		case "always":
			list = append(list, f.what)
		default:
			list = append(list, fmt.Sprintf("%s (%s)", f.what, arch.InWords(f.when)))
		}
	}
	if list == nil {
		return "nothing"
	}
	return strings.Join(list, ", ")
}
