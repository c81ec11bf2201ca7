package component

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDamaged files are refused, and say what to do; a fit anew looks at the readings alone.
func TestDamaged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "components.json")
	write := func(change func(*Model)) {
		t.Helper()
		m := fitted(t, usualCard, true, nil)
		change(m)
		if err := m.Write(file); err != nil {
			t.Fatal(err)
		}
	}
	for want, change := range map[string]func(*Model){
		"--from fits them anew":   func(m *Model) { m.Coefficients[0].Value *= 1.5 },
		"are not those":           func(m *Model) { m.Coefficients[3].Value *= -1 },
		"the coefficients":        func(m *Model) { m.Coefficients[1].Name = "asleep" },
		"not those of":            func(m *Model) { m.Coefficients[0].Unit = "kW" },
		"of the readings":         func(m *Model) { m.Coefficients = m.Coefficients[1:] },
		"launches is there twice": func(m *Model) { m.Readings = append(m.Readings, m.Readings[len(m.Readings)-5]) },
	} {
		write(change)
		if _, err := Read(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		m, err := Refit(file)
		if twice := strings.Contains(want, "twice"); (err != nil) != twice {
			t.Errorf("%s: fitted anew: %v", want, err)
		} else if !twice && m.Coefficients[0].Value != fitted(t, usualCard, true, nil).Coefficients[0].Value {
			t.Errorf("%s: fitted anew to %+v", want, m.Coefficients[0])
		}
	}
	write(func(*Model) {})
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"cut off": string(whole[:len(whole)/2]),
		"strings": strings.Replace(string(whole), `"watts":`, `"watts":"many","was":`, 1),
	} {
		if err := os.WriteFile(file, []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(file); err == nil || !strings.Contains(err.Error(), instead) || strings.Contains(err.Error(), "Go struct") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
