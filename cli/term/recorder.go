package term

import "io"

// Recorder is a writer that takes the parts of a report as they are. Table.Print and Remark give a Recorder the table and the
// remark themselves in place of text, so the same functions print a report and fill a page.
type Recorder interface {
	io.Writer
	Table(*Table)
	Remark(word, text string)
}
