package paper

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
)

// paperSeeds is the number of seeds that the paper used.
const paperSeeds = 10

// Remains lists the missing readings of a series: readings of points from one seed, and of main points from as many seeds as the
// paper used.
type Remains struct {
	Setup         experiment.Setup
	Points, Draws int
	// Pace is the mean time of a point in its sessions in seconds, including readings of the baseline.
	Pace float64
}

// Remaining returns the missing readings of each series, without complete series.
func Remaining(series []*experiment.Series) (list []Remains) {
	for _, s := range series {
		one := len(s.Missing(Job(s.Setup, Points{}), 1))
		ten := len(s.Missing(Job(s.Setup, Points{Seeds: paperSeeds}), 1)) - one
		if one+ten > 0 {
			list = append(list, Remains{s.Setup, one, ten, pace(s)})
		}
	}
	return list
}

// remaining prints the missing readings of the series, with a time estimated from their pace.
func (p *page) remaining() {
	var rows [][]string
	points, draws, minutes := 0, 0, 0.0
	for _, r := range Remaining(p.series) {
		takes := r.Pace * float64(r.Points+r.Draws) / 60
		points, draws, minutes = points+r.Points, draws+r.Draws, minutes+takes
		rows = append(rows, []string{r.Setup.String(), fmt.Sprint(r.Points), fmt.Sprint(r.Draws), fmt.Sprintf("%.0f", takes)})
	}
	if rows == nil {
		return
	}
	p.print("\n## What remains\n\n%s", remains)
	for _, j := range p.assessed {
		if slices.ContainsFunc(j.Effects, func(e Effect) bool { return strings.HasSuffix(e.Where, notOneCard) }) {
			p.print(remainsOneCard)
		}
	}
	p.head("setup", "missing readings with one seed", "missing readings of main points with further seeds", "minutes on a card")
	for _, r := range append(rows, []string{"all", fmt.Sprint(points), fmt.Sprint(draws), fmt.Sprintf("%.0f", minutes)}) {
		p.row(r...)
	}
}

const remains = `The *main points* matter most for the takeaways. The first command measures the missing points with one seed.
The second command also measures the main points with ten seeds. Both commands continue the series in FOLDER. Options such as ` + "`--time`" + `,
` + "`--type`" + ` and ` + "`--only`" + ` split the work over several runs and cards.

` + "```" + `
lowtoggle reproduce FOLDER
lowtoggle reproduce FOLDER --seeds 10
` + "```" + `

`

const remainsOneCard = `T7 needs all four dtypes on one card. One run of this command measures them:

` + "```" + `
lowtoggle reproduce FOLDER --size 2048 --type fp16,fp32,fp16-cuda,int8 --only 4a,4b,4c --seeds 2
` + "```" + `

`

// pace returns [Remains].Pace of a series.
func pace(s *experiment.Series) float64 {
	seconds, points := 0.0, 0
	for _, session := range s.Sessions {
		if n := len(session.Readings); n > 0 {
			seconds += session.Readings[n-1].Begin + session.Readings[n-1].Length - session.Readings[0].Begin
			points += len(session.Points) - 1
		}
	}
	return seconds / float64(max(1, points))
}
