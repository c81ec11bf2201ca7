package outfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/term"
)

// CheckPicture refuses, before any work is done, a picture's file that could not be written, and one whose
// name does not say that it is an SVG. Pipes and devices may have any name. No path, no objection.
func CheckPicture(path string) error {
	if path == "" {
		return nil
	}
	switch st, err := os.Stat(path); {
	case err == nil && st.IsDir():
		return exit.Usagef("-o %s: is a folder: name a file in it", path)
	case err == nil && !st.Mode().IsRegular():
		return nil
	}
	if ext := filepath.Ext(path); !strings.EqualFold(ext, ".svg") {
		return exit.Usagef("-o %s: pictures are drawn as SVG: name it %s", path, strings.TrimSuffix(path, ext)+".svg")
	}
	return Check(path)
}

// WritePicture writes a picture and says so below the report, which has to be printed by then: where the disk is
// full, the report is not lost.
func WritePicture(c *cli.Context, path string, svg []byte) error {
	if path == "" {
		return nil
	}
	if err := Write(path, svg); err != nil {
		return fmt.Errorf("%s: the picture could not be written: %w", path, err)
	}
	if st, err := os.Lstat(path); err == nil && st.Mode().IsRegular() && !c.Bool("json") {
		term.Remark(c.App.Writer, "picture", "drawn into "+path)
	}
	return nil
}
