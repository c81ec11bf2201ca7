package model

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
)

// folderFlags choose the files beside the weights in a result's folder.
var folderFlags = []cli.Flag{
	&cli.StringFlag{Name: "keep", Usage: "also copy `FILES` that would be left out, such as *.onnx,.git"},
	&cli.StringFlag{Name: "base-model", Usage: "`NAME` of MODEL on the Hub, for the model card"},
}

// folderOptions reads folderFlags.
func folderOptions(c *cli.Context, m *weights.Model) (o transform.FolderOptions, err error) {
	o.BaseModel = c.String("base-model")
	if strings.ContainsAny(o.BaseModel, "\r\n") || c.IsSet("base-model") && o.BaseModel == "" {
		return o, exit.Usagef("--base-model %q: give a name such as meta-llama/Llama-3.2-1B", o.BaseModel)
	}
	o.Keep = splitPatterns(c.String("keep"))
	if unmatched := m.UnmatchedKeep(o.Keep); unmatched != "" {
		var left []string
		for _, l := range m.Leftovers(nil) {
			left = append(left, l.Path)
		}
		what := "a conversion of this model copies all files: remove --keep"
		if len(left) > 0 {
			what = "the files left out are: " + firstFiles(left)
		}
		return o, exit.Usagef("--keep %s: matches no file that would be left out; %s", unmatched, what)
	}
	return o, nil
}

// printFolder prints the files that were not copied, the copied results of the original, and the base model in the model
// card.
func printFolder(w io.Writer, m *weights.Model, o transform.FolderOptions, left []weights.Leftover) {
	reasons := map[string][]string{}
	var order []string
	for _, l := range left {
		if reasons[l.Why] == nil {
			order = append(order, l.Why)
		}
		reasons[l.Why] = append(reasons[l.Why], l.Path)
	}
	for _, why := range order {
		term.Remark(w, "left out", fmt.Sprintf("%s: %s; --keep FILES copies them", firstFiles(reasons[why]), why))
	}
	if results := resultsOf(m, left); results != "" {
		term.Remark(w, "note", results)
	}
	if texts := copiedTokens(m, left); texts != "" {
		term.Remark(w, "note", texts)
	}
	if o.BaseModel == "" {
		name, from := transform.BaseModel(m)
		term.Remark(w, "model card", fmt.Sprintf("README.md names %s as the base model (%s); --base-model gives another name", name, from))
	}
}

// firstFiles lists at most eight files, and counts the others.
func firstFiles(files []string) string {
	const most = 8
	text := strings.Join(files[:min(len(files), most)], ", ")
	if n := len(files) - most; n > 0 {
		text += " and " + term.Plural(n, "other", "others")
	}
	return text
}
