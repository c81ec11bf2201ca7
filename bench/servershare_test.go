package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

// A full server of eight H200s by its maker's figures: the limit of a card and the maximum input of the server (NVIDIA DGX
// H100/H200 User Guide, power specifications).
const (
	serverCards = 8
	cardWatts   = 700
	serverWatts = 10200
	serverRest  = serverWatts - serverCards*cardWatts // watts
)

// serverShare returns the cards' share of a server's power if each card draws so many watts and the rest draws serverRest.
func serverShare(watts float64) float64 {
	return serverCards * watts / (serverCards*watts + serverRest)
}

// serverSection writes the saving of a server's cards as a share of the server's energy.
func (p wholePages) serverSection(b *bytes.Buffer) {
	decode, prefill := p.recipeDecode.row(balancedDecode), p.recipePrefill.row("--recipe balanced")
	fmt.Fprintf(b, `
## How much of a server's energy is that?

Every figure on this page is the card's energy. A full server of eight H200s (NVIDIA DGX H200) takes at most %.1f kW from the mains, and its
cards at most %d × %d W: %.0f %% of that. The figures are those of NVIDIA's DGX H100/H200 User Guide (power specifications). The
rest, %.1f kW, is taken to draw the same power at any load of the cards, before and after.

- Below the cap, requests set the tokens per second, so the rest of the server saves nothing. In decode with batch 16 a card draws %.0f W, so the cards draw %.0f %% of the server's power.
  %s %% of the cards' energy is %s %% of the server's.
- At the cap, the time per token falls, and with it the rest's energy per token. In prefill, %s %% of the cards' energy and %s %% of the
  time are %s %% of the server's energy. The meter reads the same, for more tokens.

A server with idle cards, or with a higher share of CPU work, saves less. Measure your own at its power supplies.
`, serverWatts/1e3, serverCards, cardWatts, 100*serverShare(cardWatts), serverRest/1e3, decode.step.Before.Watts, 100*serverShare(decode.step.Before.Watts),
		signed(change(decode.Relative), 1), signed(serverChange(decode), 1),
		signed(change(prefill.Relative), 1), signed(change(prefill.RelativeTime), 1), signed(serverChange(prefill), 1))
}

// serverChange returns the change of a server's energy per token in per cent. The rest of the server draws its power for the
// time of the step.
func serverChange(r *wholeRow) float64 {
	share := serverShare(r.step.Before.Watts)
	return share*change(r.Relative) + (1-share)*change(r.RelativeTime)
}

// wholeRow returns the row of passes in a record of a whole model.
func (e *evidence) wholeRow(record, passes string) *wholeRow {
	e.Helper()
	row := readWhole[wholeRecord](e.T, record).row(passes)
	if row == nil {
		e.Fatalf("whole-%s.json has no %s", record, passes)
	}
	return row
}

// wholeChange returns the change of a whole model's energy per token in per cent.
func (e *evidence) wholeChange(record, passes string) float64 {
	e.Helper()
	return change(e.wholeRow(record, passes).Relative)
}

// serverChange returns the change of a server's energy per token in per cent.
func (e *evidence) serverChange(record, passes string) float64 {
	e.Helper()
	return serverChange(e.wholeRow(record, passes))
}

// served returns the change of energy per output token of the converted model's server, with its interval.
func (e *evidence) served() string {
	e.Helper()
	data, err := os.ReadFile("results/h200/serve.json")
	if err != nil {
		e.Fatal(err)
	}
	var r servedRecord
	if err := json.Unmarshal(data, &r); err != nil {
		e.Fatal(err)
	}
	c := r.Run.Variants[0]
	return percent(change(c.RelativeEnergy), 1) + " (" + spanOf(c.Interval) + ")"
}
