package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/flag"
)

var manCommand = &cli.Command{
	Name:  "man",
	Usage: "print the manual page",
	Description: "Read it:\n" +
		"   lowtoggle man | man -l -\n" +
		"Install it:\n" +
		"   lowtoggle man > /usr/local/share/man/man1/lowtoggle.1",
	Action: func(c *cli.Context) error {
		if _, err := flag.Arguments(c); err != nil {
			return err
		}
		_, err := io.WriteString(c.App.Writer, manPage(c.App))
		return err
	},
}

// manPage returns the manual page in roff: the --help of the program and of all visible commands.
func manPage(a *cli.App) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH LOWTOGGLE 1 \"\" \"lowtoggle %s\" \"User Commands\"\n", roff(a.Version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(a.Name), roff(a.Usage))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n%s\n", roff(a.UsageText))
	b.WriteString(".SH DESCRIPTION\n")
	roffText(&b, a.Description)
	b.WriteString(".SH COMMANDS\n")
	for _, cmd := range a.VisibleCommands() {
		fmt.Fprintf(&b, ".SS %s\n", roff(strings.TrimSpace("lowtoggle "+cmd.Name+" "+cmd.ArgsUsage)))
		roffText(&b, cmd.Usage)
		b.WriteString(".PP\n")
		roffText(&b, cmd.Description)
		for _, f := range cmd.VisibleFlags() {
			// urfave/cli formats a flag as its names, a tab and its usage.
			names, usage, _ := strings.Cut(f.String(), "\t")
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(names), roff(usage))
		}
	}
	return strings.ReplaceAll(b.String(), ".PP\n.PP\n", ".PP\n")
}

// roffText writes paragraphs. Indented lines (commands and tables) keep their line breaks.
func roffText(b *strings.Builder, text string) {
	literal := false
	for line := range strings.SplitSeq(text, "\n") {
		if indented := strings.HasPrefix(line, "  "); indented != literal {
			literal = indented
			b.WriteString(map[bool]string{true: ".PP\n.nf\n", false: ".fi\n.PP\n"}[literal])
		}
		if strings.TrimSpace(line) == "" {
			line = ".PP"
		} else {
			line = roff(line)
		}
		b.WriteString(line + "\n")
	}
	if literal {
		b.WriteString(".fi\n")
	}
}

// roff escapes characters that troff would read as a request or a special character.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
