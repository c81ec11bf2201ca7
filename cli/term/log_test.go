package term

import (
	"bytes"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/internal/progress"
)

// TestLog runs a log in the virtual time of a synctest bubble. The log writes nothing before 30 seconds, and then a
// line every 30 seconds for the current stage of each task.
func TestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		l := startLog(&text, "convert", false)
		expect := func(after time.Duration, want string) {
			t.Helper()
			text.Reset()
			time.Sleep(after)
			synctest.Wait()
			if diff := cmp.Diff(want, text.String()); diff != "" {
				t.Error(diff)
			}
		}
		expect(29*time.Second, "")
		expect(2*time.Second, "lowtoggle convert: 30s: running; this step reports no progress\n") // at 31 s
		event := l.on("")
		event(progress.Event{Stage: "check", Done: 40, Total: 100}) // resumed: 40 were done before
		time.Sleep(9 * time.Second)
		event(progress.Event{Stage: "check", Done: 60, Total: 100})
		event(progress.Event{Stage: "check", Done: 59, Total: 100}) // a late event from another goroutine
		expect(20*time.Second, "lowtoggle convert: 1m0s: check, 60 % done, about 58s until the end of this stage\n")
		event(progress.Event{Stage: "write", Total: 7, Number: 6, Stages: 7})
		expect(30*time.Second, "lowtoggle convert: 1m30s: write (stage 6 of 7), 0 % done\n")
		l.clear()
		l.on("card 0")(progress.Event{Stage: "warm-up"})
		l.on("card 1")(progress.Event{Stage: "measure", Done: 1, Total: 3})
		expect(30*time.Second, "lowtoggle convert: 2m0s: card 0: warm-up for 30s\nlowtoggle convert: 2m0s: card 1: measure, 33 % done\n")
		l.end()
		expect(time.Hour, "")
	})
}

func TestJSONLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		l := startLog(&text, "convert", true)
		defer l.end()
		event := l.on("")
		event(progress.Event{Stage: "write", Total: 400})
		time.Sleep(10 * time.Second)
		event(progress.Event{Stage: "write", Done: 100, Total: 400})
		time.Sleep(20*time.Second + 1)
		synctest.Wait()
		in, left, share, done, total := 30.0, 90.0, 0.25, int64(100), int64(400)
		want := LogLine{Version: 1, Command: "convert", Seconds: 30, Stage: "write", StageSeconds: &in, Done: &done, Total: &total,
			Share: &share, SecondsLeft: &left}
		var have LogLine
		if err := json.Unmarshal(text.Bytes(), &have); err != nil || bytes.Count(text.Bytes(), []byte("\n")) != 1 {
			t.Fatalf("%v in %q", err, text.String())
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Error(diff)
		}
	})
}
