package term

import "io"

// Recorder is a writer for the parts of a report. It gets tables from Table.Print, and remarks from Remark, before they
// become text. So the same functions print a report and fill a page.
type Recorder interface {
	io.Writer
	Table(*Table)
	Remark(word, text string)
}
