package experiment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
	"github.com/lowtoggle/lowtoggle/internal/bounded"
)

// seriesVersion is the version of the file format.
const seriesVersion = 1

// Series holds all measurements of a setup. It is the content of the setup's file.
type Series struct {
	Version  int `json:"series_version"`
	Setup    `json:"setup"`
	Baseline Point     `json:"baseline"`
	Sessions []Session `json:"sittings"`
}

// Session holds the readings of one run of the command.
type Session struct {
	*measure.Session
	// Points are the baseline, then the points that were read, in the order of their readings.
	Points []Measured `json:"points"`
}

// Load reads and validates a series. If the file does not exist, the error is an [fs.ErrNotExist].
func Load(path string) (*Series, error) {
	data, err := bounded.ReadFile(path, bounded.Index)
	if err != nil {
		return nil, err
	}
	s, err := decode(data)
	if err == nil && filepath.Base(path) != s.file() {
		err = fmt.Errorf("it holds the setup %v: rename it to %s", s.Setup, s.file())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// LoadFolder reads every series in a folder, in the order of the file names. A folder without series is an
// [fs.ErrNotExist].
func LoadFolder(folder string) ([]*Series, error) {
	entries, err := os.ReadDir(folder)
	if st, failed := os.Stat(folder); failed == nil && !st.IsDir() {
		return nil, fmt.Errorf("%s: is not a folder: name a folder of measured series", folder)
	}
	if err != nil {
		return nil, err
	}
	var all []*Series
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), extension) || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		s, err := Load(filepath.Join(folder, e.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	if all == nil {
		return nil, fmt.Errorf("%s: the folder holds no series of measurements: %w", folder, fs.ErrNotExist)
	}
	return all, nil
}

const extension = ".json"

func (s Setup) file() string { return s.String() + extension }

func decode(data []byte) (*Series, error) {
	var version struct {
		Version *int `json:"series_version"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return nil, fmt.Errorf("is no series of lowtoggle reproduce or calibrate: move the file to another folder: %w", err)
	}
	switch v := version.Version; {
	case v == nil:
		return nil, errors.New("is no series of lowtoggle reproduce or calibrate, because it has no series_version: move the file to another folder")
	case *v != seriesVersion:
		return nil, fmt.Errorf("series_version is %d, but this program reads %d: use the version of lowtoggle that wrote the file", *v, seriesVersion)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var s Series
	if err := d.Decode(&s); err != nil {
		return nil, damaged("%w", err)
	}
	return &s, s.validate()
}

// damaged returns an error for a damaged file of a series.
func damaged(format string, args ...any) error {
	return fmt.Errorf("the file is damaged: %w: move the file to another folder to measure its series again", fmt.Errorf(format, args...))
}

// validate returns an error for contents that no run writes.
func (s *Series) validate() error {
	if err := (Job{Setup: s.Setup, Baseline: s.Baseline}).Validate(); err != nil {
		return err
	}
	for i, session := range s.Sessions {
		if err := session.validate(s.Baseline); err != nil {
			return fmt.Errorf("session %d: %w", i+1, err)
		}
	}
	return nil
}

func (s Session) validate(baseline Point) error {
	if s.Session == nil || len(s.Points) == 0 || s.Points[0].Point != baseline {
		return damaged("the first point is not the baseline")
	}
	points := s.Points[1:]
	for _, r := range s.Readings {
		for _, v := range []float64{r.PerExecution, r.Seconds, r.Watts} {
			if !(v > 0) { // false for NaN, too; JSON has no infinite numbers
				return damaged("a reading of %q has an energy, time or power that is not positive", r.Load)
			}
		}
		if r.Baseline {
			continue
		}
		if len(points) == 0 || points[0].Name() != r.Load {
			return damaged("the reading of %q is not in the order of the points", r.Load)
		}
		points = points[1:]
	}
	if len(points) > 0 {
		return damaged("there is no reading of %s", points[0].Name())
	}
	return nil
}

// open reads the job's series from a folder, or begins a new one.
func open(folder string, w Job, card *measure.Session) (*Series, error) {
	path := filepath.Join(folder, w.Setup.file())
	s, err := Load(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Series{Version: seriesVersion, Setup: w.Setup, Baseline: w.Baseline}, nil
	}
	if err != nil {
		return nil, err
	}
	if s.Baseline != w.Baseline {
		return nil, fmt.Errorf("%s: has another baseline than this job: use another folder", path)
	}
	for _, session := range s.Sessions {
		if session.Card.Name != card.Card.Name || session.Simulated != card.Simulated {
			return nil, fmt.Errorf("%s: was measured on %s, and this is %s: use another folder", path, cardName(session.Session), cardName(card))
		}
	}
	return s, nil
}

func cardName(s *measure.Session) string {
	if s.Simulated {
		return "a simulated card"
	}
	return s.Card.Name
}

// save writes the series' file atomically.
func (s *Series) save(folder string) error {
	js, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(folder, s.file()), append(js, '\n'))
}

// Missing returns the points of a job, null points included, that fewer sessions than rounds have read.
func (s *Series) Missing(w Job, rounds int) (list []Point) {
	for _, p := range w.all() {
		if s.readings(p) < rounds {
			list = append(list, p)
		}
	}
	return list
}

// readings counts the sessions in which a point was read.
func (s *Series) readings(p Point) (n int) {
	for _, session := range s.Sessions {
		if slices.ContainsFunc(session.Points[1:], func(m Measured) bool { return m.Point == p }) {
			n++
		}
	}
	return n
}
