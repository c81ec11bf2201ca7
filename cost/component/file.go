package component

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// version of the files.
const version = 1

//go:embed calibrations
var embedded embed.FS

// ErrUnknown means that a card's components were never measured.
var ErrUnknown = errors.New("the components of this card were not measured")

// Find gives what is built in for a card, by its name or a file's, whatever the case. There being none is
// an [ErrUnknown] that says what to do.
func Find(card string) (*Model, error) {
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
			return m, m.ready()
		}
	}
	return nil, fmt.Errorf("%s: %w: lowtoggle calibrate --components does, in some three minutes", card, ErrUnknown)
}

// Read reads a file that [Model.Write] made. Where its measurement was broken off the model has readings
// and cannot split anything yet.
func Read(name string) (*Model, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	m, err := decode(data)
	if err == nil {
		err = m.ready()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

func decode(data []byte) (*Model, error) {
	var head struct {
		Version *int `json:"components_version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("no components of a card: %w", err)
	}
	switch v := head.Version; {
	case v == nil:
		return nil, errors.New("no components of a card: it has no components_version")
	case *v != version:
		return nil, fmt.Errorf("components of version %d, and this program reads version %d: measure them anew with lowtoggle calibrate --components", *v, version)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	m := new(Model)
	if err := d.Decode(m); err != nil {
		return nil, fmt.Errorf("damaged components: %w", err)
	}
	return m, nil
}

// ready fits anew what had been fitted, for the fits to parts of the readings are not in the file.
func (m *Model) ready() error {
	if m.Coefficients == nil {
		return nil
	}
	if err := m.Fit(); err != nil {
		return fmt.Errorf("damaged components: %w", err)
	}
	return nil
}

// Write writes the model as a file, whole or not at all.
func (m *Model) Write(name string) error {
	m.Version = version
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	data = bytes.ReplaceAll(data, []byte(`{"name":`), []byte("\n"+`{"name":`)) // so that differences can be read
	part := name + ".partial"
	f, err := os.Create(part)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return os.Rename(part, name)
}
