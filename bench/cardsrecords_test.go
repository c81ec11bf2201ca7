package bench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// cardReading is the change of energy that a plan made on a card, in per cent.
type cardReading struct {
	card, file    string
	watts, joules float64 // of the baseline
	change        stats.Estimate
}

// cardProduct is a plan for one product in one phase, measured on several cards.
type cardProduct struct {
	product, phase, plan string
	readings             []cardReading // one for each card
}

const (
	ownInputs    = "`llama-17m`, own inputs"
	randomInputs = "`llama-17m`, random inputs"
	wholeModel   = "whole model, 3.75 B random weights"
	oneLayer     = "one layer of 8192×8192, older runs"
)

// cardSources lists what older records measured in the same way on several cards. Variants are the names in the files.
var cardSources = []struct{ product, phase, plan, variants string }{
	{randomInputs, "prefill", "grid=2", "level-stationary:grid2 order-stationary-1:grid order-stationary-2:grid2"},
	{randomInputs, "prefill", "round=5", "order-stationary-1:round5 order-stationary-2:round5"},
	{randomInputs, "prefill", "round=4", "several-prefill:output"},
	{ownInputs, "prefill", "grid=4", "layers-stationary:grid-4 structure-stationary:rtn4"},
	{ownInputs, "prefill", "trellis,compensate for 0.1 %", "frontier-stationary-1:trellis-c-0.1 frontier-stationary-2:trellis-c-0.1"},
	{ownInputs, "prefill", "grid for 0.5 %", "frontier-stationary-1:grid-0.5 frontier-stationary-2:grid-0.5"},
	{wholeModel, "prefill", "grid=4", "whole-earlier:output whole-prefill:output whole-both:output"},
	{wholeModel, "prefill", "round=4", "whole-earlier:round4 whole-prefill:round4 whole-both:round4"},
	{ownInputs, "prefill", "zeros", "layers-stationary:zeros frontier-stationary-1:zeros frontier-stationary-2:zeros structure-stationary:zeros"},
	{randomInputs, "prefill", "zeros", "level-stationary:zeros order-stationary-1:zeros order-stationary-2:zeros"},
	{oneLayer, "prefill", "zeros", "pair-1:zeros pair-2:zeros patterns-stationary:zeros powers-prefill:zeros"},
	{randomInputs, "decode", "grid=2", "level-decode:grid2 order-decode:grid"},
	{randomInputs, "decode", "round=4", "several-decode:output"},
	{wholeModel, "decode", "grid=4", "whole-earlier:output whole-decode:grid4 whole-both:output"},
	{wholeModel, "decode", "round=4", "whole-earlier:round4 whole-decode:round4 whole-both:round4"},
	{randomInputs, "decode", "zeros", "level-decode:zeros order-decode:zeros"},
	{ownInputs, "decode", "zeros", "layers-decode-stationary:zeros frontier-decode:zeros"},
}

// olderCardProducts reads cardSources.
func olderCardProducts(t *testing.T) (all []cardProduct) {
	t.Helper()
	for _, s := range cardSources {
		p := cardProduct{product: s.product, phase: s.phase, plan: s.plan}
		for source := range strings.FieldsSeq(s.variants) {
			file, variant, _ := strings.Cut(source, ":")
			var own []cardReading
			for _, c := range comparisonsIn(t, recorded+file+".json") {
				if c.phase == "" || c.phase == s.phase {
					own = append(own, c.readings(file, variant)...)
				}
			}
			if own == nil {
				t.Fatalf("%s has no comparison with %s in %s", file, variant, s.phase)
			}
			p.readings = append(p.readings, own...)
		}
		all = append(all, p)
	}
	return all
}

// comparison is a comparison in a recorded document, in the phase that the document names; empty if it names none.
type comparison struct {
	phase string
	run   *measure.Result // whole models have no fields but those of power.Result
}

// comparisonsIn finds all comparisons in a recorded document, however deep.
func comparisonsIn(t *testing.T, path string) (all []comparison) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var search func(phase string, doc json.RawMessage)
	search = func(phase string, doc json.RawMessage) {
		var list []json.RawMessage
		var fields map[string]json.RawMessage
		switch {
		case json.Unmarshal(doc, &list) == nil:
			for _, item := range list {
				search(phase, item)
			}
		case json.Unmarshal(doc, &fields) == nil:
			if own := fields["phase"]; own != nil {
				if err := json.Unmarshal(own, &phase); err != nil {
					t.Fatal(err)
				}
			}
			if fields["blocks"] != nil && fields["variants"] != nil && fields["card"] != nil {
				run := &measure.Result{}
				if err := json.Unmarshal(doc, run); err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				all = append(all, comparison{phase, run})
				return
			}
			for _, name := range slices.Sorted(maps.Keys(fields)) {
				search(phase, fields[name])
			}
		}
	}
	search("", data)
	return all
}

// readings returns the readings of a variant. The name may lack the folder and the final colon.
func (c comparison) readings(file, variant string) (all []cardReading) {
	for _, v := range c.run.Variants {
		name := strings.TrimSuffix(v.Name, ":")
		if name[strings.LastIndexAny(name, ":/")+1:] == variant {
			all = append(all, cardReading{c.run.Card.ID(), file, c.run.Baseline.Watts, c.run.Baseline.Joules,
				stats.Estimate{Value: change(v.RelativeEnergy), Error: 100 * standardError(c.run.Result)}})
		}
	}
	return all
}

// standardError returns the standard error of a ratio in a comparison. The ratios of a comparison have about the same scatter
// between passes, and few passes, so the variance is pooled over all. The copy's distance from 1 is one more sample of it: it
// contains errors that last longer than a block, which the scatter between passes does not.
func standardError(run *power.Result) float64 {
	arrangements := map[int]bool{}
	for _, b := range run.Blocks {
		if b.Complete {
			arrangements[b.Arrangement] = true
		}
	}
	apart := run.Null.RelativeEnergy - 1
	squares, freedom := apart*apart, 1.0
	for _, c := range append([]power.Comparison{run.Null}, run.Variants...) {
		own := float64(2*c.Blocks - len(arrangements))
		e := halfWidth(c) / stats.Student(own, 0.95)
		squares += own * e * e
		freedom += own
	}
	return math.Sqrt(squares / freedom)
}

// byCard returns one reading for each card: the mean of the card's readings.
func byCard(readings []cardReading) (all []cardReading) {
	own := map[string][]cardReading{}
	for _, r := range readings {
		own[r.card] = append(own[r.card], r)
	}
	for _, card := range slices.Sorted(maps.Keys(own)) {
		mean := cardReading{card: card, file: own[card][0].file}
		n := float64(len(own[card]))
		for _, r := range own[card] {
			mean.watts += r.watts / n
			mean.joules += r.joules / n
			mean.change.Value += r.change.Value / n
			mean.change.Error = math.Hypot(mean.change.Error, r.change.Error/n)
		}
		all = append(all, mean)
	}
	return all
}

// measuredCard is a card that made records, in the order of time.
type measuredCard struct {
	id, uuid string
	first    string // the date of its first record
	files    []string
}

// measuredCards lists the cards of all records, and the JSON files that name none.
func measuredCards(t *testing.T) (cards []*measuredCard, unknown []string) {
	t.Helper()
	known, named := map[string]*measuredCard{}, map[string][]string{}
	for _, pattern := range []string{"*.json", "*/*.json"} {
		files, err := filepath.Glob(recorded + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			name := strings.TrimSuffix(strings.TrimPrefix(path, recorded), ".json")
			found := cardsIn(t, path)
			if len(found) == 0 {
				var doc any
				read(t, path, &doc)
				fields, _ := doc.(map[string]any)
				id, _ := fields["card_id"].(string) // components have no UUID
				if id == "" {
					unknown = append(unknown, name)
				} else {
					named[id] = append(named[id], name)
				}
			}
			for uuid, one := range found {
				c := known[uuid]
				if c == nil {
					c = one
					known[uuid] = c
					cards = append(cards, c)
				}
				c.first = min(c.first, one.first)
				c.files = append(c.files, name)
			}
		}
	}
	for id, files := range named {
		i := slices.IndexFunc(cards, func(c *measuredCard) bool { return c.id == id })
		if i < 0 {
			t.Fatalf("%v are of %s, which no other record has", files, id)
		}
		cards[i].files = append(cards[i].files, files...)
	}
	slices.SortFunc(cards, func(a, b *measuredCard) int { return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.id, b.id)) })
	return cards, unknown
}

// cardsIn returns the cards in a document by their UUIDs, each with the earliest date beside it.
func cardsIn(t *testing.T, path string) map[string]*measuredCard {
	t.Helper()
	var doc any
	read(t, path, &doc)
	found := map[string]*measuredCard{}
	var search func(date string, doc any)
	search = func(date string, doc any) {
		switch v := doc.(type) {
		case []any:
			for _, item := range v {
				search(date, item)
			}
		case map[string]any:
			if own, ok := v["date"].(string); ok {
				date = own
			}
			if uuid, ok := v["uuid"].(string); ok {
				if c := found[uuid]; c != nil {
					c.first = min(c.first, date)
				} else {
					found[uuid] = &measuredCard{id: power.Info{Name: fmt.Sprint(v["name"]), UUID: uuid}.ID(), uuid: uuid, first: date}
				}
			}
			for _, item := range v {
				search(date, item)
			}
		}
	}
	search("", doc)
	return found
}

// TestCardIDs checks that recorded cards are H200s, no two with the same id, and that their records have dates.
func TestCardIDs(t *testing.T) {
	cards, _ := measuredCards(t)
	seen := map[string]string{}
	for _, c := range cards {
		if other := seen[c.id]; other != "" || !strings.HasPrefix(c.id, "H200-") || c.first == "" {
			t.Errorf("%s has the id %s, as %s, and the first record of %q", c.uuid, c.id, other, c.first)
		}
		seen[c.id] = c.uuid
	}
}
