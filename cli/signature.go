package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/bench/probe"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/component"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
)

// componentsFlag of commands that say where power goes.
var componentsFlag = &cli.StringFlag{Name: "components", Usage: "split power by the components in `FILE`", DefaultText: "the usual, or built in"}

// components are the model of a card that says where its power goes, and where it is from.
type components struct {
	*component.Model        // nil: there is none
	note             string // why there is none
	from             string
}

// componentsOf a card: those in the file that --components names; without one, what calibrate --components has
// left here under its usual name, or what is built in. A file of another card is refused.
func componentsOf(file, card string) (*components, error) {
	usual := calibrateOut + componentsPostfix
	besides := ""
	switch m, err := component.Read(cmp.Or(file, usual)); {
	case err != nil && file != "":
		return nil, fmt.Errorf("--components: %w", err)
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("%w; move it away, or name another one with --components", err)
	case m.Card == card && m.Coefficients != nil:
		return fitToSplit(m, cmp.Or(file, usual)), nil
	case file != "" && m.Card != card:
		return nil, fmt.Errorf("--components %s: it is about %s, and this is %s: measure it with lowtoggle calibrate --components", file, m.Card, card)
	case file != "":
		return nil, fmt.Errorf("--components %s: it was broken off: the command that began it goes on: %s", file, m.Command)
	case m.Card == card:
		besides = "; " + usual + " was broken off, and it goes on"
	default:
		besides = "; " + usual + " is about " + m.Card
	}
	m, err := component.Find(card)
	if errors.Is(err, component.ErrUnknown) {
		return &components{note: fmt.Sprintf("where the power goes: %v%s; its file is found here as %s, and by --components under any name", err, besides, usual)}, nil
	}
	if err != nil {
		return nil, err
	}
	return fitToSplit(m, "what is built in"), nil
}

// fitToSplit withholds a model that is too far off for a split.
func fitToSplit(m *component.Model, from string) *components {
	if err := m.Splits(); err != nil {
		return &components{note: fmt.Sprintf("where the power goes: %s is no guide: %v", from, err)}
	}
	return &components{Model: m, from: from}
}

// dissected are products whose power is to be split by component, of one card.
type dissected struct {
	name          string // of the phase or product
	cold          bool   // weights come from memory
	before, after []cuda.Product
	kernels       []cuda.Kernel // of before's products, where they are known
	info          *cuda.Info    // nil: not known
	// seconds and clock, in MHz, of one pass through before's products where these were measured; else 0.
	seconds, clock float64
	// then are those of a pass through after's.
	thenSeconds, thenClock float64
}

// signature is where the power of products goes. All of it is predicted, by a model of the card.
type signature struct {
	Name   string           `json:"name"`
	Before component.Split  `json:"before"`
	After  *component.Split `json:"after,omitempty"`
	// From is the file of the model, and Date the day on which it was measured.
	From string `json:"from"`
	Date string `json:"date,omitempty"`
	// Off is how far its worst prediction of a kernel that it never saw was off, relatively.
	Off float64 `json:"held_out_worst_error,omitempty"`
	// Advice is absent where Unfit says that the model is too far off for it.
	Unfit  string            `json:"unfit,omitempty"`
	Advice *component.Advice `json:"advice,omitempty"`
	Then   *component.Advice `json:"advice_after,omitempty"`
}

// sign splits the power of products; without a model there is no signature.
func (m *components) sign(ctx context.Context, s dissected) (*signature, error) {
	if m.Model == nil {
		return nil, nil
	}
	sig := &signature{Name: s.name, From: m.from, Date: m.Date}
	_, sig.Off = m.Quality.Judged()
	if err := m.Verdict(); err != nil {
		sig.Unfit = err.Error()
	}
	var err error
	if sig.Before, sig.Advice, err = m.dissect(ctx, s, s.before, s.seconds, s.clock); err != nil || len(s.after) == 0 {
		return sig, err
	}
	sig.After = new(component.Split)
	*sig.After, sig.Then, err = m.dissect(ctx, s, s.after, s.thenSeconds, s.thenClock)
	return sig, err
}

// dissect splits the power of products that took so many seconds at a clock, 0 where that is not known, and
// advises about them where the model is fit for it.
func (m *components) dissect(ctx context.Context, s dissected, products []cuda.Product, seconds, clock float64) (split component.Split, a *component.Advice, err error) {
	kernels, err := s.kernelsOf(ctx, m.Model, products)
	if err != nil {
		return split, nil, err
	}
	if a, err = m.Advise(s.name, kernels); err != nil && !errors.Is(err, component.ErrUnfit) {
		return split, nil, err
	}
	if seconds > 0 && clock > 0 {
		kernels = m.Timed(kernels, seconds, clock)
	}
	split, err = m.Together(kernels)
	return split, a, err
}

// kernelsOf products, with what their operands' bits do. Their times are not known.
func (s dissected) kernelsOf(ctx context.Context, m *component.Model, products []cuda.Product) ([]component.Kernel, error) {
	activity, err := cost.FindCalibration(m.Card)
	if err != nil {
		if activity, err = cost.FindCalibration(usualGPU); err != nil {
			return nil, err
		}
	}
	var layers []component.Gemm
	for i, p := range products {
		var ran *cuda.Kernel
		if i < len(s.kernels) {
			ran = &s.kernels[i]
		}
		g := probe.GEMM(p.Problem, s.cold, ran, s.info)
		q := cost.Product{Type: g.Type, M: g.M, N: g.N, K: g.K, Cold: s.cold}
		if p.Problem.Streaming {
			q.Role = cost.Streaming
		}
		if g.Bits, g.Moved, err = activity.Toggling(ctx, q, blocksOf(p.X), blocksOf(p.W)); err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		layers = append(layers, g)
	}
	return phaseKernels(m, layers)
}

// blocksOf a matrix, as the cost model asks for them.
func blocksOf(m gemm.Matrix) cost.Operand {
	size := m.DType.Bits() / 8
	return func(_ context.Context, row, rows, col, cols int) ([]byte, error) {
		out := make([]byte, 0, rows*cols*size)
		for r := row; r < row+rows; r++ {
			at := (r*m.Cols + col) * size
			out = append(out, m.Data[at:at+cols*size]...)
		}
		return out, nil
	}
}

// printSignatures writes a table of splits, and what follows for clocks.
func printSignatures(w io.Writer, list []*signature) {
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
		if s.Then != nil {
			term.Remarks(w, "clock", component.Contrast(s.Advice, s.Then))
		}
	}
}
