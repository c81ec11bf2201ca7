package model

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/outfile"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
	"github.com/lowtoggle/lowtoggle/internal/printable"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/verify"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/demo"
)

var Demo = &cli.Command{
	Name:  "demo",
	Usage: "convert and verify a small embedded model by every recipe",
	Description: `Converts a small trained model by every recipe, verifies each result and shows the predicted
energy. Takes a few seconds. The folders are temporary; --keep DIR keeps them in DIR.

   lowtoggle demo
   lowtoggle demo --keep d            d/model is a model to try other commands with
   lowtoggle demo --workload decode`,
	Flags: flag.Join([]cli.Flag{&cli.StringFlag{Name: "keep", Usage: "keep the folders, in the new folder `DIR`"},
		flag.Workload, flag.Role}, flag.Common),
	Action: func(c *cli.Context) error {
		if _, err := flag.Arguments(c); err != nil {
			return err
		}
		o, err := flag.Read(c)
		if err != nil {
			return err
		}
		dir, err := demoDir(c.String("keep"))
		if err != nil {
			return err
		}
		if c.String("keep") == "" {
			defer os.RemoveAll(dir)
		}
		model := filepath.Join(dir, "model")
		if err := demo.Write(model); err != nil {
			return err
		}
		m, err := weights.Open(model)
		if err != nil {
			return err
		}
		defer m.Close()
		var rows []demoRow
		for _, recipe := range transform.Recipes {
			row, err := runDemo(c, m, recipe, filepath.Join(dir, recipe.Name), o)
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
		return reportDemo(c, m, dir, rows)
	},
}

func demoDir(keep string) (string, error) {
	if keep == "" {
		return os.MkdirTemp("", "lowtoggle-demo-")
	}
	err := outfile.CheckParent(keep)
	if err == nil {
		err = os.Mkdir(keep, 0o777)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return "", fmt.Errorf("--keep %s: exists already: name a new folder", keep)
	case err != nil:
		return "", fmt.Errorf("--keep: %w", err)
	}
	return keep, nil
}

// demoJSON is the output of demo --json.
type demoJSON struct {
	OK      bool      `json:"ok"`
	Recipes []demoRow `json:"recipes"`
}

// demoRow is the result of one recipe.
type demoRow struct {
	Recipe    string               `json:"recipe"`
	Passes    string               `json:"passes"`
	Verified  bool                 `json:"verified"`
	Classes   map[verify.Class]int `json:"classes"`
	LowestSNR *float64             `json:"lowest_snr_db,omitempty"`
	Predicted *predict.Ratio       `json:"predicted,omitempty"`
}

func runDemo(c *cli.Context, m *weights.Model, recipe transform.Recipe, out string, r flag.Options) (row demoRow, err error) {
	o := transform.Options{Budget: pass.Budget{MinSNR: recipe.MinSNR}, Cost: r.Calibration, Version: c.App.Version,
		Workload: r.Workload, Role: r.Role, Workers: r.Workers}
	recipe = recipe.For(m, r.Family, r.Workload)
	if o.Passes, err = transform.ParsePasses(recipe.Passes); err != nil {
		return row, err
	}
	event, end := term.Progress(c)
	o.Progress = event
	_, err = transform.Convert(c.Context, m, out, transform.ConvertOptions{Options: o})
	end()
	if err != nil {
		return row, err
	}
	conv, err := weights.Open(out)
	if err != nil {
		return row, err
	}
	defer conv.Close()
	found, err := verifyModels(c, m, conv, nil, r)
	if err != nil {
		return row, err
	}
	row = demoRow{Recipe: recipe.Name, Passes: recipe.Passes, Verified: found.OK, Classes: map[verify.Class]int{}}
	for _, t := range found.Tensors {
		row.Classes[t.Class]++
		row.LowestSNR = lower(row.LowestSNR, t.SNR)
	}
	if found.Energy != nil {
		row.Predicted = found.Energy.Predicted
	}
	return row, nil
}

func reportDemo(c *cli.Context, m *weights.Model, dir string, rows []demoRow) error {
	ok := true
	for _, r := range rows {
		ok = ok && r.Verified
	}
	if c.Bool("json") {
		if err := term.JSON(c.App.Writer, demoJSON{ok, rows}); err != nil {
			return err
		}
	} else {
		printDemo(c, m, dir, rows)
	}
	if !ok {
		return exit.ErrShort
	}
	return nil
}

func printDemo(c *cli.Context, m *weights.Model, dir string, rows []demoRow) {
	w := c.App.Writer
	elements := 0
	for _, t := range m.Infos() {
		elements += t.Len()
	}
	fmt.Fprintf(w, "The embedded model: a trained Llama, %s tensors, %s weights, %s.\n\n",
		term.Count(len(m.Infos())), term.Count(elements), term.Size(m.Size()))
	tab := term.NewTable("recipe", "passes", "identical", "exact", "lossy", "lowest\nSNR", "energy,\npredicted", "verified")
	for _, r := range rows {
		verified := "yes"
		if !r.Verified {
			verified = "NO"
		}
		energy := "–"
		if r.Predicted != nil {
			energy = term.Change(r.Predicted.Relative)
		}
		tab.Add(r.Recipe, r.Passes, term.Count(r.Classes[verify.Identical]), term.Count(r.Classes[verify.Exact]), term.Count(r.Classes[verify.Lossy]),
			term.Decibels(r.LowestSNR), energy, verified)
	}
	tab.Print(w)
	fmt.Fprintln(w)
	fmt.Fprintln(w, "Identical, exact and lossy count tensors. SNR: signal-to-noise ratio of a linear layer's output.")
	if len(rows) > 0 && rows[0].Predicted != nil {
		fmt.Fprintf(w, "Energy: predicted change in the linear layers (calibration %s), not measured.\n", printable.Quote(rows[0].Predicted.Calibration))
	}
	if c.String("keep") != "" {
		fmt.Fprintf(w, "Every runtime that loads the model also loads each folder in %s.\n", printable.Quote(dir))
	}
	fmt.Fprintln(w, "Convert your own model: "+term.CommandLine("convert", "MODEL", "OUT"))
}
