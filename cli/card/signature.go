package card

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost/component"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
)

// componentsFlag of commands that say where power goes.
var componentsFlag = &cli.StringFlag{Name: "components", Usage: "split power by the components in `FILE`", DefaultText: "the usual, or built in"}

// splitterOf a card splits power by the file that --components names; without one, by what calibrate
// --components has left here under its usual name, or what is built in. Where there is no such model,
// unsplit says so. A file of another card is refused.
func splitterOf(file, card string) (s *measure.Splitter, unsplit string, err error) {
	usual := calibrateOut + componentsPostfix
	besides := ""
	switch m, err := component.Read(cmp.Or(file, usual)); {
	case err != nil && file != "":
		return nil, "", fmt.Errorf("--components: %w", err)
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, "", fmt.Errorf("%w; move it away, or name another one with --components", err)
	case m.Card == card && m.Coefficients != nil:
		return fitToSplit(m, cmp.Or(file, usual))
	case file != "" && m.Card != card:
		return nil, "", fmt.Errorf("--components %s: it is about %s, and this is %s: measure it with lowtoggle calibrate --components", file, m.Card, card)
	case file != "":
		return nil, "", fmt.Errorf("--components %s: it was broken off: the command that began it goes on: %s", file, m.Command)
	case m.Card == card:
		besides = "; " + usual + " was broken off, and it goes on"
	default:
		besides = "; " + usual + " is about " + m.Card
	}
	m, err := component.Find(card)
	if errors.Is(err, component.ErrUnknown) {
		return nil, fmt.Sprintf("where the power goes: %v%s; its file is found here as %s, and by --components under any name", err, besides, usual), nil
	}
	if err != nil {
		return nil, "", err
	}
	return fitToSplit(m, "what is built in")
}

// fitToSplit withholds a model that is too far off for a split.
func fitToSplit(m *component.Model, from string) (s *measure.Splitter, unsplit string, err error) {
	if err := m.Splits(); err != nil {
		return nil, fmt.Sprintf("where the power goes: %s is no guide: %v", from, err), nil
	}
	return &measure.Splitter{Model: m, From: from}, "", nil
}

// printSignatures writes a table of splits, and what follows for clocks.
func printSignatures(w io.Writer, list []*measure.Signature) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(w)
	by := list[0].From
	if list[0].Date != "" {
		by += " of " + list[0].Date
	}
	if off := list[0].Off; off > 0 {
		by += fmt.Sprintf("; kernels it never saw are off by up to %.1f %%", 100*off)
	}
	if list[0].Unfit != "" {
		by += ", too far for advice"
	}
	fmt.Fprint(w, term.Wrap("where the power goes, in watts, predicted by "+by, "", "", term.Width))
	fmt.Fprintln(w)
	tab := term.NewTable(append(append([]string{""}, partHeads()...), "power", "±")...)
	add := func(name string, s component.Split) {
		cells := append([]string{name}, partCells(s)...)
		tab.Add(append(cells, watts(s.Watts), watts(1.96*s.Error))...)
	}
	for _, s := range list {
		add(s.Name, s.Before)
		if s.After != nil {
			add(s.Name+", after", *s.After)
		}
	}
	tab.Print(w)
	fmt.Fprintln(w)
	for _, s := range list {
		if s.Advice == nil {
			break // the model is the same for all
		}
		term.Remarks(w, "clock", s.Advice.Text())
		if s.AfterAdvice != nil {
			term.Remarks(w, "clock", component.Contrast(s.Advice, s.AfterAdvice))
		}
	}
}
