package term

import "io"

// Recorder is a writer for the parts of a report. Table.Print and Remark pass a Recorder the table or the remark
// itself and not text, so the same functions print a report and fill a page.
type Recorder interface {
	io.Writer
	Table(*Table)
	Remark(word, text string)
}
