package cli

import (
	"runtime/debug"
	"testing"
)

func TestDescribed(t *testing.T) {
	for _, test := range []struct {
		settings []debug.BuildSetting
		want     string
	}{
		{nil, Version + " (go1.26)"},
		{[]debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.time", Value: "2026-11-23T04:20:00Z"}, {Key: "vcs.modified", Value: "false"}},
			Version + " (commit 0123456789ab, 2026-11-23, go1.26)"},
		{[]debug.BuildSetting{{Key: "vcs.revision", Value: "0123"}, {Key: "vcs.modified", Value: "true"}}, Version + " (commit 0123, modified, go1.26)"},
	} {
		if got := described(&debug.BuildInfo{GoVersion: "go1.26", Settings: test.settings}); got != test.want {
			t.Errorf("%v: %q, want %q", test.settings, got, test.want)
		}
	}
}
