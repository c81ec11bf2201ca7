package outfile

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/internal/chart"
)

// Kind is the ending of an output file's name.
type Kind string

// Endings of output files.
const (
	HTML Kind = ".html"
	SVG  Kind = ".svg"
	PNG  Kind = ".png"

	Safetensors Kind = ".safetensors"
)

// ReportFlag is -o of commands that write a report.
var ReportFlag = &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write a report to `FILE`, which ends in .html"}

// VerifyReportFlag is -o of verify, whose --output is a number of tokens.
var VerifyReportFlag = &cli.StringFlag{Name: "report", Aliases: []string{"o"}, Usage: "write a report to `FILE`, which ends in .html"}

// Pictures are the endings of the files of [PictureFlag]. A pipe gets an SVG.
var Pictures = []Kind{SVG, PNG, HTML}

// PictureFlag is -o of commands that write a report or draw a picture.
var PictureFlag = &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write a report (.html) or picture (.svg, .png) to `FILE`"}

// CheckOutput is called before any work is done. It returns an error in three cases: the output file cannot be
// written, its ending is not in kinds, or the file belongs to a model. models are the paths of models. An empty path is
// no error. Pipes and devices may have any name; their kind is kinds[0].
func CheckOutput(path string, models []string, kinds ...Kind) error {
	if path == "" {
		return nil
	}
	switch st, err := os.Stat(path); {
	case err == nil && st.IsDir():
		return exit.Usagef("-o %s: is a folder: name a file in it", path)
	case err == nil && !st.Mode().IsRegular():
		return nil
	}
	if !slices.Contains(kinds, ending(path)) {
		return exit.Usagef("-o %s: the name must end with %s", path, join(kinds))
	}
	if err := Check(path); err != nil {
		return err
	}
	for _, m := range models {
		if err := apartFrom(path, m); err != nil {
			return err
		}
	}
	return nil
}

// KindOf returns the kind of a file that CheckOutput accepted.
func KindOf(path string, kinds ...Kind) Kind {
	if k := ending(path); slices.Contains(kinds, k) {
		return k
	}
	return kinds[0]
}

func ending(path string) Kind { return Kind(strings.ToLower(filepath.Ext(path))) }

func join(kinds []Kind) string {
	text := string(kinds[0])
	for i, k := range kinds[1:] {
		if i == len(kinds)-2 {
			text += " or " + string(k)
		} else {
			text += ", " + string(k)
		}
	}
	return text
}

// apartFrom returns an error if path is the model's file or lies in the model's folder.
func apartFrom(path, model string) error {
	st, err := os.Stat(model)
	if err != nil { // opening the model reports this error
		return nil
	}
	if own, err := os.Stat(path); err == nil && os.SameFile(st, own) {
		return exit.Usagef("-o %s: is the model: name another file", path)
	}
	real := path
	if target, err := filepath.EvalSymlinks(path); err == nil {
		real = target
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(real))
	if err != nil {
		return err
	}
	if within, err := Inside(parent, model); err != nil || !within {
		return err
	}
	return exit.Usagef("-o %s: lies in the folder %s of a model: name a file elsewhere", path, model)
}

// WriteReport writes a report and prints its path.
func WriteReport(c *cli.Context, path string, html []byte) error {
	return writeOutput(c, path, html, "report", "written into")
}

// WritePicture writes a picture and prints its path. The command's report must be printed before, so a full disk does
// not lose the report.
func WritePicture(c *cli.Context, path string, picture []byte) error {
	return writeOutput(c, path, picture, "picture", "drawn into")
}

// WriteChart draws a chart as PNG if the file's name ends in .png, and as SVG otherwise.
func WriteChart(c *cli.Context, path string, picture chart.Chart) error {
	data := []byte(nil)
	if path != "" && ending(path) == PNG {
		var err error
		if data, err = picture.PNG(); err != nil {
			return err
		}
	} else if path != "" {
		data = picture.SVG()
	}
	return WritePicture(c, path, data)
}

func writeOutput(c *cli.Context, path string, data []byte, what, how string) error {
	if path == "" {
		return nil
	}
	if err := Write(path, data); err != nil {
		return fmt.Errorf("%s: the %s could not be written: %w", path, what, err)
	}
	if st, err := os.Lstat(path); err == nil && st.Mode().IsRegular() && !c.Bool("json") && !c.Bool("bench") && !c.Bool("csv") {
		term.Remark(c.App.Writer, what, how+" "+path)
	}
	return nil
}
