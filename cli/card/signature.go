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
	"github.com/lowtoggle/lowtoggle/weights"
)

// componentsFlag is for commands that split power by component.
var componentsFlag = &cli.StringFlag{Name: "components", Usage: "split power by the components in `FILE`", DefaultText: "calibrate's, or built in"}

// splitterOf returns a card's splitter. Its model is in the file of --components, or else in the default file of
// calibrate --components, or else built in. If there is none, unsplit explains why. A file of --components of another
// card is an error.
func splitterOf(file, card string) (s *measure.Splitter, unsplit string, err error) {
	usual := calibrateOut + componentsPostfix
	besides := ""
	switch m, err := component.Read(cmp.Or(file, usual)); {
	case file != "" && errors.Is(err, fs.ErrNotExist):
		return nil, "", fmt.Errorf("--components: %w", weights.Absent(file, "there is no such file: name one that lowtoggle calibrate --components has written"))
	case err != nil && file != "":
		return nil, "", fmt.Errorf("--components: %w", err)
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, "", fmt.Errorf("%w; move this file away, or name another one with --components", err)
	case m.Card == card && m.Coefficients != nil:
		return fitToSplit(m, cmp.Or(file, usual))
	case file != "" && m.Card != card:
		return nil, "", fmt.Errorf("--components %s: the file is of %s, and this card is %s: measure this card with lowtoggle calibrate --components", file, m.Card, card)
	case file != "":
		return nil, "", fmt.Errorf("--components %s: the file is incomplete: complete it with %s", file, m.Command)
	case m.Card == card:
		besides = "; " + usual + " is incomplete"
	default:
		besides = "; " + usual + " is of " + m.Card + ": give calibrate another OUT"
	}
	m, err := component.Find(card)
	if errors.Is(err, component.ErrUnknown) {
		return nil, fmt.Sprintf("power by component: %v%s. After the measurement, lowtoggle reads %s in the current folder, or the file that --components names", err, besides, usual), nil
	}
	if err != nil {
		return nil, "", err
	}
	return fitToSplit(m, "the built-in model")
}

// fitToSplit returns no splitter if the model's error is too large for a split.
func fitToSplit(m *component.Model, from string) (s *measure.Splitter, unsplit string, err error) {
	if err := m.Splits(); err != nil {
		return nil, fmt.Sprintf("power by component: %s is not used: %v", from, err), nil
	}
	return &measure.Splitter{Model: m, From: from}, "", nil
}

// printSignatures prints a table of splits, and advice about clocks.
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
		by += fmt.Sprintf("; the predicted power of unseen kernels is off by up to %.1f %%", 100*off)
	}
	fmt.Fprint(w, term.Wrap("power by component, in watts, predicted by "+by, "", "", term.Width))
	fmt.Fprintln(w)
	tab := term.NewTable(append(append([]string{""}, partHeads()...), "power", "± (95 %)")...)
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
	term.Remark(w, "components", partsNote)
	for _, s := range list {
		if s.Advice == nil {
			term.Remark(w, "clock", fmt.Sprintf("%s: no clock is advised: %s", s.Name, s.Unfit))
			continue
		}
		term.Remarks(w, "clock", s.Advice.Text())
		if s.AfterAdvice != nil {
			term.Remarks(w, "clock", component.Contrast(s.Advice, s.AfterAdvice))
		}
	}
}
