package paper

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
)

// Filter chooses setups. A zero field chooses all.
type Filter struct {
	Types  []arith.Type
	Size   int // M, N and K
	Change experiment.Change
	Role   *cost.Role
}

// Jobs returns the jobs of the setups that a filter chooses, in the order of [Setups]. A setup without any of the points
// is left out.
func Jobs(f Filter, choice Points) (jobs []experiment.Job) {
	for _, s := range Setups() {
		switch {
		case len(f.Types) > 0 && !slices.Contains(f.Types, s.Type):
		case f.Size != 0 && s.M != f.Size:
		case f.Change != "" && s.Change != f.Change:
		case f.Role != nil && s.Role != *f.Role:
		default:
			if w := Job(s, choice); w.Points != nil {
				jobs = append(jobs, w)
			}
		}
	}
	return jobs
}

// Report compares the measurements in a folder with the paper.
type Report struct {
	Takeaways []Assessment    `json:"takeaways"`
	Series    []SeriesSummary `json:"series"`
	Simulated bool            `json:"simulated,omitempty"`
	Files     []string        `json:"files"` // paths written: the page, then its figures
	// Missing is the reason why points are missing. The caller sets it.
	Missing string `json:"missing,omitempty"`
	// Doubts are the reasons why a series is not valid.
	Doubts []string `json:"doubts,omitempty"`
}

// SeriesSummary names a series and counts its points.
type SeriesSummary struct {
	Setup  string `json:"setup"`
	GPU    string `json:"gpu"`
	CardID string `json:"card_id,omitempty"` // as in [power.Info]
	Points int    `json:"points"`
}

// WriteReport compares the series in a folder with the paper's takeaways, and writes the page and its figures into the
// folder. A folder that does not exist or holds no series is an [fs.ErrNotExist].
func WriteReport(ctx context.Context, folder string) (*Report, error) {
	all, err := experiment.LoadFolder(folder)
	if err != nil {
		return nil, err
	}
	r := &Report{Series: []SeriesSummary{}, Files: []string{}}
	var results []Result
	for _, s := range all {
		results = append(results, Results(s)...)
		one := SeriesSummary{Setup: s.Setup.String(), Points: len(s.Results())}
		for _, session := range s.Sessions {
			one.GPU, one.CardID = session.Card.Name, session.Card.ID()
			r.Simulated = r.Simulated || session.Simulated
		}
		r.Series = append(r.Series, one)
		if err := s.Check(); err != nil {
			r.Doubts = append(r.Doubts, err.Error())
		}
	}
	r.Takeaways = Assess(results)
	files, err := Page(ctx, all, "")
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		path := filepath.Join(folder, f.Name)
		if err := atomicfile.Write(path, f.Data); err != nil {
			return nil, err
		}
		r.Files = append(r.Files, path)
	}
	return r, nil
}
