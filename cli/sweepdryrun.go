package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/sweep"
)

// dryRun is what a sweep would do to a card, as it is written in JSON.
type dryRun struct {
	GPU       string          `json:"gpu"`
	DryRun    bool            `json:"dry_run"`
	Reference float64         `json:"reference_watts"` // the limit that is set
	Default   float64         `json:"default_watts"`
	Visits    []sweep.Setting `json:"visits"` // in the order of time
	Seconds   float64         `json:"about_seconds"`
	Refused   string          `json:"refused,omitempty"` // why it would be, now
}

// settling is about what a visit takes beside --time.
const settling = 15 * time.Second

// dryRun says what would be set, and in what order; refused is why it would not be.
func (q *sweepRequest) dryRun(c *cli.Context, card power.Info, p sweep.Plan, refused error) error {
	d := dryRun{GPU: card.Name, DryRun: true, Reference: p.Reference.Cap, Default: p.Default, Visits: p.Order,
		Seconds: (time.Duration(len(p.Order)) * (q.meter.Time + settling)).Seconds()}
	if refused != nil {
		d.Refused = refused.Error()
	}
	if c.Bool("json") {
		return term.JSON(c.App.Writer, d)
	}
	var order []string
	for _, s := range p.Order {
		order = append(order, s.String())
	}
	text := fmt.Sprintf("%s is set to %v, which all would be relative to", d.GPU, p.Reference)
	above := slices.ContainsFunc(p.Settings, func(s sweep.Setting) bool { return s.Cap > d.Reference })
	switch {
	case above:
		text += "; some of what is asked for is above that: whoever lowered it may have had a reason"
	case d.Default > d.Reference:
		text += fmt.Sprintf("; its default is %g W, and nothing above %v is set unless --caps names it", d.Default, p.Reference)
	}
	text += fmt.Sprintf(". It would be set, in this order, to %s; then to %v again. That takes about %s.",
		strings.Join(order, ", "), p.Reference, term.Plural(int(d.Seconds+59)/60, "minute", "minutes"))
	w := c.App.Writer
	fmt.Fprint(w, term.Wrap(text, "", "", term.Width))
	fmt.Fprint(w, term.Wrap("Nothing was changed and nothing measured: --change-settings does this, --simulate predicts it.", "", "", term.Width))
	if refused != nil {
		term.Remark(w, "would be refused now", d.Refused)
	}
	if q.picture != "" {
		term.Remark(w, "picture", "not drawn: nothing was measured")
	}
	return nil
}
