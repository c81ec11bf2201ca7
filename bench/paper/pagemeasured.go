package paper

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
)

// measured prints how the series were measured: a row for every series, and the commands.
func (p *page) measured() {
	p.print("\n## How were the experiments measured?\n\n")
	p.head("setup", "card", "driver, CUDA, power cap", "date", "points, readings", "baseline: normal operands", "relative energy of copies of the baseline")
	var commands []string
	var wrong []error
	simulated := false
	for _, s := range p.series {
		points, readings := 0, 0
		var copies []string
		for _, r := range s.Results() {
			points, readings = points+1, readings+r.Readings
			if r.Experiment == experiment.Null {
				copies = append(copies, within(r.Relative, r.HalfWidth))
			}
		}
		if err := s.Check(); err != nil {
			wrong = append(wrong, err)
		}
		var cards, drivers, dates []string
		for _, session := range s.Sessions {
			name := cmp.Or(session.Card.ID(), session.Card.Name)
			if session.Simulated {
				name, simulated = "simulated", true
			}
			driver := fmt.Sprintf("%s, %s, %s", or(session.Card.Driver), or(session.Card.CUDA), watts(session.Card.PowerLimit))
			date, _, _ := strings.Cut(session.Date, "T")
			cards, drivers, dates = with(cards, or(name)), with(drivers, driver), with(dates, or(date))
			if session.Command != "" {
				commands = with(commands, session.Command)
			}
		}
		p.row(s.String(), strings.Join(cards, ", "), strings.Join(drivers, "; "), strings.Join(dates, ", "),
			fmt.Sprintf("%d, %d", points, readings), baselines(s), or(strings.Join(copies, ", ")))
	}
	if simulated {
		p.print("\n**The card is simulated. These figures say nothing about a real card.**\n")
	}
	for _, err := range wrong {
		p.print("\n**Not valid:** %v.\n", err)
	}
	if commands != nil {
		p.print("\nThese commands made the records. In an empty folder, they repeat the measurements:\n\n```\n%s\n```\n", strings.Join(commands, "\n"))
	}
}

// baselines returns the baseline's mean power and clock as text, and whether it was at the power cap.
func baselines(s *experiment.Series) string {
	var power, clock, capped []float64
	for _, session := range s.Sessions {
		for _, r := range session.Readings {
			if !r.Baseline {
				continue
			}
			power = append(power, r.Watts)
			if r.SMClock != nil {
				clock = append(clock, *r.SMClock)
			}
			if r.CappedShare != nil {
				capped = append(capped, *r.CappedShare)
			}
		}
	}
	if power == nil {
		return "–"
	}
	text := fmt.Sprintf("%.0f W", stat.Mean(power, nil))
	if clock != nil {
		text += fmt.Sprintf(" at %.0f MHz", stat.Mean(clock, nil))
	}
	if capped != nil && stat.Mean(capped, nil) > 0.5 {
		text += ", at the power cap"
	}
	return text
}

// with appends a text unless it is there.
func with(list []string, text string) []string {
	if slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}
