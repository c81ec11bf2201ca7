package cost

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/internal/strictjson"
)

// Product is a GEMM y[M,N] = x[M,K]·w[N,K]ᵀ.
type Product struct {
	Type arith.Type `json:"type"`
	M    int        `json:"m"`
	N    int        `json:"n"`
	K    int        `json:"k"`
	Role Role       `json:"role"`           // role of w
	Cold bool       `json:"cold,omitempty"` // w is read from memory every time, as in decoding
	// Kernel multiplies quantised weights; empty for cuBLASLt's products of unquantised weights.
	Kernel Kernel `json:"-"`
	// Scaling is the part of quantised weights that shares a scale; see [quant.Format].Per. Empty: all weights share
	// one scale.
	Scaling string `json:"-"`
	// Scale is the root mean square of the random weights in the baseline of a prediction; 0: that of w. Predictions
	// before and after a multiplication by a power of two are comparable only if they have the same Scale.
	Scale float64 `json:"-"`
}

// Calibration holds all data about a card: its facts, measurements, and the models fitted to them.
type Calibration struct {
	Version int    `json:"calibration_version"`
	Card    string `json:"card"`
	Driver  string `json:"driver,omitempty"`
	Date    string `json:"date"`
	Command string `json:"command,omitempty"`
	// PowerLimit is the card's power limit during the measurements, in watts; 0: unknown.
	PowerLimit float64 `json:"power_limit_watts,omitempty"`
	// Facts are the card's facts. Facts that were not measured with the series are those of the calibration that this
	// one was derived from.
	Facts  Facts    `json:"facts"`
	Names  []string `json:"signals"`
	Models []Model  `json:"models"`
	Series []Series `json:"series"`

	references sync.Map // of random operands: referenceKey → Features
	drawn      sync.Map // random inputs: shape → blocks
	streaming  sync.Map // whether outputs stream: streamsKey → bool
}

// Model predicts the power of one type's products.
type Model struct {
	Type arith.Type `json:"type"`
	Cold bool       `json:"cold,omitempty"`
	// Swapped reports whether the library streams the operand that a linear layer's call passes as the stationary
	// one. It is measured with matrices with equal rows.
	Swapped bool `json:"swapped,omitempty"`
	// Coefficients are shares of the dynamic power of random operands, by feature and for "constant".
	Coefficients map[string]float64 `json:"coefficients"`
	Quality      Quality            `json:"quality"`
}

// Series holds points that were measured on one card in one run. All are relative to one baseline of random operands.
type Series struct {
	Product
	// Change says which operands differ from the baseline: "weights" or "both".
	Change   string        `json:"change"`
	Card     string        `json:"card,omitempty"` // short id of the card, such as H200-3f2a; empty: not recorded
	Date     string        `json:"date,omitempty"`
	Baseline Baseline      `json:"baseline"`
	Response []float64     `json:"clock"` // relative to the baseline's clock, at activities i·knot
	Points   []Observation `json:"points"`
}

// Baseline is a product of random operands.
type Baseline struct {
	X        string    `json:"x"`
	W        string    `json:"w"`
	Joules   float64   `json:"joules"`
	Seconds  float64   `json:"seconds"`
	Watts    float64   `json:"watts"`
	Clock    float64   `json:"clock_mhz"`
	Features *Features `json:"signals"`
	// ClockAssumed is true if the clock was not measured. Clock is then a plausible value, and predictions have no
	// clock.
	ClockAssumed bool `json:"clock_assumed,omitempty"`
}

// Observation is a measured point: ratios to the baseline, and the features of the point's operands.
type Observation struct {
	Family    string    `json:"family"`
	X         string    `json:"x"`
	W         string    `json:"w"`
	Energy    float64   `json:"relative_energy"`
	HalfWidth float64   `json:"half_width,omitempty"`
	Time      float64   `json:"relative_time"`
	Clock     float64   `json:"relative_clock"`
	Features  *Features `json:"signals"`
}

// calibrationVersion is the version of new files. Files of version withoutFacts lack the card's facts, because the
// program then applied the H200's facts to every card. They are read with the facts of factsBefore's file, so their
// predictions do not change.
const (
	calibrationVersion = 2
	withoutFacts       = 1
	factsBefore        = "h200"
)

//go:embed calibrations/*.json
var embedded embed.FS

// UsualGPU is the short name of the default card for predictions. Calibrations of unknown cards start with its facts.
const UsualGPU = "h200"

// Calibrations returns the short names of the built-in calibrations, such as "h200".
func Calibrations() (names []string) {
	files, err := embedded.ReadDir("calibrations")
	if err != nil {
		panic(err) // the file is part of the program
	}
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".json"))
	}
	return names
}

// FindCalibration returns the built-in calibration of a card, by the calibration's short name or the card's own name
// in any case. The error for an unknown name lists the known names.
func FindCalibration(name string) (*Calibration, error) {
	for _, short := range Calibrations() {
		c, err := builtIn(short)
		if err != nil {
			return nil, err
		}
		if strings.EqualFold(name, short) || strings.EqualFold(name, c.Card) {
			return c, nil
		}
	}
	return nil, fmt.Errorf("no calibration is built in for a GPU named %q (built in: %s): measure this GPU with lowtoggle calibrate", name, strings.Join(Calibrations(), ", "))
}

// CalibrationFor returns the built-in calibration of a card. If there is none, it returns the calibration of
// [UsualGPU].
func CalibrationFor(card string) (*Calibration, error) {
	if c, err := FindCalibration(card); err == nil {
		return c, nil
	}
	return FindCalibration(UsualGPU)
}

var built sync.Map // short name → func() (*Calibration, error)

func builtIn(short string) (*Calibration, error) {
	once, _ := built.LoadOrStore(short, sync.OnceValues(func() (*Calibration, error) {
		data, err := embedded.ReadFile(path.Join("calibrations", short+".json"))
		if err != nil {
			return nil, err
		}
		return decodeCalibration(data)
	}))
	return once.(func() (*Calibration, error))()
}

// ReadCalibration reads a file written by [Calibration.Write]. If a field is missing or out of range, the error names
// the file and the field.
func ReadCalibration(name string) (*Calibration, error) {
	data, err := bounded.ReadFile(name, bounded.Config)
	if err != nil {
		return nil, err
	}
	c, err := decodeCalibration(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

func decodeCalibration(data []byte) (*Calibration, error) {
	var head struct {
		Version *int            `json:"calibration_version"`
		Facts   json.RawMessage `json:"facts"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("not a calibration: %w: give a file that lowtoggle calibrate wrote", err)
	}
	switch v := head.Version; {
	case v == nil:
		return nil, errors.New("not a calibration: it has no calibration_version: give a file that lowtoggle calibrate wrote")
	case *v == withoutFacts && head.Facts != nil:
		return nil, damaged("a file of version %d must not have the field facts, and this file has it", *v)
	case *v == withoutFacts:
	case *v != calibrationVersion:
		return nil, fmt.Errorf("the calibration has version %d, but this program reads version %d: run lowtoggle calibrate again", *v, calibrationVersion)
	case head.Facts == nil:
		return nil, damaged("the field facts is missing")
	default:
		if field := strictjson.Missing(head.Facts, Facts{}); field != "" {
			return nil, damaged("facts.%s is missing", field)
		}
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	c := new(Calibration)
	if err := d.Decode(c); err != nil {
		return nil, damaged("%w", err)
	}
	if c.Version == withoutFacts {
		before, err := builtIn(factsBefore)
		if err != nil {
			return nil, err
		}
		c.Version, c.Facts = calibrationVersion, before.Facts
	}
	return c, c.validate()
}

// damaged returns an error about the content of a calibration.
func damaged(format string, args ...any) error {
	return fmt.Errorf("damaged calibration: "+format+": restore the file, or run lowtoggle calibrate again", args...)
}

// Usable returns an error if the calibration is nil or empty.
func (c *Calibration) Usable() error {
	if c == nil || len(c.Models) == 0 {
		return errors.New("the calibration is empty: get one from cost.FindCalibration or cost.ReadCalibration")
	}
	return nil
}

func (c *Calibration) validate() error {
	if c.Card == "" || len(c.Models) == 0 || len(c.Series) == 0 {
		return damaged("the card, the models or the measurements are missing")
	}
	if !(c.PowerLimit >= 0) {
		return damaged("power_limit_watts is negative")
	}
	if err := c.Facts.validate(); err != nil {
		return damaged("%w", err)
	}
	// Features are only added at the end, so files with fewer features can be read.
	if all := c.Facts.featureNames(); len(c.Names) >= weightNonzero && len(c.Names) <= len(all) && slices.Equal(c.Names, all[:len(c.Names)]) {
		c.Names = all
	} else {
		return errors.New("the calibration's features differ from this program's: run lowtoggle calibrate again")
	}
	for i, m := range c.Models {
		if !slices.ContainsFunc(c.Series, func(s Series) bool { return s.Type == m.Type && s.Cold == m.Cold }) {
			return damaged("the model of %s has no measurements", m.Type)
		}
		sum := 0.0
		for _, v := range m.Coefficients {
			sum += v
		}
		twice := slices.IndexFunc(c.Models, func(o Model) bool { return o.Type == m.Type && o.Cold == m.Cold }) != i
		if twice || !(math.Abs(sum-1) < 0.01) || !(m.Quality.Growth >= 0 && m.Quality.Growth <= 10) || !(m.Quality.Floor >= 0 && m.Quality.Floor <= 1) {
			return damaged("the model of %s occurs twice, has coefficients that do not sum to 1, or has a quality out of range", m.Type)
		}
		for name, v := range m.Coefficients {
			if name != constantTerm && !slices.Contains(c.Names, name) || !(v >= 0) || math.IsInf(v, 1) {
				return damaged("the model of %s: coefficient %s (%v) is out of range or unknown to this version", m.Type, name, v)
			}
		}
	}
	for i := range c.Series {
		if err := c.Series[i].validate(c.Facts.Power.Static.Usual); err != nil {
			return damaged("series %d: %w", i+1, err)
		}
	}
	return nil
}

func (s *Series) validate(static float64) error {
	b := s.Baseline
	if min(s.M, s.N, s.K) < 1 || !(b.Joules > 0 && b.Seconds > 0 && b.Watts > static && b.Clock > 0) || b.Features == nil {
		return fmt.Errorf("the dimensions or the baseline are incomplete, or the baseline's power is not above the card's static power of %g W", static)
	}
	if s.Change != "weights" && s.Change != "both" {
		return fmt.Errorf("change is %q, but must be weights or both", s.Change)
	}
	for _, o := range s.Points {
		if o.Features == nil || o.Family == "" {
			return fmt.Errorf("point %q: the family or the features are missing", o.W)
		}
		if !(o.Energy > 0 && o.Energy < 100 && o.Time > 0 && o.Time < 100 && o.Clock > 0 && o.Clock < 100) {
			return fmt.Errorf("point %q of family %s: a ratio is missing or out of range", o.W, o.Family)
		}
	}
	return s.validResponse()
}

// Write writes the calibration to a file, completely or not at all.
func (c *Calibration) Write(name string) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	// Write one series, point or group of facts per line, so that differences can be read.
	for _, before := range []string{`{"family":`, `{"type":`, `"facts":`, `"datapath":`, `"memory":`, `"lag_shares":`, `"kernels":`, `"power":`, `"settings":`} {
		data = bytes.ReplaceAll(data, []byte(before), []byte("\n"+before))
	}
	return atomicfile.Write(name, append(data, '\n'))
}

// label identifies the calibration in predictions.
func (c *Calibration) label() string {
	if c.Date == "" {
		return c.Card
	}
	return c.Card + ", " + c.Date
}

// MarshalJSON writes rates with five digits, and null for an unknown rate.
func (s *Features) MarshalJSON() ([]byte, error) {
	list := make([]any, len(s))
	for i, v := range s {
		if !math.IsNaN(v) {
			list[i] = json.Number(fmt.Sprintf("%.5g", v))
		}
	}
	return json.Marshal(list)
}

// UnmarshalJSON reads the form of MarshalJSON. Features that are missing in older files become NaN.
func (s *Features) UnmarshalJSON(data []byte) error {
	var list []*float64
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	if len(list) < weightNonzero || len(list) > len(s) {
		return fmt.Errorf("the list has %d features: it must have from %d to %d", len(list), weightNonzero, len(s))
	}
	for i := range s {
		s[i] = math.NaN()
		if i < len(list) && list[i] != nil {
			s[i] = *list[i]
		}
	}
	return nil
}
