package component

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/internal/strictjson"
)

// version is the version of new files. Files of earlier versions have coefficients of other terms, so their readings
// are fitted again. Files of version withoutFacts also lack the card's facts, because the program then applied the
// H200's facts to every card. They are read with the facts of factsBefore's file.
const (
	version      = 3
	withoutFacts = 1
	factsBefore  = "h200"
)

//go:embed calibrations
var embedded embed.FS

// ErrUnknown means that a card's components were never measured.
var ErrUnknown = errors.New("the components of this card were not measured")

// Find returns the built-in model of a card, by the card's name or the file's name, in any case. If there is none,
// the error is an [ErrUnknown] that names the command to measure the card.
func Find(card string) (*Model, error) {
	m, err := builtIn(card)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, fmt.Errorf("%s: %w: lowtoggle calibrate --components measures them in about two minutes", card, ErrUnknown)
	}
	return m, m.ready()
}

// FactsFor returns the facts for a measurement of a card's components: those of the card's built-in file. If there is
// no such file, it returns the H200's facts.
func FactsFor(card string) (Facts, error) {
	m, err := builtIn(card)
	if err == nil && m == nil {
		m, err = builtIn(factsBefore)
	}
	if err != nil {
		return Facts{}, err
	}
	return m.Facts, nil
}

// builtIn reads the built-in file of a card without fitting; nil if there is none.
func builtIn(card string) (*Model, error) {
	entries, err := fs.ReadDir(embedded, "calibrations")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		short, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok {
			continue
		}
		data, err := embedded.ReadFile(path.Join("calibrations", e.Name()))
		if err != nil {
			return nil, err
		}
		m, err := decode(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		if strings.EqualFold(card, short) || strings.EqualFold(card, m.Card) {
			return m, nil
		}
	}
	return nil, nil
}

// Refit reads a file and fits its readings again, and ignores the coefficients in the file.
func Refit(name string) (*Model, error) { return read(name, (*Model).Fit) }

// Read reads a file written by [Model.Write]. If the measurement was interrupted, the model has readings but cannot
// split power yet.
func Read(name string) (*Model, error) { return read(name, (*Model).ready) }

// read reads a file and calls complete on the model.
func read(name string, complete func(*Model) error) (*Model, error) {
	data, err := bounded.ReadFile(name, bounded.Config)
	if err != nil {
		return nil, err
	}
	m, err := decode(data)
	if err == nil {
		err = complete(m)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

func decode(data []byte) (*Model, error) {
	var head struct {
		Version *int            `json:"components_version"`
		Facts   json.RawMessage `json:"facts"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("not a components file, or a damaged one: %w: %s", err, instead)
	}
	switch v := head.Version; {
	case v == nil:
		return nil, errors.New("not a components file: it has no components_version: " + instead)
	case *v == withoutFacts && head.Facts != nil:
		return nil, fmt.Errorf("damaged components: a file of version %d must not have the field facts, and this file has it: %s", *v, instead)
	case *v == withoutFacts:
	case *v < withoutFacts || *v > version:
		return nil, fmt.Errorf("the components have version %d, but this program reads versions up to %d: %s", *v, version, instead)
	case head.Facts == nil:
		return nil, errors.New("damaged components: the field facts is missing: " + instead)
	default:
		if field := strictjson.Missing(head.Facts, Facts{}); field != "" {
			return nil, fmt.Errorf("damaged components: facts.%s is missing: %s", field, instead)
		}
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	m := new(Model)
	err := d.Decode(m)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		err = fmt.Errorf("the field %s has a value of the wrong type (%s)", wrong.Field, wrong.Value)
	}
	if err != nil {
		return nil, fmt.Errorf("damaged components: %w: %s", err, instead)
	}
	if m.Version == withoutFacts {
		before, err := builtIn(factsBefore)
		if err != nil {
			return nil, err
		}
		m.Facts = before.Facts
	}
	type measured struct {
		Kernel
		watts float64
	}
	seen := map[measured]bool{}
	for _, r := range m.Readings {
		key := measured{r.Kernel, r.Watts}
		if seen[key] {
			return nil, fmt.Errorf("damaged components: a reading of kernel %s occurs twice: delete one of the two entries", r.Name)
		}
		seen[key] = true
	}
	return m, nil
}

const instead = "restore a complete file, or measure again with lowtoggle calibrate --components --anew"

// ready fits the readings again, because the file lacks the fits to parts of the readings.
func (m *Model) ready() error {
	if m.Coefficients == nil {
		return nil
	}
	stored, older := m.Coefficients, m.Version < version
	if err := m.Fit(); err != nil {
		return fmt.Errorf("damaged components: %w", err)
	}
	if !older && !slices.EqualFunc(stored, m.Coefficients, Coefficient.alike) {
		return errors.New("damaged components: the coefficients do not follow from the readings: fit them again with lowtoggle calibrate --components --from FILE")
	}
	return nil
}

// MayReplace returns an error unless the file has readings of the model's card at its power limit, or is a damaged
// rest of such a file, or does not exist.
func (m *Model) MayReplace(name string) error {
	data, err := bounded.ReadFile(name, bounded.Config)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	old, err := decode(data)
	switch begin := m.begin(); {
	case err == nil && old.setup() == m.setup() && old.Simulated == m.Simulated && old.CardID != "" && m.CardID != "" && old.CardID != m.CardID:
		return fmt.Errorf("%s has readings of card %s, but this card is %s, and a components file belongs to one card: choose another OUT", name, old.CardID, m.CardID)
	case err == nil && old.setup() == m.setup() && old.Simulated == m.Simulated:
		return nil
	case err == nil:
		return fmt.Errorf("%s has readings of %s, but this measurement is of %s: choose another OUT", name, old.setup(), m.setup())
	case slices.ContainsFunc(begin, func(b []byte) bool { return bytes.HasPrefix(data, b) || bytes.HasPrefix(b, bytes.TrimSpace(data)) }):
		return nil
	}
	return fmt.Errorf("%s has no readings of this card, and is not replaced: choose another OUT", name)
}

// begin returns the first bytes of the card's files, for each version.
func (m *Model) begin() (list [][]byte) {
	for v := withoutFacts; v <= version; v++ {
		text, _ := json.Marshal(struct { // of an int and a string
			Version int    `json:"components_version"`
			Card    string `json:"card"`
		}{v, m.Card})
		list = append(list, bytes.TrimSuffix(text, []byte("}")))
	}
	return list
}

// setup names the card of the readings, and its settings.
func (m *Model) setup() string {
	s := fmt.Sprintf("%s of %g MHz", m.Card, m.FullClock)
	if m.PowerLimit > 0 {
		s += fmt.Sprintf(" with a limit of %g W", m.PowerLimit)
	}
	return s
}

// alike reports whether a stored coefficient equals the fitted one. The last digits may differ between processors.
func (c Coefficient) alike(found Coefficient) bool {
	near := math.Abs(c.Value-found.Value) <= float64(0.01*found.Value)+float64(0.05*found.Error)
	return near && c.Value >= 0 && c.Name == found.Name && c.Part == found.Part && c.Unit == found.Unit
}

// Write writes the model to a file, completely or not at all.
func (m *Model) Write(name string) error {
	m.Version = version
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	data = readable(data)
	return atomicfile.Write(name, append(data, '\n'))
}

// readable puts each coefficient, reading and group of facts on its own line, so that differences can be read.
func readable(data []byte) []byte {
	for _, before := range []string{`{"name":`, `"facts":`, `"tiles":`, `"clock":`, `"random_moved_bits":`, `"memory_sensor_scale_watts":`, `"memory_sensor":`} {
		data = bytes.ReplaceAll(data, []byte(before), []byte("\n"+before))
	}
	return data
}
