package card

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/outfile"
	"github.com/lowtoggle/lowtoggle/cli/page"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/collective"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/internal/chart"
	"github.com/lowtoggle/lowtoggle/internal/report"
	"github.com/lowtoggle/lowtoggle/weights"
)

// profileCollective is profile --collective.
func profileCollective(c *cli.Context) (err error) {
	for _, name := range []string{"interleave", "copy"} {
		if c.IsSet(name) {
			return exit.Usagef("--%[1]s and --collective exclude each other: leave out --%[1]s", name)
		}
	}
	op, size, err := readCollective(c.String("collective"))
	if err != nil {
		return err
	}
	q, err := readProfile(c)
	if err != nil {
		return err
	}
	defer exit.CloseAll(&err, q.Close)
	h, err := openHost(c, q.seed)
	if err != nil {
		return err
	}
	defer exit.CloseAll(&err, h.Close)
	r, o := &overTimeReport{}, collective.OverTimeOptions{}
	if o.Splitter, r.unsplit, err = splitterOf(c.String("components"), h.Machines[0].Card().Info().Name); err != nil {
		return err
	}
	event, end := term.Progress(c)
	event(preparing)
	products, files, err := q.products(c.Context, h.Machines[0])
	if err != nil {
		end()
		return interrupted(err, false)
	}
	defer exit.SetUnsaved(c, false)
	q.options.Progress = profileProgress(c, event)
	o.Profile = q.options
	one := measure.Candidate{Name: products[0].Name, Products: products, Files: files}
	err = weights.Guard(strings.Join(files, ", "), func() error {
		r.OverTime, err = h.OverTime(c.Context, op, sizeOf(size, one), one, o)
		return err
	})
	end()
	if err = interrupted(err, r.OverTime != nil); r.OverTime == nil {
		return err
	}
	first := r.Cards[0].Products // all cards run the same products
	first[cuda.GroupProducts].W, first[cuda.GroupProducts].X = q.w.Text, q.operands().XText(products[0].Problem.Type)
	if failed := r.write(c); err == nil {
		err = failed
	}
	if failed := r.draw(c, q.picture); err == nil {
		err = failed
	}
	if err == nil && !r.met(q.resolution) {
		return exit.ErrShort
	}
	return err
}

// overTimeDocument is the output of profile --collective --json.
type overTimeDocument struct{ *collective.OverTime }

// overTimeReport prints the profile of a collective.
type overTimeReport struct {
	*collective.OverTime
	unsplit string // why there is no split by component
}

// met reports whether all profiles are as steady and as fine as requested.
func (r *overTimeReport) met(resolution time.Duration) bool {
	for _, card := range r.Cards {
		if !(profileReport{Result: card, asked: resolution}).met() {
			return false
		}
	}
	return true
}

func (r *overTimeReport) write(c *cli.Context) error {
	if c.Bool("json") {
		return term.JSON(c.App.Writer, overTimeDocument{r.OverTime})
	}
	r.print(c.App.Writer)
	for i := range r.Cards {
		fmt.Fprintf(c.App.Writer, "\ncard %d: ", i)
		r.card(i).print(c.App.Writer)
	}
	return nil
}

// card is the report of one card's profiles.
func (r *overTimeReport) card(i int) profileReport { return profileReport{Result: r.Cards[i]} }

func (r *overTimeReport) title() string {
	return fmt.Sprintf("%d × %s: %s of %s beside %s, power over time", len(r.Cards), r.Cards[0].GPU, collectiveNames[r.Operation], term.Size(r.Bytes), r.Cards[0].Products[0].Name)
}

// print prints the power of every load on every card, and the power by component.
func (r *overTimeReport) print(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n", r.title())
	if len(r.Parts) > 0 {
		tab := term.NewTable("work", "card", "time of\none pass", "power", "95 %", "idle", "multi-\npliers", "on chip", "memory", "links,\nrest")
		for _, p := range r.Parts {
			tab.Add(p.Work, fmt.Sprint(p.Card), siSeconds(p.Seconds), watts(p.Watts), fmt.Sprintf("%.0f … %.0f W", p.Low, p.High), watts(p.Idle),
				wattsOf(p.Multipliers), wattsOf(p.OnChip), wattsOf(p.HBM), watts(p.Rest))
		}
		tab.Print(w)
		fmt.Fprintln(w)
		term.Remark(w, "power", "mean power over the second half of the work; idle is the power before the work")
	}
	switch {
	case r.unsplit != "":
		term.Remark(w, "note", r.unsplit)
	case len(r.Parts) > 0 && r.Parts[0].From != "":
		term.Remark(w, "parts", "multipliers, on-chip traffic and memory are predicted by "+r.Parts[0].From+". The collective's watts are lower bounds, because the prediction assumes that every card reads its data once and writes the result once")
	}
	term.Remark(w, "rest", "links between the cards, awake multiprocessors and the model's error; no reading of a card separates them")
	if b := r.Bandwidth; b != nil {
		term.Remark(w, "bandwidth", fmt.Sprintf("the %s alone has an algorithm bandwidth of %.1f GB/s and a bus bandwidth of %.1f GB/s, as nccl-tests defines them", collectiveNames[r.Operation], b.Algorithm/1e9, b.Bus/1e9))
	}
	if r.Library != "" {
		term.Remark(w, "NCCL", r.Library)
	}
}

// wattsOf formats a power in watts; "–" for nil, which is unknown.
func wattsOf(v *float64) string {
	if v == nil {
		return "–"
	}
	return watts(*v)
}

// draw draws every card's power and clock, or writes the report.
func (r *overTimeReport) draw(c *cli.Context, path string) error {
	if path == "" {
		return nil
	}
	if outfile.KindOf(path, outfile.Pictures...) == outfile.HTML {
		return r.page(c).Write(c, path)
	}
	all := chart.Chart{Title: r.title()}
	for i := range r.Cards {
		for _, p := range r.card(i).picture().Panels {
			p.Title = fmt.Sprintf("card %d: %s", i, p.Title)
			all.Panels = append(all.Panels, p)
		}
	}
	return outfile.WriteChart(c, path, all)
}

// page fills the report's page.
func (r *overTimeReport) page(c *cli.Context) *page.Page {
	p, known := page.New(c, "Power over time", r.title()), knownHow(r.Simulated)
	for _, one := range r.Parts {
		p.Figure(fmt.Sprintf("power, %s, card %d", one.Work, one.Card), watts(one.Watts), fmt.Sprintf("95 %%: %.0f … %.0f W", one.Low, one.High), known)
		if one.From != "" {
			p.Origin("power by component", report.Predicted, one.From)
		}
	}
	r.print(p.Section("Power by work and component"))
	for i, card := range r.Cards {
		s := p.Section(fmt.Sprintf("Card %d", i))
		if card.HasTrace() {
			for _, one := range split(r.card(i).picture()) {
				s.Picture(one, "")
			}
		}
		r.card(i).print(s)
		p.Origin("power, clock and times", known, cardOrigin("", card.GPU, card.Card.ID())+", "+card.Date)
	}
	return p
}
