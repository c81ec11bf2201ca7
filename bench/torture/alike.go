//go:build linux

package main

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// minute is a time in a report.
var minute = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d UTC`)

// systemLock is a lock of the whole system in its temporary folder. Its name holds a digest of the path of what it guards.
var systemLock = regexp.MustCompile(`^tmp/lowtoggle-[a-z]+-\d+-[0-9a-f]{64}\.lock$`)

// comparable drops the bytes that legitimately differ from run to run.
func (s scenario) comparable(t tree) tree {
	maps.DeleteFunc(t, func(name string, _ file) bool { return systemLock.MatchString(name) })
	if result, ok := t["work/"+s.result]; ok {
		result.data = minute.ReplaceAllString(result.data, "now")
		t["work/"+s.result] = result
	}
	for _, folder := range s.varies {
		for name, f := range t.below("work/" + folder) {
			t[name] = file{f.mode, ""}
			if path.Base(name) == "lock" { // removed when the search ends; a loss of power may undo that
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

// alikeRecords drops the records of shards, which hold the shards' times, and the process numbers in locks.
func alikeRecords(name, data string) string {
	if path.Base(path.Dir(name)) == "records" || path.Base(name) == "lock" {
		return ""
	}
	return data
}

// cardRecord is what a manifest says of the model card.
var cardRecord = regexp.MustCompile(`\{"path": ?"README.md"[^}]*\}`)

// alikeCards drops the model card, which has no loss if an error has kept a conversion that is written from measuring it.
func alikeCards(name, data string) string {
	switch path.Base(name) {
	case "README.md":
		return ""
	case "lowtoggle.json":
		return cardRecord.ReplaceAllString(data, "")
	}
	return data
}

// reading is a measured point or kernel in a file of measurements.
var reading = regexp.MustCompile(`"(load|kernel|name)": ?"[^"]*"`)

// alikeReadings keeps what was measured: the measurements themselves differ, as each is of another moment. Reports follow from them.
func alikeReadings(name, data string) string {
	if path.Ext(name) != ".json" {
		return ""
	}
	list := reading.FindAllString(data, -1)
	slices.Sort(list)
	return strings.Join(slices.Compact(list), "\n")
}
