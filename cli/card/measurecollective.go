package card

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/collective"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

var collectiveFlag = &cli.StringFlag{Name: "collective", Usage: "`NAME` or NAME,SIZE: allreduce, allgather", DefaultText: "none"}

// measureCollective is measure --collective.
func measureCollective(c *cli.Context) (err error) {
	for _, name := range []string{"bench", "csv", "output", "duty", "cold"} {
		if c.IsSet(name) {
			return exit.Usagef("--%[1]s and --collective exclude each other: leave out --%[1]s", name)
		}
	}
	op, size, err := readCollective(c.String("collective"))
	if err != nil {
		return err
	}
	q, err := measureRequest(c)
	if err != nil {
		return err
	}
	defer exit.CloseAll(&err, q.Close)
	h, err := openHost(c, q.seed)
	if err != nil {
		return err
	}
	defer exit.CloseAll(&err, h.Close)
	event, end := term.Progress(c)
	event(preparing)
	baseline, variants, err := q.candidates(c.Context, h.Machines[0])
	if err != nil {
		end()
		return interrupted(err, false)
	}
	r, err := h.Compare(c.Context, op, sizeOf(size, baseline), baseline, variants, collective.Options{Meter: q.meter, Progress: event})
	end()
	if err = interrupted(err, r != nil); r == nil {
		return err
	}
	var failed error
	if c.Bool("json") {
		failed = term.JSON(c.App.Writer, r)
	} else {
		printCollective(c.App.Writer, r, q.title(baseline))
	}
	if err == nil {
		err = failed
	}
	if err == nil && !r.Valid() {
		return exit.ErrShort
	}
	return err
}

// readCollective reads NAME or NAME,SIZE. Without SIZE, size is 0 and [sizeOf] chooses the buffer.
func readCollective(text string) (op cuda.Collective, size int64, err error) {
	name, of, sized := strings.Cut(text, ",")
	if op, err = collective.ParseOperation(strings.TrimSpace(name)); err == nil && sized {
		size, err = flag.ParseSize(strings.TrimSpace(of))
	}
	if err != nil {
		return "", 0, exit.Usage(fmt.Errorf("--collective: %w", err))
	}
	return op, size, nil
}

// sizeOf returns the requested size of the buffer in bytes. The default is the size of the last product's results in
// BF16, as tensor parallelism exchanges them.
func sizeOf(asked int64, c measure.Candidate) int64 {
	if asked > 0 {
		return asked
	}
	last := c.Products[len(c.Products)-1].Problem
	return 2 * int64(last.M) * int64(last.N)
}

// openHost opens the cards that --device names, by default the first two.
func openHost(c *cli.Context, seed uint64) (*collective.Host, error) {
	text := "0,1"
	if c.IsSet("device") {
		text = c.String("device")
	}
	list, err := parseDevices(text)
	if err != nil {
		return nil, err
	}
	var indices []int
	for _, d := range list {
		if d.index >= 0 {
			indices = append(indices, d.index)
		}
	}
	if len(indices) > 0 && len(indices) < len(list) {
		return nil, exit.Usagef("--device %s: a simulated card exchanges data with simulated cards only", text)
	}
	if len(indices) == 1 {
		return nil, exit.Usage(collective.ErrTooFew)
	}
	if len(indices) > 0 {
		h, err := collective.Open(indices)
		return h, simulatedInstead(err)
	}
	o := power.DefaultSim()
	o.Seed = seed
	return collective.Simulated(o, max(2, len(list)))
}

// collectiveNames are the names of collectives in sentences.
var collectiveNames = map[cuda.Collective]string{cuda.AllReduce: "all-reduce", cuda.AllGather: "all-gather"}

// printCollective prints a row for every load of the three comparisons.
func printCollective(w io.Writer, r *collective.Result, title string) {
	name := collectiveNames[r.Operation]
	gpu := r.Cards[0].Name
	fmt.Fprintf(w, "%d × %s: %s of %s beside %s\n\n", len(r.Cards), gpu, name, term.Size(r.Bytes), title)
	tab := term.NewTable("work", "energy", "95 %", "time", "energy,\nall cards", "time of\none pass", "power,\nall cards")
	rows := func(run *power.Result, work func(string) string) {
		if run == nil {
			return
		}
		for i, v := range append([]power.Comparison{{Summary: run.Baseline}, run.Null}, run.Variants...) {
			cells := []string{work(v.Name), "–", "–", "–", "–", "–", "–"}
			if i > 0 && v.Blocks > 0 {
				cells[1], cells[2], cells[3] = term.MeasuredChange(v.RelativeEnergy, v.Interval), term.Interval(v.Interval), term.MeasuredChange(v.RelativeTime, v.TimeInterval)
			}
			if v.Windows > 0 {
				cells[4], cells[5], cells[6] = siJoules(v.Joules), siSeconds(v.Seconds), fmt.Sprintf("%.0f W", v.Watts)
			}
			tab.Add(cells...)
		}
	}
	rows(r.Alone, func(of string) string { return of })
	rows(r.Products, func(of string) string { return of })
	rows(r.Both, func(of string) string { return "both, " + of })
	tab.Print(w)
	fmt.Fprintln(w)
	term.Remark(w, "energy, time", "change relative to the first row of the collective alone, of the products alone, or of both at once; the 95 % interval is of the energy")
	if b := r.Bandwidth; b != nil {
		term.Remark(w, "bandwidth", fmt.Sprintf("the %s alone has an algorithm bandwidth of %.1f GB/s and a bus bandwidth of %.1f GB/s, as nccl-tests defines them", name, b.Algorithm/1e9, b.Bus/1e9))
	}
	if h := r.Hidden; h != nil {
		term.Remark(w, "overlap", fmt.Sprintf("when the collective and the products run at once, %.0f %% of the shorter of the two times is hidden", 100**h))
	}
	if r.Library != "" {
		term.Remark(w, "NCCL", r.Library+"; in a test with small integers, the sums and copies of every card are exact")
	}
	term.Remark(w, "data", "the collective exchanges the same random BF16 values with all weights; a conversion's effect on the activations is not measured")
	var warnings, invalid []string
	for _, run := range []*power.Result{r.Alone, r.Products, r.Both} {
		if run != nil {
			warnings, invalid = append(warnings, run.Warnings...), append(invalid, run.Invalid...)
		}
	}
	term.Remarks(w, "warning", unique(warnings))
	term.Remarks(w, "INVALID", unique(invalid))
	if r.Simulated {
		term.Remark(w, "note", simulatedNote)
	}
}

// siSeconds formats a time in seconds with an SI prefix.
func siSeconds(s float64) string {
	switch {
	case s < 1e-3:
		return fmt.Sprintf("%.1f µs", 1e6*s)
	case s < 1:
		return fmt.Sprintf("%.3f ms", 1e3*s)
	}
	return fmt.Sprintf("%.3f s", s)
}
