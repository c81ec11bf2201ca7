package term

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/internal/progress"
)

// LogEvery is the time between two lines of a log. Tests that compare standard error change it.
var LogEvery = 30 * time.Second

// LogVersion is the version of [LogLine].
const LogVersion = 1

// LogLine is one line of the log that --log json writes on standard error: the progress of one task of a command.
type LogLine struct {
	Version      int      `json:"log_version"`
	Command      string   `json:"command"`
	Seconds      float64  `json:"seconds"`                 // since the command began
	Task         string   `json:"task,omitempty"`          // such as the name of a card; absent for a command's only task
	Stage        string   `json:"stage,omitempty"`         // absent while no stage reports
	StageNumber  int      `json:"stage_number,omitempty"`  // from 1; absent if stages are not counted
	Stages       int      `json:"stages,omitempty"`        // number of stages of the task
	StageSeconds *float64 `json:"stage_seconds,omitempty"` // since the stage began
	Done         *int64   `json:"done,omitempty"`          // in the stage's own unit
	Total        *int64   `json:"total,omitempty"`         // in the unit of done; absent if unknown
	Share        *float64 `json:"share,omitempty"`         // done/total
	SecondsLeft  *float64 `json:"seconds_left,omitempty"`  // of this stage, at its mean rate so far
}

// String formats the line as text.
func (l LogLine) String() string {
	s := "lowtoggle " + l.Command + ": " + inSeconds(l.Seconds) + ": "
	if l.Stage == "" {
		return s + "running; this step reports no progress"
	}
	if l.Task != "" {
		s += l.Task + ": "
	}
	s += l.Stage
	if l.Stages > 0 {
		s += fmt.Sprintf(" (stage %d of %d)", l.StageNumber, l.Stages)
	}
	if l.Share == nil {
		return s + " for " + inSeconds(*l.StageSeconds)
	}
	s += fmt.Sprintf(", %.0f %% done", math.Floor(100**l.Share))
	if l.SecondsLeft != nil {
		s += ", about " + inSeconds(*l.SecondsLeft) + " until the end of this stage"
	}
	return s
}

func inSeconds(s float64) string {
	return time.Duration(math.Round(s) * float64(time.Second)).String()
}

// log writes lines about the progress of one command, at fixed intervals from the command's start.
type log struct {
	w       io.Writer
	command string
	json    bool
	began   time.Time
	stop    chan struct{}
	ended   sync.WaitGroup

	mu    sync.Mutex
	tasks []*task // in order of their first event
}

// task is the current stage of a task.
type task struct {
	name, stage        string
	began              time.Time // start of the stage
	first, done, total int64     // first: done at the stage's first event
	number, stages     int       // of the stage; 0: not counted
}

// logKey is the log's name in the metadata of an App.
const logKey = "log"

// StartLog begins the log of --log. Without --log, StartLog begins a text log if standard error is not a terminal.
// StartLog is a command's Before, and [EndLog] its After.
func StartLog(c *cli.Context) error {
	kind := c.String("log")
	switch {
	case !slices.ContainsFunc(c.Command.Flags, func(f cli.Flag) bool { return f.Names()[0] == "log" }):
		return nil
	case !slices.Contains([]string{"", "text", "json", "none"}, kind):
		return exit.Usagef("--log %s: give text, json or none", kind)
	case c.Bool("quiet") && kind != "" && kind != "none":
		return exit.Usagef("--quiet and --log %s exclude each other: leave one out", kind)
	case c.Bool("quiet") || kind == "none" || kind == "" && terminal(c) != nil:
		return nil
	}
	c.App.Metadata[logKey] = startLog(c.App.ErrWriter, c.Command.Name, kind == "json")
	return nil
}

// EndLog ends the log.
func EndLog(c *cli.Context) error {
	if l, ok := c.App.Metadata[logKey].(*log); ok {
		l.end()
	}
	return nil
}

func startLog(w io.Writer, command string, json bool) *log {
	l := &log{w: w, command: command, json: json, began: time.Now(), stop: make(chan struct{})}
	l.ended.Go(func() {
		ticks := time.NewTicker(LogEvery)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				l.write()
			case <-l.stop:
				return
			}
		}
	})
	return l
}

func (l *log) end() {
	close(l.stop)
	l.ended.Wait()
}

// on returns the callback for the task of this name.
func (l *log) on(name string) func(progress.Event) {
	return func(e progress.Event) {
		l.mu.Lock()
		defer l.mu.Unlock()
		i := slices.IndexFunc(l.tasks, func(t *task) bool { return t.name == name })
		if i < 0 {
			i = len(l.tasks)
			l.tasks = append(l.tasks, &task{name: name})
		}
		t := l.tasks[i]
		if t.stage != e.Stage {
			*t = task{name: name, stage: e.Stage, began: time.Now(), first: e.Done}
		}
		t.number, t.stages = e.Number, e.Stages
		t.done, t.total = max(t.done, e.Done), e.Total // events of several goroutines may arrive out of order
	}
}

// clear forgets all tasks, because they are done.
func (l *log) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tasks = nil
}

// write writes a line for each task, or a single line if no task has reported.
func (l *log) write() {
	for _, line := range l.lines(time.Now()) {
		text := line.String()
		if l.json {
			js, _ := json.Marshal(line) // marshalling finite numbers and text cannot fail
			text = string(js)
		}
		fmt.Fprintln(l.w, text)
	}
}

func (l *log) lines(now time.Time) (lines []LogLine) {
	l.mu.Lock()
	defer l.mu.Unlock()
	head := LogLine{Version: LogVersion, Command: l.command, Seconds: now.Sub(l.began).Seconds()}
	for _, t := range l.tasks {
		lines = append(lines, t.line(head, now))
	}
	if lines == nil {
		lines = []LogLine{head}
	}
	return lines
}

func (t *task) line(l LogLine, now time.Time) LogLine {
	in, done := now.Sub(t.began).Seconds(), t.done
	l.Task, l.Stage, l.StageSeconds, l.Done = t.name, t.stage, &in, &done
	l.StageNumber, l.Stages = t.number, t.stages
	if t.total <= 0 {
		return l
	}
	total, share := t.total, min(1, float64(done)/float64(t.total))
	l.Total, l.Share = &total, &share
	if made := done - t.first; made > 0 {
		left := in / float64(made) * float64(max(0, total-done))
		l.SecondsLeft = &left
	}
	return l
}
