// Package clitest runs commands inside tests.
package clitest

import (
	"bytes"
	"context"
	"io"

	"github.com/urfave/cli/v2"
)

// Run runs one of the commands like the program, without signals and exit status. args begin with the command's name,
// and flags come before arguments. Run returns the command's standard output and error.
func Run(ctx context.Context, commands []*cli.Command, args ...string) (stdout []byte, err error) {
	var out bytes.Buffer
	app := cli.NewApp()
	app.Version = "test"
	app.Commands = commands
	app.Writer, app.ErrWriter = &out, io.Discard
	app.DisableSliceFlagSeparator = true
	app.ExitErrHandler = func(*cli.Context, error) {}
	err = app.RunContext(ctx, append([]string{"lowtoggle"}, args...))
	return out.Bytes(), err
}
