package component

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDamaged: damaged files are errors that say what to do. Refit uses the readings alone.
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
		"components --from":     func(m *Model) { m.Coefficients[0].Value *= 1.5 },
		"do not follow":         func(m *Model) { m.Coefficients[3].Value *= -1 },
		"the coefficients":      func(m *Model) { m.Coefficients[1].Name = "asleep" },
		"follow from":           func(m *Model) { m.Coefficients[0].Unit = "kW" },
		"from the readings":     func(m *Model) { m.Coefficients = m.Coefficients[1:] },
		"launches occurs twice": func(m *Model) { m.Readings = append(m.Readings, m.Readings[len(m.Readings)-5]) },
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

// TestMayReplace: a file may replace a file of the same card and limit, a damaged one, and a missing one.
func TestMayReplace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "components.json")
	m := Model{Card: "a card", FullClock: 1980, PowerLimit: 700, Facts: *card}
	if err := m.MayReplace(file); err != nil {
		t.Error("nothing:", err)
	}
	for want, there := range map[string]Model{
		"": m,
		"has readings of other of 1980 MHz with a limit of 700 W, but this measurement is of a card of 1980 MHz with": {Card: "other", FullClock: 1980, PowerLimit: 700, Facts: *card},
		"limit of 500 W, but this": {Card: "a card", FullClock: 1980, PowerLimit: 500, Facts: *card},
		"a card of 1755 MHz":       {Card: "a card", FullClock: 1755, PowerLimit: 700, Facts: *card},
		"has readings of a card of 1980 MHz with a limit of 700 W, but this": {Card: "a card", FullClock: 1980, PowerLimit: 700, Facts: *card, Simulated: true},
	} {
		if err := there.Write(file); err != nil {
			t.Fatal(err)
		}
		err := m.MayReplace(file)
		if (err == nil) != (want == "") || err != nil && !(strings.Contains(err.Error(), want) && strings.Contains(err.Error(), "choose another OUT")) {
			t.Errorf("%q: %v", want, err)
		}
	}
	own, other := m, m
	own.CardID, other.CardID = "H200-0001", "H200-0002"
	if err := own.Write(file); err != nil {
		t.Fatal(err)
	}
	for card, want := range map[*Model]string{&own: "", &m: "", &other: "has readings of card H200-0001, but this card is H200-0002"} {
		if err := card.MayReplace(file); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", card.CardID, err)
		}
	}
	for _, other := range []string{"my notes", "{}", `{"components_version":4,"card":"a card"}`, `{"components_version":1,"card":"oth`} {
		if err := os.WriteFile(file, []byte(other), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := m.MayReplace(file); err == nil || !strings.Contains(err.Error(), "choose another OUT") {
			t.Errorf("%q: %v", other, err)
		}
	}
	for _, damaged := range []string{"", `{"components_version":1,"card":`, `{"components_version":1,"card":"a card","driv`, `{"components_version":2,"card":"a card","driv`} {
		if err := os.WriteFile(file, []byte(damaged), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := m.MayReplace(file); err != nil {
			t.Errorf("%q: %v", damaged, err)
		}
	}
	if err := m.MayReplace(t.TempDir()); err == nil {
		t.Error("a folder is replaced")
	}
}

// TestWriteLeavesNothing: no file is left if the new file cannot get its name.
func TestWriteLeavesNothing(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "components.json")
	if err := os.MkdirAll(filepath.Join(file, "full"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := (&Model{}).Write(file); err == nil {
		t.Fatal("a folder was replaced")
	}
	if list, err := os.ReadDir(folder); err != nil || len(list) != 1 {
		t.Errorf("left behind: %v, %v", list, err)
	}
}
