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

// serverShare returns the cards' share of a server's power if each card draws the given watts and the rest of the server draws serverRest.
func serverShare(watts float64) float64 {
	return serverCards * watts / (serverCards*watts + serverRest)
}

// serverSection writes the saving of a server's cards as a share of the server's energy.
func (p wholePages) serverSection(b *bytes.Buffer) {
	decode, prefill := p.recipeDecode.row(balancedDecode), p.recipePrefill.row("--recipe balanced")
	fmt.Fprintf(b, `
## How much of a server's energy is saved?

All energies above are energies of the card alone. A full server of eight H200s (NVIDIA DGX H200) takes at most %.1f kW from
the mains. The eight cards take at most %d × %d W, or %.0f %% of this power (NVIDIA DGX H100/H200 User Guide, power
specifications). All other parts of the server take the remaining %.1f kW. We assume that these parts draw the same power at
any load of the cards.

- Below the power cap, requests set the tokens per second, so the other parts save no energy. In decode with batch 16, each
  card draws %.0f W. The cards then draw %.0f %% of the server's power. A change of the cards' energy by %s %% is a change of
  the server's energy by %s %%.
- At the power cap, the time per token falls. So the other parts take less energy per token, too. In prefill, the cards'
  energy per token changes by %s %% and the time per token by %s %%. The server's energy per token then changes by %s %%. The
  server's power stays the same, for more tokens per second.

A server with idle cards, or with more work on CPUs, saves a smaller share. Measure your own server at its power supplies.
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
