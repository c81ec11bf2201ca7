//go:build unix

package cli

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lowtoggle/lowtoggle/cli/term"
)

var update = flag.Bool("update", false, "rewrite the expected output in the scripts")

// unwrapped joins the lines that complain has wrapped, because scripts look for words without regard to lines.
type unwrapped struct{ io.Writer }

func (u unwrapped) Write(p []byte) (int, error) {
	_, err := io.WriteString(u.Writer, unwrap(string(p)))
	return len(p), err
}

// TestMain lets the scripts run this test binary as lowtoggle.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"lowtoggle": func() {
			var stderr io.Writer = os.Stderr
			if st, err := os.Stderr.Stat(); err == nil && st.Mode()&os.ModeCharDevice == 0 { // a terminal would show progress
				stderr = unwrapped{os.Stderr}
			}
			term.LogEvery = 24 * time.Hour // log lines on a slow machine would disturb the scripts
			var document bytes.Buffer
			status := Main(Interrupts(), os.Args, io.MultiWriter(os.Stdout, &document), stderr)
			if err := checkDocument(os.Args[1:], document.Bytes()); err != nil {
				fmt.Fprintf(os.Stderr, "the document does not fit its schema: %v\n", err)
				status = 99
			}
			os.Exit(status)
		},
	})
}

// TestScript runs the command lines in testdata/script. Their commands are those of package testscript and
// scriptCommands. MODELS is the folder of the shared models, FAMILIES the folder of the catalogue.
func TestScript(t *testing.T) {
	models, families := absolute(t, "../../shared/models"), absolute(t, "../weights/arch/families")
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                scriptCommands,
		Setup: func(e *testscript.Env) error {
			e.Setenv("MODELS", models)
			e.Setenv("FAMILIES", families)
			return nil
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "models":
				_, err := os.Stat(models)
				return err == nil, nil
			case "root":
				return os.Geteuid() == 0, nil
			case "tmpfs":
				return mayMount(t.TempDir()), nil
			}
			return false, nil
		},
	})
}

func absolute(t *testing.T, path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
