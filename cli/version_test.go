package cli

import (
	"runtime/debug"
	"testing"
)

func TestDescribed(t *testing.T) {
	for _, test := range []struct {
		module   string
		settings []debug.BuildSetting
		want     string
	}{
		{"", nil, Version + " (go1.26)"},
		{"(devel)", []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.time", Value: "2026-11-23T04:20:00Z"}, {Key: "vcs.modified", Value: "false"}},
			Version + " (commit 0123456789ab, 2026-11-23, go1.26)"},
		{"v0.0.0-20261123042000-0123456789ab+dirty", []debug.BuildSetting{{Key: "vcs.revision", Value: "0123"}, {Key: "vcs.modified", Value: "true"}}, Version + " (commit 0123, modified, go1.26)"},
		{"v0.3.1", nil, "0.3.1 (go1.26)"},
		{"v0.3.1-rc.2", nil, "0.3.1-rc.2 (go1.26)"},
	} {
		if got := described(&debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Version: test.module}, Settings: test.settings}); got != test.want {
			t.Errorf("%s %v: %q, want %q", test.module, test.settings, got, test.want)
		}
	}
}
