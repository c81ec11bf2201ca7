//go:build linux

package main

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// minute matches a time in a report.
var minute = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d UTC`)

// systemLock is a lock of the whole system in its temporary folder. Its name contains a digest of the guarded path.
var systemLock = regexp.MustCompile(`^tmp/lowtoggle-[a-z]+-\d+-[0-9a-f]{64}\.lock$`)

// comparable returns a tree without the bytes that may differ from run to run.
func (s scenario) comparable(t tree) tree {
	maps.DeleteFunc(t, func(name string, _ file) bool { return systemLock.MatchString(name) })
	if result, ok := t["work/"+s.result]; ok {
		result.data = minute.ReplaceAllString(result.data, "now")
		t["work/"+s.result] = result
	}
	for _, folder := range s.varies {
		for name, f := range t.below("work/" + folder) {
			t[name] = file{f.mode, ""}
			if path.Base(name) == "lock" { // removed at the end of a search; a loss of power may undo the removal
				delete(t, name)
			}
		}
	}
	if s.alike != nil {
		for name, f := range t.below("work") {
			t[name] = file{f.mode, s.alike(name, f.data)}
		}
	}
	return t
}

// alikeRecords removes the records of shards, which hold the shards' times, and the process ids in locks.
func alikeRecords(name, data string) string {
	if path.Base(path.Dir(name)) == "records" || path.Base(name) == "lock" {
		return ""
	}
	return data
}

// cardRecord matches a manifest's entry for the model card.
var cardRecord = regexp.MustCompile(`\{"path": ?"README.md"[^}]*\}`)

// alikeCards removes the model card, because its loss is missing if an error prevented the measurement after the conversion.
func alikeCards(name, data string) string {
	switch path.Base(name) {
	case "README.md":
		return ""
	case "lowtoggle.json":
		return cardRecord.ReplaceAllString(data, "")
	}
	return data
}

// reading matches the name of a measured point or kernel in a file of measurements.
var reading = regexp.MustCompile(`"(load|kernel|name)": ?"[^"]*"`)

// alikeReadings keeps only the names of measured points and kernels, because measured values and the reports of them differ from
// run to run.
func alikeReadings(name, data string) string {
	if path.Ext(name) != ".json" {
		return ""
	}
	list := reading.FindAllString(data, -1)
	slices.Sort(list)
	return strings.Join(slices.Compact(list), "\n")
}
